//! The method `auto`, the default: texts that a reader calls the same, short or long. The rule and its
//! figures are in docs/design/0013.

use std::fmt;

use super::Method;
use super::curve::{Cost, Curve};
use super::jaccard::{SetSearch, store_least};
use super::parameters::{Parameters, WrongParameter, store};
use crate::Error;
use crate::sets::minhash::MinHash;
use crate::sets::similarity::{Overlap, Similarity};
use crate::sets::{Rule, Short};
use crate::text::document_frequencies::Statistics;
use crate::text::features::{FeatureSpec, Features, Lexicon};
use crate::text::{Clean, Cleaner};

/// Number of bigrams of units below which a text is short. A pair is compared by bigrams if its smaller text
/// is short.
const SHORT_BIGRAMS: usize = 40;
/// Size of the largest input for the exact join, in bytes of text. The join holds some bytes for each
/// byte of text, and costs more for each document of a larger corpus, where that of bands stays the same: 1.3
/// times as much for 0.35 million documents, 1.7 for a million of 0.9 GB, 2.7 for 4 million (docs/design/0057).
const EXACT_BYTES: u64 = 1 << 30;
/// Signature for large inputs. It misses 1 in 190,000 pairs of similarity 0.75, and 1 in 6,400 of 0.7.
const BANDS: MinHash = MinHash::new(32, 4, 0);
/// Least threshold at which the bands are used. They would miss too many pairs that are less alike.
const BANDS_LEAST: Similarity = Similarity::millionths(700_000);

/// Parameters of `auto`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AutoSpec {
    /// Whether long texts match when one is a revision of the other.
    pub revisions: bool,
    /// Least similarity of a match with a short text.
    pub short: Similarity,
    /// Least similarity of a match of two long texts.
    pub long: Similarity,
    /// Search for candidates; `None` for the exact join.
    pub search: Option<SetSearch>,
}

impl AutoSpec {
    /// Returns the search for candidates.
    pub fn search(&self) -> SetSearch {
        self.search.unwrap_or(SetSearch::Prefix)
    }
}

impl Default for AutoSpec {
    fn default() -> Self {
        let least = Similarity::millionths(750_000);
        AutoSpec { revisions: false, short: least, long: least, search: None }
    }
}

impl Parameters for AutoSpec {
    fn name(&self) -> &'static str {
        "auto"
    }

    fn examples(&self) -> &'static [&'static str] {
        &["auto", "auto:search=minhash", "auto:revisions", "auto:short=0.5,long=0.6"]
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), WrongParameter> {
        match key {
            "revisions" if value.is_empty() => {
                self.revisions = true;
                if self.long == AutoSpec::default().long {
                    self.long = Similarity::millionths(450_000);
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
            _ => Err(WrongParameter::Unknown),
        }
    }

    fn check(&self) -> Result<(), String> {
        match self.search {
            // Sets of very different sizes have different signatures, so bands would not find revisions.
            Some(SetSearch::Bands(_)) if self.revisions => {
                Err("revisions are found by search=exact alone".into())
            }
            _ => Ok(()),
        }
    }

    fn help(&self) -> &'static str {
        "auto (revisions, short=T, long=T, search=exact|minhash) finds what a reader calls the same \
         text, short or long."
    }

    fn choose_for_corpus(&mut self, bytes: u64) -> Option<String> {
        if self.search.is_some() {
            return None;
        }
        let size = format!("here about {:.1} GiB", bytes as f64 / (1 << 30) as f64);
        let (search, chosen) = match bytes > EXACT_BYTES {
            _ if self.revisions => {
                (SetSearch::Prefix, "auto searched exactly: MinHash would miss revisions".to_owned())
            }
            _ if self.short.min(self.long) < BANDS_LEAST => {
                let reason = format!("MinHash would miss many pairs less alike than {BANDS_LEAST}");
                (SetSearch::Prefix, format!("auto searched exactly: {reason}"))
            }
            true => {
                let chosen = format!("auto searched by MinHash, as over 1 GiB of text: {size}");
                (SetSearch::Bands(BANDS), chosen)
            }
            false => (SetSearch::Prefix, format!("auto searched exactly, as up to 1 GiB of text: {size}")),
        };
        self.search = Some(search);
        Some(chosen)
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

    fn method(&self, lexicon: &Lexicon, _: &Statistics, _: Option<Similarity>) -> Result<Method, Error> {
        let features = |spec| Features::new(spec, lexicon);
        let short =
            Short { features: features(FeatureSpec::Units(2))?, below: SHORT_BIGRAMS, least: self.short };
        let overlap = if self.revisions { Overlap::Revision } else { Overlap::Jaccard };
        let rule =
            Rule { short: Some(short), ..Rule::new(features(FeatureSpec::Chars(5))?, overlap, self.long) };
        let search = self.search().into();
        Ok(Method { cleaner: Cleaner::new(self.clean()), search, rule, verified: true })
    }

    fn curve(&self) -> Curve {
        let curve = self.search().curve(self.long);
        let because = format!("{}; pairs with a short text: from {} on", curve.because, self.short);
        Curve { of: "similarity of two long texts", because, ..curve }
    }

    fn cost(&self) -> Cost {
        self.search().cost()
    }
}

impl fmt::Display for AutoSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AutoSpec { revisions, short, long, search } = self;
        let revisions = if *revisions { "revisions," } else { "" };
        let search = match search {
            None => "",
            Some(SetSearch::Prefix) => ",search=exact",
            Some(SetSearch::Bands(_)) => ",search=minhash",
        };
        write!(f, "{revisions}short={short},long={long}{search}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exact_join_is_left_only_where_it_does_not_fit_and_was_not_asked_for() {
        let search = |spec: &str, bytes| {
            let mut parsed = AutoSpec::default();
            spec.split(',').filter(|word| !word.is_empty()).for_each(|word| {
                let (key, value) = word.split_once('=').unwrap_or((word, ""));
                assert!(parsed.set(key, value).is_ok(), "{word}");
            });
            parsed.choose_for_corpus(bytes);
            parsed.search()
        };
        assert_eq!(search("", EXACT_BYTES), SetSearch::Prefix);
        assert_eq!(search("", EXACT_BYTES + 1), SetSearch::Bands(BANDS));
        assert_eq!(search("search=exact", EXACT_BYTES + 1), SetSearch::Prefix);
        assert_eq!(search("revisions", EXACT_BYTES + 1), SetSearch::Prefix);
        assert_eq!(search("short=0.6", EXACT_BYTES + 1), SetSearch::Prefix);
        assert_eq!(search("search=minhash", 1), SetSearch::Bands(BANDS));
    }
}
