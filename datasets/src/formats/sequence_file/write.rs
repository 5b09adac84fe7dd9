//! Writing of SequenceFiles with copied records, whose keys and values are unchanged.

use std::borrow::Cow;
use std::io::Write as _;

use xxhash_rust::xxh3::xxh3_128;

use super::block::Raw;
use super::class::put_vint;
use super::codec::Codec;
use super::header::{Header, MARKER_BYTES, SequenceCompression};
use super::read::SequenceRecords;
use super::shorten::Shortener;
use crate::parts::removal_log::Reasons;
use crate::{Error, Fate, PartOutput, Parts, Piece, Reading, Writer};

/// Least distance of sync markers, in bytes: one comes before the first record that begins this far behind
/// the last marker. The distance is that of Hadoop 2; the 100 KiB of Hadoop 3 would leave small files in one
/// piece.
const SYNC_BYTES: u64 = 100 * MARKER_BYTES as u64;
/// Length of a block's keys and values at which it is closed, in bytes, as in Hadoop.
const BLOCK_BYTES: usize = 1_000_000;
/// Number of bytes that are given to the store at once.
const WRITE_BYTES: usize = 1 << 18;

/// Writer of the records of a split, and of the removal log.
pub(super) struct SequenceWriter<'a> {
    parts: &'a dyn Parts,
    reading: Reading,
    kept: Option<SequencePart>,
    removed: Option<SequencePart>,
    rejected: Option<SequencePart>,
    reasons: Reasons<'a>,
}

impl<'a> SequenceWriter<'a> {
    pub(super) fn new(parts: &'a dyn Parts, reading: &Reading) -> Self {
        let reading = reading.clone();
        let reasons = Reasons::new(parts);
        SequenceWriter { parts, reading, kept: None, removed: None, rejected: None, reasons }
    }
}

impl Writer for SequenceWriter<'_> {
    fn divide(&mut self, piece: &Piece, fates: &mut dyn Iterator<Item = Fate>) -> Result<(), Error> {
        let changed = || Error::changed(piece.blob.path());
        let mut records = SequenceRecords::open(piece, &self.reading)?;
        let header = records.header.clone();
        let mut shortener = Shortener::new(&header, &self.reading);
        while let Some(raw) = records.next()? {
            let record = match raw {
                Raw::Record(record) => record,
                Raw::Lost { .. } => match fates.next() {
                    Some(Fate::Rejected) => continue,
                    _ => return Err(changed()),
                },
            };
            let (mut key, mut value) = (Cow::Borrowed(record.key), Cow::Borrowed(record.value));
            let (part, folder) = match fates.next() {
                Some(Fate::Kept) => (&mut self.kept, "kept"),
                Some(Fate::Cut(cuts)) => {
                    let text = if header.text_is_key() { &mut key } else { &mut value };
                    *text = shortener.shorten(text, &cuts).ok_or_else(changed)?.into();
                    (&mut self.kept, "kept")
                }
                Some(Fate::Removed(removal)) => {
                    self.reasons.write(&removal)?;
                    (&mut self.removed, "removed")
                }
                Some(Fate::Rejected) if self.parts.takes_rejected() => (&mut self.rejected, "rejected"),
                Some(Fate::Rejected) => continue,
                Some(Fate::Annotated(_)) | None => return Err(changed()),
            };
            if part.as_ref().is_none_or(|part| part.header != header.copy) {
                if let Some(part) = part.take() {
                    part.finish()?;
                }
                let output = self.parts.part(folder, &extension(&piece.name))?;
                *part = Some(SequencePart::new(&header, folder, output));
            }
            if let Some(part) = part {
                part.append(&key, &value)?;
            }
        }
        Ok(())
    }

    fn keep_none(&mut self, piece: &Piece) -> Result<bool, Error> {
        let header = SequenceRecords::open(piece, &self.reading)?.header.clone();
        let output = self.parts.part("kept", &extension(&piece.name))?;
        self.kept = Some(SequencePart::new(&header, "kept", output));
        Ok(true)
    }

    fn finish(self: Box<Self>) -> Result<(), Error> {
        for part in [self.kept, self.removed, self.rejected].into_iter().flatten() {
            part.finish()?;
        }
        self.reasons.finish()
    }
}

/// Returns the extension of a name, from its last dot on, or `.seq` if it has none.
pub(super) fn extension(name: &str) -> String {
    let name = name.rsplit('/').next().unwrap_or(name);
    match name.rsplit_once('.') {
        Some((stem, end)) if !stem.is_empty() && !end.is_empty() => format!(".{end}"),
        _ => ".seq".to_owned(),
    }
}

/// A file being written. It holds one block, or what was not yet given to the store.
pub(super) struct SequencePart {
    /// Header without the sync marker.
    header: Vec<u8>,
    marker: [u8; MARKER_BYTES],
    folder: &'static str,
    output: Box<dyn PartOutput>,
    records: u64,
    /// Bytes that are still to be written.
    buffer: Vec<u8>,
    /// Length of the file without the buffer.
    written: u64,
    /// Offset behind the last sync marker.
    synced: u64,
    block: Option<Block>,
}

impl SequencePart {
    pub(super) fn new(header: &Header, folder: &'static str, output: Box<dyn PartOutput>) -> Self {
        // The marker is not random, so that two runs write the same bytes. It is not the input's, so that a
        // text that quotes the input's marker does not contain a marker of the output.
        let mut seed = header.copy.clone();
        seed.extend(header.marker.iter().flat_map(|marker| &marker[4..]));
        let marker = Header::marker(xxh3_128(&seed).to_be_bytes());
        let mut buffer = header.copy.clone();
        buffer.extend_from_slice(&marker[4..]);
        let block = match header.compression {
            SequenceCompression::Block(codec) => Some(Block::new(codec)),
            SequenceCompression::None | SequenceCompression::Record(_) => None,
        };
        let synced = buffer.len() as u64;
        let header = header.copy.clone();
        SequencePart { header, marker, folder, output, records: 0, buffer, written: 0, synced, block }
    }

    pub(super) fn append(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.records += 1;
        match &mut self.block {
            Some(block) => {
                block.append(key, value);
                if block.keys.len() + block.values.len() >= BLOCK_BYTES {
                    self.close_block()?;
                }
            }
            None => {
                if self.written + self.buffer.len() as u64 >= self.synced + SYNC_BYTES {
                    self.buffer.extend_from_slice(&self.marker);
                    self.synced = self.written + self.buffer.len() as u64;
                }
                self.buffer.extend_from_slice(&((key.len() + value.len()) as u32).to_be_bytes());
                self.buffer.extend_from_slice(&(key.len() as u32).to_be_bytes());
                self.buffer.extend_from_slice(key);
                self.buffer.extend_from_slice(value);
            }
        }
        if self.buffer.len() >= WRITE_BYTES { self.write() } else { Ok(()) }
    }

    fn close_block(&mut self) -> Result<(), Error> {
        if let Some(block) = self.block.as_mut().filter(|block| block.count > 0) {
            self.buffer.extend_from_slice(&self.marker);
            block.close(&mut self.buffer).map_err(|error| Error::writing(self.folder, error))?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<(), Error> {
        self.output.write_all(&self.buffer).map_err(|error| Error::writing(self.folder, error))?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<(), Error> {
        self.close_block()?;
        self.write()?;
        Ok(self.output.finish(self.records)?)
    }
}

/// The records of a block, not yet compressed.
struct Block {
    codec: Codec,
    count: usize,
    key_lengths: Vec<u8>,
    keys: Vec<u8>,
    value_lengths: Vec<u8>,
    values: Vec<u8>,
    compressed: Vec<u8>,
}

impl Block {
    fn new(codec: Codec) -> Self {
        let none = Vec::new;
        Block {
            codec,
            count: 0,
            key_lengths: none(),
            keys: none(),
            value_lengths: none(),
            values: none(),
            compressed: none(),
        }
    }

    fn append(&mut self, key: &[u8], value: &[u8]) {
        self.count += 1;
        put_vint(&mut self.key_lengths, key.len());
        self.keys.extend_from_slice(key);
        put_vint(&mut self.value_lengths, value.len());
        self.values.extend_from_slice(value);
    }

    /// Appends the block to `out` and empties it.
    fn close(&mut self, out: &mut Vec<u8>) -> std::io::Result<()> {
        put_vint(out, self.count);
        self.count = 0;
        for part in [&mut self.key_lengths, &mut self.keys, &mut self.value_lengths, &mut self.values] {
            self.compressed.clear();
            self.codec.compress(part, &mut self.compressed)?;
            put_vint(out, self.compressed.len());
            out.extend_from_slice(&self.compressed);
            part.clear();
        }
        Ok(())
    }
}
