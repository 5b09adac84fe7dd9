//! The search of `zhou2017`: SimHash of 32 bits combined with the words that two posts share.
//!
//! The arithmetic is here and the map stage in `map.rs`: `retrieval.rs` says which posts meet, `copy_search.rs` finds
//! copies and deletes them; `flow/zhou.rs` moves the rows between workers. Source: Zhou Chunhui, "An improved
//! algorithm of big data deduplication based on Simhash", Computer and Modernization 2017(7). Our reading of it,
//! and our differences: docs/papers/zhou2017.md.

pub mod copy_search;
mod map;
pub mod retrieval;

use std::fmt;

use serde::{Deserialize, Serialize};

use self::copy_search::WordRow;
use self::retrieval::{Retrieval, Splitting};
use crate::fingerprint::bit_counts::BitCounts;
use crate::hash;
use crate::record::{DocId, Pair};
use crate::sets::similarity::{Similarity, shared};
use crate::text::features::Features;

/// Hash of a word, of 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WordHash {
    /// `String.hashCode` of Java, which fills few bits of a short word: the paper's, as we read it.
    Java,
    /// The low half of XXH3, which fills all bits.
    Xxh3,
}

impl fmt::Display for WordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// Half of a word's 32 bits that the other half is or-ed onto.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Fold {
    /// The most significant 16 bits: the paper's bits 1 to 16, as we read it.
    Upper,
    /// The least significant 16 bits: the paper's bits 1 to 16, if bit 1 is the least significant one.
    Lower,
    /// Neither.
    None,
}

impl fmt::Display for Fold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// The search of `zhou2017`: makes the fingerprint and the words of a document, and decides whether two
/// documents are duplicates.
///
/// Two documents are duplicates if Sim = 1 / (Ham + 1) + K * Dup reaches a threshold. Ham is the Hamming
/// distance of the fingerprints, and Dup the Jaccard similarity of the sets of words.
///
/// Example with K = 4 and the threshold 1.8:
///
/// ```text
/// Ham   words shared   words in all   Sim
/// 0     1              5              1 + 4 * 1/5 = 1.8          a duplicate
/// 2     2              4              1/3 + 4 * 2/4 = 2.33       a duplicate
/// 3     30             80             1/4 + 4 * 30/80 = 1.75     none
/// ```
#[derive(Clone)]
pub struct Zhou {
    /// Words of a text.
    pub features: Features,
    /// Weight of the words that two texts share. Without any, Sim says what the Hamming distance says: the traditional SimHash.
    pub k: u64,
    /// Least Sim of a duplicate, in millionths.
    pub threshold: u64,
    /// Hash of a word.
    pub hash: WordHash,
    /// Parts of it that are or-ed onto each other.
    pub fold: Fold,
    /// Way in which the documents to compare are found.
    pub retrieval: Retrieval,
    /// Bounds of the recursive retrieval.
    pub splitting: Splitting,
}

impl Zhou {
    /// Returns the row of a cleaned text. A repeated word is counted each time in the fingerprint.
    pub fn row(&self, doc: DocId, text: &str) -> WordRow {
        let mut tally = BitCounts::<u64>::default();
        let mut words = Vec::new();
        self.features.slices(text, |word| {
            tally.add(word_hash(word, self.hash, self.fold).into());
            words.push(hash::word(word.as_bytes(), 0, word.len()));
        });
        words.sort_unstable();
        words.dedup();
        WordRow { doc, fingerprint: tally.majority() as u32, words }
    }

    /// Returns the pair, with its Hamming distance and with Dup, if the two are duplicates.
    pub fn duplicates(&self, a: &WordRow, b: &WordRow) -> Option<(Pair, Similarity)> {
        let distance = (a.fingerprint ^ b.fingerprint).count_ones();
        // The two share at most the words of the one that has fewer. This bound makes most counts
        // unnecessary.
        let (fewer, more) = (a.words.len().min(b.words.len()), a.words.len().max(b.words.len()));
        if !self.reached(distance, fewer as u64, more as u64) {
            return None;
        }
        let both = shared(&a.words, &b.words);
        let all = a.words.len() + b.words.len() - both;
        let reached = self.reached(distance, both as u64, all as u64);
        reached.then(|| (Pair::new(a.doc, b.doc, distance), Similarity::ratio(both, all)))
    }

    /// Returns Sim of two rows, and Dup, both for people.
    pub fn sim(&self, a: &WordRow, b: &WordRow) -> (f64, Similarity) {
        let both = shared(&a.words, &b.words);
        let dup = Similarity::ratio(both, a.words.len() + b.words.len() - both);
        let distance = (a.fingerprint ^ b.fingerprint).count_ones();
        (1.0 / f64::from(distance + 1) + self.k as f64 * dup.as_f64(), dup)
    }

    /// Whether Sim = 1 / (Ham + 1) + K * Dup, formula 2 of the paper, is at least the threshold. Both sides
    /// are multiplied by the denominators, so that all numbers are whole.
    fn reached(&self, distance: u32, shared: u64, all: u64) -> bool {
        let ham = u64::from(distance) + 1;
        1_000_000 * (all + self.k * shared * ham) >= self.threshold * all * ham
    }
}

/// Returns the 32 bits of a word.
///
/// The paper names no hash. It says that words of two or three characters leave most of their bits unfilled,
/// so that nearly everything falls into one bucket of the *first* copy, and or-s bits 17 to 32 onto bits 1 to
/// 16. The hash of Java, whose Lucene the paper uses, is such a hash if bit 1 is the most significant.
///
/// Source: Java SE API, `java.lang.String.hashCode`: s[0] * 31^(n-1) + ... + s[n-1] over UTF-16.
fn word_hash(word: &str, hash: WordHash, fold: Fold) -> u32 {
    let bits = match hash {
        WordHash::Java => java_hash(word),
        WordHash::Xxh3 => hash::bytes(word.as_bytes()) as u32,
    };
    match fold {
        Fold::Upper => bits | bits << 16,
        Fold::Lower => bits | bits >> 16,
        Fold::None => bits,
    }
}

/// Returns `String.hashCode` of Java.
pub fn java_hash(text: &str) -> u32 {
    text.encode_utf16().fold(0, |hash: u32, unit| hash.wrapping_mul(31).wrapping_add(unit.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zhou(k: u64, threshold: Option<u64>) -> Zhou {
        let threshold = threshold.unwrap_or(1_000_000 + 200_000 * k);
        let (hash, fold, retrieval) = (WordHash::Java, Fold::Upper, Retrieval::Recursive);
        let features = Features::Chars(1);
        let splitting = Splitting::default();
        Zhou { features, k, threshold, hash, fold, retrieval, splitting }
    }

    /// "hello" comes from Java's own documentation of `hashCode`; the others were worked out by hand.
    #[test]
    fn a_word_of_two_characters_has_its_bits_in_both_halves() {
        for (word, upper, lower) in [
            ("hello", 0x1DFB_18D2, 0x05E9_1DFB), // 99162322 = 0x05E9_18D2
            ("今天", 0xE39F_E39F, 0x0009_E39F),  // 31 * 0x4ECA + 0x5929 = 0x0009_E39F
            ("😀", 0x0D7B_0D63, 0x001B_0D7B),    // 31 * 0xD83D + 0xDE00 = 0x001B_0D63
            ("", 0, 0),
        ] {
            let folded = [Fold::Upper, Fold::Lower].map(|fold| word_hash(word, WordHash::Java, fold));
            assert_eq!(folded, [upper, lower], "{word}");
        }
    }

    #[test]
    fn sim_is_measured_against_the_threshold_without_rounding() {
        let default = zhou(4, None);
        assert!(default.reached(0, 1, 5) && !default.reached(0, 199, 1000)); // 1 + 4 * 1/5 = 1.8
        assert!(default.reached(3, 31, 80) && !default.reached(3, 30, 80)); // 1/4 + 4 * 31/80 = 1.8
        assert!(zhou(3, None).reached(2, 19, 45)); // 1/3 + 3 * 19/45 = 1.6
        assert!(!zhou(3, Some(1_600_001)).reached(2, 19, 45));
        assert!(zhou(8, Some(9_000_000)).reached(0, 7, 7) && !zhou(8, Some(9_000_000)).reached(1, 7, 7));
        assert!(default.reached(32, 1 << 30, 1 << 30), "millions of words do not overflow");
    }

    #[test]
    fn without_words_sim_is_the_hamming_distance() {
        for (threshold, most) in [(250_000, 3), (1_000_000, 0)] {
            let traditional = zhou(0, Some(threshold));
            (0..=32).for_each(|ham| assert_eq!(traditional.reached(ham, 0, 9), ham <= most, "{ham}"));
        }
    }

    /// lanceyan.com prints both, the first one with all 64 bits of a `long`.
    #[test]
    fn two_published_hashes_come_out() {
        for (text, hash) in [
            ("你妈妈喊你回家吃饭哦，回家罗回家罗", 0b1000_1000_0011_0011_0100_1110_1101_1110_u32),
            ("你妈妈叫你回家吃饭啦，回家罗回家罗", 0b0101_0010_0011_1111_1110_0101_1001_1101_u32),
        ] {
            assert_eq!(format!("{:b}", java_hash(text)), format!("{hash:b}"), "{text}");
        }
    }

    #[test]
    fn duplicates_share_words_or_have_near_fingerprints_and_some_words() {
        let row =
            |doc, fingerprint, words: &[u64]| WordRow { doc: DocId(doc), fingerprint, words: words.to_vec() };
        let (a, b) = (row(1, 0b1011, &[1, 2, 3]), row(2, 0b1000, &[2, 3, 9]));
        let found = zhou(4, None).duplicates(&a, &b);
        assert_eq!(found, Some((Pair::new(DocId(1), DocId(2), 2), Similarity::ratio(2, 4)))); // 1/3 + 4 * 1/2
        assert_eq!(zhou(4, None).duplicates(&a, &row(3, 0b1011, &[4])), None); // 1 + 0
    }

    #[test]
    fn pairs_that_the_bound_skips_are_no_duplicates() {
        let set = |of: u64| (1..=5).filter(|word| of >> word & 1 == 1).collect::<Vec<u64>>();
        let zhou = zhou(4, None);
        for (a, b) in (2..64u64).step_by(2).flat_map(|a| (2..64u64).step_by(2).map(move |b| (a, b))) {
            for fingerprint in [0, 1, 0b111, 0xFF_FFFF] {
                let row = |doc, fingerprint, of| WordRow { doc: DocId(doc), fingerprint, words: set(of) };
                let both = (a & b).count_ones().into();
                let all = (a | b).count_ones().into();
                let found = zhou.duplicates(&row(1, 0, a), &row(2, fingerprint, b));
                assert_eq!(found.is_some(), zhou.reached(fingerprint.count_ones(), both, all), "{a:b} {b:b}");
            }
        }
    }

    #[test]
    fn a_repeated_word_counts_once_in_dup_and_often_in_the_fingerprint() {
        let zhou = zhou(4, None);
        let (once, often) = (zhou.row(DocId(1), "天气"), zhou.row(DocId(2), "天天气天"));
        assert_eq!(once.words, often.words);
        assert_eq!(often.fingerprint, word_hash("天", WordHash::Java, Fold::Upper));
        assert_ne!(once.fingerprint, often.fingerprint);
    }
}
