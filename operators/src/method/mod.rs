//! Methods: which texts are compared, and which of them match.
//!
//! A [`Spec`] is what a user writes; a [`Method`] is ready to work. Each method has a type that implements
//! [`Parameters`], and a line in the table of `spec.rs`; `minhash` shares a file with `jaccard`, and `manku2007` is
//! a preset of `simhash`. The methods share the comparison of two texts (`pair.rs`), the keys of single texts
//! (`kept_keys.rs`), and the curves and costs that `explain` shows (`curve.rs`). This room uses `text`, `fingerprint`,
//! `sets` and `search`; `flow` and the jobs use it.

mod auto;
mod banding;
mod contained;
pub(crate) mod curve;
mod exact;
mod jaccard;
mod kept_keys;
mod pair;
mod parameters;
mod simhash;
mod spec;
mod zhou;

pub use auto::AutoSpec;
pub use banding::Banding;
pub use contained::ContainedSpec;
pub use exact::ExactSpec;
pub use jaccard::{JaccardSpec, MinHashSpec, SetSearch};
pub use kept_keys::{KeptKeys, KeyOfPass, TextKeys};
pub use pair::{Classification, PairClassifier};
pub use parameters::{Parameters, WrongParameter};
pub use simhash::SimHashSpec;
pub use spec::Spec;
pub use zhou::ZhouSpec;

use crate::search::{Search, SearchContext, SearchInputs};
use crate::sets::Rule;
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
/// exact         Identity   not asked
/// simhash       Bits64     verification, unless the user wants none
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

impl Method {
    /// Returns what the search of this method is made for in a run.
    pub fn context(&self, inputs: SearchInputs) -> SearchContext<'_> {
        SearchContext { rule: &self.rule, verified: self.verified, inputs }
    }

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
