//! Reads the blocks of a run and compares their checksums.

use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;
use zstd::bulk::Decompressor;

use super::block::{MAGIC, MAX_BYTES, RunBlock, clear, index_shape};
use super::summary::{BlockPlace, RunSummary};
use crate::{Blob, Error};

/// Largest number of bytes that are read at once for leaves that follow each other.
const AHEAD_BYTES: u64 = 1 << 20;
/// Largest number of bytes that zstd makes of one. A block of its format has up to 128 KiB and takes 4 bytes.
const MOST_EXPANSION: usize = 1 << 15;

/// An open run: its file, and its root in memory.
pub(super) struct RunSource {
    blob: Arc<dyn Blob>,
    pub summary: RunSummary,
    pub root: RunBlock,
    /// Level of the root. Leaves have level 0.
    pub height: u8,
}

impl RunSource {
    pub fn open(blob: Arc<dyn Blob>, summary: &RunSummary) -> Result<Self, Error> {
        let RunSummary { shape, bytes, root: place, .. } = *summary;
        let root = RunBlock::default();
        let mut source = RunSource { blob, summary: summary.clone(), root, height: 0 };
        if source.blob.bytes() != bytes {
            let reason = format!("it has {} bytes instead of {bytes}", source.blob.bytes());
            return Err(source.damage(bytes.min(source.blob.bytes()), &reason));
        }
        if !shape.is_possible() || place.offset.checked_add(place.bytes) != Some(bytes) {
            return Err(source.damage(place.offset, "its summary is wrong"));
        }
        let mut root = RunBlock::default();
        source.read(place, &mut root.data)?;
        source.height = root.data.first().copied().unwrap_or_default();
        let parsed = match source.height {
            0 => Err("the root is a leaf"),
            height => root.parse(height, index_shape(shape)),
        };
        parsed.map_err(|reason| source.damage(place.offset, reason))?;
        if root.tail() != MAGIC {
            return Err(source.damage(place.offset, "it is not a run of this version"));
        }
        if (root.rows() == 0) != (summary.rows == 0) {
            return Err(source.damage(place.offset, "its root does not have the rows of its summary"));
        }
        source.root = root;
        Ok(source)
    }

    /// Returns the error of a damaged block.
    pub fn damage(&self, offset: u64, reason: &str) -> Error {
        Error::Damaged { path: self.blob.path().to_owned(), offset, reason: reason.to_owned() }
    }

    /// Reads an index block or a leaf. Leaves come from `leaves`, which may have read them already.
    pub fn read_block(
        &self,
        place: BlockPlace,
        level: u8,
        leaves: Option<&mut LeafReads>,
        block: &mut RunBlock,
    ) -> Result<(), Error> {
        match leaves {
            Some(leaves) => leaves.read(self, place, &mut block.data)?,
            None => self.read(place, &mut block.data)?,
        }
        let shape = self.summary.shape;
        let parsed = block.parse(level, if level == 0 { shape } else { index_shape(shape) });
        parsed.map_err(|reason| self.damage(place.offset, reason))?;
        if block.rows() == 0 {
            return Err(self.damage(place.offset, "a block has no rows"));
        }
        let may_have_tail = level == 0 && shape.bytes;
        if !may_have_tail && !block.tail().is_empty() {
            return Err(self.damage(place.offset, "a block is too long"));
        }
        Ok(())
    }

    /// Reads the bytes at a place and compares their checksum.
    fn read(&self, place: BlockPlace, to: &mut Vec<u8>) -> Result<(), Error> {
        self.check_place(place)?;
        clear(to);
        to.resize(place.bytes as usize, 0);
        let read = self.blob.read_full_at(place.offset, to)?;
        to.truncate(read);
        self.compare(place, to)
    }

    /// Returns an error if a place is not inside the file, so that nobody allocates more than its length.
    fn check_place(&self, place: BlockPlace) -> Result<(), Error> {
        match place.offset.checked_add(place.bytes) {
            Some(end) if end <= self.summary.bytes => Ok(()),
            _ => Err(self.damage(place.offset.min(self.summary.bytes), "a block lies behind the end")),
        }
    }

    fn compare(&self, place: BlockPlace, bytes: &[u8]) -> Result<(), Error> {
        match xxh3_64(bytes) == place.checksum {
            true => Ok(()),
            false => Err(self.damage(place.offset, "the checksum of a block is wrong")),
        }
    }
}

/// The reading of leaves, which reads ahead while leaves are wanted one after the other.
///
/// A leaf that does not follow the last one is read alone. Each read for a leaf that does is twice as long as
/// the read before, up to 1 MiB, which is the most that is held.
#[derive(Default)]
pub(super) struct LeafReads {
    /// Bytes of the file from `offset` on, which were read ahead.
    held: Vec<u8>,
    offset: u64,
    /// Length of the last read.
    last_bytes: u64,
    /// Whether the next leaf follows the last one in the order of the keys.
    pub follows: bool,
}

impl LeafReads {
    /// Makes reads of leaves that all follow each other.
    pub fn sequential() -> Self {
        LeafReads { follows: true, ..LeafReads::default() }
    }

    fn read(&mut self, source: &RunSource, place: BlockPlace, to: &mut Vec<u8>) -> Result<(), Error> {
        source.check_place(place)?;
        let held_end = self.offset + self.held.len() as u64;
        if place.offset < self.offset || place.offset + place.bytes > held_end {
            let ahead = if self.follows { 2 * self.last_bytes } else { 0 };
            let most = AHEAD_BYTES.min(source.blob.read_ahead_bytes() as u64);
            let leaves_end = source.summary.root.offset.saturating_sub(place.offset);
            let bytes = ahead.min(most).min(leaves_end);
            self.held.clear();
            self.last_bytes = bytes.max(place.bytes);
            if bytes <= place.bytes {
                return source.read(place, to);
            }
            self.held.resize(bytes as usize, 0);
            self.offset = place.offset;
            let read = source.blob.read_full_at(place.offset, &mut self.held);
            self.held.truncate(*read.as_ref().unwrap_or(&0));
            read?;
        }
        let start = (place.offset - self.offset) as usize;
        let end = self.held.len().min(start + place.bytes as usize);
        clear(to);
        to.extend_from_slice(&self.held[start..end]);
        source.compare(place, to)
    }
}

/// The bytes of the rows of one leaf.
#[derive(Default)]
pub(super) struct LeafBytes {
    /// Decompressed bytes. They are empty if the leaf has its bytes as they are.
    decompressed: Vec<u8>,
    is_compressed: bool,
    /// The end of the bytes of each row.
    ends: Vec<usize>,
    decompressor: Option<Decompressor<'static>>,
}

impl LeafBytes {
    /// Decompresses the bytes of a leaf.
    ///
    /// # Errors
    /// The damage, in words. No more memory is taken than the leaf can decompress to.
    pub fn load(&mut self, leaf: &RunBlock) -> Result<(), String> {
        let mut end = 0usize;
        self.ends.clear();
        for row in 0..leaf.rows() {
            end = end.saturating_add(usize::try_from(leaf.byte_length(row)).unwrap_or(usize::MAX));
            self.ends.push(end);
        }
        let stored = leaf.tail();
        self.is_compressed = stored.len() != end;
        clear(&mut self.decompressed);
        if !self.is_compressed {
            return Ok(());
        }
        if stored.len() > end || end > MAX_BYTES || end / MOST_EXPANSION > stored.len() {
            return Err("the lengths of rows do not fit their block".to_owned());
        }
        let decompressor = match &mut self.decompressor {
            Some(decompressor) => decompressor,
            none => none.insert(Decompressor::new().map_err(|error| error.to_string())?),
        };
        self.decompressed.reserve(end);
        let read = decompressor.decompress_to_buffer(stored, &mut self.decompressed);
        match read.map_err(|error| error.to_string())? {
            read if read == end => Ok(()),
            read => Err(format!("a block has {read} bytes of rows instead of {end}")),
        }
    }

    /// Returns the bytes of a row of the leaf that was loaded last.
    pub fn row<'a>(&'a self, leaf: &'a RunBlock, row: usize) -> &'a [u8] {
        let bytes = if self.is_compressed { &self.decompressed } else { leaf.tail() };
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &bytes[start..self.ends[row]]
    }
}
