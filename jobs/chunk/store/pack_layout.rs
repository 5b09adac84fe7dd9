//! The layout of packs.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Magic of the format, at both ends of a file.
pub(super) const MAGIC: &[u8; 8] = b"DDJCHK01";
/// Number of bytes behind the directory: its offset, its checksum, and the magic.
pub(super) const FOOTER_BYTES: usize = 24;
/// Number of bytes of chunks after which a frame is full. A frame is compressed as a whole, so a chunk costs the
/// decompression of one.
pub(super) const FRAME_BYTES: usize = 8 << 20;
/// Number of compressed bytes after which a pack is full.
pub(super) const PACK_BYTES: u64 = 32 << 20;
/// Number of chunks after which a pack is full.
pub(crate) const MOST_CHUNKS: usize = 1 << 18;

/// Name of a chunk: the first 128 bits of the BLAKE3 hash of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
pub(crate) struct ChunkId([u8; 16]);

impl ChunkId {
    /// Returns the name of a chunk. Cost: 1 ns for 1 to 4 bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let mut id = [0; 16];
        id.copy_from_slice(&blake3::hash(bytes).as_bytes()[..16]);
        ChunkId(id)
    }

    /// Returns the first 64 bits, by which an index finds the chunk.
    pub fn first_word(self) -> u64 {
        self.0.first_chunk().map_or(0, |first| u64::from_be_bytes(*first))
    }
}

/// Number of a pack, which is random. Its file is named by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
pub(crate) struct PackNumber(pub u64);

impl fmt::Display for PackNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Place of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ChunkPlace {
    pub pack: PackNumber,
    /// Number of the chunk in the pack.
    pub number: u32,
}

/// The directory of a pack, in postcard's encoding.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct PackDirectory {
    /// The number of the pack, so that a file with another name is found.
    pub(super) number: PackNumber,
    pub(super) frames: Vec<PackFrame>,
    pub chunks: Vec<PackedChunk>,
}

/// A frame: a piece of a pack that is compressed as a whole by zstd.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct PackFrame {
    pub offset: u64,
    /// Number of bytes in the file.
    pub bytes: u32,
    /// Number of its first chunk. Those up to that of the next frame are in it, one after the other.
    pub first_chunk: u32,
    /// XXH3 of its bytes in the file, 64 bits.
    pub checksum: u64,
}

/// A chunk of a pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct PackedChunk {
    pub id: ChunkId,
    /// Number of bytes; 0 if the chunk was removed, because no snapshot has wanted it.
    pub bytes: u32,
}

impl PackDirectory {
    /// Returns the number of the frame that a chunk is in.
    pub(super) fn frame_of(&self, chunk: u32) -> usize {
        self.frames.partition_point(|frame| frame.first_chunk <= chunk).saturating_sub(1)
    }

    /// Returns the chunks of a frame.
    pub(super) fn chunks_of(&self, frame: usize) -> &[PackedChunk] {
        let first = |frame: usize| self.frames.get(frame).map(|frame| frame.first_chunk as usize);
        let from = first(frame).unwrap_or(0);
        let to = first(frame + 1).unwrap_or(self.chunks.len());
        self.chunks.get(from..to).unwrap_or_default()
    }

    /// Calls `each` with every chunk that was not removed: its number, its bytes, and its share of the bytes that its frame
    /// takes in the file. The shares of the chunks of a frame are these bytes together.
    pub fn each_stored(&self, mut each: impl FnMut(usize, u64, u64)) {
        for (at, frame) in self.frames.iter().enumerate() {
            let chunks = self.chunks_of(at);
            let sum: u64 = chunks.iter().map(|chunk| u64::from(chunk.bytes)).sum();
            let stored = |bytes: u64| u64::from(frame.bytes) * bytes / sum.max(1);
            let mut before = 0;
            for (number, chunk) in
                (frame.first_chunk as usize..).zip(chunks).filter(|(_, chunk)| chunk.bytes > 0)
            {
                let bytes = u64::from(chunk.bytes);
                each(number, bytes, stored(before + bytes) - stored(before));
                before += bytes;
            }
        }
    }

    /// Whether a pack can have this directory, which lies at `end`.
    pub(super) fn is_possible(&self, end: u64) -> bool {
        let mut offset = MAGIC.len() as u64;
        let mut first = 0;
        let follow = self.frames.iter().all(|frame| {
            let follows = frame.offset == offset && frame.first_chunk >= first;
            offset = offset.saturating_add(frame.bytes.into());
            first = frame.first_chunk;
            follows
        });
        let begin = self.frames.first().is_none_or(|frame| frame.first_chunk == 0);
        let is_end = (first as usize) < self.chunks.len() || self.frames.is_empty() && self.chunks.is_empty();
        follow && begin && is_end && offset == end
    }
}
