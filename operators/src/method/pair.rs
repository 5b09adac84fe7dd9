//! Classifies single pairs of texts as a method does. `tune` asks for labelled pairs and pairs of a sample,
//! and `why` for one pair.

use super::zhou::copy_search::WordRow;
use super::zhou::retrieval::meet;
use super::{Method, Search, SimHash};
use crate::fingerprint::Bits;
use crate::hash::{Identity, Secret};
use crate::record::DocId;
use crate::sets::{PackedSets, Rule, Sets};
use crate::text::cleaned::has_text;
use crate::{Similarity, jaccard};

/// Keys of one text, by which a search brings it together with others.
#[derive(Clone, Debug)]
pub enum Keys {
    /// The text itself.
    Identity(Identity),
    /// A fingerprint, zero-extended.
    Fingerprint(u128),
    /// Hashes of the bands of each set of the text.
    Bands(Vec<u64>),
    /// Nothing, because the search misses no match.
    Complete,
    /// Fingerprint and words for `zhou2017`.
    Words(WordRow),
}

impl Method {
    /// Returns the keys of a cleaned text.
    pub fn keys(&mut self, text: &str) -> Keys {
        match &mut self.search {
            // Texts are compared in this process alone, so any key of the hash will do.
            Search::Nothing => Keys::Identity(Secret::of_words([0, 0]).identity(text)),
            Search::SimHash64(simhash) => Keys::Fingerprint(simhash.fingerprint(text).into()),
            Search::SimHash128(simhash) => Keys::Fingerprint(simhash.fingerprint(text)),
            Search::Bands(minhash) => {
                let (mut sets, mut bands) = (Sets::default(), Vec::new());
                self.rule.sets(text, &mut sets);
                minhash.bands_of(&sets, &mut bands);
                Keys::Bands(bands)
            }
            Search::Prefix => Keys::Complete,
            Search::Zhou(zhou) => Keys::Words(zhou.row(DocId(0), text)),
        }
    }

    /// Whether the search makes two texts a candidate. The keys must be of this method.
    pub fn are_candidates(&self, a: &Keys, b: &Keys) -> bool {
        match (&self.search, a, b) {
            (Search::Nothing, Keys::Identity(a), Keys::Identity(b)) => a == b,
            (Search::SimHash64(SimHash { join, .. }), ..) => within(a, b, join.distance()),
            (Search::SimHash128(SimHash { join, .. }), ..) => within(a, b, join.distance()),
            (Search::Bands(minhash), Keys::Bands(a), Keys::Bands(b)) => {
                minhash.agreeing(a, b).next().is_some()
            }
            (_, Keys::Words(a), Keys::Words(b)) => meet(a.fingerprint, b.fingerprint),
            _ => true,
        }
    }

    /// Returns the number of passes of the search, and the passes in which two texts have one key; `None` if
    /// keys do not decide. The keys must be of this method.
    pub fn agreeing(&self, a: &Keys, b: &Keys) -> Option<(usize, Vec<usize>)> {
        match (&self.search, a, b) {
            (Search::SimHash64(simhash), Keys::Fingerprint(a), Keys::Fingerprint(b)) => {
                Some(blocks(simhash, *a as u64, *b as u64))
            }
            (Search::SimHash128(simhash), Keys::Fingerprint(a), Keys::Fingerprint(b)) => {
                Some(blocks(simhash, *a, *b))
            }
            (Search::Bands(minhash), Keys::Bands(a), Keys::Bands(b)) => {
                Some((minhash.bands as usize, minhash.agreeing(a, b).collect()))
            }
            _ => None,
        }
    }
}

impl Keys {
    /// Returns the number of bits in which two fingerprints differ; `None` if these keys have none.
    pub fn distance(&self, other: &Keys) -> Option<u32> {
        match (self, other) {
            (Keys::Fingerprint(a), Keys::Fingerprint(b)) => Some((a ^ b).count_ones()),
            (Keys::Words(a), Keys::Words(b)) => Some((a.fingerprint ^ b.fingerprint).count_ones()),
            _ => None,
        }
    }
}

fn within(a: &Keys, b: &Keys, most: u32) -> bool {
    a.distance(b).is_some_and(|distance| distance <= most)
}

fn blocks<W: Bits>(simhash: &SimHash<W>, a: W, b: W) -> (usize, Vec<usize>) {
    let tables = simhash.join.tables();
    let agree = |at: &usize| tables[*at].key(a) == tables[*at].key(b);
    (tables.len(), (0..tables.len()).filter(agree).collect())
}

/// Texts that are compared pair by pair, as a method compares them.
///
/// Each text is cleaned once, when it is added. Memory: the keys of each text, and 8 bytes for each of its
/// different features.
pub struct PairClassifier {
    method: Method,
    /// The rule of the method without its thresholds, by which every pair is measured.
    measure: Rule,
    texts: Vec<ClassifiedText>,
}

struct ClassifiedText {
    has_text: bool,
    keys: Keys,
    /// Sets of the text, packed.
    sets: Vec<u64>,
}

/// Result of comparing two texts by a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classification {
    /// Similarity by the features of the rule; 0 for texts that it tells apart by what they differ in.
    pub similarity: Similarity,
    /// Number of bits in which the fingerprints differ; `None` if the method has none.
    pub distance: Option<u32>,
    /// Whether the search of the method compares the two.
    pub candidate: bool,
    /// Whether the method calls the two near-duplicates: they are a candidate and similar enough.
    pub matches: bool,
}

impl PairClassifier {
    /// Makes a classifier without texts.
    pub fn new(method: Method) -> Self {
        PairClassifier { measure: method.rule.without_threshold(), method, texts: Vec::new() }
    }

    /// Adds a text and returns its number. Numbers count from 0.
    pub fn add(&mut self, text: &str) -> usize {
        let text = self.method.cleaner.clean(text).to_owned();
        let sets = self.measure.packed(&text);
        self.texts.push(ClassifiedText { has_text: has_text(&text), keys: self.method.keys(&text), sets });
        self.texts.len() - 1
    }

    /// Compares two texts by their numbers. Cost: one pass over the features of both.
    ///
    /// # Panics
    /// When there is no text with one of the numbers.
    pub fn classify(&self, a: usize, b: usize) -> Classification {
        let (a, b) = (&self.texts[a], &self.texts[b]);
        // The search looks for no document without text.
        let candidate = a.has_text && b.has_text && self.method.are_candidates(&a.keys, &b.keys);
        let distance = a.keys.distance(&b.keys);
        if let (Search::Zhou(zhou), Keys::Words(a), Keys::Words(b)) = (&self.method.search, &a.keys, &b.keys)
        {
            let matches = candidate && zhou.duplicates(a, b).is_some();
            return Classification { similarity: jaccard(&a.words, &b.words), distance, candidate, matches };
        }
        let (a, b) = (PackedSets(&a.sets), PackedSets(&b.sets));
        let (similarity, near) = match self.measure.similarity(a, b) {
            Some((kind, similarity)) if self.measure.apart(a, b, similarity).is_none() => {
                (similarity, similarity >= self.method.rule.measure(kind).1)
            }
            _ => (Similarity::millionths(0), false),
        };
        Classification { similarity, distance, candidate, matches: candidate && near }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::Spec;
    use crate::text::document_frequencies::Statistics;
    use crate::text::features::Lexicon;

    fn classified(spec: &str, verify: Option<&str>, a: &str, b: &str) -> Classification {
        let spec: Spec = spec.parse().unwrap();
        let verify = verify.map(|least| least.parse().unwrap());
        let method = spec.method(&Lexicon::default(), &Statistics::default(), verify).unwrap();
        let mut pairs = PairClassifier::new(method);
        let (a, b) = (pairs.add(a), pairs.add(b));
        assert_eq!(pairs.classify(a, b), pairs.classify(b, a));
        pairs.classify(a, b)
    }

    #[test]
    fn similarity_is_that_of_the_cleaned_features() {
        let got = classified("simhash:features=char:1,hamming=15", Some("0.5"), "ＡＢＣ", "abcABCD");
        assert_eq!(got.similarity, Similarity::ratio(3, 7));
    }

    #[test]
    fn a_pair_must_be_a_candidate_and_near_enough() {
        let (a, b) = ("甲乙丙丁戊己庚辛壬癸", "甲乙丙丁戊己庚辛壬子");
        let spec = |hamming| format!("simhash:features=char:1,hamming={hamming}");
        let bits = classified(&spec(15), None, a, b).distance.unwrap();
        assert!(bits > 0); // else take other texts
        for (hamming, least, candidate, matches) in [
            (bits, Some("0.81"), true, true),
            (bits, Some("0.82"), true, false),
            (bits, None, true, true),
            (bits - 1, Some("0.81"), false, false),
        ] {
            let got = classified(&spec(hamming), least, a, b);
            assert_eq!(got.similarity, Similarity::ratio(9, 11));
            assert_eq!((got.candidate, got.matches), (candidate, matches), "{hamming} {least:?}");
        }
    }

    #[test]
    fn a_text_of_white_space_matches_nothing() {
        for spec in ["exact", "auto", "minhash", "simhash", "jaccard:0.1,clean=none", "zhou2017"] {
            for (a, b) in [("", ""), (" ", " "), ("\u{3000}\t", "\u{3000}\t"), ("", "甲")] {
                let got = classified(spec, None, a, b);
                assert_eq!((got.candidate, got.matches), (false, false), "{spec}: {a:?} {b:?}");
            }
        }
    }

    #[test]
    fn zhou_needs_equal_bits_of_a_copy_and_enough_sim() {
        let spec = |threshold| format!("zhou2017:threshold={threshold},features=char:1");
        let got = |threshold, b| classified(&spec(threshold), None, "甲乙丙丁", b);
        let near = got("2.9", "甲乙丙丁丁"); // Dup 1, so that Sim is 4 and more
        assert!(near.candidate && near.matches && near.similarity == Similarity::ONE);
        assert!(!got("5", "甲乙丙丁戊").matches && got("5", "丁丙乙甲").matches);
        let far = got("0", "子丑寅卯");
        assert_eq!((far.candidate, far.matches), (false, false)); // else take other texts
    }

    #[test]
    fn sets_are_measured_below_the_threshold_too() {
        let (a, b) = ("甲乙丙丁戊己庚辛壬癸", "甲乙丙丁戊己庚辛壬子");
        for (spec, candidate, matches) in [
            ("jaccard:0.81,features=char:1", true, true),
            ("jaccard:0.82,features=char:1", true, false),
            ("minhash:jaccard=0.81,bands=64,rows=1,features=char:1", true, true),
            ("minhash:jaccard=0.82,bands=64,rows=1,features=char:1", true, false),
            ("minhash:jaccard=0.81,bands=1,rows=64,features=char:1", false, false),
        ] {
            let got = classified(spec, None, a, b);
            let expected =
                Classification { similarity: Similarity::ratio(9, 11), distance: None, candidate, matches };
            assert_eq!(got, expected, "{spec}");
        }
        assert_eq!(
            classified("jaccard:0.5", None, "甲乙丙丁戊", "子丑寅卯辰").similarity,
            Similarity::millionths(0)
        );
    }
}
