//! The method `contained`: a short text matches a long one that holds most of it.

use std::fmt;

use super::Method;
use super::curve::{Cost, Curve};
use super::jaccard::{JaccardSpec, SetSearch};
use super::parameters::{Parameters, WrongParameter};
use crate::Error;
use crate::sets::similarity::{Overlap, Similarity};
use crate::text::Clean;
use crate::text::document_frequencies::Statistics;
use crate::text::features::{FeatureSpec, Lexicon};

/// Parameters of `contained`: those of `jaccard`, with another measure. The similarity of two texts is the part of
/// the features of the one with fewer that the other has too.
///
/// ```text
/// item   a b c d e            5 features
/// page   x a b c d y z ...    shares 4 of them: similarity 0.8, however long the page is
/// ```
///
/// Source: docs/design/nightly.md.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainedSpec(pub JaccardSpec);

impl Parameters for ContainedSpec {
    fn name(&self) -> &'static str {
        "contained"
    }

    fn examples(&self) -> &'static [&'static str] {
        &[
            "contained:0.8,features=char:2",
            "contained:0.3,features=char:1,clean=none",
            "contained:1,features=unit:1",
        ]
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), WrongParameter> {
        self.0.set(key, value)
    }

    fn help(&self) -> &'static str {
        "contained:T (features, clean) finds every pair of texts where one has at least the part T of the features of \
         the shorter one."
    }

    fn clean(&self) -> Clean {
        self.0.clean
    }

    fn features(&self) -> Option<FeatureSpec> {
        Some(self.0.features)
    }

    fn measures(&self) -> bool {
        true
    }

    fn thresholds(&mut self) -> Vec<&mut Similarity> {
        self.0.thresholds()
    }

    fn method(&self, lexicon: &Lexicon, _: &Statistics, _: Option<Similarity>) -> Result<Method, Error> {
        self.0.with(Overlap::Contained, SetSearch::Prefix, lexicon)
    }

    fn curve(&self) -> Curve {
        let of = "part of the smaller set of features that the other set has";
        Curve { of, ..self.0.curve() }
    }

    fn cost(&self) -> Cost {
        Cost { feature: 8, ..self.0.cost() }
    }
}

impl fmt::Display for ContainedSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
