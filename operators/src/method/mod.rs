//! Methods: how a text becomes a fingerprint, which blocks it falls into, and which fingerprints match.
//!
//! A new method is one file here, and in this file: its module, a variant of [`Spec`] with an arm in each
//! `match`, and an entry of [`Spec::ALL`]; and its line in the help of `--method`.

mod exact;
mod simhash;

use std::fmt;
use std::hash::Hash;
use std::str::FromStr;

pub use exact::Exact;
pub use simhash::SimHash;

use crate::Error;
use crate::features::{FeatureSpec, Features, Lexicon};
use crate::record::{Pair, Record, Row};
use crate::text::{Clean, Cleaner};

/// Map, shuffle, reduce.
pub trait Method: Clone + Send + Sync + 'static {
    /// What the shuffle carries, once per block.
    type Fingerprint: Record + Ord + Hash + fmt::Debug + Default;

    /// Map: the fingerprint of a cleaned text. May reuse buffers in `self`; each worker owns a clone.
    fn fingerprint(&mut self, text: &str) -> Self::Fingerprint;
    /// Shuffle: how many blocks a fingerprint has.
    fn blocks(&self) -> u32;
    /// Shuffle: the value of one block. Matching fingerprints agree on at least one.
    fn block(&self, block: u32, fingerprint: &Self::Fingerprint) -> u64;
    /// Reduce: emits each matching pair among `rows` whose first common block is `block`, once. `rows` holds
    /// all rows of some values of that block, in any order, and may be reordered.
    fn compare(&mut self, block: u32, rows: &mut [Row<Self::Fingerprint>], emit: &mut impl FnMut(Pair));
    /// `None` when the two do not match. What [`Method::compare`] finds faster.
    fn distance(&self, a: &Self::Fingerprint, b: &Self::Fingerprint) -> Option<u32>;
    /// Replaces `set` by what verification compares of a cleaned text: hashes, sorted, each once, never none.
    fn features(&self, text: &str, set: &mut Vec<u64>);
}

/// A method and its parameters, as users write them: `simhash:bits=64,hamming=3,features=char:5`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spec {
    /// See [`SimHash`].
    SimHash {
        /// Bits of a fingerprint: 32 or 64.
        bits: u32,
        /// The largest distance of a match, in bits: up to 15.
        hamming: u32,
        /// What the fingerprint is made from.
        features: FeatureSpec,
        /// What is done to the text first.
        clean: Clean,
    },
    /// See [`Exact`].
    Exact {
        /// What is done to the text first.
        clean: Clean,
    },
}

/// Something to be done with a method, whichever it is.
pub trait MethodJob {
    /// What comes of it.
    type Output;
    /// Does it. Texts go through `cleaner` before they go to `method`.
    fn run<M: Method>(self, cleaner: Cleaner, method: M) -> Self::Output;
}

impl Spec {
    /// Examples of every method, for the laws that all must keep.
    pub const ALL: &[&str] = &[
        "simhash",
        "simhash:features=char:5",
        "simhash:bits=32,hamming=2,features=char:2,clean=weibo",
        "simhash:hamming=6,features=word:1,clean=none",
        "exact",
    ];

    /// The one place that picks a method.
    pub fn with<J: MethodJob>(&self, lexicon: &Lexicon, job: J) -> Result<J::Output, Error> {
        let cleaner = Cleaner::new(self.clean());
        match *self {
            Spec::SimHash { bits, hamming, features, .. } => {
                Ok(job.run(cleaner, SimHash::new(bits, hamming, Features::new(features, lexicon)?)))
            }
            Spec::Exact { .. } => Ok(job.run(cleaner, Exact)),
        }
    }

    /// Whether matching fingerprints do not prove that the texts are near, so that pairs need verification.
    pub fn approximate(&self) -> bool {
        match self {
            Spec::SimHash { .. } => true,
            Spec::Exact { .. } => false,
        }
    }

    fn clean(&self) -> Clean {
        match *self {
            Spec::SimHash { clean, .. } | Spec::Exact { clean } => clean,
        }
    }
}

impl FromStr for Spec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let bad = |reason: String| Error::BadSpec { spec: text.to_owned(), reason };
        let (name, parameters) = text.split_once(':').unwrap_or((text, ""));
        let mut spec = match name {
            "simhash" => {
                Spec::SimHash { bits: 64, hamming: 3, features: FeatureSpec::Jieba, clean: Clean::default() }
            }
            "exact" => Spec::Exact { clean: Clean::default() },
            _ => return Err(bad(format!("no method is called \"{name}\"; there are simhash and exact"))),
        };
        for parameter in parameters.split(',').filter(|parameter| !parameter.is_empty()) {
            let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let expected = match (&mut spec, key) {
                (Spec::SimHash { bits, .. }, "bits") => number(value, bits, &[32, 64], "32 or 64"),
                (Spec::SimHash { hamming, .. }, "hamming") => {
                    number(value, hamming, &std::array::from_fn::<u32, 16, _>(|k| k as u32), "0 to 15")
                }
                (Spec::SimHash { features, .. }, "features") => {
                    store(features, FeatureSpec::parse(value), "jieba, char:N or word:N, N from 1 to 64")
                }
                (Spec::SimHash { .. }, "weights") => match value {
                    "tf" => None,
                    _ => Some("tf"),
                },
                (Spec::SimHash { clean, .. } | Spec::Exact { clean }, "clean") => {
                    store(clean, Clean::parse(value), "none, nfkc or weibo")
                }
                _ => return Err(bad(format!("{name} has no parameter \"{key}\""))),
            };
            if let Some(expected) = expected {
                return Err(bad(format!("{key} must be {expected}, not \"{value}\"")));
            }
        }
        Ok(spec)
    }
}

/// Stores a parsed value, or says what was expected.
fn store<T>(place: &mut T, value: Option<T>, expected: &'static str) -> Option<&'static str> {
    match value {
        Some(value) => {
            *place = value;
            None
        }
        None => Some(expected),
    }
}

fn number(value: &str, place: &mut u32, allowed: &[u32], expected: &'static str) -> Option<&'static str> {
    store(place, value.parse().ok().filter(|number| allowed.contains(number)), expected)
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Spec::SimHash { bits, hamming, features, clean } => {
                write!(
                    f,
                    "simhash:bits={bits},hamming={hamming},features={features},weights=tf,clean={clean}"
                )
            }
            Spec::Exact { clean } => write!(f, "exact:clean={clean}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spec_reads_back_as_itself() {
        for text in Spec::ALL {
            let spec: Spec = text.parse().unwrap();
            assert_eq!(spec.to_string().parse::<Spec>().unwrap(), spec, "{text}");
        }
    }

    #[test]
    fn a_bad_spec_says_what_was_expected() {
        for (text, expected) in [
            ("simhsah", "there are simhash and exact"),
            ("simhash:bits=16", "32 or 64"),
            ("simhash:hamming=16", "0 to 15"),
            ("simhash:features=char:0", "char:N"),
            ("simhash:clean", "none, nfkc or weibo"),
            ("exact:bits=64", "no parameter \"bits\""),
        ] {
            let error = text.parse::<Spec>().unwrap_err().to_string();
            assert!(error.contains(text) && error.contains(expected), "{error}");
        }
    }
}
