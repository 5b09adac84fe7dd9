//! Methods: which texts are compared, and which of them match.
//!
//! A [`Spec`] is what a user writes; a [`Method`] is ready to work. A new method takes one file here with its
//! parameters, a variant of [`Spec`] with an arm in each `match` of `spec.rs` and `curve.rs`, and a line in
//! the help of `--method`. This room uses `text`, `fingerprint`, `sets` and `search`; `flow` and the jobs use
//! it.

mod auto;
pub(crate) mod curve;
mod exact;
mod jaccard;
pub mod map_records;
mod pair;
mod parameters;
mod simhash;
mod spec;
pub mod zhou;

pub use auto::AutoSpec;
pub use exact::ExactSpec;
pub use jaccard::{JaccardSpec, MinHashSpec, SetSearch};
pub use pair::{Classification, Keys, PairClassifier};
pub use simhash::{SimHash, SimHashSpec, Weights};
pub use spec::Spec;
pub use zhou::{Zhou, ZhouSpec};

use crate::Error;
use crate::sets::Rule;
use crate::sets::minhash::MinHash;
use crate::sets::similarity::{Overlap, Similarity};
use crate::text::Cleaner;
use crate::text::document_frequencies::Statistics;
use crate::text::features::{FeatureSpec, Features, Lexicon};

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
/// auto          Prefix, or Bands for a large corpus; short and long texts have features of their own
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

impl Spec {
    /// Makes the method of this spec. This is the one place that chooses a search. `statistics`: of the
    /// features that [`Spec::counted`] returns; not used if it returns `None`. `verify`: the least similarity
    /// of a pair of matching fingerprints, or `None` if their features are not compared; not used by methods
    /// that measure similarity themselves.
    ///
    /// # Errors
    /// When the user dictionary of `lexicon` is needed and does not parse.
    pub fn method(
        &self,
        lexicon: &Lexicon,
        statistics: &Statistics,
        verify: Option<Similarity>,
    ) -> Result<Method, Error> {
        let least = verify.unwrap_or(Similarity::millionths(0));
        let (search, features) = match self {
            Spec::Auto(spec) => return spec.method(lexicon),
            Spec::Jaccard(spec) => return spec.method(lexicon, Search::Prefix),
            Spec::MinHash(spec) => return spec.jaccard.method(lexicon, Search::Bands(spec.minhash)),
            Spec::Exact(_) => (Search::Nothing, Features::new(FeatureSpec::Chars(5), lexicon)?),
            Spec::SimHash(spec) => {
                let features = Features::new(spec.features, lexicon)?;
                let search = match spec.bits {
                    0..=64 => Search::SimHash64(SimHash::new(spec, features.clone(), statistics)),
                    _ => Search::SimHash128(SimHash::new(spec, features.clone(), statistics)),
                };
                (search, features)
            }
            Spec::Zhou(spec) => {
                let features = Features::new(spec.features, lexicon)?;
                (Search::Zhou(Zhou::new(spec, features.clone())), features)
            }
        };
        let rule = Rule::new(features, Overlap::Jaccard, least);
        Ok(Method { cleaner: Cleaner::new(self.clean()), search, rule, verified: verify.is_some() })
    }
}
