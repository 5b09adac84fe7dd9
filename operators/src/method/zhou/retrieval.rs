//! Retrieval of Zhou 2017, section 3.2: which documents are compared, and greedy deletion of the duplicates found.
//!
//! The 32 bits of a fingerprint make four copies of the corpus, one for each 8 bits. Copies are searched one after
//! another; what one copy deletes is not in the next. All three ways compare documents in the order of the corpus,
//! so what is deleted depends on nothing else.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Add;

use crate::record::DocId;

/// The copies of a corpus.
pub const COPIES: usize = 4;
/// A group with more than this share of its copy's rows is taken out and searched by its remaining bits.
const HEAVY_PERCENT: u64 = 50;
/// With fewer than [`FEW_BITS`] bits remaining, a group of up to this share of the original data is not taken out.
/// The paper leaves the share open. At 10 % of 200,000 posts a group costs 200 million comparisons, once; to split it
/// to the end makes 97 groups of it, which have not become smaller if its fingerprints are the same.
const SMALL_PERCENT: u64 = 10;
/// See [`SMALL_PERCENT`].
const FEW_BITS: u32 = 8;
/// With this many bits remaining, nothing is taken out.
const LAST_BITS: u32 = 3;

/// How the documents that are compared are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retrieval {
    /// The baseline: 8 bits of each document are held against those of every earlier one.
    Linear,
    /// 256 buckets by those 8 bits; all documents of a bucket are compared.
    Bucket,
    /// A bucket with most of the rows is split again by its remaining bits, so documents that differ in more than
    /// three bits may miss each other there.
    Recursive,
}

impl Retrieval {
    const ALL: [Retrieval; 3] = [Retrieval::Linear, Retrieval::Bucket, Retrieval::Recursive];

    /// Parses `linear`, `bucket` or `recursive`.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|retrieval| retrieval.to_string() == text)
    }
}

impl fmt::Display for Retrieval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Retrieval::Linear => "linear",
            Retrieval::Bucket => "bucket",
            Retrieval::Recursive => "recursive",
        })
    }
}

/// A document as its words have it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WordRow {
    /// Its place in the corpus.
    pub doc: DocId,
    /// Bit 1 of the paper is the most significant.
    pub fingerprint: u32,
    /// Hashes of its words, sorted, each once.
    pub words: Vec<u64>,
}

/// What shares are taken of, in rows of all workers.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Rows of the copy at hand.
    pub copy: u64,
    /// Rows of the first copy.
    pub original: u64,
}

/// How often documents were compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Comparisons {
    /// By 8 bits of their fingerprints, in [`Retrieval::Linear`] alone.
    pub of_bits: u64,
    /// By their similarity.
    pub of_words: u64,
}

impl Add for Comparisons {
    type Output = Comparisons;

    fn add(self, other: Comparisons) -> Comparisons {
        Comparisons { of_bits: self.of_bits + other.of_bits, of_words: self.of_words + other.of_words }
    }
}

impl Retrieval {
    /// Rows with different keys in a copy can be searched apart from each other. The baseline has one key.
    pub fn key(self, copy: usize, fingerprint: u32) -> u32 {
        match self {
            Retrieval::Linear => 0,
            Retrieval::Bucket | Retrieval::Recursive => fingerprint & groups(u32::MAX)[copy],
        }
    }

    /// Deletes the duplicates of one copy from `rows`, which are all rows of some keys, in any order; they come out
    /// in the order of the corpus.
    ///
    /// `duplicate`: whether the second document is a duplicate of the first, which is the earlier one. Cost: as
    /// many calls as the comparisons that are counted, and sorting. Memory: some 20 bytes a row.
    pub fn search(
        self,
        copy: usize,
        sizes: Sizes,
        rows: &mut Vec<WordRow>,
        duplicate: impl FnMut(&WordRow, &WordRow) -> bool,
    ) -> Comparisons {
        rows.sort_unstable_by_key(|row| row.doc);
        let mut search = Search {
            rows,
            original: sizes.original,
            deleted: vec![false; rows.len()],
            duplicate,
            comparisons: Comparisons::default(),
        };
        let group = groups(u32::MAX)[copy];
        let mut all: Vec<u32> = (0..search.rows.len() as u32).collect();
        match self {
            Retrieval::Linear => search.comparisons.of_bits = search.compare(&all, group),
            Retrieval::Bucket => {
                for bucket in buckets(search.rows, &mut all, group) {
                    search.compare(bucket, 0);
                }
            }
            Retrieval::Recursive => search.split(&mut all, sizes.copy, u32::MAX, group),
        }
        let Search { deleted, comparisons, .. } = search;
        let mut deleted = deleted.into_iter();
        rows.retain(|_| deleted.next() == Some(false));
        comparisons
    }
}

/// Whether two documents meet in any copy.
pub fn meet(a: u32, b: u32) -> bool {
    groups(u32::MAX).into_iter().any(|group| (a ^ b) & group == 0)
}

/// The bits of each copy by the paper's formula 3: of `n` bits a quarter, rounded down, for the first three, from
/// the most significant on, and what is left for the last.
fn groups(bits: u32) -> [u32; COPIES] {
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

/// The search of one copy. Rows go by their index, which has the order of the corpus.
struct Search<'a, D> {
    rows: &'a [WordRow],
    original: u64,
    deleted: Vec<bool>,
    duplicate: D,
    comparisons: Comparisons,
}

impl<D: FnMut(&WordRow, &WordRow) -> bool> Search<'_, D> {
    /// Compares each row with the earlier ones that were not deleted, in order, until one has it as a duplicate.
    /// Those that differ in the bits `on` are passed over. Returns how many were looked at.
    fn compare(&mut self, docs: &[u32], on: u32) -> u64 {
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

    /// Searches by the values of `group` a copy whose rows differ in no bit but those of `bits`. `docs` are its rows,
    /// or at the highest level those that are here of `total`.
    fn split(&mut self, docs: &mut [u32], total: u64, bits: u32, group: u32) {
        let heavy = |rows: usize| rows as u64 * 100 > total * HEAVY_PERCENT;
        let small = |rows: usize| rows as u64 * 100 <= self.original * SMALL_PERCENT;
        let buckets = buckets(self.rows, docs, group);
        let largest = buckets.iter().map(|bucket| bucket.len()).max().unwrap_or(0);
        let remaining = bits & !group;
        let left = remaining.count_ones();
        let ends = !heavy(largest) || left < FEW_BITS && small(largest) || left <= LAST_BITS;
        for bucket in buckets {
            // One row alone has nothing to be compared with, however often it is split.
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

/// The rows by their bits in `group`, those of each bucket in the order of the corpus.
fn buckets<'d>(rows: &[WordRow], docs: &'d mut [u32], group: u32) -> Vec<&'d [u32]> {
    let value = |doc: u32| rows[doc as usize].fingerprint & group;
    docs.sort_unstable_by_key(|&doc| (value(doc), doc));
    docs.chunk_by(|&a, &b| value(a) == value(b)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    const ALL: [Retrieval; 3] = Retrieval::ALL;

    fn rows(fingerprints: &[u32]) -> Vec<WordRow> {
        let docs = (0..).map(DocId);
        docs.zip(fingerprints)
            .map(|(doc, &fingerprint)| WordRow { doc, fingerprint, words: vec![] })
            .collect()
    }

    /// Searches all copies, one after another; `original`: of how many rows shares are taken at the least.
    fn search(
        retrieval: Retrieval,
        fingerprints: &[u32],
        original: u64,
        mut duplicate: impl FnMut(u64, u64) -> bool,
    ) -> (Vec<u64>, Comparisons) {
        let mut rows = rows(fingerprints);
        let original = original.max(rows.len() as u64);
        let mut all = Comparisons::default();
        for copy in 0..COPIES {
            rows.reverse(); // they may come in any order
            let sizes = Sizes { copy: rows.len() as u64, original };
            let found = retrieval.search(copy, sizes, &mut rows, |a, b| duplicate(a.doc.0, b.doc.0));
            all = all + found;
        }
        (rows.iter().map(|row| row.doc.0).collect(), all)
    }

    fn widths(bits: u32) -> [u32; COPIES] {
        groups(bits).map(u32::count_ones)
    }

    #[test]
    fn groups_have_the_sizes_of_formula_3() {
        assert_eq!(groups(u32::MAX), [0xFF00_0000, 0xFF_0000, 0xFF00, 0xFF]);
        assert_eq!(widths(0x3_FFFF), [4, 4, 4, 6]); // the paper's example: 18 bits
        assert_eq!(widths(0x00FF_FFFF), [6, 6, 6, 6]);
        assert_eq!(widths(0b111_1111), [1, 1, 1, 4]);
        // Of bits with gaps, each is in one group.
        assert_eq!(groups(0xF0_0F0F), [0xE0_0000, 0x10_0C00, 0x0308, 0x07]);
    }

    #[test]
    fn a_bucket_is_compared_as_it_is_up_to_half_of_the_rows() {
        // Rows 0 to 2 share the first 8 bits, 0 and 1 no other group of six; row 3 and on share nothing.
        let fingerprints = [0xAA00_0000, 0xAAFF_FFFF, 0xAA00_0FFF, 0x0111_1111, 0x0222_2222, 0x0433_3333];
        let compared = |rows: &[u32], retrieval| {
            let mut pairs = BTreeSet::new();
            search(retrieval, rows, 0, |a, b| {
                pairs.insert((a, b));
                false
            });
            pairs
        };
        let of_bucket = BTreeSet::from([(0, 1), (0, 2), (1, 2)]);
        assert_eq!(compared(&fingerprints, Retrieval::Recursive), of_bucket);
        // Without row 5 they are three of five: (0, 1) is lost, the others meet in six bits of the rest.
        assert_eq!(compared(&fingerprints[..5], Retrieval::Bucket), of_bucket);
        assert_eq!(compared(&fingerprints[..5], Retrieval::Recursive), BTreeSet::from([(0, 2), (1, 2)]));
    }

    /// How often the rows of a copy over `bits` with a group of `group` bits are compared, when all rows have one
    /// fingerprint and splitting ends at `last` bits.
    fn leaves(bits: u32, group: u32, last: u32) -> u64 {
        let left = bits - group;
        let quarter = left / 4;
        let sizes = [quarter, quarter, quarter, left - 3 * quarter];
        if left <= last { 1 } else { sizes.into_iter().map(|group| leaves(left, group, last)).sum() }
    }

    #[test]
    fn splitting_ends_at_seven_bits_if_the_group_is_small_else_at_three() {
        let same = [0x1234_5678; 5];
        let comparisons = |original| search(Retrieval::Recursive, &same, original, |_, _| false).1.of_words;
        let pairs = 10;
        assert_eq!(comparisons(49), 4 * pairs * leaves(32, 8, 3)); // five of 49 are more than 10 %
        assert_eq!(comparisons(50), 4 * pairs * leaves(32, 8, 7));
    }

    #[test]
    fn what_was_deleted_is_compared_no_more() {
        for retrieval in ALL {
            let (kept, comparisons) = search(retrieval, &[7; 4], 0, |_, _| true);
            assert_eq!(kept, [0], "{retrieval}");
            assert_eq!(comparisons.of_words, 3, "{retrieval}");
            assert_eq!(comparisons.of_bits, if retrieval == Retrieval::Linear { 3 } else { 0 });
        }
        // 1 is looked at by 0 in the first copy, which has them agree, then twice in vain: 3, 1, 1 and 1 looks.
        let (kept, comparisons) = search(Retrieval::Linear, &[1, 0x8000_0001, 2], 0, |a, b| (a, b) == (0, 1));
        assert_eq!((kept, comparisons), (vec![0, 2], Comparisons { of_bits: 3 + 2 + 1 + 1, of_words: 4 }));
    }

    prop_compose! {
        /// Near a few centres, of which one has most of the rows.
        fn crowded()(
            centres in vec(any::<u32>(), 1..4),
            near in vec((0usize..12, vec(0u32..32, 0..6)), 0..80),
        ) -> Vec<u32> {
            let centre = |at: usize| centres[if at < 9 { 0 } else { at % centres.len() }];
            near.iter().map(|(at, flips)| flips.iter().fold(centre(*at), |f, bit| f ^ 1 << bit)).collect()
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn pairs_that_meet_are_those_of_equal_bytes_and_all_within_three_bits(fingerprints in crowded(), original in 0u64..1_500) {
            let met = |retrieval| {
                let mut pairs = BTreeMap::<(u64, u64), u64>::new();
                let found = search(retrieval, &fingerprints, original, |a, b| { *pairs.entry((a, b)).or_default() += 1; false });
                prop_assert_eq!(found.0.len(), fingerprints.len());
                prop_assert_eq!(found.1.of_words, pairs.values().sum::<u64>());
                Ok(pairs)
            };
            let mut equal_bytes = BTreeMap::new();
            let mut near = BTreeSet::new();
            for (b, y) in fingerprints.iter().enumerate() {
                for (a, x) in fingerprints[..b].iter().enumerate() {
                    let pair = (a as u64, b as u64);
                    let equal = x.to_be_bytes().iter().zip(y.to_be_bytes()).filter(|(x, y)| *x == y).count() as u64;
                    if equal > 0 {
                        equal_bytes.insert(pair, equal);
                    }
                    if (x ^ y).count_ones() <= 3 {
                        near.insert(pair);
                    }
                }
            }
            prop_assert_eq!(&met(Retrieval::Linear)?, &equal_bytes);
            prop_assert_eq!(&met(Retrieval::Bucket)?, &equal_bytes);
            let recursive: BTreeSet<_> = met(Retrieval::Recursive)?.into_keys().collect();
            prop_assert!(recursive.is_superset(&near));
            prop_assert!(recursive.iter().all(|pair| equal_bytes.contains_key(pair)));
        }

        #[test]
        fn deletion_equals_the_book(fingerprints in crowded(), salt in any::<u64>()) {
            let duplicate = |a: u64, b: u64| crate::hash::spread(salt ^ (a << 32 | b)) & 7 == 0;
            // By the book: copy by copy, in order, a document goes with the first earlier one that is left and has it.
            let mut left: Vec<usize> = (0..fingerprints.len()).collect();
            let mut comparisons = 0;
            for byte in 0..4 {
                let mut kept: Vec<usize> = Vec::new();
                for doc in left {
                    let value = |doc: usize| fingerprints[doc].to_be_bytes()[byte];
                    let mut earlier = kept.iter().filter(|&&other| value(other) == value(doc));
                    if !earlier.any(|&other| { comparisons += 1; duplicate(other as u64, doc as u64) }) {
                        kept.push(doc);
                    }
                }
                left = kept;
            }
            let left: Vec<u64> = left.into_iter().map(|doc| doc as u64).collect();
            for retrieval in [Retrieval::Linear, Retrieval::Bucket] {
                let (kept, counted) = search(retrieval, &fingerprints, 0, duplicate);
                prop_assert_eq!((&kept, counted.of_words), (&left, comparisons), "{}", retrieval);
            }
            // What the recursion keeps has no duplicate within three bits.
            let (kept, _) = search(Retrieval::Recursive, &fingerprints, 0, duplicate);
            for (at, &b) in kept.iter().enumerate() {
                for &a in &kept[..at] {
                    let near = (fingerprints[a as usize] ^ fingerprints[b as usize]).count_ones() <= 3;
                    prop_assert!(!near || !duplicate(a, b), "{} and {}", a, b);
                }
            }
        }
    }
}
