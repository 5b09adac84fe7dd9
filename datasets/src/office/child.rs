//! The process that reads documents for another: this program itself, started once more.

use std::io::{self, Read, Write};

use super::confine::{confine, renew_cpu_time};
use super::extract;

/// The first argument that makes this program serve as an extractor; the second is the longest document in bytes.
pub const EXTRACT: &str = "__extract";
/// What an extractor says once it can do no harm.
pub(super) const READY: &[u8; 6] = b"ready\n";

/// Serves documents from `requests` to `responses` until there are no more.
///
/// A request is its length (8 bytes, little endian) and the document; a response a byte, 1 for text and 0 for a
/// reason why there is none, a length and that. Before it reads the first, the process confines itself (`confine.rs`).
/// A document of more than `max_bytes`, and an error of the pipes, end it: nobody would send one. State: the document
/// at hand, see `confine.rs`.
pub fn serve(mut requests: impl Read, mut responses: impl Write, max_bytes: usize) -> io::Result<()> {
    confine(max_bytes)?;
    responses.write_all(READY)?;
    responses.flush()?;
    while let Some(document) = read_request(&mut requests, max_bytes)? {
        renew_cpu_time()?;
        let (sort, text) = match extract(document, max_bytes) {
            Ok(text) => (1, text),
            Err(reason) => (0, reason),
        };
        responses.write_all(&[sort])?;
        write_message(&mut responses, text.as_bytes())?;
    }
    Ok(())
}

fn read_request(requests: &mut impl Read, max_bytes: usize) -> io::Result<Option<Vec<u8>>> {
    match read_message(requests, max_bytes) {
        Ok(document) => Ok(Some(document)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
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
