//! Classifies single pairs of texts as a method does. `tune` asks for labelled pairs and pairs of a sample,
//! and `why` for one pair.

use super::Method;
use crate::Similarity;
use crate::hash::Secret;
use crate::search::{MappedText, SearchInputs, SearchVisitor, TextSearch};
use crate::sets::{PackedSets, Rule};
use crate::text::cleaned::has_text;

impl Method {
    /// Returns the search for the comparison of single texts in this process.
    pub fn text_search(&self) -> Box<dyn TextSearch> {
        // The identities stay in this process, so any secret will do.
        let inputs = SearchInputs::of_texts(Secret::of_words([0, 0]));
        self.search.visit(&self.context(inputs), BoxSearch)
    }
}

/// Makes a search that is called by its address.
struct BoxSearch;

impl SearchVisitor for BoxSearch {
    type Output = Box<dyn TextSearch>;

    fn visit<S: TextSearch + Clone>(self, search: S) -> Box<dyn TextSearch> {
        Box::new(search)
    }
}

/// Texts that are compared pair by pair, as a method compares them.
///
/// Each text is cleaned once, when it is added. Memory: the records of each text (60 bytes a section), and 8 bytes for
/// each of its different features.
pub struct PairClassifier {
    method: Method,
    search: Box<dyn TextSearch>,
    /// The rule of the method without its thresholds, by which every pair is measured.
    measure: Rule,
    texts: Vec<ClassifiedText>,
}

struct ClassifiedText {
    has_text: bool,
    mapped: MappedText,
    /// Sets of the text, packed.
    sets: Vec<u64>,
}

/// Result of comparing two texts by a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classification {
    /// Similarity by the features of the rule; 0 for texts that the rule tells apart by their differences.
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
        let search = method.text_search();
        let measure = method.rule.without_threshold();
        PairClassifier { method, search, measure, texts: Vec::new() }
    }

    /// Adds a text and returns its number. Numbers count from 0.
    pub fn add(&mut self, text: &str) -> usize {
        let text = self.method.cleaner.clean(text).to_owned();
        let sets = self.measure.packed(&text);
        let mapped = MappedText::new(&mut *self.search, text.as_str().into());
        self.texts.push(ClassifiedText { has_text: has_text(&text), mapped, sets });
        self.texts.len() - 1
    }

    /// Compares two texts by their numbers. Cost: one pass over the features of both.
    ///
    /// # Panics
    /// When there is no text with one of the numbers.
    pub fn classify(&self, a: usize, b: usize) -> Classification {
        let (a, b) = (&self.texts[a], &self.texts[b]);
        // The search looks for no document without text.
        let candidate = a.has_text && b.has_text && self.search.are_candidates(&a.mapped, &b.mapped);
        let distance = self.search.distance(&a.mapped, &b.mapped);
        if let Some((similarity, matches)) = self.search.decide(&a.mapped, &b.mapped) {
            return Classification { similarity, distance, candidate, matches: candidate && matches };
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
