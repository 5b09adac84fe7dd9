//! The records of a piece, for both the reader of documents and the writer.

use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use operators::Reject;

use super::block::{DecodedBlock, KeyValue, Raw};
use super::class::{Class, vint};
use super::codec::Decompressor;
use super::header::{Header, MARKER_BYTES, SequenceCompression};
use super::window::{AFTER_BYTES, Window};
use crate::{Error, Piece, Reading};

/// Length of a record's two lengths, in bytes.
const LENGTHS: usize = 8;
/// Number of bytes of a bad stretch that are kept for a reject.
const HEAD_BYTES: u64 = Reject::HEAD_BYTES as u64;

/// The records of a piece, in order.
///
/// A file is a sequence of stretches. Each stretch reaches from one [boundary](Window) to the next, the first
/// one from the end of the header. A stretch belongs to the piece in which its boundary lies, the first one
/// to the first piece. No record is read across a boundary: a record that would reach over one is damaged.
/// For example:
///
/// ```text
/// header | records | sync, records | sync, records    three stretches: A, B, C
/// piece 1 ends within B                               it reads A and B, to the second sync
/// piece 2 begins within B                             it skips to the second sync, and reads C
/// ```
///
/// Memory: the largest record or (decompressed) block so far, and one read ahead.
pub(super) struct SequenceRecords {
    pub(super) header: Arc<Header>,
    window: Window,
    /// End of the piece.
    end: u64,
    /// Whether no stretch begins in the piece.
    done: bool,
    /// Largest length of a record as it is stored, without its lengths.
    max_record_bytes: usize,
    block: Option<DecodedBlock>,
    reason: String,
    head: Vec<u8>,
}

/// Next part of the file, at the position of the window.
enum Step {
    End,
    /// A record: its offset, the length of its key, and its whole length with its two lengths.
    Record(u64, usize, usize),
    Block(u64, usize, [Range<usize>; 4]),
    /// A loss: its offset, its reason, and where to continue if no boundary comes before. `None` means to
    /// continue only at a boundary.
    Lost(u64, String, Option<u64>),
}

impl SequenceRecords {
    pub(super) fn open(piece: &Piece, reading: &Reading) -> Result<Self, Error> {
        let header = Arc::new(Header::read(&*piece.blob, reading.block_bytes)?);
        let start = piece.start.max(header.end);
        let key = header.key;
        let blocks = matches!(header.compression, SequenceCompression::Block(_));
        let follows = Box::new(move |after: &[u8], rest| match blocks {
            true => block_can_follow(after, rest),
            false => lengths(after, rest, key).is_ok(),
        });
        let mut window = Window::new(piece.blob.clone(), start, piece.end, header.marker, follows);
        let mut done = piece.start >= piece.end;
        if piece.start > 0 && !done {
            window.skip(start, piece.end)?;
            done = window.offset() >= piece.end;
        }
        let block = match header.compression {
            SequenceCompression::Block(codec) => {
                // Writers close a block behind the record that fills it.
                let max_bytes = reading.max_record_bytes + reading.block_bytes;
                Some(DecodedBlock::new(Decompressor::new(codec, reading.window_log()), max_bytes))
            }
            _ => None,
        };
        let (end, max_record_bytes) = (piece.end, reading.max_record_bytes);
        let (reason, head) = (String::new(), Vec::new());
        Ok(SequenceRecords { header, window, end, done, max_record_bytes, block, reason, head })
    }

    /// Returns the next record, or `None` after the last.
    pub(super) fn next(&mut self) -> Result<Option<Raw<'_>>, Error> {
        if self.block.as_ref().is_some_and(|block| block.left > 0) {
            return Ok(self.block.as_mut().map(DecodedBlock::next));
        }
        if self.done {
            return Ok(None);
        }
        loop {
            let (offset, reason, past) = match self.step()? {
                Step::End => return Ok(None),
                Step::Lost(offset, reason, past) => (offset, reason, past),
                Step::Record(offset, key_bytes, bytes) => {
                    let (key, value) = self.window.take(bytes)[LENGTHS..].split_at(key_bytes);
                    return Ok(Some(Raw::Record(KeyValue { offset, index: None, key, value })));
                }
                Step::Block(offset, count, parts) => {
                    let Some(block) = &mut self.block else { return Ok(None) };
                    let end = parts[3].end;
                    match block.fill(offset, count, parts.map(|part| &self.window.loaded()[part])) {
                        Ok(()) => {
                            self.window.take(end);
                            if block.left > 0 {
                                break;
                            }
                            continue;
                        }
                        Err(reason) => (offset, reason, Some(offset + end as u64)),
                    }
                }
            };
            self.reason = reason;
            self.window.load(offset + HEAD_BYTES)?;
            self.head.clear();
            self.head.extend(self.window.loaded().iter().take(HEAD_BYTES as usize));
            self.window.skip(offset + 1, past.unwrap_or(u64::MAX))?;
            // Writing to a String cannot fail.
            let _ = write!(self.reason, "; {} bytes passed over", self.window.offset() - offset);
            return Ok(Some(Raw::Lost { offset, reason: &self.reason, head: &self.head }));
        }
        Ok(self.block.as_mut().map(DecodedBlock::next))
    }

    /// Passes sync markers up to the next record or block, and loads that.
    fn step(&mut self) -> Result<Step, Error> {
        loop {
            let offset = self.window.offset();
            self.window.load(offset + (MARKER_BYTES + AFTER_BYTES) as u64)?;
            let rest = self.window.rest(offset);
            if rest == 0 {
                return Ok(Step::End);
            }
            if self.window.at_marker() {
                if offset >= self.end && self.window.boundary(offset, offset + 1)?.is_some() {
                    return Ok(Step::End);
                }
                let after = &self.window.loaded()[MARKER_BYTES..];
                if self.block.is_some() && !after.is_empty() && !self.window.is_marker(after) {
                    return self.block_step(offset);
                }
                self.window.skip(offset + 1, offset + MARKER_BYTES as u64)?;
                continue;
            }
            if self.block.is_some() {
                return Ok(Step::Lost(offset, "no sync marker where a block should begin".to_owned(), None));
            }
            return self.record_step(offset, rest);
        }
    }

    fn record_step(&mut self, offset: u64, rest: u64) -> Result<Step, Error> {
        let (key_bytes, bytes) = match lengths(self.window.loaded(), rest, self.header.key) {
            Ok(lengths) => lengths,
            Err((reason, past)) => {
                // The length of a bad record is trusted only if something sensible follows the record.
                let past = past.map(|bytes| offset + bytes);
                let past = match past {
                    Some(past) if self.window.sensible(past)? => Some(past),
                    _ => None,
                };
                return Ok(Step::Lost(offset, reason, past));
            }
        };
        if bytes - LENGTHS > self.max_record_bytes {
            let bytes = bytes - LENGTHS;
            let limit = self.max_record_bytes;
            let reason = format!("a record of {bytes} bytes, more than {limit}");
            return Ok(Step::Lost(offset, reason, Some(offset + (LENGTHS + bytes) as u64)));
        }
        if self.window.boundary(offset + 1, offset + bytes as u64)?.is_some() {
            return Ok(Step::Lost(offset, "a sync marker lies within the record".to_owned(), None));
        }
        self.window.load(offset + bytes as u64)?;
        if self.window.loaded().len() < bytes {
            return Ok(Step::Lost(offset, "the file ends within the record".to_owned(), None));
        }
        Ok(Step::Record(offset, key_bytes, bytes))
    }

    fn block_step(&mut self, offset: u64) -> Result<Step, Error> {
        let lost = |reason: &str| Ok(Step::Lost(offset, reason.to_owned(), None));
        let max_bytes = self.block.as_ref().map_or(0, |block| block.max_bytes);
        let mut at = MARKER_BYTES;
        let Some(count) = self.length(offset, &mut at)? else {
            return lost("the block's number of records is damaged");
        };
        let mut parts = [const { 0..0 }; 4];
        for part in &mut parts {
            let bytes = self
                .length(offset, &mut at)?
                .filter(|&bytes| bytes as u64 <= self.window.rest(offset + at as u64));
            let Some(bytes) = bytes else {
                return lost("a length in the block is negative or beyond the end of the file");
            };
            *part = at..at + bytes;
            at += bytes;
            if at > max_bytes {
                return lost(&format!("the block is more than {max_bytes} bytes"));
            }
            if self.window.boundary(offset + 1, offset + at as u64)?.is_some() {
                return lost("a sync marker lies within the block");
            }
            self.window.load(offset + at as u64)?;
        }
        if self.window.loaded().len() < at {
            return lost("the file ends within the block");
        }
        Ok(Step::Block(offset, count, parts))
    }

    /// Reads a length at `at`, relative to the block at `offset`, and moves `at` behind it.
    fn length(&mut self, offset: u64, at: &mut usize) -> Result<Option<usize>, Error> {
        self.window.load(offset + *at as u64 + 9)?;
        let Some((length, bytes)) = self.window.loaded().get(*at..).and_then(vint) else { return Ok(None) };
        *at += bytes;
        Ok(usize::try_from(length).ok())
    }
}

/// Reads a record's lengths: returns the length of its key, and of the whole record. `rest` is the number of
/// bytes from there to the end of the file.
///
/// An error says what is wrong with the lengths, and how long the record is if at least that may be right.
fn lengths(bytes: &[u8], rest: u64, key: Class) -> Result<(usize, usize), (String, Option<u64>)> {
    let Some(&[a, b, c, d, e, f, g, h]) = bytes.first_chunk::<LENGTHS>() else {
        return Err(("the file ends within the lengths of a record".to_owned(), None));
    };
    let (record, key_length) = (i32::from_be_bytes([a, b, c, d]), i32::from_be_bytes([e, f, g, h]));
    let Ok(record_bytes) = u64::try_from(record) else {
        return Err((format!("a record of {record} bytes"), None));
    };
    let bytes = LENGTHS as u64 + record_bytes;
    if bytes > rest {
        return Err((format!("a record of {record} bytes, and the file ends before"), None));
    }
    if key_length < 0 || key_length > record {
        return Err((format!("a key of {key_length} bytes in a record of {record}"), Some(bytes)));
    }
    if key.bytes().is_some_and(|bytes| bytes != key_length as usize) {
        return Err((format!("a {key:?}Writable key of {key_length} bytes"), Some(bytes)));
    }
    Ok((key_length as usize, bytes as usize))
}

/// Returns whether a block may begin with `after`: a number of records, and a first part that fits into the
/// file.
fn block_can_follow(after: &[u8], rest: u64) -> bool {
    vint(after).is_some_and(|(count, bytes)| {
        count >= 0 && vint(&after[bytes..]).is_some_and(|(length, _)| (0..=rest as i64).contains(&length))
    })
}
