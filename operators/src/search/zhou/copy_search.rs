//! The search of one copy of a corpus, as Zhou 2017 does it (section 3.2).

use std::ops::Add;

use serde::{Deserialize, Serialize};

use super::retrieval::{Retrieval, Splitting, Uneven};
use crate::record::DocId;
use crate::search::PassLoad;

/// Number of copies of a corpus.
pub const COPIES: usize = 4;
/// Number of remaining bits below which a group is not split further if it is small ([`Splitting::small`]).
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

/// Number of rows of a bucket, and its value.
pub type BucketSize = (u64, u64);

/// Moves rows between the workers that search a copy together. All workers call the same functions in the same order.
pub trait RowExchange {
    /// Brings the rows together that agree in the bits of a group.
    fn by_group(&mut self, rows: Vec<WordRow>, group: u32) -> Vec<WordRow>;
    /// Returns the sum of the numbers of all workers.
    fn total(&mut self, count: u64) -> u64;
    /// Returns the sizes that all workers give, in any order.
    fn all(&mut self, sizes: Vec<BucketSize>) -> Vec<BucketSize>;
}

/// The exchange of a worker that is alone.
pub struct Alone;

impl RowExchange for Alone {
    fn by_group(&mut self, rows: Vec<WordRow>, _: u32) -> Vec<WordRow> {
        rows
    }

    fn total(&mut self, count: u64) -> u64 {
        count
    }

    fn all(&mut self, sizes: Vec<BucketSize>) -> Vec<BucketSize> {
        sizes
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

/// Whether two documents meet in any copy by their fingerprints.
pub fn meet(a: u32, b: u32) -> bool {
    groups(u32::MAX).into_iter().any(|group| (a ^ b) & group == 0)
}

/// The search of a copy by all workers, each of which holds some of its rows.
pub struct CopySearch<X, D> {
    retrieval: Retrieval,
    splitting: Splitting,
    /// Number of rows of the first copy, on all workers.
    original: u64,
    exchange: X,
    duplicate: D,
    /// Comparisons of this worker.
    pub comparisons: Comparisons,
    /// Load of this worker. Rows of groups that were taken out count each time they are searched.
    pub load: PassLoad,
}

impl<X: RowExchange, D: FnMut(&WordRow, &WordRow) -> bool> CopySearch<X, D> {
    /// Makes a search. `original`: number of rows of the first copy, on all workers. `duplicate`: whether the second document
    /// is a duplicate of the first, which is the earlier one.
    pub fn new(
        (retrieval, splitting): (Retrieval, Splitting),
        original: u64,
        exchange: X,
        duplicate: D,
    ) -> Self {
        let (comparisons, load) = Default::default();
        CopySearch { retrieval, splitting, original, exchange, duplicate, comparisons, load }
    }

    /// Deletes the duplicates of a copy from the rows of this worker. Returns the rows that stay, or those of other workers.
    ///
    /// Cost: as many calls of `duplicate` as the comparisons that are counted, and sorting.
    pub fn search(&mut self, copy: usize, rows: Vec<WordRow>) -> Vec<WordRow> {
        let group = groups(u32::MAX)[copy];
        let mut rows = match self.retrieval {
            Retrieval::Recursive => self.split(rows, u32::MAX, group),
            Retrieval::Bucket => {
                let mut rows = self.exchange.by_group(rows, group);
                self.arrived(&mut rows, group);
                self.compare_buckets(rows, group)
            }
            Retrieval::Linear => {
                let mut rows = self.exchange.by_group(rows, 0);
                self.arrived(&mut rows, 0);
                let (kept, looked) = self.compare(rows, group);
                self.comparisons.of_bits += looked;
                kept
            }
        };
        self.load.compared = self.comparisons.of_words;
        rows.sort_unstable_by_key(|row| row.doc);
        rows
    }

    /// Orders rows that have arrived by their buckets and by the corpus, and counts them.
    fn arrived(&mut self, rows: &mut [WordRow], group: u32) {
        rows.sort_unstable_by_key(|row| (row.fingerprint & group, row.doc));
        self.load.records += rows.len() as u64;
    }

    /// Searches a copy by the values of `group`. Its rows differ in no bit outside of `bits`. Rows of a bucket with too many
    /// are taken out, and searched by the four groups of the bits that remain: these rows are spread over all workers again.
    fn split(&mut self, rows: Vec<WordRow>, bits: u32, group: u32) -> Vec<WordRow> {
        let mut rows = self.exchange.by_group(rows, group);
        self.arrived(&mut rows, group);
        let remaining = bits & !group;
        let taken = self.uneven(&rows, group, remaining.count_ones());
        let mut out: Vec<Vec<WordRow>> = taken
            .iter()
            .map(|value| rows.extract_if(.., |row| row.fingerprint & group == *value).collect())
            .collect();
        let mut kept = self.compare_buckets(rows, group);
        for rows in &mut out {
            for group in groups(remaining) {
                *rows = self.split(std::mem::take(rows), remaining, group);
            }
        }
        out.into_iter().for_each(|rows| kept.extend(rows));
        kept
    }

    /// Returns the values of the buckets that have too many rows, the largest first, the same on all workers. `rows`: in the order of
    /// their buckets. `left`: number of bits that remain.
    fn uneven(&mut self, rows: &[WordRow], group: u32, left: u32) -> Vec<u32> {
        let value = |row: &WordRow| row.fingerprint & group;
        let buckets = rows.chunk_by(|a, b| value(a) == value(b));
        let mut sizes: Vec<BucketSize> =
            buckets.map(|bucket| (bucket.len() as u64, value(&bucket[0]).into())).collect();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        self.load.largest_bucket = self.load.largest_bucket.max(sizes.first().map_or(0, |largest| largest.0));
        if left <= LAST_BITS {
            return Vec::new();
        }
        let total = self.exchange.total(rows.len() as u64);
        let most = match self.splitting.uneven {
            Uneven::Share(percent) => {
                sizes.retain(|(size, _)| size * 100 > total * u64::from(percent));
                usize::MAX
            }
            Uneven::Variance { percent, top } => {
                let squares = self.exchange.total(sizes.iter().map(|(size, _)| size * size).sum());
                if !varies(squares, total, group.count_ones(), percent) {
                    return Vec::new();
                }
                sizes.truncate(top as usize);
                top as usize
            }
        };
        let mut sizes = self.exchange.all(sizes);
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        sizes.truncate(most);
        let small = |size: u64| size * 100 <= self.original * u64::from(self.splitting.small);
        if left < FEW_BITS && sizes.first().is_none_or(|largest| small(largest.0)) {
            return Vec::new();
        }
        // A single row has nothing to be compared with, however often it is split.
        sizes.into_iter().filter(|(size, _)| *size > 1).map(|(_, value)| value as u32).collect()
    }

    /// Compares the rows of each bucket. Returns those that stay. `rows`: in the order of their buckets.
    fn compare_buckets(&mut self, rows: Vec<WordRow>, group: u32) -> Vec<WordRow> {
        let mut kept = Vec::with_capacity(rows.len());
        let mut rows = rows.into_iter().peekable();
        while let Some(first) = rows.next() {
            let value = first.fingerprint & group;
            let mut bucket = vec![first];
            while let Some(row) = rows.next_if(|row| row.fingerprint & group == value) {
                bucket.push(row);
            }
            kept.append(&mut self.compare(bucket, 0).0);
        }
        kept
    }

    /// Compares each row with the earlier ones that were not deleted, in order, until it is a duplicate of
    /// one. Rows that differ in the bits `on` are skipped. Returns the rows that stay, and the number of rows looked at,
    /// skipped ones included.
    fn compare(&mut self, rows: Vec<WordRow>, on: u32) -> (Vec<WordRow>, u64) {
        self.load.largest_bucket = self.load.largest_bucket.max(rows.len() as u64);
        let mut kept = Vec::<WordRow>::with_capacity(rows.len());
        // All fingerprints that are looked at lie side by side.
        let mut fingerprints = Vec::with_capacity(rows.len());
        let mut looked = 0;
        for row in rows {
            let duplicate_of = fingerprints.iter().enumerate().position(|(at, fingerprint)| {
                (fingerprint ^ row.fingerprint) & on == 0 && {
                    self.comparisons.of_words += 1;
                    (self.duplicate)(&kept[at], &row)
                }
            });
            looked += duplicate_of.map_or(kept.len(), |at| at + 1) as u64;
            if duplicate_of.is_none() {
                fingerprints.push(row.fingerprint);
                kept.push(row);
            }
        }
        (kept, looked)
    }
}

/// Whether the variance of the shares of the buckets, in percent, is above a number. `squares`: sum of the squares of their sizes.
/// `total`: sum of their sizes. `bits`: of their values.
fn varies(squares: u64, total: u64, bits: u32, above: u32) -> bool {
    let buckets = 2_f64.powi(bits as i32);
    let total = total.max(1) as f64;
    let mean = 100.0 / buckets;
    1e4 * squares as f64 / (total * total) / buckets - mean * mean > f64::from(above)
}
