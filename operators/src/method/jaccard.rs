//! Methods that compare sets of features: `jaccard` and `minhash`. Every match is verified.

use std::fmt;

use super::{Parameters, Wrong, number, store, store_clean, store_features};
use crate::Error;
use crate::sets::Rule;
use crate::sets::minhash::MinHash;
use crate::sets::similarity::{Overlap, Similarity};
use crate::text::features::{FeatureSpec, Features, Lexicon};
use crate::text::{Clean, Cleaner};

/// A method over sets of features.
#[derive(Clone)]
pub struct SetMethod {
    /// What is done to a text first.
    pub cleaner: Cleaner,
    /// Which sets it has then, and when they match.
    pub rule: Rule,
    /// How candidates are found.
    pub search: SetSearch,
}

/// How candidates are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetSearch {
    /// By the exact join: no match is missed. See docs/design/0014.
    Prefix,
    /// By the bands of signatures: a match is found with a probability. See [`MinHash`].
    Bands(MinHash),
}

/// The parameters of `jaccard`: all pairs of texts whose sets of features are similar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JaccardSpec {
    /// The least similarity of a match.
    pub least: Similarity,
    /// The features.
    pub features: FeatureSpec,
    /// What is done to the text first.
    pub clean: Clean,
}

impl JaccardSpec {
    /// The method.
    pub fn method(&self, lexicon: &Lexicon, search: SetSearch) -> Result<SetMethod, Error> {
        let rule = Rule::new(Features::new(self.features, lexicon)?, Overlap::Jaccard, self.least);
        Ok(SetMethod { cleaner: Cleaner::new(self.clean), rule, search })
    }
}

impl Default for JaccardSpec {
    fn default() -> Self {
        let least = Similarity::millionths(800_000);
        JaccardSpec { least, features: FeatureSpec::Chars(5), clean: Clean::default() }
    }
}

impl Parameters for JaccardSpec {
    fn set(&mut self, key: &str, value: &str) -> Result<(), Wrong> {
        match key {
            "features" => store_features(&mut self.features, value),
            "clean" => store_clean(&mut self.clean, value),
            number if number.starts_with(|c: char| c.is_ascii_digit()) && value.is_empty() => {
                store_least(&mut self.least, number)
            }
            _ => Err(Wrong::Unknown),
        }
    }
}

impl fmt::Display for JaccardSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let JaccardSpec { least, features, clean } = self;
        write!(f, "{least},features={features},clean={clean}")
    }
}

/// The parameters of `minhash`: most pairs of texts whose sets of features are similar.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MinHashSpec {
    /// What matches.
    pub jaccard: JaccardSpec,
    /// How it is found.
    pub minhash: MinHash,
}

impl Default for MinHash {
    /// Of pairs of similarity 0.8 it misses 1 in 20,000, and finds as candidates half of those of 0.49.
    fn default() -> Self {
        MinHash { bands: 25, rows: 5, seed: 0 }
    }
}

impl Parameters for MinHashSpec {
    fn set(&mut self, key: &str, value: &str) -> Result<(), Wrong> {
        match key {
            "jaccard" => store_least(&mut self.jaccard.least, value),
            "bands" => number(&mut self.minhash.bands, value, 1..=256, "1 to 256"),
            "rows" => number(&mut self.minhash.rows, value, 1..=64, "1 to 64"),
            "seed" => store(&mut self.minhash.seed, value.parse().ok(), "a whole number below 2^64"),
            "features" | "clean" => self.jaccard.set(key, value),
            _ => Err(Wrong::Unknown),
        }
    }

    fn check(&self) -> Result<(), String> {
        let slots = self.minhash.bands * self.minhash.rows;
        if slots > MAX_SLOTS {
            return Err(format!("bands times rows must be no more than {MAX_SLOTS}, not {slots}"));
        }
        Ok(())
    }
}

impl fmt::Display for MinHashSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MinHash { bands, rows, seed } = self.minhash;
        write!(f, "bands={bands},rows={rows},seed={seed},jaccard={}", self.jaccard)
    }
}

/// Short texts fill few slots of a longer signature, and the others cost time.
const MAX_SLOTS: u32 = 1024;

/// A threshold: a pair of similarity 0 is none.
pub(super) fn store_least(place: &mut Similarity, value: &str) -> Result<(), Wrong> {
    let least = value.parse().ok().filter(|&least: &Similarity| least >= Similarity::LEAST);
    store(place, least, "a number from 0.01 to 1")
}
