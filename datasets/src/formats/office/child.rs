//! The process that reads documents for another: this program itself, started once more.

use std::io::{self, Read, Write};

use super::confine::{Bounds, confine};
use super::extract;

/// The first argument that makes this program serve as an extractor; then come its [`Bounds`].
pub const EXTRACT: &str = "__extract";
/// What an extractor says once it can do no harm.
pub(super) const READY: &[u8; 6] = b"ready\n";

/// Reads the one document of `request` and answers it.
///
/// A request is its length (8 bytes, little endian) and the document; a response a byte, 1 for text and 0 for a
/// reason why there is none, a length and that. Before it reads a byte, the process confines itself (`confine.rs`).
/// A document that is too long, and an error of the pipes, end it: nobody would send one. So does a request that never
/// comes, without an answer.
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

/// Reads a length and as many bytes; memory is taken as they come.
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
