//! Writes packs.

use std::io::Write;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use cluster::{Error, Output, Store};
use xxhash_rust::xxh3::xxh3_64;
use zstd::bulk::{Compressor, Decompressor};

use super::pack_layout::{
    ChunkId, ChunkPlace, FOOTER_BYTES, FRAME_BYTES, MAGIC, PACK_BYTES, PackDirectory, PackFrame, PackNumber,
    PackedChunk,
};

/// A pack that is being written.
///
/// Memory: a frame, three times, and 20 bytes for each chunk.
pub(in crate::chunk) struct ChunkPackWriter {
    output: Box<dyn Output>,
    path: String,
    pub number: PackNumber,
    directory: PackDirectory,
    /// Number of bytes of the file so far.
    bytes: u64,
    /// Chunks of the frame that is being filled.
    frame: Vec<u8>,
    first_chunk: u32,
    compressor: Compressor<'static>,
    decompressor: Decompressor<'static>,
}

impl ChunkPackWriter {
    /// Begins the pack of a number. `level`: the level of zstd.
    ///
    /// # Errors
    /// Those of the store.
    pub fn new(store: &Arc<dyn Store>, path: &str, number: PackNumber, level: i32) -> Result<Self> {
        let mut output = store.create(path)?;
        output.write_all(MAGIC).map_err(|error| Error::of_write(path, error))?;
        let mut compressor = Compressor::new(level)?;
        compressor.window_log(FRAME_BYTES.ilog2())?;
        Ok(ChunkPackWriter {
            output,
            path: path.to_owned(),
            number,
            directory: PackDirectory::default(),
            bytes: MAGIC.len() as u64,
            frame: Vec::new(),
            first_chunk: 0,
            compressor,
            decompressor: Decompressor::new()?,
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
        self.bytes >= PACK_BYTES
    }

    /// Compresses the frame and writes it, once it was seen that decompressing gives the same bytes.
    fn close_frame(&mut self) -> Result<()> {
        let compressed = self.compressor.compress(&self.frame)?;
        if self.decompressor.decompress(&compressed, self.frame.len())? != self.frame {
            bail!("zstd has not compressed a part of \"{}\" as it should", self.path);
        }
        self.write(&compressed)?;
        self.directory.frames.push(PackFrame {
            offset: self.bytes,
            bytes: compressed.len() as u32,
            first_chunk: self.first_chunk,
            checksum: xxh3_64(&compressed),
        });
        self.bytes += compressed.len() as u64;
        self.first_chunk = self.directory.chunks.len() as u32;
        self.frame.clear();
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
        let directory = postcard::to_stdvec(&self.directory)?;
        self.write(&directory)?;
        let (offset, checksum) = (self.bytes, xxh3_64(&directory));
        self.write(&[&offset.to_le_bytes()[..], &checksum.to_le_bytes(), MAGIC].concat())?;
        self.output.finish_durably()?;
        Ok(self.bytes + (directory.len() + FOOTER_BYTES) as u64)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.output.write_all(bytes).map_err(|error| Error::of_write(&self.path, error))?)
    }
}
