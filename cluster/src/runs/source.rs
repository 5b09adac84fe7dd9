//! Reads the blocks of a run and compares their checksums.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use parking_lot::RwLock;
use xxhash_rust::xxh3::xxh3_64;

use super::block::{MAGIC, RunBlock, clear, index_shape};
use super::leaf_bytes::{Dictionary, LeafBytes};
use super::summary::{BlockPlace, RunSummary};
use crate::{Blob, Error};

/// Largest number of bytes that are read at once for leaves that follow each other.
const AHEAD_BYTES: u64 = 1 << 20;

/// An open run: its file, and its root in memory.
pub(super) struct RunSource {
    blob: Arc<dyn Blob>,
    pub summary: RunSummary,
    pub root: RunBlock,
    /// Level of the root. Leaves have level 0.
    pub height: u8,
    dictionary: OnceLock<Dictionary>,
    /// Index blocks that were read, by their offsets, if they are kept.
    kept: Option<RwLock<HashMap<u64, Arc<RunBlock>>>>,
}

impl RunSource {
    pub fn open(blob: Arc<dyn Blob>, summary: &RunSummary, keeps_index: bool) -> Result<Self, Error> {
        let RunSummary { shape, bytes, root: place, .. } = *summary;
        let root = RunBlock::default();
        let dictionary = OnceLock::new();
        let kept = keeps_index.then(RwLock::default);
        let mut source = RunSource { blob, summary: summary.clone(), root, height: 0, dictionary, kept };
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

    /// Puts an index block into `block`: the one that is kept, or the one that is read.
    pub fn index_block(&self, place: BlockPlace, level: u8, block: &mut Arc<RunBlock>) -> Result<(), Error> {
        let Some(kept) = &self.kept else {
            return self.read_block(place, level, None, Arc::make_mut(block));
        };
        if let Some(found) = kept.read().get(&place.offset) {
            block.clone_from(found);
            return Ok(());
        }
        let mut read = RunBlock::default();
        self.read_block(place, level, None, &mut read)?;
        *block = Arc::new(read);
        kept.write().insert(place.offset, Arc::clone(block));
        Ok(())
    }

    /// Returns the dictionary of all leaves but the first, whose rows it is made of. The first call reads that leaf.
    fn dictionary(&self) -> Result<&Dictionary, Error> {
        if let Some(dictionary) = self.dictionary.get() {
            return Ok(dictionary);
        }
        let mut place = self.root.place(0);
        let mut leaf = RunBlock::default();
        for level in (1..self.height).rev() {
            self.read_block(place, level, None, &mut leaf)?;
            place = leaf.place(0);
        }
        self.read_block(place, 0, None, &mut leaf)?;
        let mut bytes = LeafBytes::default();
        let loaded = bytes.load(&leaf, None);
        loaded.map_err(|reason| self.damage(place.offset, &reason))?;
        Ok(self.dictionary.get_or_init(|| Dictionary::of(bytes.all(&leaf))))
    }

    /// Returns the dictionary of the leaf at `offset`. The first leaf has none, nor has a run without bytes.
    pub fn dictionary_at(&self, offset: u64) -> Result<Option<&Dictionary>, Error> {
        if offset == 0 || !self.summary.shape.bytes { Ok(None) } else { self.dictionary().map(Some) }
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
