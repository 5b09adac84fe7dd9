//! Reads packs.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use anyhow::Result;
use cluster::{Blob, Error, Store};
use xxhash_rust::xxh3::xxh3_64;

use super::pack_layout::{ChunkId, ChunkPlace, FOOTER_BYTES, FRAME_BYTES, MAGIC, PackDirectory, PackNumber};

/// Largest number of packs whose directories are kept.
const KEPT_PACKS: usize = 48;
/// Largest number of frames that are kept decompressed.
const KEPT_FRAMES: usize = 6;
/// Longest chunk, which is a frame of its own.
const MAX_CHUNK_BYTES: usize = 64 << 20;

/// An open pack.
pub(crate) struct ChunkPack {
    blob: Arc<dyn Blob>,
    pub directory: PackDirectory,
}

impl ChunkPack {
    /// Opens a pack in the folder of packs, which takes two reads.
    ///
    /// # Errors
    /// Those of the store, and [`Error::Damaged`].
    pub fn open(store: &dyn Store, folder: &str, number: PackNumber) -> Result<Self, Error> {
        let blob = store.open_settled(&format!("{folder}/{number}.pack"))?;
        let damage = |reason: &str| Error::Damaged {
            path: blob.path().to_owned(),
            offset: blob.bytes().saturating_sub(FOOTER_BYTES as u64),
            reason: reason.to_owned(),
        };
        let mut footer = [0; FOOTER_BYTES];
        let end = blob.bytes().checked_sub(FOOTER_BYTES as u64).ok_or_else(|| damage("it is cut off"))?;
        blob.read_full_at(end, &mut footer)?;
        let word = |at: usize| footer[at..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        if &footer[16..] != MAGIC {
            return Err(damage("it does not end as a pack does"));
        }
        let length = end.checked_sub(word(0)).filter(|length| *length < 1 << 30);
        let mut directory = vec![0; length.ok_or_else(|| damage("its directory is nowhere"))? as usize];
        blob.read_full_at(word(0), &mut directory)?;
        let mut magic = [0; MAGIC.len()];
        blob.read_full_at(0, &mut magic)?;
        if xxh3_64(&directory) != word(8) || &magic != MAGIC {
            return Err(damage("the checksum of its directory is wrong"));
        }
        let directory: PackDirectory =
            postcard::from_bytes(&directory).map_err(|_| damage("its directory is of another form"))?;
        match directory.is_possible(word(0)) {
            true if directory.number != number => Err(damage("it is another pack")),
            true => Ok(ChunkPack { blob, directory }),
            false => Err(damage("its directory is wrong")),
        }
    }

    /// Returns the number of bytes of the file.
    pub fn bytes(&self) -> u64 {
        self.blob.bytes()
    }

    /// Reads the chunks of a frame, one after the other.
    ///
    /// # Errors
    /// Those of the store, and [`Error::Damaged`].
    fn frame(&self, frame: usize) -> Result<Vec<u8>, Error> {
        let place = self.directory.frames[frame];
        let damage = |reason: &str| Error::Damaged {
            path: self.blob.path().to_owned(),
            offset: place.offset,
            reason: reason.to_owned(),
        };
        let mut bytes = vec![0; place.bytes as usize];
        let read = self.blob.read_full_at(place.offset, &mut bytes)?;
        if read < bytes.len() || xxh3_64(&bytes) != place.checksum {
            return Err(damage("the checksum of a frame is wrong"));
        }
        let chunks = self.directory.chunks_of(frame);
        let expected: usize = chunks.iter().map(|chunk| chunk.bytes as usize).sum();
        if expected > FRAME_BYTES.max(MAX_CHUNK_BYTES) {
            return Err(damage("a frame is too long"));
        }
        let frame = zstd::bulk::decompress(&bytes, expected).map_err(|_| damage("a frame is no zstd"))?;
        if frame.len() == expected { Ok(frame) } else { Err(damage("a frame has another length")) }
    }

    /// Calls `each` with every chunk that was not removed: its number, its name and its bytes.
    ///
    /// # Errors
    /// Those of the store, of `each`, and [`Error::Damaged`].
    pub fn each_chunk(&self, mut each: impl FnMut(u32, ChunkId, &[u8]) -> Result<()>) -> Result<()> {
        (0..self.directory.frames.len()).try_for_each(|frame| self.each_of_frame(frame, &mut each))
    }

    /// Reads every byte, and calls `each` with the chunks of each frame that is damaged, and with the damage.
    ///
    /// # Errors
    /// Those of `each`.
    pub fn each_damage(&self, mut each: impl FnMut(Range<u32>, anyhow::Error) -> Result<()>) -> Result<()> {
        for frame in 0..self.directory.frames.len() {
            if let Err(error) = self.each_of_frame(frame, &mut |_, _, _| Ok(())) {
                let first = self.directory.frames[frame].first_chunk;
                each(first..first + self.directory.chunks_of(frame).len() as u32, error)?;
            }
        }
        Ok(())
    }

    fn each_of_frame(
        &self,
        frame: usize,
        each: &mut impl FnMut(u32, ChunkId, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let place = self.directory.frames[frame];
        let bytes = self.frame(frame)?;
        let mut at = 0;
        for (number, chunk) in (place.first_chunk..).zip(self.directory.chunks_of(frame)) {
            let bytes = &bytes[at..at + chunk.bytes as usize];
            at += bytes.len();
            if bytes.is_empty() {
                continue;
            }
            if ChunkId::of(bytes) != chunk.id {
                let reason = format!("chunk {number} is not what its name says");
                let path = self.blob.path().to_owned();
                return Err(Error::Damaged { path, offset: place.offset, reason }.into());
            }
            each(number, chunk.id, bytes)?;
        }
        Ok(())
    }
}

/// The packs of a store, of which some are open, and frames of them that were read last.
pub(crate) struct OpenPacks {
    store: Arc<dyn Store>,
    /// Path of the folder of the packs.
    folder: String,
    open: HashMap<PackNumber, Arc<ChunkPack>>,
    /// Open packs, the one that was opened first in front.
    order: VecDeque<PackNumber>,
    /// Frames that were read, the newest in front.
    frames: VecDeque<KeptFrame>,
}

/// A frame that is kept decompressed.
struct KeptFrame {
    pack: PackNumber,
    frame: usize,
    bytes: Arc<Vec<u8>>,
}

impl OpenPacks {
    pub fn new(store: &Arc<dyn Store>, folder: String) -> Self {
        let (open, order, frames) = Default::default();
        OpenPacks { store: Arc::clone(store), folder, open, order, frames }
    }

    /// Returns a pack.
    ///
    /// # Errors
    /// Those of [`ChunkPack::open`].
    pub fn pack(&mut self, number: PackNumber) -> Result<Arc<ChunkPack>, Error> {
        if let Some(pack) = self.open.get(&number) {
            return Ok(Arc::clone(pack));
        }
        let pack = Arc::new(ChunkPack::open(self.store.as_ref(), &self.folder, number)?);
        if self.order.len() == KEPT_PACKS {
            self.order.pop_front().map(|oldest| self.open.remove(&oldest));
        }
        self.order.push_back(number);
        self.open.insert(number, Arc::clone(&pack));
        Ok(pack)
    }

    /// Appends the bytes of a chunk to `to`.
    ///
    /// # Errors
    /// Those of the store, and [`Error::Damaged`], also if there is no such chunk.
    pub fn read(&mut self, place: ChunkPlace, to: &mut Vec<u8>) -> Result<(), Error> {
        let pack = self.pack(place.pack)?;
        let missing = || Error::Damaged {
            path: pack.blob.path().to_owned(),
            offset: 0,
            reason: format!("chunk {} is not in it", place.number),
        };
        let chunk = pack.directory.chunks.get(place.number as usize).filter(|chunk| chunk.bytes > 0);
        let bytes = chunk.ok_or_else(missing)?.bytes as usize;
        let number = pack.directory.frame_of(place.number);
        let is_kept = |kept: &&KeptFrame| (kept.pack, kept.frame) == (place.pack, number);
        let frame = match self.frames.iter().find(is_kept) {
            Some(kept) => Arc::clone(&kept.bytes),
            None => {
                let bytes = Arc::new(pack.frame(number)?);
                self.frames.truncate(KEPT_FRAMES - 1);
                self.frames.push_front(KeptFrame {
                    pack: place.pack,
                    frame: number,
                    bytes: Arc::clone(&bytes),
                });
                bytes
            }
        };
        let first = pack.directory.frames[number].first_chunk as usize;
        let before = &pack.directory.chunks[first..place.number as usize];
        let start: usize = before.iter().map(|chunk| chunk.bytes as usize).sum();
        to.extend_from_slice(&frame[start..start + bytes]);
        Ok(())
    }
}
