//! The method `exact`: texts match when they are equal after cleaning.

use std::fmt;

use super::{Method, Parameters, Wrong, store_clean};
use crate::features::Features;
use crate::hash::{Identity, Secret};
use crate::record::{Pair, Row};
use crate::text::Clean;

/// Parameters of `exact`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExactSpec {
    /// Cleaning of the text.
    pub clean: Clean,
}

impl Parameters for ExactSpec {
    fn set(&mut self, key: &str, value: &str) -> Result<(), Wrong> {
        match key {
            "clean" => store_clean(&mut self.clean, value),
            _ => Err(Wrong::Unknown),
        }
    }
}

impl fmt::Display for ExactSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "clean={}", self.clean)
    }
}

/// Fingerprints that are the identity of the cleaned text. Two texts match when their identities are equal.
#[derive(Clone)]
pub struct Exact(pub(super) Secret);

impl Method for Exact {
    type Fingerprint = Identity;
    type Block = ();

    fn fingerprint(&mut self, text: &str) -> Identity {
        self.0.identity(text)
    }

    fn blocks(&self) -> Vec<()> {
        vec![()]
    }

    fn value((): &(), fingerprint: &Identity) -> u64 {
        fingerprint.0
    }

    fn split(&self, (): &()) -> Option<Vec<()>> {
        None
    }

    fn compare(&mut self, (): &(), rows: &mut [Row<Identity>], emit: &mut impl FnMut(Pair)) -> u64 {
        rows.sort_unstable();
        let mut compared = 0;
        for same in rows.chunk_by(|a, b| a.fingerprint == b.fingerprint) {
            for (i, one) in same.iter().enumerate() {
                compared += same[i + 1..].len() as u64;
                same[i + 1..].iter().for_each(|other| emit(Pair::new(one.doc, other.doc, 0)));
            }
        }
        compared
    }

    fn distance(&self, a: &Identity, b: &Identity) -> Option<u32> {
        (a == b).then_some(0)
    }

    fn features(&self, text: &str, set: &mut Vec<u64>) {
        Features::Chars(5).set(text, set);
    }
}
