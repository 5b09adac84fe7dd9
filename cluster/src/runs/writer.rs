//! Writes a run.

use std::io;

use xxhash_rust::xxh3::xxh3_64;
use zstd::bulk::Compressor;

use super::block::{BlockBuilder, MAGIC, MAX_BYTES, clear, index_shape};
use super::leaf_bytes::{DICTIONARY_BYTES, Dictionary};
use super::summary::{BlockPlace, RunShape, RunSummary};
use crate::{Error, Output};

/// Number of bytes of a leaf whose rows have only words. A probe reads one leaf, and the description of a leaf
/// and its entry in the index take 40 bytes.
const LEAF_BYTES: usize = 1 << 10;
/// Number of bytes of a leaf whose rows have bytes, before they are compressed. The first of them is as large as the
/// dictionary that it becomes.
const BYTES_LEAF_BYTES: usize = 1 << 12;
/// Number of bytes of such a leaf if rows are looked up one by one.
const SMALL_LEAF_BYTES: usize = 1 << 10;
/// Number of bytes of an index block.
const INDEX_BYTES: usize = 1 << 12;
/// Compression level of zstd.
const LEVEL: i32 = 3;

/// Writes the rows of a run, which come in the order of their keys.
///
/// A full leaf is written and noted in the index block above it, which is written and noted in the same way
/// once it is full:
///
/// ```text
/// leaf  leaf  leaf  index  leaf  leaf  leaf  index  leaf  index  root
/// '-----------------'      '-----------------'      '-----'
/// ```
///
/// Memory: a leaf and an index block of each level, and three times the bytes of the largest row.
pub struct RunWriter {
    output: Box<dyn Output>,
    path: String,
    /// The leaf, and above it the index block of each level.
    blocks: Vec<BlockBuilder>,
    compressor: Option<Compressor<'static>>,
    /// The block that is being written, and the compressed bytes of its rows.
    encoded: Vec<u8>,
    compressed: Vec<u8>,
    /// Number of bytes of the leaf that is being filled, and of those behind it.
    pub(super) this_leaf_bytes: usize,
    pub(super) leaf_bytes: usize,
    pub(super) index_bytes: usize,
    summary: RunSummary,
}

impl RunWriter {
    /// Creates a writer of a run of `shape`. `path` is the name of the file in messages.
    ///
    /// # Errors
    /// [`Error::Io`] when zstd gets no memory.
    ///
    /// # Panics
    /// When `shape` has no key or more than 32 words.
    pub fn new(output: Box<dyn Output>, path: &str, shape: RunShape) -> Result<Self, Error> {
        assert!(shape.is_possible(), "a run cannot have the shape {shape:?}");
        let compressor = shape.bytes.then(|| Compressor::new(LEVEL)).transpose();
        let root = BlockPlace::default();
        let (first_key, last_key) = (Vec::new(), Vec::new());
        Ok(RunWriter {
            output,
            path: path.to_owned(),
            blocks: vec![BlockBuilder::new(shape), BlockBuilder::new(index_shape(shape))],
            compressor: compressor.map_err(|source| Error::io(path, "write", source))?,
            encoded: Vec::new(),
            compressed: Vec::new(),
            this_leaf_bytes: if shape.bytes { DICTIONARY_BYTES } else { LEAF_BYTES },
            leaf_bytes: if shape.bytes { BYTES_LEAF_BYTES } else { LEAF_BYTES },
            index_bytes: INDEX_BYTES,
            summary: RunSummary { shape, rows: 0, bytes: 0, root, first_key, last_key },
        })
    }

    /// Makes the leaves of rows with bytes small, for rows that are looked up one by one: a lookup decompresses a quarter as
    /// much, and the run takes some bytes more.
    pub fn with_small_leaves(mut self) -> Self {
        self.leaf_bytes = self.leaf_bytes.min(SMALL_LEAF_BYTES);
        self
    }

    /// Adds a row: the words of its key and of its value, and its bytes.
    ///
    /// # Errors
    /// [`Error::Io`] when the file cannot be written, and when `bytes` are more than 1 GiB.
    ///
    /// # Panics
    /// When the row does not have the shape of the run, or its key is not greater than that of the row before.
    pub fn push(&mut self, words: &[u64], bytes: &[u8]) -> Result<(), Error> {
        let RunShape { key_words, bytes: has_bytes, .. } = self.summary.shape;
        assert_eq!(words.len(), self.summary.shape.words(), "a row has the wrong number of words");
        assert!(has_bytes || bytes.is_empty(), "a row has bytes, but the run has none");
        let key = &words[..key_words];
        assert!(self.summary.rows == 0 || self.summary.last_key[..] < *key, "the keys of a run must ascend");
        if bytes.len() > MAX_BYTES {
            let source = io::Error::other(format!("a row has {} bytes, but at most 1 GiB fits", bytes.len()));
            return Err(Error::io(&self.path, "write", source));
        }
        // A row that does not fit begins another leaf, so that a large row has one of its own.
        if !bytes.is_empty() && self.blocks[0].bytes.len() + bytes.len() > self.this_leaf_bytes {
            self.close(0)?;
        }
        self.blocks[0].push(words, bytes);
        if self.summary.rows == 0 {
            self.summary.first_key.extend_from_slice(key);
        }
        self.summary.last_key.clear();
        self.summary.last_key.extend_from_slice(key);
        self.summary.rows += 1;
        if self.blocks[0].is_full(self.this_leaf_bytes) { self.close(0) } else { Ok(()) }
    }

    /// Writes what is left and finishes the file.
    ///
    /// # Errors
    /// Those of the output.
    pub fn finish(mut self) -> Result<RunSummary, Error> {
        let mut level = 0;
        while level + 1 < self.blocks.len() {
            self.close(level)?;
            level += 1;
        }
        self.blocks[level].take_columns(level as u8, &mut self.encoded);
        self.encoded.extend(MAGIC);
        self.summary.root = self.write_block()?;
        self.output.finish()?;
        Ok(self.summary)
    }

    /// Writes the block of a level, if it has rows, and notes it in the block above.
    fn close(&mut self, level: usize) -> Result<(), Error> {
        if self.blocks[level].is_empty() {
            return Ok(());
        }
        let mut entry = self.blocks[level].first_key().to_vec();
        self.blocks[level].take_columns(level as u8, &mut self.encoded);
        if let (0, Some(compressor)) = (level, &mut self.compressor) {
            let bytes = &mut self.blocks[0].bytes;
            self.compressed.reserve(zstd::zstd_safe::compress_bound(bytes.len()));
            let compressed = compressor.compress_to_buffer(&bytes[..], &mut self.compressed);
            compressed.map_err(|source| Error::io(&self.path, "write", source))?;
            let shorter = self.compressed.len() < bytes.len();
            self.encoded.extend_from_slice(if shorter { &self.compressed } else { bytes });
            if self.summary.bytes == 0 {
                let Dictionary(dictionary) = Dictionary::of(bytes);
                let set = compressor.set_dictionary(LEVEL, &dictionary);
                set.map_err(|source| Error::io(&self.path, "write", source))?;
            }
            clear(bytes);
            clear(&mut self.compressed);
        }
        let place = self.write_block()?;
        if level == 0 {
            self.this_leaf_bytes = self.leaf_bytes;
        }
        entry.extend([place.offset, place.bytes, place.checksum]);
        if self.blocks.len() == level + 1 {
            self.blocks.push(BlockBuilder::new(index_shape(self.summary.shape)));
        }
        self.blocks[level + 1].push(&entry, &[]);
        if self.blocks[level + 1].is_full(self.index_bytes) { self.close(level + 1) } else { Ok(()) }
    }

    /// Writes the encoded block and returns its place.
    fn write_block(&mut self) -> Result<BlockPlace, Error> {
        let offset = self.summary.bytes;
        let bytes = self.encoded.len() as u64;
        let checksum = xxh3_64(&self.encoded);
        let written = self.output.write_all(&self.encoded);
        written.map_err(|error| Error::of_write(&self.path, error))?;
        clear(&mut self.encoded);
        self.summary.bytes += bytes;
        Ok(BlockPlace { offset, bytes, checksum })
    }
}
