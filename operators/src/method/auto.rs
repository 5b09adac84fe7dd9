//! The method `auto`, the default: texts that a reader calls the same, short or long. The rule and its
//! figures are in docs/design/auto.md.

use std::fmt;
use std::sync::Arc;

use super::Method;
use super::curve::{Cost, Curve};
use super::jaccard::{SetSearch, store_least};
use super::parameters::{Parameters, WrongParameter, store};
use crate::Error;
use crate::sets::minhash::MinHash;
use crate::sets::reading::PairReader;
use crate::sets::similarity::{Overlap, Similarity};
use crate::sets::{Rule, Short};
use crate::text::document_frequencies::Statistics;
use crate::text::features::{FeatureSpec, Features, Lexicon};
use crate::text::{Clean, Cleaner};

/// Number of bigrams of units below which a text is short. A pair is compared by bigrams if its smaller text
/// is short.
const SHORT_BIGRAMS: usize = 40;
/// Width of the features of long texts, in characters.
const LONG_CHARS: usize = 5;
/// Signature of a text. It misses 1 in 22 pairs of Jaccard similarity 0.55, 1 in 85 of 0.6, 1 in 6,400 of 0.7,
/// which is 1 in 1,000 of the pairs of a real corpus. It costs less than the exact join, and a document of a
/// larger corpus costs no more (docs/design/auto.md).
const BANDS: MinHash = MinHash::new(32, 4, 0);
/// Least threshold at which the bands are used. They would miss too many pairs that are less alike.
const BANDS_LEAST: Similarity = Similarity::millionths(500_000);

/// Parameters of `auto`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AutoSpec {
    /// Whether long texts match when one is a revision of the other.
    pub revisions: bool,
    /// Least similarity of a match with a short text.
    pub short: Similarity,
    /// Least similarity of a match of two long texts.
    pub long: Similarity,
    /// Search for candidates, if the user chose one.
    pub search: Option<SetSearch>,
    /// Whether texts of one template match although they differ in their numbers.
    pub templates: bool,
}

impl AutoSpec {
    /// Returns the search for candidates. Bands would miss revisions, since sets of very different sizes have
    /// different signatures.
    pub fn search(&self) -> SetSearch {
        let bands = !self.revisions && self.short.min(self.long) >= BANDS_LEAST;
        self.search.unwrap_or(if bands { SetSearch::Bands(BANDS) } else { SetSearch::Prefix })
    }
}

impl Default for AutoSpec {
    fn default() -> Self {
        let [short, long] = [580_000, 500_000].map(Similarity::millionths);
        AutoSpec { revisions: false, short, long, search: None, templates: false }
    }
}

impl Parameters for AutoSpec {
    fn name(&self) -> &'static str {
        "auto"
    }

    fn examples(&self) -> &'static [&'static str] {
        &["auto", "auto:search=exact", "auto:revisions", "auto:short=0.5,long=0.6,templates=same"]
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), WrongParameter> {
        match key {
            "revisions" if value.is_empty() => {
                self.revisions = true;
                if self.long == AutoSpec::default().long {
                    self.long = Similarity::millionths(400_000);
                }
                Ok(())
            }
            "short" => store_least(&mut self.short, value),
            "long" => store_least(&mut self.long, value),
            "search" => {
                let search = match value {
                    "exact" => Some(SetSearch::Prefix),
                    "minhash" => Some(SetSearch::Bands(BANDS)),
                    _ => None,
                };
                store(&mut self.search, search.map(Some), "exact or minhash")
            }
            "templates" => {
                let same = match value {
                    "same" => Some(true),
                    "different" => Some(false),
                    _ => None,
                };
                store(&mut self.templates, same, "same or different")
            }
            _ => Err(WrongParameter::Unknown),
        }
    }

    fn check(&self) -> Result<(), String> {
        match self.search {
            Some(SetSearch::Bands(_)) if self.revisions => {
                Err("revisions are found by search=exact alone".into())
            }
            _ => Ok(()),
        }
    }

    fn help(&self) -> &'static str {
        "auto (revisions, short=T, long=T, templates=same|different, search=exact|minhash) finds what a \
         reader calls the same text, short or long."
    }

    fn clean(&self) -> Clean {
        Clean::Post
    }

    fn features(&self) -> Option<FeatureSpec> {
        None
    }

    fn measures(&self) -> bool {
        true
    }

    fn thresholds(&mut self) -> Vec<&mut Similarity> {
        vec![&mut self.short, &mut self.long]
    }

    fn set_threshold(&mut self, threshold: Similarity) {
        if !self.revisions {
            self.short = threshold;
        }
        self.long = threshold;
    }

    fn method(&self, _: &Lexicon, _: &Statistics, _: Option<Similarity>) -> Result<Method, Error> {
        let short = Short {
            features: Features::BodyUnits(2),
            overlap: Overlap::Corrected,
            below: SHORT_BIGRAMS,
            least: self.short,
        };
        let overlap = if self.revisions { Overlap::Revision } else { Overlap::Corrected };
        let rule = Rule {
            short: Some(short),
            reader: (!self.templates).then(|| {
                Arc::new(if self.revisions { PairReader::of_numbers() } else { PairReader::of_everything() })
            }),
            ..Rule::new(Features::BodyChars(LONG_CHARS), overlap, self.long)
        };
        let search = self.search().into();
        Ok(Method { cleaner: Cleaner::new(self.clean()), search, rule, verified: true })
    }

    fn curve(&self) -> Curve {
        let curve = self.search().curve(self.long);
        let read = match (self.templates, self.revisions) {
            (true, _) => "",
            (false, true) => "; numbers are then read, by which texts of one template are told apart",
            (false, false) => {
                "; what differs is then read, in code by its stretches, in all other texts by words, numbers and signs"
            }
        };
        let because = format!("{}; pairs with a short text: from {} on{read}", curve.because, self.short);
        Curve { of: "similarity of two long texts", because, ..curve }
    }

    fn cost(&self) -> Cost {
        self.search().cost()
    }
}

impl fmt::Display for AutoSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AutoSpec { revisions, short, long, search, templates } = self;
        let revisions = if *revisions { "revisions," } else { "" };
        let search = match search {
            None => "",
            Some(SetSearch::Prefix) => ",search=exact",
            Some(SetSearch::Bands(_)) => ",search=minhash",
        };
        let templates = if *templates { ",templates=same" } else { "" };
        write!(f, "{revisions}short={short},long={long}{templates}{search}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_are_left_only_where_they_would_miss_much_and_were_not_asked_for() {
        let search = |spec: &str| {
            let mut parsed = AutoSpec::default();
            spec.split(',').filter(|word| !word.is_empty()).for_each(|word| {
                let (key, value) = word.split_once('=').unwrap_or((word, ""));
                assert!(parsed.set(key, value).is_ok(), "{word}");
            });
            parsed.search()
        };
        let bands = SetSearch::Bands(BANDS);
        for (spec, expected) in [
            ("", bands),
            ("search=exact", SetSearch::Prefix),
            ("revisions", SetSearch::Prefix),
            ("short=0.49", SetSearch::Prefix),
            ("short=0.49,search=minhash", bands),
        ] {
            assert_eq!(search(spec), expected, "{spec}");
        }
    }
}
