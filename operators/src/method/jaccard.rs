//! The methods `jaccard` and `minhash`, which compare sets of features. Every match is verified.

use std::fmt;

use super::Method;
use super::banding::{Banding, MOST_MISSED, missed};
use super::curve::{Cost, Curve, step};
use super::parameters::{Parameters, WrongParameter, store, store_clean, store_features};
use crate::Error;
use crate::search::Search;
use crate::sets::Rule;
use crate::sets::minhash::MinHash;
use crate::sets::similarity::{Overlap, Similarity};
use crate::text::document_frequencies::Statistics;
use crate::text::features::{FeatureSpec, Features, Lexicon};
use crate::text::{Clean, Cleaner};

/// Search of a method over sets, as a spec names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetSearch {
    /// The exact join, which misses no match. See docs/design/candidate-search.md.
    Prefix,
    /// The bands of signatures, which find a match with a probability. See [`MinHash`].
    Bands(MinHash),
}

impl From<SetSearch> for Search {
    fn from(search: SetSearch) -> Self {
        match search {
            SetSearch::Prefix => Search::Prefix,
            SetSearch::Bands(minhash) => Search::Bands(minhash),
        }
    }
}

impl SetSearch {
    /// Returns the memory that the search holds.
    pub(super) fn cost(self) -> Cost {
        match self {
            SetSearch::Prefix => Cost { document: 112, feature: 4 },
            SetSearch::Bands(MinHash { bands, .. }) => {
                Cost { document: 64 + 8 * u64::from(bands), feature: 0 }
            }
        }
    }

    /// Returns the curve for texts that match from `least` on.
    pub(super) fn curve(self, least: Similarity) -> Curve {
        match self {
            SetSearch::Prefix => Curve { of: JACCARD, because: EXACT.to_owned(), chance: step(least) },
            SetSearch::Bands(minhash) => Curve {
                of: JACCARD,
                because: banded(&minhash),
                chance: Box::new(move |similarity| minhash.probability(similarity)),
            },
        }
    }
}

const JACCARD: &str = "Jaccard similarity of the texts' sets of features";

const EXACT: &str = "the join is exact: it finds every pair of at least the threshold, and keeps no other";

fn banded(minhash: &MinHash) -> String {
    let MinHash { bands, rows, .. } = minhash;
    format!("1 - (1 - s^{rows})^{bands}; of the candidates, pairs of at least the threshold are kept")
}

/// Parameters of `jaccard`, which finds all pairs of texts whose sets of features are similar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JaccardSpec {
    /// Least similarity of a match.
    pub least: Similarity,
    /// Features that the texts are compared by.
    pub features: FeatureSpec,
    /// Cleaning of the text.
    pub clean: Clean,
}

impl JaccardSpec {
    /// Makes the method with this measure and search.
    pub(super) fn with(
        &self,
        overlap: Overlap,
        search: SetSearch,
        lexicon: &Lexicon,
    ) -> Result<Method, Error> {
        let rule = Rule::new(Features::new(self.features, lexicon)?, overlap, self.least);
        Ok(Method { cleaner: Cleaner::new(self.clean), search: search.into(), rule, verified: true })
    }
}

impl Default for JaccardSpec {
    fn default() -> Self {
        let least = Similarity::millionths(800_000);
        JaccardSpec { least, features: FeatureSpec::Chars(5), clean: Clean::default() }
    }
}

impl Parameters for JaccardSpec {
    fn name(&self) -> &'static str {
        "jaccard"
    }

    fn examples(&self) -> &'static [&'static str] {
        &["jaccard:0.5,features=char:2", "jaccard:0.8,features=word:1,clean=none"]
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), WrongParameter> {
        match key {
            "features" => store_features(&mut self.features, value),
            "clean" => store_clean(&mut self.clean, value),
            number if number.starts_with(|c: char| c.is_ascii_digit()) && value.is_empty() => {
                store_least(&mut self.least, number)
            }
            _ => Err(WrongParameter::Unknown),
        }
    }

    fn help(&self) -> &'static str {
        "jaccard:T (features=jieba|char:N|word:N|unit:N, clean=none|nfkc|post|weibo) finds every pair \
         of texts whose sets of features are similar."
    }

    fn clean(&self) -> Clean {
        self.clean
    }

    fn features(&self) -> Option<FeatureSpec> {
        Some(self.features)
    }

    fn measures(&self) -> bool {
        true
    }

    fn thresholds(&mut self) -> Vec<&mut Similarity> {
        vec![&mut self.least]
    }

    fn method(&self, lexicon: &Lexicon, _: &Statistics, _: Option<Similarity>) -> Result<Method, Error> {
        self.with(Overlap::Jaccard, SetSearch::Prefix, lexicon)
    }

    fn curve(&self) -> Curve {
        SetSearch::Prefix.curve(self.least)
    }

    fn cost(&self) -> Cost {
        SetSearch::Prefix.cost()
    }
}

impl fmt::Display for JaccardSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let JaccardSpec { least, features, clean } = self;
        write!(f, "{least},features={features},clean={clean}")
    }
}

/// Parameters of `minhash`, which finds most pairs of texts whose sets of features are similar.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MinHashSpec {
    /// Rule by which texts match.
    pub jaccard: JaccardSpec,
    /// Parts of the signature that the user gave, by which candidates are found.
    pub banding: Banding,
}

impl MinHashSpec {
    /// Returns the signature by which candidates are found.
    pub fn signature(&self) -> MinHash {
        self.banding.signature(self.jaccard.least)
    }

    fn search(&self) -> SetSearch {
        SetSearch::Bands(self.signature())
    }
}

impl Parameters for MinHashSpec {
    fn name(&self) -> &'static str {
        "minhash"
    }

    fn examples(&self) -> &'static [&'static str] {
        &["minhash:jaccard=0.7,features=char:3,bands=40,rows=3", "minhash:jaccard=0.6,features=char:3"]
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), WrongParameter> {
        match key {
            "jaccard" => store_least(&mut self.jaccard.least, value),
            "features" | "clean" => self.jaccard.set(key, value),
            _ => self.banding.set(key, value),
        }
    }

    fn check(&self) -> Result<(), String> {
        self.banding.check(self.jaccard.least)
    }

    fn warning(&self) -> Option<String> {
        let signature = self.signature();
        let missed = missed(&signature, self.jaccard.least);
        let MinHash { bands, rows, .. } = signature;
        (missed > MOST_MISSED).then(|| {
            let least = self.jaccard.least;
            let shown = if missed < 0.01 { format!("{:.2}", 100.0 * missed) } else { format!("{:.0}", 100.0 * missed) };
            format!(
                "{bands} bands of {rows} rows miss {shown} % of the pairs at the threshold {least}: without bands and \
                 rows, as many as it needs are taken"
            )
        })
    }

    fn help(&self) -> &'static str {
        "minhash (jaccard=T, bands, rows, seed, features, clean) finds nearly all of these pairs, in \
         less memory; bands and rows follow from T."
    }

    fn clean(&self) -> Clean {
        self.jaccard.clean
    }

    fn features(&self) -> Option<FeatureSpec> {
        Some(self.jaccard.features)
    }

    fn measures(&self) -> bool {
        true
    }

    fn thresholds(&mut self) -> Vec<&mut Similarity> {
        vec![&mut self.jaccard.least]
    }

    fn method(&self, lexicon: &Lexicon, _: &Statistics, _: Option<Similarity>) -> Result<Method, Error> {
        self.jaccard.with(Overlap::Jaccard, self.search(), lexicon)
    }

    fn curve(&self) -> Curve {
        self.search().curve(self.jaccard.least)
    }

    fn cost(&self) -> Cost {
        self.search().cost()
    }
}

/// Bands and rows are written even where they follow from the threshold, so that what is kept of a run says how its
/// candidates were found.
impl fmt::Display for MinHashSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MinHash { bands, rows, seed } = self.signature();
        write!(f, "bands={bands},rows={rows},seed={seed},jaccard={}", self.jaccard)
    }
}

/// Stores a threshold. The least one is [`Similarity::LEAST`], because a pair of similarity 0 is no match.
pub(super) fn store_least(place: &mut Similarity, value: &str) -> Result<(), WrongParameter> {
    let least = value.parse().ok().filter(|&least: &Similarity| least >= Similarity::LEAST);
    store(place, least, "a number from 0.01 to 1")
}
