//! The search of one copy of a corpus, as Zhou 2017 does it (section 3.2).

use std::ops::Add;

use serde::{Deserialize, Serialize};

use crate::record::DocId;

/// Number of copies of a corpus.
pub const COPIES: usize = 4;
/// Greatest share of its copy's rows, in percent, that a group may have without being searched by its
/// remaining bits.
const HEAVY_PERCENT: u64 = 50;
/// Share of the original data, in percent, up to which a group is not split further once fewer than
/// [`FEW_BITS`] bits remain.
///
/// The paper leaves the share open. At 10 % of 200,000 posts a group costs 200 million comparisons, once.
/// Splitting it to the end makes 97 groups, which are not smaller if its fingerprints are the same.
const SMALL_PERCENT: u64 = 10;
/// Number of remaining bits below which [`SMALL_PERCENT`] applies.
const FEW_BITS: u32 = 8;
/// Number of remaining bits at which no group is split any further.
const LAST_BITS: u32 = 3;

/// A document with its fingerprint and its words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct WordRow {
    /// Position in the corpus.
    pub doc: DocId,
    /// Fingerprint. Bit 1 of the paper is the most significant bit.
    pub fingerprint: u32,
    /// Hashes of the words, sorted, each once.
    pub words: Vec<u64>,
}

/// Numbers of rows, over all workers, of which the shares that end a split are taken.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Number of rows of the current copy.
    pub copy: u64,
    /// Number of rows of the first copy.
    pub original: u64,
}

/// Numbers of comparisons of documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Comparisons {
    /// Comparisons of 8 bits of the fingerprints, in the retrieval `linear` alone.
    pub of_bits: u64,
    /// Comparisons by similarity.
    pub of_words: u64,
}

impl Add for Comparisons {
    type Output = Comparisons;

    fn add(self, other: Comparisons) -> Comparisons {
        Comparisons { of_bits: self.of_bits + other.of_bits, of_words: self.of_words + other.of_words }
    }
}

/// Divides `bits` into the groups of the four copies, from the most significant bit on. By formula 3 of the
/// paper the first three groups get a quarter of the bits each, rounded down, and the last group gets the
/// rest.
pub(super) fn groups(bits: u32) -> [u32; COPIES] {
    let mut left = bits;
    let mut groups = [0; COPIES];
    for group in &mut groups[..COPIES - 1] {
        for _ in 0..bits.count_ones() / COPIES as u32 {
            let bit = 1 << 31 >> left.leading_zeros();
            *group |= bit;
            left ^= bit;
        }
    }
    groups[COPIES - 1] = left;
    groups
}

/// The search of one copy. Rows are named by their index, which is in the order of the corpus.
pub(super) struct CopySearch<'a, D> {
    pub rows: &'a [WordRow],
    pub original: u64,
    pub deleted: Vec<bool>,
    pub duplicate: D,
    pub comparisons: Comparisons,
}

impl<D: FnMut(&WordRow, &WordRow) -> bool> CopySearch<'_, D> {
    /// Compares each row with the earlier ones that were not deleted, in order, until it is a duplicate of
    /// one. Rows that differ in the bits `on` are skipped. Returns the number of rows looked at, skipped ones
    /// included.
    pub fn compare(&mut self, docs: &[u32], on: u32) -> u64 {
        let (mut kept, mut looked) = (Vec::<(u32, u32)>::new(), 0);
        for &doc in docs {
            let row = &self.rows[doc as usize];
            let duplicate_of = kept.iter().position(|&(fingerprint, earlier)| {
                (fingerprint ^ row.fingerprint) & on == 0 && {
                    self.comparisons.of_words += 1;
                    (self.duplicate)(&self.rows[earlier as usize], row)
                }
            });
            looked += duplicate_of.map_or(kept.len(), |at| at + 1) as u64;
            match duplicate_of {
                Some(_) => self.deleted[doc as usize] = true,
                None => kept.push((row.fingerprint, doc)),
            }
        }
        looked
    }

    /// Searches a copy by the values of `group`. Its rows differ in no bit outside of `bits`. `docs`: the
    /// rows, or at the highest level those of them that are on this worker, of `total` on all workers.
    pub fn split(&mut self, docs: &mut [u32], total: u64, bits: u32, group: u32) {
        let heavy = |rows: usize| rows as u64 * 100 > total * HEAVY_PERCENT;
        let small = |rows: usize| rows as u64 * 100 <= self.original * SMALL_PERCENT;
        let buckets = buckets(self.rows, docs, group);
        let largest = buckets.iter().map(|bucket| bucket.len()).max().unwrap_or(0);
        let remaining = bits & !group;
        let left = remaining.count_ones();
        let ends = !heavy(largest) || left < FEW_BITS && small(largest) || left <= LAST_BITS;
        for bucket in buckets {
            // A single row has nothing to be compared with, however often it is split.
            if ends || !heavy(bucket.len()) || bucket.len() == 1 {
                self.compare(bucket, 0);
                continue;
            }
            for group in groups(remaining) {
                let mut alive: Vec<u32> =
                    bucket.iter().copied().filter(|&doc| !self.deleted[doc as usize]).collect();
                let total = alive.len() as u64;
                self.split(&mut alive, total, remaining, group);
            }
        }
    }
}

/// Divides rows into buckets by their bits in `group`. The rows of each bucket are in the order of the
/// corpus.
pub(super) fn buckets<'d>(rows: &[WordRow], docs: &'d mut [u32], group: u32) -> Vec<&'d [u32]> {
    let value = |doc: u32| rows[doc as usize].fingerprint & group;
    docs.sort_unstable_by_key(|&doc| (value(doc), doc));
    docs.chunk_by(|&a, &b| value(a) == value(b)).collect()
}
