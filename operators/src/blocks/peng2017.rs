//! The block method of Peng 2017: a paragraph is kept as a whole, or as its sentences if an earlier one is similar by the SimHash of its
//! sentences.
//! docs/papers/peng2017.md says where the paper leaves a choice.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use md5::{Digest, Md5};
use sha1::Sha1;

use super::ledger::BlockLedger;
use super::paragraphs::ParagraphStore;
use super::store::{BlockMethod, BlockStore, FoundBlocks};
use crate::text::units::Unit;

/// Distance from which on a paragraph is new. Source: section 2.4, which calls distances below 70 similar.
pub const THRESHOLD: u32 = 70;

/// `peng2017:bits=128` and `peng2017:bits=160`: paragraphs that are similar to an earlier one are kept as sentences. The distance from
/// which on a paragraph is new may be given by `threshold=`. With `similar=removed` a similar paragraph is left out whole: a second
/// reading of the paper's accuracy, by which text is lost.
///
/// The fingerprint of a paragraph has as many bits as the hash of a sentence. A bit of the fingerprint is 1 if more hashes of its
/// sentences have a 1 there than a 0. The nearest fingerprint of an earlier paragraph, and the earliest of those that are
/// equally near, decides:
///
/// ```text
/// distance 0, same bytes      the paragraph is kept as a reference
/// distance below 70           the paragraph is a list of its sentences, each of which is kept once
/// 70 or more                  the paragraph is kept as it is, and its sentences can be referred to
/// ```
///
/// Cost: one pass over all earlier fingerprints for each paragraph whose fingerprint is new, which is quadratic. Nothing else finds
/// the nearest fingerprint: fingerprints that differ in up to 69 of 128 bits need not agree on any part of them.
///
/// Source: Peng et al., "Research on Deduplication Technique of Chinese Text with Simhash", 2017.
pub(super) struct Peng2017;

impl BlockMethod for Peng2017 {
    fn name(&self) -> &'static str {
        "peng2017"
    }

    fn form(&self) -> &'static str {
        "peng2017[:bits=128|160][:threshold=N][:similar=cut|removed]"
    }

    fn examples(&self) -> &[&'static str] {
        &["peng2017:bits=128", "peng2017:bits=160"]
    }

    fn open<'a>(&self, parameter: Option<&str>) -> Result<Box<dyn BlockStore<'a> + 'a>, String> {
        let mut bits = 128;
        let mut design = PengDesign::default();
        for setting in parameter.into_iter().flat_map(|parameter| parameter.split(':')) {
            match setting.split_once('=') {
                Some(("bits", "128")) => bits = 128,
                Some(("bits", "160")) => bits = 160,
                Some(("threshold", number)) => {
                    let expected = "where the threshold is a number of bits from 0 to 161";
                    let number = number.parse().ok().filter(|threshold| (0..=161).contains(threshold));
                    design.threshold = number.ok_or(expected)?;
                }
                Some(("similar", "cut")) => design.removes_similar = false,
                Some(("similar", "removed")) => design.removes_similar = true,
                _ => return Err(format!("and not \"{setting}\"")),
            }
        }
        Ok(match bits {
            128 => Box::new(PengStore::new(md5, design)),
            _ => Box::new(PengStore::new(sha1, design)),
        })
    }
}

/// Decides what becomes of similar paragraphs.
#[derive(Clone, Copy)]
struct PengDesign {
    /// Distance from which on a paragraph is new.
    threshold: u32,
    /// Whether a similar paragraph is left out, and not cut into sentences.
    removes_similar: bool,
}

impl Default for PengDesign {
    fn default() -> Self {
        PengDesign { threshold: THRESHOLD, removes_similar: false }
    }
}

/// Hash of a sentence as words of 64 bits. Bits behind the end of the hash are 0.
pub type SentenceHash<const WORDS: usize> = fn(&[u8]) -> [u64; WORDS];

/// Returns the MD5 of a sentence, 128 bits.
pub fn md5(sentence: &[u8]) -> [u64; 2] {
    words(&Md5::digest(sentence))
}

/// Returns the SHA-1 of a sentence, 160 bits.
pub fn sha1(sentence: &[u8]) -> [u64; 3] {
    words(&Sha1::digest(sentence))
}

fn words<const WORDS: usize>(hash: &[u8]) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    for (at, &byte) in hash.iter().enumerate() {
        words[at / 8] |= u64::from(byte) << (56 - at % 8 * 8);
    }
    words
}

/// Returns the fingerprint of a paragraph: the SimHash of its sentences, each of weight 1. A bit for which as many hashes have a
/// 1 as a 0 is 0 (section 2.3, step 4: "greater than 0"). White space behind a sentence, such as the newline that ends the
/// paragraph, is no sentence. The fingerprint of a paragraph of white space is 0.
///
/// Cost: the hashes, and one addition for each of their bits.
pub fn fingerprint<const WORDS: usize>(paragraph: &str, hash: SentenceHash<WORDS>) -> [u64; WORDS] {
    let mut ones = [[0u32; 64]; WORDS];
    let mut sentences = 0;
    for sentence in Unit::Sentence.of(paragraph).filter(|sentence| !sentence.trim().is_empty()) {
        sentences += 1;
        for (ones, word) in ones.iter_mut().zip(hash(sentence.as_bytes())) {
            ones.iter_mut().enumerate().for_each(|(bit, ones)| *ones += (word >> bit & 1) as u32);
        }
    }
    let majority = |ones: [u32; 64]| {
        ones.iter().enumerate().fold(0, |word, (bit, &ones)| word | u64::from(2 * ones > sentences) << bit)
    };
    ones.map(majority)
}

/// Returns the number of bits in which two fingerprints differ.
#[inline]
pub fn distance<const WORDS: usize>(a: &[u64; WORDS], b: &[u64; WORDS]) -> u32 {
    a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum()
}

/// Store of Peng's method.
///
/// Memory beside the data: up to 60 bytes of fingerprints and 30 bytes of a table for each different paragraph, and 30 for each
/// different sentence.
struct PengStore<'a, const WORDS: usize> {
    hash: SentenceHash<WORDS>,
    design: PengDesign,
    /// Different fingerprints of the kept paragraphs, in their order.
    fingerprints: Vec<[u64; WORDS]>,
    /// The same fingerprints, each with the number of the first paragraph that has it.
    known_fingerprints: HashMap<[u64; WORDS], u32>,
    /// Numbers of the different paragraphs.
    paragraphs: HashMap<&'a str, u32>,
    /// Numbers of the different sentences.
    sentences: HashMap<&'a str, u32>,
    ledger: BlockLedger,
}

impl<'a, const WORDS: usize> PengStore<'a, WORDS> {
    fn new(hash: SentenceHash<WORDS>, design: PengDesign) -> Self {
        let (fingerprints, known_fingerprints) = (Vec::new(), HashMap::new());
        let (paragraphs, sentences) = (HashMap::new(), HashMap::new());
        PengStore {
            hash,
            design,
            fingerprints,
            known_fingerprints,
            paragraphs,
            sentences,
            ledger: BlockLedger::default(),
        }
    }

    /// Keeps a paragraph as a list of sentences, of which the new ones are kept, and returns its number.
    fn keep_sentences(&mut self, paragraph: &'a str, mut at: usize, found: &mut FoundBlocks) -> u32 {
        found.taken.push(at..at + paragraph.len());
        for sentence in Unit::Sentence.of(paragraph) {
            let number = match self.sentences.entry(sentence) {
                Entry::Vacant(place) => *place.insert(self.ledger.keep(sentence.as_bytes())),
                Entry::Occupied(place) => {
                    found.left_out.push(at..at + sentence.len());
                    *place.get()
                }
            };
            self.ledger.refer(number);
            at += sentence.len();
        }
        self.ledger.index(paragraph.len())
    }

    /// Keeps a paragraph as it is, so that its sentences can be referred to, and returns its number.
    fn keep_whole(&mut self, paragraph: &'a str) -> u32 {
        for sentence in Unit::Sentence.of(paragraph) {
            self.sentences.entry(sentence).or_insert_with(|| self.ledger.index(sentence.len()));
        }
        self.ledger.keep(paragraph.as_bytes())
    }
}

impl<'a, const WORDS: usize> ParagraphStore<'a> for PengStore<'a, WORDS> {
    /// Equal paragraphs have equal fingerprints, so the bytes decide at once.
    fn number_of(&self, paragraph: &str) -> Option<u32> {
        self.paragraphs.get(paragraph).copied()
    }

    fn keep(&mut self, paragraph: &'a str, at: usize, found: &mut FoundBlocks) -> u32 {
        let fingerprint = fingerprint(paragraph, self.hash);
        // Sentences in another order, or other numbers of them, may give a known fingerprint. It is at distance 0.
        let known = self.known_fingerprints.get(&fingerprint).copied();
        let similar = known.or_else(|| {
            let (at, distance) = nearest(&self.fingerprints, &fingerprint)?;
            (distance < self.design.threshold).then(|| self.known_fingerprints[&self.fingerprints[at]])
        });
        let number = match similar {
            Some(earlier) if self.design.removes_similar => {
                // Which of its bytes stand in an earlier paragraph is not known.
                found.taken.push(at..at + paragraph.len());
                earlier
            }
            Some(_) => self.keep_sentences(paragraph, at, found),
            None => self.keep_whole(paragraph),
        };
        if known.is_none() {
            self.fingerprints.push(fingerprint);
            self.known_fingerprints.insert(fingerprint, number);
        }
        self.paragraphs.insert(paragraph, number);
        number
    }

    fn counts(&self) -> &BlockLedger {
        &self.ledger
    }

    fn counts_mut(&mut self) -> &mut BlockLedger {
        &mut self.ledger
    }
}

/// Returns the place of the nearest of `fingerprints` and its distance, the first one of those that are equally near; `None` if
/// there are none.
///
/// Cost: `fingerprints.len()` comparisons. The kernels of the block join find all pairs within a distance, which here are nearly
/// all pairs, so they are of no use.
pub fn nearest<const WORDS: usize>(
    fingerprints: &[[u64; WORDS]],
    fingerprint: &[u64; WORDS],
) -> Option<(usize, u32)> {
    let distances = fingerprints.iter().map(|other| distance(other, fingerprint)).enumerate();
    distances.min_by_key(|&(_, distance)| distance)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::single_range_in_vec_init, reason = "these are lists of ranges")]

    use super::*;

    fn open<'a>(parameter: &str) -> Box<dyn BlockStore<'a> + 'a> {
        Peng2017.open(Some(parameter)).unwrap()
    }

    /// Values of RFC 1321 and FIPS 180-1 for "abc".
    #[test]
    fn hashes_are_those_of_the_standards() {
        assert_eq!(md5(b"abc"), [0x9001_5098_3cd2_4fb0, 0xd696_3f7d_28e1_7f72]);
        assert_eq!(sha1(b"abc"), [0xa999_3e36_4706_816a, 0xba3e_2571_7850_c26c, 0x9cd0_d89d_0000_0000]);
    }

    #[test]
    fn the_print_of_one_sentence_is_its_hash_and_a_tie_is_0() {
        assert_eq!(fingerprint("今天。", md5), md5("今天。".as_bytes()));
        let [a, b, c] = ["一。", "二。", "三。"].map(|sentence| md5(sentence.as_bytes()));
        assert_eq!(fingerprint("一。二。", md5), [0, 1].map(|word| a[word] & b[word]));
        let majority = [0, 1].map(|word| a[word] & b[word] | a[word] & c[word] | b[word] & c[word]);
        assert_eq!(fingerprint("一。二。三。", md5), majority);
        assert_eq!(fingerprint("一。", sha1)[2] as u32, 0, "160 bits");
        assert_eq!((fingerprint("一。\n", md5), fingerprint(" \n", md5)), (a, [0, 0]));
    }

    #[test]
    fn the_first_of_equally_near_prints_is_the_nearest() {
        assert_eq!(nearest(&[[0b111, 0], [0b100, 0], [0b001, 0]], &[0, 0]), Some((1, 1)));
        assert_eq!(nearest::<2>(&[], &[0, 0]), None);
    }

    #[test]
    fn paragraphs_of_equal_fingerprints_are_compared_by_their_bytes() {
        let mut store = open("bits=128");
        store.add("甲。甲。乙。\n");
        assert_eq!(fingerprint("甲。甲。乙。\n", md5), fingerprint("甲。乙。甲。\n", md5));
        let found = store.add("甲。乙。甲。\n甲。甲。乙。\n");
        assert_eq!(found.taken, [0..19, 19..38]);
        // The first paragraph is four known sentences, the second one a known paragraph.
        assert_eq!(found.left_out, [0..6, 6..12, 12..18, 18..19, 19..38]);
        assert_eq!(store.ledger().data(), "甲。甲。乙。\n".as_bytes());
    }

    #[test]
    fn the_threshold_and_what_becomes_of_similar_paragraphs_are_parameters() {
        let texts = ["一。二。三。四。五。六。七。八。\n", "一。二。三。四。新。六。七。八。\n"];
        let kept = |parameter: &str| {
            let mut store = open(parameter);
            texts.iter().for_each(|text| drop(store.add(text)));
            store.ledger().data_bytes()
        };
        assert_eq!(kept("bits=128:threshold=70:similar=cut"), 49 + 6);
        assert_eq!(kept("bits=160:threshold=1"), 49 + 49);
        assert_eq!(kept("similar=removed"), 49);
        for wrong in ["bits=64", "threshold=x", "threshold=999", "similar=kept", "70"] {
            assert!(Peng2017.open(Some(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_similar_paragraph_is_kept_as_its_new_sentences() {
        for bits in ["bits=128", "bits=160"] {
            let mut store = open(bits);
            store.add("一。二。三。四。五。六。七。八。\n");
            let found = store.add("一。二。三。四。新。六。七。八。\n");
            assert_eq!(found.taken, [0..49], "{bits}");
            assert_eq!(found.left_out.iter().map(|range| range.len()).sum::<usize>(), 43, "{bits}");
            assert!(store.ledger().data().ends_with("八。\n新。".as_bytes()), "{bits}");
        }
    }

    #[test]
    fn an_unlike_paragraph_is_kept_and_its_sentences_are_known() {
        // Two paragraphs of one sentence whose MD5 differ in 70 bits or more.
        let unlike = (0..).map(|n| format!("第{n}。"));
        let unlike = unlike
            .into_iter()
            .find(|text| distance(&fingerprint(text, md5), &fingerprint("甲。", md5)) >= 70)
            .unwrap();
        let second = format!("{unlike}\n");
        let mut store = open("bits=128");
        assert_eq!(store.add("甲。").taken, []);
        assert_eq!(store.add(&unlike).taken, []);
        assert_eq!(store.ledger().data(), format!("甲。{unlike}").as_bytes());
        let found = store.add(&second);
        assert!(found.left_out.is_empty() || found.left_out[0] == (0..unlike.len()), "{found:?}");
    }
}
