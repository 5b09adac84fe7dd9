//! The layout of a file of fingerprints.

use std::array;

use cluster::runs::BlockPlace;
use serde::{Deserialize, Serialize};

/// Largest number of tables.
pub(crate) const MOST_TABLES: usize = 4;
/// Number of entries above which a file has two tables.
const MANY_ENTRIES: u64 = 300_000_000;
/// Number of first bits that a bucket has at most.
const MOST_BUCKET_BITS: u32 = 16;
/// Largest number of entries of a page, whose checksum is compared when it is read.
pub(crate) const PAGE_ENTRIES: usize = 1 << 9;
/// Number of entries that a bucket should have at least.
const BUCKET_ENTRIES: u64 = 64;
/// Number of bytes that the directory has for each page: table, entries, first key, checksum.
pub(super) const PAGE_RECORD_BYTES: usize = 19;
/// Magic of the format, which ends the directory.
pub(super) const MAGIC: &[u8; 8] = b"DDJFPT02";

/// Facts of a finished file, by which it is opened.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct FingerprintSummary {
    /// Length of the file.
    pub bytes: u64,
    /// Number of entries of the first table.
    pub entries: u64,
    pub(super) shape: FileShape,
    /// The directory, which ends the file.
    pub(super) directory: BlockPlace,
}

/// Sizes in a file, which follow from the number of its documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct FileShape {
    /// Number of tables, and of the blocks of a word: two or four.
    pub tables: usize,
    /// Number of first bits that words of a bucket share.
    pub bucket_bits: u32,
    /// Number that entries count from.
    pub first: u64,
    /// Number of bytes of a number in an entry of the first table.
    pub number_bytes: usize,
}

impl FileShape {
    /// The shape of no entries in four tables.
    pub const FOUR: FileShape = FileShape { tables: MOST_TABLES, bucket_bits: 0, first: 0, number_bytes: 1 };

    /// Returns the shape for up to `entries` entries, whose numbers are from `first` on and less than `end`.
    pub fn new(entries: u64, (first, end): (u64, u64)) -> Self {
        let tables = if entries > MANY_ENTRIES { 2 } else { MOST_TABLES };
        FileShape::of_tables(tables, entries, (first, end))
    }

    /// Returns the shape of a file that has so many tables.
    pub fn of_tables(tables: usize, entries: u64, (first, end): (u64, u64)) -> Self {
        let bucket_bits = (entries / BUCKET_ENTRIES).checked_ilog2().unwrap_or(0).min(MOST_BUCKET_BITS);
        let bits = u64::BITS - end.saturating_sub(first).leading_zeros();
        FileShape { tables, bucket_bits, first, number_bytes: bits.div_ceil(8).max(1) as usize }
    }

    /// Whether a file can have this shape.
    pub fn is_possible(self) -> bool {
        matches!(self.tables, 2 | MOST_TABLES)
            && self.bucket_bits <= MOST_BUCKET_BITS
            && (1..=8).contains(&self.number_bytes)
    }

    /// Returns the number of bytes of a key, which lacks the whole bytes that its bucket says.
    pub fn key_bytes(self) -> usize {
        8 - self.bucket_bits as usize / 8
    }

    /// Returns the number of bytes of an entry of a table.
    pub fn entry_bytes(self, table: usize) -> usize {
        self.key_bytes() + if table == 0 { self.number_bytes } else { 0 }
    }

    /// Returns the bucket of a key.
    pub fn bucket(self, key: u64) -> usize {
        key.checked_shr(u64::BITS - self.bucket_bits).unwrap_or(0) as usize
    }

    /// Returns the bits of a key that its bucket does not say.
    pub fn rest_mask(self) -> u64 {
        u64::MAX.checked_shr(self.bucket_bits).unwrap_or(0)
    }

    /// Returns the number of bits of a block.
    fn block_bits(self) -> u32 {
        u64::BITS / self.tables as u32
    }

    /// Returns the first and the last key that have the block of a key.
    pub fn keys_of_block(self, key: u64) -> (u64, u64) {
        let behind = low_bits(u64::BITS - self.block_bits());
        (key & !behind, key | behind)
    }

    /// Returns the number of bits in which the first blocks of two keys differ.
    pub fn block_distance(self, one: u64, other: u64) -> u32 {
        ((one ^ other) >> (u64::BITS - self.block_bits())).count_ones()
    }

    /// Returns the largest number of bits in which the nearest blocks of two words within three bits differ: of four
    /// blocks one is equal, and one of two halves differs in at most one bit.
    pub fn nearest_block(self) -> u32 {
        3 / self.tables as u32
    }

    /// Calls `each` with the keys whose blocks are within [`FileShape::nearest_block`] of that of a key.
    pub fn each_probe<E>(self, key: u64, mut each: impl FnMut(u64) -> Result<(), E>) -> Result<(), E> {
        each(key)?;
        let flips = if self.nearest_block() == 0 { 0 } else { self.block_bits() };
        (1..=flips).try_for_each(|bit| each(key ^ 1 << (u64::BITS - bit)))
    }

    /// Returns the key of a word in a table: its block comes first.
    ///
    /// ```text
    ///               four tables      two tables
    /// word          a b c d          ab cd
    /// table 0       a b c d          ab cd
    /// table 1       b a c d          cd ab
    /// table 2       c a b d
    /// table 3       d a b c
    /// ```
    pub fn key_of(self, word: u64, table: usize) -> u64 {
        let (block_bits, rest_bits) = (self.block_bits(), u64::BITS - self.block_bits());
        let behind = rest_bits - block_bits * table as u32;
        let block = word >> behind & low_bits(block_bits);
        let before = word.checked_shr(behind + block_bits).unwrap_or(0);
        block << rest_bits | before << behind | word & low_bits(behind)
    }

    /// Returns the word whose key in a table this is.
    pub fn word_of(self, key: u64, table: usize) -> u64 {
        let (block_bits, rest_bits) = (self.block_bits(), u64::BITS - self.block_bits());
        let behind = rest_bits - block_bits * table as u32;
        let before = (key & low_bits(rest_bits)) >> behind;
        before.checked_shl(behind + block_bits).unwrap_or(0)
            | key >> rest_bits << behind
            | key & low_bits(behind)
    }

    /// Returns the table whose keys begin with the same 16 bits of a word as those of a table of a file of another shape.
    pub fn table_like(self, other: FileShape, table: usize) -> usize {
        table * self.tables / other.tables
    }
}

/// Returns the keys of a word in four tables, which are those of the passes of a search.
pub(crate) fn keys_of_word(word: u64) -> [u64; MOST_TABLES] {
    array::from_fn(|table| FileShape::FOUR.key_of(word, table))
}

/// Returns the fingerprint whose key in a pass of a search this is.
pub(crate) fn word_of_pass(key: u64, pass: usize) -> u64 {
    FileShape::FOUR.word_of(key, pass)
}

fn low_bits(bits: u32) -> u64 {
    (1 << bits) - 1
}
