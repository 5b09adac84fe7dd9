//! Parameters of methods, as users write them behind a method's name.

use std::fmt;

use dyn_clone::DynClone;
use serde::de::DeserializeOwned;
use serde::de::value::{self, StrDeserializer};

use super::Method;
use super::curve::{Cost, Curve};
use crate::Error;
use crate::sets::similarity::Similarity;
use crate::text::Clean;
use crate::text::document_frequencies::Statistics;
use crate::text::features::{FeatureSpec, Lexicon};

/// One method with its parameters. `Display` writes all parameters, as they stand behind the method's name.
///
/// Each method implements it in its own file; a [`Spec`](super::Spec) is the method that the user chose.
pub trait Parameters: fmt::Display + DynClone + Send + Sync {
    /// Returns the name of the method.
    fn name(&self) -> &'static str;
    /// Returns example specs of the method, for the laws that all methods must keep.
    fn examples(&self) -> &'static [&'static str];
    /// Sets `key=value`. The value of a word that stands alone is empty.
    fn set(&mut self, key: &str, value: &str) -> Result<(), WrongParameter>;
    /// Checks that the parameters go together, once all are set; the error says why they do not.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }
    /// Returns what the user should know of parameters that go together, but not well.
    fn warning(&self) -> Option<String> {
        None
    }
    /// Returns what `--help` says about the method: its parameters, and what it finds.
    fn help(&self) -> &'static str;

    /// Returns the cleaning of texts.
    fn clean(&self) -> Clean;
    /// Returns the features that the user can choose; `None` if the method has features of its own.
    fn features(&self) -> Option<FeatureSpec>;
    /// Whether the features must be counted in the whole corpus before the method can be used.
    fn counts_features(&self) -> bool {
        false
    }
    /// Whether the method itself measures the similarity of matching texts.
    fn measures(&self) -> bool;
    /// Returns the thresholds of a method that measures similarity itself, except those of `zhou2017`.
    fn thresholds(&mut self) -> Vec<&mut Similarity> {
        Vec::new()
    }
    /// Sets the thresholds to one value. `auto:revisions` has a threshold for short texts of its own, which
    /// stays.
    fn set_threshold(&mut self, threshold: Similarity) {
        self.thresholds().into_iter().for_each(|least| *least = threshold);
    }
    /// Whether the method compares fingerprints, so that a pair has a distance.
    fn fingerprints(&self) -> bool {
        false
    }
    /// Whether texts are fingerprints that were made elsewhere.
    fn takes_fingerprints(&self) -> bool {
        false
    }
    /// Takes texts as fingerprints that were made elsewhere. Returns whether the method can.
    fn take_fingerprints(&mut self) -> bool {
        false
    }
    /// Returns the weight K of Sim = 1 / (distance + 1) + K * similarity, if the method decides by this sum.
    fn weight_of_sim(&self) -> Option<u32> {
        None
    }
    /// Whether pairs need verification, because matching fingerprints do not prove that the texts are near.
    fn approximate(&self) -> bool {
        false
    }

    /// Whether the method deletes documents as it compares them, so that it cannot let a reference stay.
    fn deletes_as_it_compares(&self) -> bool {
        false
    }

    /// Makes the method. `statistics`: of the features that [`Spec::counted`](super::Spec::counted) returns;
    /// not used if it returns `None`. `verify`: the least similarity of a pair of matching fingerprints, or
    /// `None` if their features are not compared; not used by methods that measure similarity themselves.
    ///
    /// # Errors
    /// When the user dictionary of `lexicon` is needed and does not parse.
    fn method(
        &self,
        lexicon: &Lexicon,
        statistics: &Statistics,
        verify: Option<Similarity>,
    ) -> Result<Method, Error>;
    /// Returns the chance that two texts become a candidate.
    fn curve(&self) -> Curve;
    /// Returns the memory that a search holds. Sources: the comments of [`crate::flow`] and its parts.
    fn cost(&self) -> Cost;
}

dyn_clone::clone_trait_object!(Parameters);

/// Reason why a parameter is refused.
pub enum WrongParameter {
    /// The method has no parameter of that name.
    Unknown,
    /// The value is not of the form that is given here.
    Expected(&'static str),
}

/// Sets the parameters of a method that the user calls `name`. They are separated by commas.
pub(super) fn set_all(method: &mut dyn Parameters, name: &str, parameters: &str) -> Result<(), String> {
    for parameter in parameters.split(',').filter(|parameter| !parameter.is_empty()) {
        let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        method.set(key, value).map_err(|wrong| match wrong {
            WrongParameter::Unknown => {
                let help = method.help();
                let all = help.split_once('(').and_then(|(_, rest)| rest.split_once(") "));
                let all = all.map_or_else(String::new, |(all, _)| format!("; it has {all}"));
                format!("{name} has no parameter \"{key}\"{all}")
            }
            WrongParameter::Expected(expected) if key.starts_with(|c: char| c.is_ascii_digit()) => {
                format!("{key} is not {expected}")
            }
            WrongParameter::Expected(expected) => format!("{key} must be {expected}, not \"{value}\""),
        })?;
    }
    method.check()
}

/// Stores a parsed value. The error says what was `expected`.
pub(super) fn store<T>(
    place: &mut T,
    value: Option<T>,
    expected: &'static str,
) -> Result<(), WrongParameter> {
    *place = value.ok_or(WrongParameter::Expected(expected))?;
    Ok(())
}

/// Parses and stores a number if it is one of those `allowed`. The error says what was `expected`.
pub(super) fn number(
    place: &mut u32,
    value: &str,
    mut allowed: impl Iterator<Item = u32>,
    expected: &'static str,
) -> Result<(), WrongParameter> {
    store(place, value.parse().ok().filter(|&number| allowed.any(|one| one == number)), expected)
}

/// Returns the variant of a plain enum with this name.
pub(super) fn named<T: DeserializeOwned>(name: &str) -> Option<T> {
    T::deserialize(StrDeserializer::<value::Error>::new(name)).ok()
}

/// Parses and stores the parameter `features`.
pub(super) fn store_features(place: &mut FeatureSpec, value: &str) -> Result<(), WrongParameter> {
    store(place, FeatureSpec::parse(value), "jieba, char:N, word:N or unit:N, N from 1 to 64")
}

/// Parses and stores the parameter `clean`.
pub(super) fn store_clean(place: &mut Clean, value: &str) -> Result<(), WrongParameter> {
    store(place, named(value), "none, nfkc, fold, post or weibo")
}
