//! The process that reads documents for another one: this program itself, started once more.

use std::io::{self, Read, Write};

use super::confine::{Bounds, confine};
use super::extract::extract;

/// First argument that makes this program serve as an extractor. Its [`Bounds`] follow.
pub const EXTRACT: &str = "__extract";
/// Line that an extractor sends once it is confined.
pub(super) const READY: &[u8; 6] = b"ready\n";

/// Reads the one document of `request` and answers it.
///
/// | message | contents |
/// |---|---|
/// | request | length of the document (8 bytes, little-endian), document |
/// | response | 1 for a text or 0 for the reason why there is none (1 byte), length, text or reason |
///
/// The process confines itself (`confine.rs`) before it reads a byte. A document that is too long and an
/// error of the pipes end the process, because the parent never sends the one or causes the other. A request
/// that never comes ends the process without an answer.
pub fn serve(mut request: impl Read, mut response: impl Write, bounds: Bounds) -> io::Result<()> {
    confine(bounds)?;
    response.write_all(READY)?;
    response.flush()?;
    let document = match read_message(&mut request, bounds.max_bytes) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
        document => document?,
    };
    let (sort, text) = match extract(document, bounds.max_bytes) {
        Ok(text) => (1, text),
        Err(reason) => (0, reason),
    };
    response.write_all(&[sort])?;
    write_message(&mut response, text.as_bytes())
}

/// Reads a length and that many bytes. Memory grows as the bytes come.
pub(super) fn read_message(from: &mut impl Read, max_bytes: usize) -> io::Result<Vec<u8>> {
    let mut length = [0; 8];
    from.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    if length > max_bytes as u64 {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a message that is too long"));
    }
    let mut bytes = Vec::new();
    from.take(length).read_to_end(&mut bytes)?;
    if (bytes.len() as u64) < length { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(bytes) }
}

/// Writes a length and the bytes.
pub(super) fn write_message(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    to.write_all(&(bytes.len() as u64).to_le_bytes())?;
    to.write_all(bytes)?;
    to.flush()
}
