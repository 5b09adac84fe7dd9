//! Retrieval of Zhou 2017, section 3.2: the ways in which the documents that are compared are found.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Way in which the documents to compare are found.
///
/// The 32 bits of a fingerprint are cut into four groups of 8, each of which makes a *copy* of the corpus.
/// The copies are searched one after the other: documents that agree on the group of the copy are compared,
/// in the order of the corpus, and a document that is a duplicate of an earlier one is deleted and missing in
/// the next copies. All three ways compare in the order of the corpus, so the deletions depend on nothing
/// else.
///
/// Example with `Bucket` and three documents:
///
/// ```text
/// fingerprints    1: AA 00 00 00    2: AA FF FF FF    3: BB FF FF FF
/// copy 0          bucket AA: 1 and 2 are compared; 2 is a duplicate and deleted
/// copy 1          buckets 00 and FF: 3 would have been compared with 2, which is gone
/// copies 2 and 3  as copy 1: documents 1 and 3 stay
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Retrieval {
    /// The baseline: 8 bits of each document are compared with those of every earlier one.
    Linear,
    /// Documents are divided into 256 buckets by those 8 bits, and all documents of a bucket are compared.
    Bucket,
    /// As `Bucket`, but a bucket with most of the rows is split again by its remaining bits ([`Splitting`]). Documents in it
    /// that differ in more than three bits may miss each other.
    Recursive,
}

impl fmt::Display for Retrieval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// Bounds by which `Recursive` takes buckets out and splits them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Splitting {
    /// Which buckets are taken out.
    pub uneven: Uneven,
    /// Share of the original data, in percent, up to which a bucket is not split further once fewer than 8 bits remain.
    ///
    /// The paper leaves the share open. At 10 % of 200,000 posts a bucket costs 200 million comparisons, once.
    /// Splitting it to the end makes 97 buckets, which are not smaller if its fingerprints are the same.
    pub small: u32,
}

/// The two tests of the paper that tell which buckets have too many rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uneven {
    /// Those with more than this share of the rows, in percent. It is the test that the paper uses, with 50.
    Share(u32),
    /// The largest ones, if the variance of the shares of all buckets, in percent, is above a number.
    Variance {
        /// The number. If one bucket has all rows, the variance of 256 is 39.
        percent: u32,
        /// Number of buckets that are taken out: 1 or 2.
        top: u32,
    },
}

impl Default for Splitting {
    fn default() -> Self {
        Splitting { uneven: Uneven::Share(50), small: 10 }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::copy_search::{Alone, COPIES, Comparisons, CopySearch, WordRow, groups};
    use super::*;
    use crate::record::DocId;

    const ALL: [Retrieval; 3] = [Retrieval::Linear, Retrieval::Bucket, Retrieval::Recursive];

    fn rows(fingerprints: &[u32]) -> Vec<WordRow> {
        let docs = (0..).map(DocId);
        docs.zip(fingerprints)
            .map(|(doc, &fingerprint)| WordRow { doc, fingerprint, words: vec![] })
            .collect()
    }

    /// Searches all copies, one after the other. `original`: least number of rows that shares are taken of.
    fn search(
        retrieval: Retrieval,
        fingerprints: &[u32],
        original: u64,
        duplicate: impl FnMut(u64, u64) -> bool,
    ) -> (Vec<u64>, Comparisons) {
        search_by((retrieval, Splitting::default()), fingerprints, original, duplicate)
    }

    fn search_by(
        way: (Retrieval, Splitting),
        fingerprints: &[u32],
        original: u64,
        mut duplicate: impl FnMut(u64, u64) -> bool,
    ) -> (Vec<u64>, Comparisons) {
        let mut rows = rows(fingerprints);
        let original = original.max(rows.len() as u64);
        let duplicate = |a: &WordRow, b: &WordRow| duplicate(a.doc.0, b.doc.0);
        let mut search = CopySearch::new(way, original, Alone, duplicate);
        for copy in 0..COPIES {
            rows.reverse(); // they may come in any order
            rows = search.search(copy, rows);
        }
        (rows.iter().map(|row| row.doc.0).collect(), search.comparisons)
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
        // Bits with gaps between them are in one group each.
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

    #[test]
    fn the_largest_buckets_are_taken_out_if_their_sizes_vary() {
        // The first copy has buckets of 4, 2 and 1 rows: shares of 57, 29 and 14 percent, so a variance of 16.7.
        let fingerprints =
            [0xAA11_1111, 0xAA22_2222, 0xAA33_3333, 0xAA44_4444, 0xBB55_5555, 0xBB66_6666, 0xCC77_7777];
        let compared = |uneven| {
            let splitting = Splitting { uneven, ..Splitting::default() };
            search_by((Retrieval::Recursive, splitting), &fingerprints, 0, |_, _| false).1.of_words
        };
        // What is taken out meets in the six bits that follow: of 11, 22, 33 and 44 none agree.
        for (percent, top, pairs) in [(17, 1, 6 + 1), (16, 1, 1), (16, 2, 0)] {
            assert_eq!(compared(Uneven::Variance { percent, top }), pairs, "{percent} {top}");
        }
        assert_eq!([60, 50, 20].map(|percent| compared(Uneven::Share(percent))), [7, 1, 0]);
    }

    /// Returns how often the rows of a copy over `bits` bits with a group of `group` bits are compared, when
    /// all rows have one fingerprint and splitting ends at `last` bits.
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
    fn deleted_documents_are_not_compared_again() {
        for retrieval in ALL {
            let (kept, comparisons) = search(retrieval, &[7; 4], 0, |_, _| true);
            assert_eq!(kept, [0], "{retrieval}");
            assert_eq!(comparisons.of_words, 3, "{retrieval}");
            assert_eq!(comparisons.of_bits, if retrieval == Retrieval::Linear { 3 } else { 0 });
        }
        // The first copy has 3 looks. In the second one documents 0 and 1 agree, so 1 is deleted at its only
        // look, and 2 looks at 0 in vain. The last two copies have 1 look each.
        let (kept, comparisons) = search(Retrieval::Linear, &[1, 0x8000_0001, 2], 0, |a, b| (a, b) == (0, 1));
        assert_eq!((kept, comparisons), (vec![0, 2], Comparisons { of_bits: 3 + 2 + 1 + 1, of_words: 4 }));
    }

    prop_compose! {
        /// Fingerprints near a few centres, of which one has most of the rows.
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
        fn deletion_equals_the_definition_of_the_paper(fingerprints in crowded(), salt in any::<u64>()) {
            let duplicate = |a: u64, b: u64| crate::hash::spread(salt ^ (a << 32 | b)) & 7 == 0;
            // The definition: copy by copy, in order, a document is deleted with the first earlier one that
            // is left and has it as a duplicate.
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
            // No document that the recursion keeps has a duplicate within three bits.
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
