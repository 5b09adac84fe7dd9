//! The method `exact`: texts match when they are equal after cleaning.

use std::convert::Infallible;
use std::fmt;

use super::{Method, Parameters, WrongParameter, store_clean};
use crate::hash::{Identity, Secret};
use crate::record::{Pair, Row};
use crate::text::Clean;
use crate::text::features::Features;

/// Parameters of `exact`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExactSpec {
    /// Cleaning of the text.
    pub clean: Clean,
}

impl Parameters for ExactSpec {
    fn set(&mut self, key: &str, value: &str) -> Result<(), WrongParameter> {
        match key {
            "clean" => store_clean(&mut self.clean, value),
            _ => Err(WrongParameter::Unknown),
        }
    }
}

impl fmt::Display for ExactSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "clean={}", self.clean)
    }
}

/// Fingerprints that are the identity of the cleaned text. Two texts match when their identities are equal.
///
/// Equal texts collapse to the first of them before anything is compared, so there is no block to search.
#[derive(Clone)]
pub struct Exact(pub(super) Secret);

impl Method for Exact {
    type Fingerprint = Identity;
    type Block = Infallible;

    fn fingerprint(&mut self, text: &str) -> Identity {
        self.0.identity(text)
    }

    fn blocks(&self) -> Vec<Infallible> {
        Vec::new()
    }

    fn value(block: &Infallible, _: &Identity) -> u64 {
        match *block {}
    }

    fn split(&self, block: &Infallible) -> Option<Vec<Infallible>> {
        match *block {}
    }

    fn compare(&mut self, block: &Infallible, _: &mut [Row<Identity>], _: &mut impl FnMut(Pair)) -> u64 {
        match *block {}
    }

    fn distance(&self, a: &Identity, b: &Identity) -> Option<u32> {
        (a == b).then_some(0)
    }

    fn features(&self, text: &str, set: &mut Vec<u64>) {
        Features::Chars(5).set(text, set);
    }
}
