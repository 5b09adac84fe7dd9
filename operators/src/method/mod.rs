//! Methods: how a text becomes a fingerprint, which blocks it falls into, and which fingerprints match.
//!
//! A new method takes one file here with its `Parameters`, a line in the help of `--method`, and in this file
//! its module, a variant of [`Spec`] with an arm in each `match`, and an entry of [`Spec::ALL`]. This room
//! uses `text`, `fingerprint` and `sets`; `flow` and the jobs use it.

mod auto;
pub(crate) mod curve;
mod exact;
mod jaccard;
pub mod map_records;
mod pair;
mod simhash;
pub mod zhou;

use std::fmt;
use std::hash::Hash;
use std::str::FromStr;

pub use auto::AutoSpec;
pub use exact::{Exact, ExactSpec};
pub use jaccard::{JaccardSpec, MinHashSpec, SetMethod, SetSearch};
pub use pair::{Classification, PairClassifier};
pub use simhash::{SimHash, SimHashSpec, Weights};
pub use zhou::{Zhou, ZhouSpec};

use crate::Error;
use crate::hash::Secret;
use crate::record::{Pair, Record, Row};
use crate::sets::similarity::Similarity;
use crate::text::document_frequencies::Statistics;
use crate::text::features::{FeatureSpec, Features, Lexicon};
use crate::text::{Clean, Cleaner};
use simhash::MANKU2007;

/// A method that compares fingerprints, as three steps of one job.
///
/// Map: each worker makes a fingerprint of each of its documents. Shuffle: for each *block*, every row (a
/// fingerprint and its document) goes to the worker of the block's value. Reduce: that worker compares the
/// rows that share a value. Matching fingerprints share the value of at least one block, so every match is
/// found, and a pair is emitted only in the first block that both rows share, so no match is found twice.
///
/// Implemented by [`SimHash`] and [`Exact`]. Example with fingerprints of 64 bits, a distance of at most 3
/// bits, and 4 blocks of 16 bits:
///
/// ```text
///     block 0  1     2     3
/// A = 00ff     1234  5678  9abc
/// B = 01ff     1235  5678  9abe    meets A in block 2, where both have 5678; 3 bits differ: a match
/// C = 00ff     0000  0000  0000    meets A in block 0; 22 bits differ: no match
/// B and C agree on no block and never meet
/// ```
pub trait Method: Clone + Send + Sync + 'static {
    /// Fingerprint of a text. The shuffle carries it with the document's id, once per block.
    type Fingerprint: Record + Ord + Hash + fmt::Debug + Default;
    /// One or several parts of a fingerprint, on which matching fingerprints may agree.
    type Block: Clone + 'static;

    /// Map: returns the fingerprint of a cleaned text. May reuse buffers in `self`, since each worker owns a
    /// clone.
    fn fingerprint(&mut self, text: &str) -> Self::Fingerprint;
    /// Shuffle: returns the blocks of a fingerprint. There are none if only documents of equal text match,
    /// because these are collapsed before the shuffle.
    fn blocks(&self) -> Vec<Self::Block>;
    /// Shuffle: returns the value of a block of a fingerprint. Matching fingerprints have equal values in at
    /// least one block.
    fn value(block: &Self::Block, fingerprint: &Self::Fingerprint) -> u64;
    /// Shuffle: returns narrower blocks, with more values, that together find the same pairs as this block;
    /// `None` if there are none. The rows of values that too many rows share are spread by them.
    fn split(&self, block: &Self::Block) -> Option<Vec<Self::Block>>;
    /// Reduce: emits each matching pair among `rows` whose first common block is `block`, once. Returns the
    /// number of pairs compared. `rows`: all rows of some values of that block, in any order; they may be
    /// reordered.
    fn compare(
        &mut self,
        block: &Self::Block,
        rows: &mut [Row<Self::Fingerprint>],
        emit: &mut impl FnMut(Pair),
    ) -> u64;
    /// Returns the distance of two fingerprints, in the method's own unit, or `None` if they do not match.
    /// [`Method::compare`] finds the same matches among many rows, faster.
    fn distance(&self, a: &Self::Fingerprint, b: &Self::Fingerprint) -> Option<u32>;
    /// Replaces `set` by the features of a cleaned text that verification compares: their hashes, sorted,
    /// each once, and at least one.
    fn features(&self, text: &str, set: &mut Vec<u64>);
}

/// A method and its parameters, as users write them: `simhash:bits=64,hamming=3,features=char:5`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spec {
    /// See [`SimHash`].
    SimHash(SimHashSpec),
    /// See [`AutoSpec`].
    Auto(AutoSpec),
    /// See [`Exact`].
    Exact(ExactSpec),
    /// See [`JaccardSpec`].
    Jaccard(JaccardSpec),
    /// See [`MinHashSpec`].
    MinHash(MinHashSpec),
    /// See [`Zhou`].
    Zhou(ZhouSpec),
}

/// Parameters of one method, which a user may write behind its name. `Default` is the name alone; `Display`
/// writes all parameters, as they stand behind the name.
trait Parameters: Default + fmt::Display {
    /// Sets `key=value`. The value of a word that stands alone is empty.
    fn set(&mut self, key: &str, value: &str) -> Result<(), WrongParameter>;
    /// Checks that the parameters go together, once all are set; the error says why they do not.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

/// Reason why a parameter is refused.
enum WrongParameter {
    /// The method has no parameter of that name.
    Unknown,
    /// The value is not of the form that is given here.
    Expected(&'static str),
}

/// Work that [`Spec::with`] does with the method that a user has chosen. The search of `dedup` and the
/// [`PairClassifier`]s implement it.
pub trait MethodJob {
    /// Result of the work.
    type Output;
    /// Works with a method over fingerprints. Texts go through `cleaner` before they go to `method`.
    fn run<M: Method>(self, cleaner: Cleaner, method: M) -> Self::Output;
    /// Works with a method over sets of features.
    fn sets(self, method: SetMethod) -> Self::Output;
    /// Works with `zhou2017`, which deletes documents as it compares them.
    fn zhou(self, cleaner: Cleaner, method: Zhou) -> Self::Output;
    /// Returns the secret with which texts are hashed to find equal ones. Processes that compare each other's
    /// hashes must share one secret.
    fn secret(&self) -> Secret {
        Secret::random()
    }
}

impl Spec {
    /// Example specs of every method, for the laws that all methods must keep.
    pub const ALL: &[&str] = &[
        "auto",
        "auto:search=minhash",
        "auto:revisions",
        "auto:short=0.5,long=0.6",
        "simhash",
        "simhash:features=char:5",
        "simhash:bits=32,hamming=2,features=char:2,clean=weibo",
        "simhash:hamming=6,features=word:1,clean=none",
        "simhash:bits=128,hamming=9,features=char:3,weights=tfidf",
        "simhash:hamming=4,blocks=6,features=char:2,weights=rank5",
        "manku2007:blocks=5",
        "exact",
        "jaccard:0.5,features=char:2",
        "jaccard:0.8,features=word:1,clean=none",
        "minhash:jaccard=0.7,features=char:3,bands=40,rows=3",
        "zhou2017:threshold=2.4,features=char:1",
        "zhou2017:k=8,retrieval=bucket,features=char:2,clean=none",
        "zhou2017:k=2,threshold=1.25,retrieval=linear,features=word:1,clean=nfkc",
        "zhou2017:fold=lower,features=char:2",
    ];

    /// Runs `job` with the method of this spec. This is the one place that picks a method. `statistics`: of
    /// the features that [`Spec::counted`] returns; not used if it returns `None`.
    ///
    /// # Errors
    /// When the user dictionary of `lexicon` is needed and does not parse.
    pub fn with<J: MethodJob>(
        &self,
        lexicon: &Lexicon,
        statistics: &Statistics,
        job: J,
    ) -> Result<J::Output, Error> {
        match self {
            Spec::SimHash(spec) => {
                let (features, cleaner) = (Features::new(spec.features, lexicon)?, Cleaner::new(spec.clean));
                Ok(match spec.bits {
                    0..=64 => job.run(cleaner, SimHash::<u64>::new(spec, features, statistics)),
                    _ => job.run(cleaner, SimHash::<u128>::new(spec, features, statistics)),
                })
            }
            Spec::Exact(spec) => {
                let exact = Exact(job.secret());
                Ok(job.run(Cleaner::new(spec.clean), exact))
            }
            Spec::Auto(spec) => Ok(job.sets(spec.method(lexicon)?)),
            Spec::Jaccard(spec) => Ok(job.sets(spec.method(lexicon, SetSearch::Prefix)?)),
            Spec::MinHash(spec) => {
                Ok(job.sets(spec.jaccard.method(lexicon, SetSearch::Bands(spec.minhash))?))
            }
            Spec::Zhou(spec) => {
                let features = Features::new(spec.features, lexicon)?;
                Ok(job.zhou(Cleaner::new(spec.clean), Zhou::new(spec, features)))
            }
        }
    }

    /// Returns the cleaning and the features that must be counted in the whole corpus before the method can
    /// be used, or `None` if nothing must be counted.
    pub fn counted(&self) -> Option<(Clean, FeatureSpec)> {
        match self {
            Spec::SimHash(spec) if spec.weights != Weights::Tf => Some((spec.clean, spec.features)),
            _ => None,
        }
    }

    /// Returns the cleaning of texts.
    pub fn clean(&self) -> Clean {
        match self {
            Spec::SimHash(spec) => spec.clean,
            Spec::Jaccard(spec) => spec.clean,
            Spec::MinHash(spec) => spec.jaccard.clean,
            Spec::Zhou(spec) => spec.clean,
            Spec::Exact(spec) => spec.clean,
            Spec::Auto(_) => AutoSpec::CLEAN,
        }
    }

    /// Returns the spec with the parameters that it leaves open chosen for a corpus of `bytes` bytes.
    pub fn for_corpus(self, bytes: u64) -> Self {
        match self {
            Spec::Auto(spec) => Spec::Auto(spec.for_corpus(bytes)),
            other => other,
        }
    }

    /// Whether texts are cut into jieba's words, so that stop words and a user dictionary matter.
    pub fn cuts_words(&self) -> bool {
        let features = match self {
            Spec::SimHash(spec) => spec.features,
            Spec::Jaccard(spec) => spec.features,
            Spec::MinHash(spec) => spec.jaccard.features,
            Spec::Zhou(spec) => spec.features,
            Spec::Auto(_) | Spec::Exact(_) => return false,
        };
        features == FeatureSpec::Jieba
    }

    /// Whether the method itself measures the similarity of matching texts.
    pub fn measures(&self) -> bool {
        matches!(self, Spec::Auto(_) | Spec::Jaccard(_) | Spec::MinHash(_) | Spec::Zhou(_))
    }

    /// Returns the thresholds of a method that measures similarity itself, except those of `zhou2017`.
    pub fn thresholds(&mut self) -> Vec<&mut Similarity> {
        match self {
            // The threshold of `zhou2017` is one of Sim, which is not a similarity between 0 and 1.
            Spec::SimHash(_) | Spec::Exact(_) | Spec::Zhou(_) => vec![],
            Spec::Auto(spec) => vec![&mut spec.short, &mut spec.long],
            Spec::Jaccard(spec) => vec![&mut spec.least],
            Spec::MinHash(spec) => vec![&mut spec.jaccard.least],
        }
    }

    /// Whether the method compares fingerprints, so that a pair has a distance.
    pub fn fingerprints(&self) -> bool {
        matches!(self, Spec::SimHash(_) | Spec::Exact(_) | Spec::Zhou(_))
    }

    /// Whether pairs need verification, because matching fingerprints do not prove that the texts are near.
    pub fn approximate(&self) -> bool {
        matches!(self, Spec::SimHash(_))
    }
}

impl FromStr for Spec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (name, parameters) = text.split_once(':').unwrap_or((text, ""));
        let spec = match name {
            "simhash" => parse(name, parameters).map(Spec::SimHash),
            "manku2007" => parse(name, &format!("{MANKU2007},{parameters}")).map(Spec::SimHash),
            "exact" => parse(name, parameters).map(Spec::Exact),
            "auto" => parse(name, parameters).map(Spec::Auto),
            "jaccard" => parse(name, parameters).map(Spec::Jaccard),
            "minhash" => parse(name, parameters).map(Spec::MinHash),
            "zhou2017" => parse(name, parameters).map(Spec::Zhou),
            _ => Err(format!(
                "no method is called \"{name}\"; there are auto, simhash, manku2007, exact, jaccard, minhash and zhou2017"
            )),
        };
        spec.map_err(|reason| Error::BadSpec { spec: text.to_owned(), reason })
    }
}

/// Parses the parameters of the method `name`, which are separated by commas.
fn parse<P: Parameters>(name: &str, parameters: &str) -> Result<P, String> {
    let mut parsed = P::default();
    for parameter in parameters.split(',').filter(|parameter| !parameter.is_empty()) {
        let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        parsed.set(key, value).map_err(|wrong| match wrong {
            WrongParameter::Unknown => format!("{name} has no parameter \"{key}\""),
            WrongParameter::Expected(expected) if key.starts_with(|c: char| c.is_ascii_digit()) => {
                format!("{key} is not {expected}")
            }
            WrongParameter::Expected(expected) => format!("{key} must be {expected}, not \"{value}\""),
        })?;
    }
    parsed.check()?;
    Ok(parsed)
}

/// Stores a parsed value. The error says what was `expected`.
fn store<T>(place: &mut T, value: Option<T>, expected: &'static str) -> Result<(), WrongParameter> {
    *place = value.ok_or(WrongParameter::Expected(expected))?;
    Ok(())
}

/// Parses and stores a number if it is one of those `allowed`. The error says what was `expected`.
fn number(
    place: &mut u32,
    value: &str,
    mut allowed: impl Iterator<Item = u32>,
    expected: &'static str,
) -> Result<(), WrongParameter> {
    store(place, value.parse().ok().filter(|&number| allowed.any(|one| one == number)), expected)
}

/// Parses and stores the parameter `features`.
fn store_features(place: &mut FeatureSpec, value: &str) -> Result<(), WrongParameter> {
    store(place, FeatureSpec::parse(value), "jieba, char:N, word:N or unit:N, N from 1 to 64")
}

/// Parses and stores the parameter `clean`.
fn store_clean(place: &mut Clean, value: &str) -> Result<(), WrongParameter> {
    store(place, Clean::parse(value), "none, nfkc, post or weibo")
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Spec::SimHash(spec) => write!(f, "simhash:{spec}"),
            Spec::Exact(spec) => write!(f, "exact:{spec}"),
            Spec::Auto(spec) => write!(f, "auto:{spec}"),
            Spec::Jaccard(spec) => write!(f, "jaccard:{spec}"),
            Spec::MinHash(spec) => write!(f, "minhash:{spec}"),
            Spec::Zhou(spec) => write!(f, "zhou2017:{spec}"),
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
    fn a_preset_is_a_name_for_a_whole_spec() {
        let preset: Spec = "manku2007:features=word:1".parse().unwrap();
        let whole = "simhash:bits=64,hamming=3,features=word:1,weights=tfidf,clean=nfkc";
        assert_eq!(preset.to_string(), whole);
    }

    #[test]
    fn another_threshold_changes_nothing_else() {
        for (spec, expected) in [
            ("auto:revisions,long=0.4", "auto:revisions,short=0.65,long=0.65"),
            ("jaccard:0.8,features=char:2", "jaccard:0.65,features=char:2"),
            ("minhash:rows=4,clean=none", "minhash:rows=4,clean=none,jaccard=0.65"),
            ("simhash", "simhash"),
        ] {
            let mut spec: Spec = spec.parse().unwrap();
            spec.thresholds().into_iter().for_each(|least| *least = Similarity::millionths(650_000));
            assert_eq!(spec, expected.parse().unwrap());
        }
    }

    #[test]
    fn a_bad_spec_says_what_was_expected() {
        for (text, expected) in [
            ("simhsah", "there are auto, simhash, manku2007, exact"),
            ("simhash:bits=16", "32, 64 or 128"),
            ("simhash:blocks=0", "1 to 128"),
            ("simhash:blocks=3", "blocks must be more than hamming, which is 3"),
            ("simhash:blocks=6,hamming=6", "blocks must be more than hamming, which is 6"),
            ("simhash:bits=32,hamming=0,blocks=33", "no more than bits, which is 32"),
            ("simhash:blocks=16", "16 blocks for a distance of 3 make 560 tables"),
            ("simhash:weights=idf", "tf, tfidf or rank5"),
            ("simhash:hamming=16", "0 to 15"),
            ("simhash:features=char:0", "char:N"),
            ("simhash:clean", "none, nfkc, post or weibo"),
            ("jaccard:0.001", "0.001 is not a number from 0.01 to 1"),
            ("jaccard:most", "no parameter \"most\""),
            ("auto:search=minhash,revisions", "search=exact alone"),
            ("minhash:bands=256,rows=64", "no more than 1024"),
            ("zhou2017:k=9", "2 to 8"),
            ("zhou2017:threshold=nan", "0 to 9"),
            ("zhou2017:retrieval=fast", "linear, bucket or recursive"),
            ("exact:bits=64", "no parameter \"bits\""),
        ] {
            let error = text.parse::<Spec>().unwrap_err().to_string();
            assert!(error.contains(text) && error.contains(expected), "{error}");
        }
    }
}
