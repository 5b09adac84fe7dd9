//! Blocks, of which a run is made: leaves with rows, and index blocks with the places of other blocks.
//!
//! Both are rows of words in packed columns, and only leaves have bytes. docs/formats.md has the layout.

use std::cmp::Ordering;

use super::packed::{BitPacking, WordRange};
use super::summary::{BlockPlace, RunShape};

/// Largest number of rows in a block.
const MAX_ROWS: usize = u16::MAX as usize;
/// Number of words that an index block has for each child besides its first key: offset, length, checksum.
const PLACE_WORDS: usize = 3;
/// Number of bytes of a block in front of its columns: the level, and the number of rows.
const HEADER_BYTES: usize = 3;
/// Largest number of bytes that the rows of a leaf have together.
pub(super) const MAX_BYTES: usize = 1 << 30;
/// Magic of the format, behind the columns of the root.
pub(super) const MAGIC: &[u8; 8] = b"DDJRUN02";

/// Returns the shape of the rows of an index block.
pub(super) fn index_shape(shape: RunShape) -> RunShape {
    RunShape { key_words: shape.key_words, value_words: PLACE_WORDS, bytes: false }
}

/// Largest buffer that is kept for the next block, in bytes.
const KEPT_BYTES: usize = 1 << 22;

/// Empties a buffer, and frees it if a large row has made it large.
pub(super) fn clear(buffer: &mut Vec<u8>) {
    buffer.clear();
    if buffer.capacity() > KEPT_BYTES {
        *buffer = Vec::new();
    }
}

/// Rows of a block that is being made.
pub(super) struct BlockBuilder {
    shape: RunShape,
    /// Row after row: the words, and the length of the bytes if rows have any.
    cells: Vec<u64>,
    ranges: Vec<WordRange>,
    pub bytes: Vec<u8>,
}

impl BlockBuilder {
    pub fn new(shape: RunShape) -> Self {
        let ranges = vec![WordRange::EMPTY; shape.columns()];
        BlockBuilder { shape, cells: Vec::new(), ranges, bytes: Vec::new() }
    }

    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Returns the key of the first row, or nothing if there is none.
    pub fn first_key(&self) -> &[u64] {
        self.cells.get(..self.shape.key_words).unwrap_or_default()
    }

    /// Adds a row. `bytes` are empty if rows of this shape have none.
    #[inline]
    pub fn push(&mut self, words: &[u64], bytes: &[u8]) {
        self.cells.extend_from_slice(words);
        if self.shape.bytes {
            self.cells.push(bytes.len() as u64);
            self.bytes.extend_from_slice(bytes);
        }
        let row = self.cells.len() - self.ranges.len();
        for (range, cell) in self.ranges.iter_mut().zip(&self.cells[row..]) {
            range.add(*cell);
        }
    }

    /// Returns whether the block is as large as it should get: its packed columns and its bytes have at least
    /// `bytes` bytes, or there are as many rows as a block can hold.
    #[inline]
    pub fn is_full(&self, bytes: usize) -> bool {
        let rows = self.cells.len() / self.ranges.len();
        let width: u32 = self.ranges.iter().map(|range| range.packing().width).sum();
        rows * width as usize / 8 + self.bytes.len() >= bytes || rows == MAX_ROWS
    }

    /// Appends the block without the bytes of its rows to `to`, and becomes empty but for those bytes.
    pub fn take_columns(&mut self, level: u8, to: &mut Vec<u8>) {
        let rows = self.cells.len() / self.ranges.len();
        to.push(level);
        to.extend((rows as u16).to_le_bytes());
        for range in &self.ranges {
            range.packing().write_header(to);
        }
        for (column, range) in self.ranges.iter_mut().enumerate() {
            let words = self.cells.chunks_exact(self.shape.columns()).map(|row| row[column]);
            range.packing().pack(words, to);
            *range = WordRange::EMPTY;
        }
        self.cells.clear();
    }
}

/// A column of a block in memory.
#[derive(Clone, Copy)]
pub(super) struct BlockColumn<'a> {
    data: &'a [u8],
    packing: BitPacking,
    /// Offset of the first byte.
    start: usize,
}

impl BlockColumn<'_> {
    /// Returns the word of a row.
    #[inline]
    pub fn word(&self, row: usize) -> u64 {
        self.packing.word(self.data, self.start, row)
    }
}

/// A block in memory, of which single words are unpacked when they are wanted.
#[derive(Clone, Default)]
pub(super) struct RunBlock {
    pub data: Vec<u8>,
    key_words: usize,
    words: usize,
    rows: usize,
    /// Each column and the offset of its first byte. The last column of a leaf with bytes has their lengths.
    columns: Vec<(BitPacking, usize)>,
    /// Offset of the first byte behind the columns.
    end: usize,
}

impl RunBlock {
    /// Reads the header of `self.data`, which may be damaged.
    ///
    /// # Errors
    /// The damage, in words.
    pub fn parse(&mut self, level: u8, shape: RunShape) -> Result<(), &'static str> {
        let header = self.data.first_chunk::<HEADER_BYTES>().ok_or("a block is too short")?;
        if header[0] != level {
            return Err("a block has the wrong level");
        }
        (self.key_words, self.words) = (shape.key_words, shape.words());
        self.rows = u16::from_le_bytes([header[1], header[2]]).into();
        self.columns.clear();
        let mut at = HEADER_BYTES;
        for _ in 0..shape.columns() {
            let rest = self.data.get(at..).unwrap_or_default();
            let (packing, bytes) = BitPacking::read_header(rest).ok_or("the header of a block is wrong")?;
            self.columns.push((packing, 0));
            at += bytes;
        }
        for (packing, start) in &mut self.columns {
            *start = at;
            at += packing.column_bytes(self.rows);
        }
        self.end = at;
        if at > self.data.len() { Err("a block is too short") } else { Ok(()) }
    }

    #[inline]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns what lies behind the columns.
    pub fn tail(&self) -> &[u8] {
        &self.data[self.end..]
    }

    /// Returns a word of a row.
    #[inline]
    pub fn word(&self, row: usize, column: usize) -> u64 {
        self.column(column).word(row)
    }

    /// Returns a column, for the words of many rows.
    #[inline]
    pub fn column(&self, column: usize) -> BlockColumn<'_> {
        let (packing, start) = self.columns[column];
        BlockColumn { data: &self.data, packing, start }
    }

    /// Unpacks the words of a row.
    #[inline]
    pub fn read_words(&self, row: usize, words: &mut [u64]) {
        for (word, (packing, start)) in words.iter_mut().zip(&self.columns) {
            *word = packing.word(&self.data, *start, row);
        }
    }

    /// Returns the number of bytes of a row of a leaf that has bytes.
    pub fn byte_length(&self, row: usize) -> u64 {
        self.word(row, self.words)
    }

    /// Returns the place of a child of an index block.
    pub fn place(&self, row: usize) -> BlockPlace {
        let [offset, bytes, checksum] = [0, 1, 2].map(|column| self.word(row, self.key_words + column));
        BlockPlace { offset, bytes, checksum }
    }

    /// Compares the key of a row with `key`. Words that `key` lacks count as zero.
    #[inline]
    pub fn compare(&self, row: usize, key: &[u64]) -> Ordering {
        for column in 0..self.key_words {
            match self.word(row, column).cmp(&key.get(column).copied().unwrap_or_default()) {
                Ordering::Equal => {}
                other => return other,
            }
        }
        Ordering::Equal
    }

    /// Returns the first row from `from` on whose key is not less than `key`, or greater if `greater`. The
    /// number of rows stands for none.
    pub fn search(&self, key: &[u64], from: usize, greater: bool) -> usize {
        let mut from = from;
        let mut to = self.rows;
        while from < to {
            let middle = from.midpoint(to);
            let order = self.compare(middle, key);
            if order == Ordering::Less || greater && order == Ordering::Equal {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        from
    }
}
