//! Files whose deflate streams are undone, so that equal contents are equal bytes.
//!
//! A Word document is a ZIP archive and a PDF a list of objects, and both compress their parts by deflate. If a letter
//! changes, all compressed bytes behind it do. `scan.rs` finds the streams, and preflate-rs decompresses each and notes
//! what its compressor has done differently than expected, so that the same bytes can be made again. A stream for which
//! that fails stays as it is. Foreign files are undone in confined processes alone (`confined/undo.rs`).

mod scan;

use cluster::catch;
use preflate_rs::{PreflateConfig, preflate_whole_deflate_stream, recreate_whole_deflate_stream};
use serde::{Deserialize, Serialize};

use self::scan::StreamScan;
pub(crate) use self::scan::has_streams;

/// Length of all streams of a file together, decompressed; those behind stay as they are.
pub(crate) const MAX_PLAIN_BYTES: usize = 32 << 20;
/// A stream shorter than this stays as it is.
const LEAST_STREAM_BYTES: usize = 32;
/// Longest chain of earlier occurrences that is followed to find out what a compressor has done.
const MAX_CHAIN: u32 = 4096;
/// A file whose deflate streams are undone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UndoneFile {
    /// Its parts, in order.
    pub parts: Vec<DeflatePart>,
    /// Decompressed bytes of the streams, one stream after the other.
    pub plain: Vec<u8>,
    /// Corrections, by which each stream is compressed as it was.
    pub corrections: Vec<u8>,
    /// All bytes of the file that are in no stream.
    pub raw: Vec<u8>,
}

/// Lengths of a part of a file: bytes that are in no stream, and a stream behind them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct DeflatePart {
    /// Number of bytes before the stream.
    pub raw: u32,
    /// Number of bytes that the stream holds.
    pub plain: u32,
    /// Number of bytes of its corrections; 0 if there is no stream, as at the end of a file.
    pub corrections: u32,
}

impl DeflatePart {
    /// Returns the number of bytes of its contents: raw and plain bytes, and corrections.
    pub fn bytes(&self) -> u64 {
        u64::from(self.raw) + u64::from(self.plain) + u64::from(self.corrections)
    }
}

impl UndoneFile {
    /// Takes a file from its parts and its contents: plain bytes, corrections, and raw bytes. `None` if they are of other
    /// lengths than the parts say.
    pub fn of_contents(parts: Vec<DeflatePart>, mut contents: Vec<u8>) -> Option<Self> {
        let sum =
            |length: fn(&DeflatePart) -> u32| parts.iter().map(|part| u64::from(length(part))).sum::<u64>();
        let (plain, corrections) = (sum(|part| part.plain), sum(|part| part.corrections));
        if plain + corrections + sum(|part| part.raw) != contents.len() as u64 {
            return None;
        }
        let raw = contents.split_off((plain + corrections) as usize);
        let corrections = contents.split_off(plain as usize);
        Some(UndoneFile { parts, plain: contents, corrections, raw })
    }

    /// Undoes the streams of a file, up to `max_bytes` decompressed bytes.
    pub(crate) fn of(file: &[u8], max_bytes: usize) -> Result<Self, String> {
        let mut undone = UndoneFile::default();
        let mut scan = StreamScan::new(file);
        let mut taken = 0;
        while let Some(start) = scan.next() {
            let left = max_bytes.min(MAX_PLAIN_BYTES).saturating_sub(undone.plain.len());
            let config = PreflateConfig {
                max_chain_length: MAX_CHAIN,
                plain_text_limit: left,
                verify_compression: false,
            };
            // Whatever goes wrong in it, the stream stays as it is.
            let result = catch(|| preflate_whole_deflate_stream(&file[start..], &config));
            let Ok(Ok((stream, plain))) = result else { continue };
            if stream.compressed_size < LEAST_STREAM_BYTES || stream.corrections.is_empty() {
                continue;
            }
            undone.push(&file[taken..start], plain.text(), &stream.corrections);
            taken = start + stream.compressed_size;
            scan.skip_to(taken);
        }
        undone.push(&file[taken..], &[], &[]);
        Ok(undone)
    }

    fn push(&mut self, raw: &[u8], plain: &[u8], corrections: &[u8]) {
        self.parts.push(DeflatePart {
            raw: raw.len() as u32,
            plain: plain.len() as u32,
            corrections: corrections.len() as u32,
        });
        self.raw.extend_from_slice(raw);
        self.plain.extend_from_slice(plain);
        self.corrections.extend_from_slice(corrections);
    }

    /// Makes the file again.
    pub(crate) fn recreate(&self) -> Result<Vec<u8>, String> {
        let (mut raw, mut plain, mut corrections) = (&self.raw[..], &self.plain[..], &self.corrections[..]);
        let mut file = Vec::new();
        for part in &self.parts {
            file.extend_from_slice(take(&mut raw, part.raw)?);
            let (plain, corrections) =
                (take(&mut plain, part.plain)?, take(&mut corrections, part.corrections)?);
            if !corrections.is_empty() {
                let stream = catch(|| recreate_whole_deflate_stream(plain, corrections))?;
                file.extend(stream.map_err(|error| error.to_string())?);
            }
        }
        match raw.is_empty() && plain.is_empty() && corrections.is_empty() {
            true => Ok(file),
            false => Err("bytes are left over".to_owned()),
        }
    }

    /// Returns the bytes of a message: the length of the parts and the parts in postcard's encoding, then plain bytes,
    /// corrections and raw bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let parts = postcard::to_stdvec(&self.parts).unwrap_or_default();
        let mut message = (parts.len() as u64).to_le_bytes().to_vec();
        for bytes in [&parts, &self.plain, &self.corrections, &self.raw] {
            message.extend_from_slice(bytes);
        }
        message
    }

    /// Reads what [`UndoneFile::encode`] has written.
    pub(crate) fn decode(mut message: &[u8]) -> Result<Self, String> {
        let wrong = || "a message of another form".to_owned();
        let (length, rest) = message.split_first_chunk().ok_or_else(wrong)?;
        message = rest;
        let length = u32::try_from(u64::from_le_bytes(*length)).map_err(|_| wrong())?;
        let parts: Vec<DeflatePart> =
            postcard::from_bytes(take(&mut message, length)?).map_err(|_| wrong())?;
        let mut taken = |length: &dyn Fn(&DeflatePart) -> u32| {
            let bytes = parts.iter().map(|part| u64::from(length(part))).sum::<u64>();
            Ok::<_, String>(take(&mut message, u32::try_from(bytes).map_err(|_| wrong())?)?.to_vec())
        };
        let (plain, corrections, raw) =
            (taken(&|part| part.plain)?, taken(&|part| part.corrections)?, taken(&|part| part.raw)?);
        if message.is_empty() { Ok(UndoneFile { parts, plain, corrections, raw }) } else { Err(wrong()) }
    }
}

/// Takes `length` bytes from the front.
fn take<'a>(bytes: &mut &'a [u8], length: u32) -> Result<&'a [u8], String> {
    let (taken, rest) = bytes.split_at_checked(length as usize).ok_or("bytes are missing")?;
    *bytes = rest;
    Ok(taken)
}

#[cfg(test)]
mod tests;
