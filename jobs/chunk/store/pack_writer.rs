//! Writes packs.

use std::collections::VecDeque;
use std::io::Write;
use std::mem;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result, anyhow, bail};
use cluster::{Error, Output, Store};
use xxhash_rust::xxh3::xxh3_64;
use zstd::bulk::{Compressor, Decompressor};

use super::pack_layout::{
    ChunkId, ChunkPlace, FOOTER_BYTES, FRAME_BYTES, MAGIC, MOST_CHUNKS, PACK_BYTES, PackDirectory, PackFrame,
    PackNumber, PackedChunk,
};

/// The first level of zstd that takes much memory: some 60 MB for a frame.
const HEAVY_LEVEL: i32 = 6;

/// A pack that is being written. Frames are compressed by threads of their own, while the next one is filled.
///
/// Memory: a frame, seven times, what zstd takes, and 20 bytes for each chunk.
pub(crate) struct ChunkPackWriter {
    output: Box<dyn Output>,
    path: String,
    pub number: PackNumber,
    directory: PackDirectory,
    /// Number of bytes of the file so far.
    bytes: u64,
    /// Chunks of the frame that is being filled.
    frame: Vec<u8>,
    first_chunk: u32,
    /// The frames before that one that are being compressed: two at most, and one at [`HEAVY_LEVEL`] and above.
    compressing: VecDeque<CompressingFrame>,
    level: i32,
}

struct CompressingFrame {
    first_chunk: u32,
    thread: JoinHandle<Result<Vec<u8>>>,
}

impl ChunkPackWriter {
    /// Begins the pack of a number. `level`: the level of zstd.
    ///
    /// # Errors
    /// Those of the store.
    pub fn new(store: &Arc<dyn Store>, path: &str, number: PackNumber, level: i32) -> Result<Self> {
        let mut output = store.replace(path)?;
        output.write_all(MAGIC).map_err(|error| Error::of_write(path, error))?;
        Ok(ChunkPackWriter {
            output,
            path: path.to_owned(),
            number,
            directory: PackDirectory { number, frames: Vec::new(), chunks: Vec::new() },
            bytes: MAGIC.len() as u64,
            frame: Vec::new(),
            first_chunk: 0,
            compressing: VecDeque::new(),
            level,
        })
    }

    /// Adds a chunk, or the number of one that was removed, which has no bytes.
    ///
    /// # Errors
    /// Those of the store.
    pub fn push(&mut self, id: ChunkId, bytes: &[u8]) -> Result<ChunkPlace> {
        if self.frame.len() + bytes.len() > FRAME_BYTES && !self.frame.is_empty() {
            self.close_frame()?;
        }
        let number = u32::try_from(self.directory.chunks.len()).context("a pack with too many chunks")?;
        self.directory.chunks.push(PackedChunk { id, bytes: bytes.len() as u32 });
        self.frame.extend_from_slice(bytes);
        Ok(ChunkPlace { pack: self.number, number })
    }

    /// Whether nothing more should be added.
    pub fn is_full(&self) -> bool {
        self.bytes >= PACK_BYTES || self.directory.chunks.len() >= MOST_CHUNKS
    }

    /// Begins to compress the frame.
    fn close_frame(&mut self) -> Result<()> {
        let most = if self.level < HEAVY_LEVEL { 2 } else { 1 };
        if self.compressing.len() == most {
            self.write_compressed()?;
        }
        let frame = mem::take(&mut self.frame);
        let level = self.level;
        let thread =
            thread::Builder::new().name("compress".to_owned()).spawn(move || compress(&frame, level))?;
        self.compressing.push_back(CompressingFrame { first_chunk: self.first_chunk, thread });
        self.first_chunk = self.directory.chunks.len() as u32;
        Ok(())
    }

    /// Waits for the first frame that is being compressed, and writes it.
    fn write_compressed(&mut self) -> Result<()> {
        let Some(CompressingFrame { first_chunk, thread }) = self.compressing.pop_front() else {
            return Ok(());
        };
        let compressed = thread.join().map_err(|_| anyhow!("a thread panicked"))?;
        let compressed = compressed.with_context(|| format!("could not write \"{}\"", self.path))?;
        self.write(&compressed)?;
        self.directory.frames.push(PackFrame {
            offset: self.bytes,
            bytes: compressed.len() as u32,
            first_chunk,
            checksum: xxh3_64(&compressed),
        });
        self.bytes += compressed.len() as u64;
        Ok(())
    }

    /// Writes what is left and finishes the file, whose contents are durable before it has its name. Returns its bytes.
    ///
    /// # Errors
    /// Those of the store.
    pub fn finish(mut self) -> Result<u64> {
        if (self.first_chunk as usize) < self.directory.chunks.len() {
            self.close_frame()?;
        }
        while !self.compressing.is_empty() {
            self.write_compressed()?;
        }
        let directory = postcard::to_stdvec(&self.directory)?;
        self.write(&directory)?;
        let offset = self.bytes;
        let checksum = xxh3_64(&directory);
        self.write(&[&offset.to_le_bytes()[..], &checksum.to_le_bytes(), MAGIC].concat())?;
        self.output.finish_durably()?;
        Ok(self.bytes + (directory.len() + FOOTER_BYTES) as u64)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.output.write_all(bytes).map_err(|error| Error::of_write(&self.path, error))?)
    }
}

/// Compresses a frame, and sees that decompressing gives the same bytes.
fn compress(frame: &[u8], level: i32) -> Result<Vec<u8>> {
    let mut compressor = Compressor::new(level)?;
    compressor.window_log(FRAME_BYTES.ilog2())?;
    let compressed = compressor.compress(frame)?;
    match Decompressor::new()?.decompress(&compressed, frame.len())? == frame {
        true => Ok(compressed),
        false => bail!("zstd has not compressed it as it should"),
    }
}
