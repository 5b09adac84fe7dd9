//! Methods: which texts are compared, and which of them match.
//!
//! A [`Spec`] is what a user writes; a [`Method`] is ready to work. Each method has a type that implements
//! [`Parameters`], and a line in the table of `spec.rs`; `minhash` shares a file with `jaccard`, and `manku2007` is
//! a preset of `simhash`. The methods share the records of the map stage
//! (`map_records.rs`), the comparison of two texts (`pair.rs`), and the curves and costs that `explain` shows
//! (`curve.rs`). This room uses `text`, `fingerprint`, `sets` and `search`; `flow` and the jobs use it.

mod auto;
mod banding;
mod contained;
pub(crate) mod curve;
mod exact;
mod jaccard;
mod kept_keys;
pub mod map_records;
mod pair;
mod parameters;
mod simhash;
mod spec;
pub mod zhou;

pub use auto::AutoSpec;
pub use banding::Banding;
pub use contained::ContainedSpec;
pub use exact::ExactSpec;
pub use jaccard::{JaccardSpec, MinHashSpec, SetSearch};
pub use kept_keys::{KeptKeys, KeyOfPass, TextKeys};
pub use pair::{Classification, Keys, PairClassifier};
pub use parameters::{Parameters, WrongParameter};
pub use simhash::{SimHash, SimHashSpec, Weights};
pub use spec::Spec;
pub use zhou::{Zhou, ZhouSpec};

use crate::sets::Rule;
use crate::sets::minhash::MinHash;
use crate::sets::similarity::{Overlap, Similarity};
use crate::text::Cleaner;
use crate::text::features::Features;

/// A method ready to work.
///
/// Texts are cleaned. Documents of equal texts become one. The search finds pairs of the others, the
/// candidates. The rule compares the features of a candidate and decides whether the two texts match.
///
/// ```text
/// method        search     rule
/// exact         Nothing    not asked
/// simhash       SimHash    verification, unless the user wants none
/// minhash       Bands      Jaccard similarity of the features
/// jaccard       Prefix     Jaccard similarity of the features
/// contained     Prefix     part of the smaller set of features that the other one has
/// auto          Bands, or Prefix on request; short and long texts have features of their own
/// zhou2017      Zhou, which decides as it compares
/// ```
#[derive(Clone)]
pub struct Method {
    /// Cleaning of the texts.
    pub cleaner: Cleaner,
    /// Search for candidates.
    pub search: Search,
    /// Features of a text, and the similarity from which on two texts match.
    pub rule: Rule,
    /// Whether the rule decides; if not, every candidate matches.
    pub verified: bool,
}

/// Search for the candidates of a method.
#[derive(Clone)]
pub enum Search {
    /// No candidates: only equal texts match.
    Nothing,
    /// Fingerprints of up to 64 bits, in blocks.
    SimHash64(SimHash<u64>),
    /// Fingerprints of 128 bits, in blocks.
    SimHash128(SimHash<u128>),
    /// Signatures, in bands.
    Bands(MinHash),
    /// Sets of features, in the features of their prefixes. Misses no pair that the rule matches.
    Prefix,
    /// The retrieval of `zhou2017`, which deletes documents as it compares them.
    Zhou(Zhou),
}

impl Search {
    /// Whether the map output has what is compared of each text.
    pub fn stores_texts(&self) -> bool {
        matches!(self, Search::Bands(_) | Search::Prefix)
    }
}

impl Method {
    /// Makes a method whose candidates are verified by the Jaccard similarity of `features`, if at all.
    fn verified_by(
        search: Search,
        features: Features,
        cleaner: Cleaner,
        verify: Option<Similarity>,
    ) -> Method {
        let threshold = verify.unwrap_or(Similarity::millionths(0));
        let rule = Rule::new(features, Overlap::Jaccard, threshold);
        Method { cleaner, search, rule, verified: verify.is_some() }
    }
}
