//! The method `exact`: texts match when they are equal after cleaning. They become one before any search, so
//! this method has none.

use std::fmt;

use super::Method;
use super::curve::{Cost, Curve, step};
use super::parameters::{Parameters, WrongParameter, store_clean};
use crate::Error;
use crate::search::Search;
use crate::sets::similarity::Similarity;
use crate::text::document_frequencies::Statistics;
use crate::text::features::{FeatureSpec, Features, Lexicon};
use crate::text::{Clean, Cleaner};

/// Parameters of `exact`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExactSpec {
    /// Cleaning of the text.
    pub clean: Clean,
}

impl Default for ExactSpec {
    fn default() -> Self {
        ExactSpec { clean: Clean::Fold }
    }
}

impl Parameters for ExactSpec {
    fn name(&self) -> &'static str {
        "exact"
    }

    fn examples(&self) -> &'static [&'static str] {
        &["exact"]
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), WrongParameter> {
        match key {
            "clean" => store_clean(&mut self.clean, value),
            _ => Err(WrongParameter::Unknown),
        }
    }

    fn help(&self) -> &'static str {
        "exact (clean) finds equal texts."
    }

    fn clean(&self) -> Clean {
        self.clean
    }

    fn features(&self) -> Option<FeatureSpec> {
        None
    }

    fn measures(&self) -> bool {
        false
    }

    fn fingerprints(&self) -> bool {
        true
    }

    fn method(&self, _: &Lexicon, _: &Statistics, verify: Option<Similarity>) -> Result<Method, Error> {
        let features = Features::Chars(5);
        Ok(Method::verified_by(Search::Identity, features, Cleaner::new(self.clean), verify))
    }

    fn curve(&self) -> Curve {
        Curve {
            of: "similarity of the cleaned texts",
            because: "only equal texts match".to_owned(),
            chance: step(Similarity::ONE),
        }
    }

    fn cost(&self) -> Cost {
        Cost::FINGERPRINTS
    }
}

impl fmt::Display for ExactSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "clean={}", self.clean)
    }
}
