//! The layout of a file of fingerprints.

use std::array;

use cluster::runs::BlockPlace;
use serde::{Deserialize, Serialize};

/// Number of tables, and of the blocks of a word.
pub(super) const TABLES: usize = 4;
/// Number of bits of a block.
const BLOCK_BITS: u32 = 16;
/// Number of bits behind the first block.
pub(super) const REST_BITS: u32 = u64::BITS - BLOCK_BITS;
/// Largest number of entries of a page, whose checksum is compared when it is read.
pub(in crate::index) const PAGE_ENTRIES: usize = 1 << 9;
/// Number of entries that a bucket should have at least.
const BUCKET_ENTRIES: u64 = 64;
/// Number of bytes that the directory has for each page: table, entries, first key, checksum.
pub(super) const PAGE_RECORD_BYTES: usize = 19;
/// Magic of the format, which ends the directory.
pub(super) const MAGIC: &[u8; 8] = b"DDJFPT02";

/// Facts of a finished file, by which it is opened.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(in crate::index) struct FingerprintSummary {
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
    /// Number of first bits that words of a bucket share.
    pub bucket_bits: u32,
    /// Number that entries count from.
    pub first: u64,
    /// Number of bytes of a number in an entry of the first table.
    pub number_bytes: usize,
}

impl FileShape {
    /// Returns the shape for up to so many entries, whose numbers are from `first` on and less than `end`.
    pub fn new(entries: u64, (first, end): (u64, u64)) -> Self {
        let bucket_bits = (entries / BUCKET_ENTRIES).checked_ilog2().unwrap_or(0).min(BLOCK_BITS);
        let bits = u64::BITS - end.saturating_sub(first).leading_zeros();
        FileShape { bucket_bits, first, number_bytes: bits.div_ceil(8).max(1) as usize }
    }

    /// Whether a file can have this shape.
    pub fn is_possible(self) -> bool {
        self.bucket_bits <= BLOCK_BITS && (1..=8).contains(&self.number_bytes)
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
}

/// Returns the first and the last key that have the block of a key.
pub(super) fn keys_of_block(key: u64) -> (u64, u64) {
    (key & !low_bits(REST_BITS), key | low_bits(REST_BITS))
}

/// Returns the key of a word in a table: its block comes first.
///
/// ```text
/// word          a b c d
/// table 0       a b c d
/// table 1       b a c d
/// table 2       c a b d
/// table 3       d a b c
/// ```
pub(super) fn key_of(word: u64, table: usize) -> u64 {
    let behind = REST_BITS - BLOCK_BITS * table as u32;
    let block = word >> behind & low_bits(BLOCK_BITS);
    let before = word.checked_shr(behind + BLOCK_BITS).unwrap_or(0);
    block << REST_BITS | before << behind | word & low_bits(behind)
}

/// Returns the keys of a word in all tables, which are those of the passes of a search.
pub(in crate::index) fn keys_of_word(word: u64) -> [u64; TABLES] {
    array::from_fn(|table| key_of(word, table))
}

/// Returns the word whose key in a table this is.
pub(super) fn word_of(key: u64, table: usize) -> u64 {
    let behind = REST_BITS - BLOCK_BITS * table as u32;
    let before = (key & low_bits(REST_BITS)) >> behind;
    before.checked_shl(behind + BLOCK_BITS).unwrap_or(0) | key >> REST_BITS << behind | key & low_bits(behind)
}

fn low_bits(bits: u32) -> u64 {
    (1 << bits) - 1
}
