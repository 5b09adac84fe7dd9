//! The process that works on foreign files for another one: this program itself, started once more.

use std::io::{self, Read, Write};

use super::confine::{Bounds, confine};
use super::task::ConfinedTask;

/// First argument that makes this program serve as an extractor. Its [`Bounds`] follow.
pub const EXTRACT: &str = "__extract";
/// Line that an extractor sends once it is confined.
pub(super) const READY: &[u8; 6] = b"ready\n";

/// Does the one task of `request` and answers it.
///
/// | message | contents |
/// |---|---|
/// | request | number of the task (1 byte), length of the document (8 bytes, little-endian), document |
/// | response | 1 for a result or 0 for the reason why there is none (1 byte), length, result or reason |
///
/// The process confines itself (`confine.rs`) before it reads a byte. A document that is too long and an
/// error of the pipes end the process, because the parent never sends the one or causes the other. A request
/// that never comes ends the process without an answer.
pub fn serve(mut request: impl Read, mut response: impl Write, bounds: Bounds) -> io::Result<()> {
    confine(bounds)?;
    response.write_all(READY)?;
    response.flush()?;
    let mut number = [0];
    match request.read_exact(&mut number) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
        read => read?,
    }
    let task = ConfinedTask::of_number(number[0]).ok_or(io::ErrorKind::InvalidData)?;
    let document = read_message(&mut request, bounds.max_bytes.saturating_add(FRAME_BYTES))?;
    let (sort, result) = match task.run(document, bounds.max_bytes) {
        Ok(result) => (1, result),
        Err(reason) => (0, reason.into_bytes()),
    };
    response.write_all(&[sort])?;
    write_message(&mut response, &result)
}

/// Most bytes of a request besides one document.
const FRAME_BYTES: usize = 16;

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
