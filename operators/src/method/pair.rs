//! Classifies single pairs of texts as a method does. `tune` asks for labelled pairs and pairs of a sample.

use super::zhou::retrieval::{WordRow, meet};
use super::{Method, MethodJob, SetMethod, SetSearch, Spec, Zhou};
use crate::record::DocId;
use crate::sets::{PackedSets, Rule, Sets};
use crate::text::Cleaner;
use crate::text::document_frequencies::Statistics;
use crate::text::features::Lexicon;
use crate::{Error, Similarity, jaccard};

/// Texts that are compared pair by pair, by the measure of one method.
///
/// Each text is cleaned and fingerprinted once, when it is added. Memory: the fingerprint of each text, and 8
/// bytes for each of its different features.
///
/// Implemented for the three kinds of methods: over fingerprints, over sets of features, and `zhou2017`.
pub trait PairClassifier: Send + Sync {
    /// Adds a text and returns its number. Numbers count from 0.
    fn add(&mut self, text: &str) -> usize;
    /// Compares two texts by their numbers. Cost: one pass over the features of both.
    ///
    /// # Panics
    /// When there is no text with one of the numbers.
    fn judge(&self, a: usize, b: usize) -> Classification;
}

/// Result of comparing two texts by a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classification {
    /// Similarity by the features that verification compares.
    pub similarity: Similarity,
    /// Distance of the fingerprints, in the method's own unit, if they match; `None` for methods over sets.
    pub distance: Option<u32>,
    /// Whether the search of the method compares the two: their fingerprints match, they agree on a band, or
    /// the method misses no pair.
    pub candidate: bool,
    /// Whether the method calls the two near-duplicates: they are a candidate and similar enough.
    pub matches: bool,
}

impl Spec {
    /// Makes a classifier by this method. `verify`: least similarity of a pair with matching fingerprints;
    /// with `None`, matching fingerprints are enough.
    ///
    /// # Errors
    /// Those of [`Spec::with`].
    pub fn judge(
        &self,
        lexicon: &Lexicon,
        statistics: &Statistics,
        verify: Option<Similarity>,
    ) -> Result<Box<dyn PairClassifier>, Error> {
        self.with(lexicon, statistics, Begin { verify })
    }
}

struct Begin {
    verify: Option<Similarity>,
}

impl MethodJob for Begin {
    type Output = Box<dyn PairClassifier>;

    fn run<M: Method>(self, cleaner: Cleaner, method: M) -> Box<dyn PairClassifier> {
        Box::new(OfMethod { cleaner, method, verify: self.verify, texts: Vec::new() })
    }

    fn sets(self, method: SetMethod) -> Box<dyn PairClassifier> {
        Box::new(OfSets { all: method.rule.without_threshold(), method, texts: Vec::new() })
    }

    fn zhou(self, cleaner: Cleaner, method: Zhou) -> Box<dyn PairClassifier> {
        Box::new(OfZhou { cleaner, method, texts: Vec::new() })
    }
}

struct OfMethod<M: Method> {
    cleaner: Cleaner,
    method: M,
    verify: Option<Similarity>,
    texts: Vec<(M::Fingerprint, Vec<u64>)>,
}

impl<M: Method> PairClassifier for OfMethod<M> {
    fn add(&mut self, text: &str) -> usize {
        let text = self.cleaner.clean(text);
        let mut features = Vec::new();
        self.method.features(text, &mut features);
        self.texts.push((self.method.fingerprint(text), features));
        self.texts.len() - 1
    }

    fn judge(&self, a: usize, b: usize) -> Classification {
        let (a, b) = (&self.texts[a], &self.texts[b]);
        let similarity = jaccard(&a.1, &b.1);
        let distance = self.method.distance(&a.0, &b.0);
        let candidate = distance.is_some();
        let near = self.verify.is_none_or(|least| similarity >= least);
        Classification { similarity, distance, candidate, matches: candidate && near }
    }
}

struct OfSets {
    method: SetMethod,
    all: Rule,
    texts: Vec<SetText>,
}

/// Form of a text in which a method over sets compares it.
struct SetText {
    packed: Vec<u64>,
    /// Hashes of the bands of each set; empty unless candidates are found by bands.
    bands: Vec<u64>,
}

impl PairClassifier for OfSets {
    fn add(&mut self, text: &str) -> usize {
        let text = self.method.cleaner.clean(text);
        let (mut sets, mut packed, mut bands) = (Sets::default(), Vec::new(), Vec::new());
        self.all.sets(text, &mut sets);
        sets.pack(&mut packed);
        if let SetSearch::Bands(minhash) = self.method.search {
            self.method.rule.sets(text, &mut sets);
            minhash.bands_of(&sets, &mut bands);
        }
        self.texts.push(SetText { packed, bands });
        self.texts.len() - 1
    }

    fn judge(&self, a: usize, b: usize) -> Classification {
        let (a, b) = (&self.texts[a], &self.texts[b]);
        let (packed_a, packed_b) = (PackedSets(&a.packed), PackedSets(&b.packed));
        let nothing = Similarity::millionths(0);
        let (similarity, near) = match self.all.similarity(packed_a, packed_b) {
            Some((kind, similarity)) => (similarity, similarity >= self.method.rule.measure(kind).1),
            None => (nothing, false),
        };
        let candidate = match self.method.search {
            SetSearch::Prefix => true,
            SetSearch::Bands(minhash) => minhash.agreeing(&a.bands, &b.bands).next().is_some(),
        };
        Classification { similarity, distance: None, candidate, matches: candidate && near }
    }
}

struct OfZhou {
    cleaner: Cleaner,
    method: Zhou,
    texts: Vec<WordRow>,
}

impl PairClassifier for OfZhou {
    fn add(&mut self, text: &str) -> usize {
        let number = self.texts.len();
        self.texts.push(self.method.row(DocId(number as u64), self.cleaner.clean(text)));
        number
    }

    fn judge(&self, a: usize, b: usize) -> Classification {
        let (a, b) = (&self.texts[a], &self.texts[b]);
        let candidate = meet(a.fingerprint, b.fingerprint);
        Classification {
            similarity: jaccard(&a.words, &b.words),
            distance: Some((a.fingerprint ^ b.fingerprint).count_ones()),
            candidate,
            matches: candidate && self.method.duplicates(a, b).is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(spec: &str, verify: Option<&str>, a: &str, b: &str) -> Classification {
        let spec: Spec = spec.parse().unwrap();
        let mut judge = spec
            .judge(&Lexicon::default(), &Statistics::default(), verify.map(|least| least.parse().unwrap()))
            .unwrap();
        let (a, b) = (judge.add(a), judge.add(b));
        assert_eq!(judge.judge(a, b), judge.judge(b, a));
        judge.judge(a, b)
    }

    #[test]
    fn similarity_is_that_of_the_cleaned_features() {
        let got = judged("simhash:features=char:1,hamming=15", Some("0.5"), "ＡＢＣ", "abcABCD");
        assert_eq!(got.similarity, Similarity::ratio(3, 7));
    }

    #[test]
    fn a_pair_must_be_a_candidate_and_near_enough() {
        let (a, b) = ("甲乙丙丁戊己庚辛壬癸", "甲乙丙丁戊己庚辛壬子");
        let spec = |hamming| format!("simhash:features=char:1,hamming={hamming}");
        let bits = judged(&spec(15), None, a, b).distance.unwrap();
        assert!(bits > 0); // else take other texts
        for (hamming, least, candidate, matches) in [
            (bits, Some("0.81"), true, true),
            (bits, Some("0.82"), true, false),
            (bits, None, true, true),
            (bits - 1, Some("0.81"), false, false),
        ] {
            let got = judged(&spec(hamming), least, a, b);
            assert_eq!(got.similarity, Similarity::ratio(9, 11));
            assert_eq!((got.candidate, got.matches), (candidate, matches), "{hamming} {least:?}");
        }
    }

    #[test]
    fn zhou_needs_equal_bits_of_a_copy_and_enough_sim() {
        let spec = |threshold| format!("zhou2017:threshold={threshold},features=char:1");
        let got = |threshold, b| judged(&spec(threshold), None, "甲乙丙丁", b);
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
            let got = judged(spec, None, a, b);
            let expected =
                Classification { similarity: Similarity::ratio(9, 11), distance: None, candidate, matches };
            assert_eq!(got, expected, "{spec}");
        }
        assert_eq!(
            judged("jaccard:0.5", None, "甲乙丙丁戊", "子丑寅卯辰").similarity,
            Similarity::millionths(0)
        );
    }
}
