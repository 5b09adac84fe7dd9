//! The one way through the records of a piece, for the reader of documents and for the writer.

use std::ops::Range;
use std::sync::Arc;

use super::codec::Decompressor;
use super::header::{Class, Compression, Header, MARKER_BYTES, vint};
use super::window::{AFTER_BYTES, Window};
use crate::{Error, Piece};

/// The largest record, and the largest block, that is taken into memory.
pub(super) const RECORD_BYTES: u64 = 1 << 30;
/// The most that the lengths of a block's keys, or values, may take: 13 million records at the least.
const LENGTHS_BYTES: usize = 1 << 26;
/// A record's two lengths.
const LENGTHS: usize = 8;
/// How much of a bad stretch is kept for a reject.
const HEAD_BYTES: u64 = 80;

/// What stands at one record's place.
pub(super) enum Raw<'a> {
    /// A record, its value still compressed where each value is.
    Record(Record<'a>),
    /// A record, a block or a stretch of the file that cannot be read.
    Lost {
        /// In the file.
        offset: u64,
        /// Lower case, no full stop.
        reason: &'a str,
        /// How it begins.
        head: &'a [u8],
    },
}

/// The serialised key and value of a record.
pub(super) struct Record<'a> {
    /// Where the record begins in the file, or its block.
    pub(super) offset: u64,
    /// Its number in the block, where there are blocks.
    pub(super) index: Option<usize>,
    pub(super) key: &'a [u8],
    pub(super) value: &'a [u8],
}

/// The records of a piece, in order.
///
/// A file is a row of stretches, each from one [boundary](Window) to the next, and the first from the end of
/// the header. A piece has those whose boundary lies in it, and the first piece the first one. Nothing that is
/// read reaches over a boundary: a record that would is damaged.
///
/// Memory: the largest record or (decompressed) block so far, and one read ahead.
pub(super) struct Records {
    pub(super) header: Arc<Header>,
    window: Window,
    /// The end of the piece.
    end: u64,
    /// Whether no stretch begins in the piece.
    done: bool,
    block: Option<Block>,
    reason: String,
    head: Vec<u8>,
}

enum Step {
    End,
    /// A record with a key of so many bytes, of so many in all with its lengths.
    Record(u64, usize, usize),
    Block(u64, usize, [Range<usize>; 4]),
    /// Where, why, and how far to go if there is no boundary before: `None` if only a boundary helps.
    Lost(u64, String, Option<u64>),
}

impl Records {
    pub(super) fn open(piece: &Piece) -> Result<Self, Error> {
        let header = Arc::new(Header::read(&*piece.blob)?);
        let start = piece.start.max(header.end());
        let (key, blocks) = (header.key, matches!(header.compression, Compression::Block(_)));
        let follows = Box::new(move |after: &[u8], rest| match blocks {
            true => block_can_follow(after, rest),
            false => lengths(after, rest, key).is_ok(),
        });
        let mut window = Window::new(piece.blob.clone(), start, piece.end, &header.marker, follows);
        let mut done = piece.start >= piece.end;
        if piece.start > 0 && !done {
            window.skip(start, piece.end)?;
            done = window.offset() >= piece.end;
        }
        let block = match header.compression {
            Compression::Block(codec) => Some(Block::new(Decompressor::new(codec))),
            _ => None,
        };
        Ok(Records { header, window, end: piece.end, done, block, reason: String::new(), head: Vec::new() })
    }

    /// The next record; `None` after the last.
    pub(super) fn next(&mut self) -> Result<Option<Raw<'_>>, Error> {
        if self.block.as_ref().is_some_and(|block| block.left > 0) {
            return Ok(self.block.as_mut().map(Block::next));
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
                    return Ok(Some(Raw::Record(Record { offset, index: None, key, value })));
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
            return Ok(Some(Raw::Lost { offset, reason: &self.reason, head: &self.head }));
        }
        Ok(self.block.as_mut().map(Block::next))
    }

    /// Goes past sync markers to the next record or block, and loads it.
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
                if self.block.is_some() && !after.is_empty() && !after.starts_with(&self.header.marker) {
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
                // The length of a record is believed only if it leads to something sensible.
                let past = past.map(|bytes| offset + bytes);
                let past = match past {
                    Some(past) if self.window.sensible(past)? => Some(past),
                    _ => None,
                };
                return Ok(Step::Lost(offset, reason, past));
            }
        };
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
            if at as u64 > RECORD_BYTES {
                return lost("the block is more than 1 GiB");
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

    /// Reads a length `at` so many bytes into the block at `offset`, and moves `at` behind it.
    fn length(&mut self, offset: u64, at: &mut usize) -> Result<Option<usize>, Error> {
        self.window.load(offset + *at as u64 + 9)?;
        let Some((length, bytes)) = self.window.loaded().get(*at..).and_then(vint) else { return Ok(None) };
        *at += bytes;
        Ok(usize::try_from(length).ok())
    }
}

/// Reads a record's lengths: those of its key, and of all of it. `rest` is how many bytes the file has from there on.
///
/// An error says what is wrong with them, and how long the record is if that at least may be right.
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
    if bytes > RECORD_BYTES {
        return Err((format!("a record of {record} bytes is more than 1 GiB"), Some(bytes)));
    }
    Ok((key_length as usize, bytes as usize))
}

/// Whether a block may begin with `after`: a number of records, and a first part that fits into the file.
fn block_can_follow(after: &[u8], rest: u64) -> bool {
    vint(after).is_some_and(|(count, bytes)| {
        count >= 0 && vint(&after[bytes..]).is_some_and(|(length, _)| (0..=rest as i64).contains(&length))
    })
}

/// A decompressed block. Its buffers are kept for the next one.
struct Block {
    decompressor: Decompressor,
    offset: u64,
    index: usize,
    left: usize,
    keys: Half,
    values: Half,
}

/// The keys of a block, or its values: their lengths, and all of them one after the other.
#[derive(Default)]
struct Half {
    lengths: Vec<u8>,
    lengths_at: usize,
    bytes: Vec<u8>,
    at: usize,
}

impl Block {
    fn new(decompressor: Decompressor) -> Self {
        Block { decompressor, offset: 0, index: 0, left: 0, keys: Half::default(), values: Half::default() }
    }

    /// Decompresses and checks all of a block, so that a damaged one gives nothing rather than wrong records.
    fn fill(&mut self, offset: u64, count: usize, parts: [&[u8]; 4]) -> Result<(), String> {
        self.keys.fill(&mut self.decompressor, count, parts[0], parts[1], "key")?;
        self.values.fill(&mut self.decompressor, count, parts[2], parts[3], "value")?;
        (self.offset, self.index, self.left) = (offset, 0, count);
        Ok(())
    }

    /// The next of `left` records.
    fn next(&mut self) -> Raw<'_> {
        let index = Some(self.index);
        self.index += 1;
        self.left -= 1;
        Raw::Record(Record { offset: self.offset, index, key: self.keys.next(), value: self.values.next() })
    }
}

impl Half {
    fn fill(
        &mut self,
        decompressor: &mut Decompressor,
        count: usize,
        lengths: &[u8],
        bytes: &[u8],
        what: &str,
    ) -> Result<(), String> {
        let bad = |reason| format!("the {what}s of the block: {reason}");
        (self.lengths_at, self.at) = (0, 0);
        decompressor.decompress(lengths, LENGTHS_BYTES, &mut self.lengths).map_err(bad)?;
        let (mut sum, mut at) = (0u64, 0);
        for _ in 0..count {
            let Some((length, bytes)) = vint(&self.lengths[at..]).filter(|&(length, _)| length >= 0) else {
                return Err(format!("the block does not hold {count} {what}s"));
            };
            at += bytes;
            sum = sum.saturating_add(length as u64);
        }
        if sum > RECORD_BYTES {
            return Err(format!("the {what}s of the block are {sum} bytes, more than 1 GiB"));
        }
        decompressor.decompress(bytes, sum as usize, &mut self.bytes).map_err(bad)?;
        if at != self.lengths.len() || sum != self.bytes.len() as u64 {
            return Err(format!("the {what}s of the block are not as long as it says"));
        }
        Ok(())
    }

    /// The next one; all lengths were checked when the block was filled.
    fn next(&mut self) -> &[u8] {
        let (length, bytes) = vint(&self.lengths[self.lengths_at..]).unwrap_or_default();
        self.lengths_at += bytes;
        self.at += length as usize;
        &self.bytes[self.at - length as usize..self.at]
    }
}
