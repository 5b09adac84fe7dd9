//! The same text, once cleaned.

use std::fmt;

use xxhash_rust::xxh3::xxh3_128;

use super::{Method, Parameters, Wrong, store_clean};
use crate::features::Features;
use crate::record::{Pair, Row};
use crate::text::Clean;

/// The parameters of `exact`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExactSpec {
    /// What is done to the text first.
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

/// 128 bits of the cleaned text; two texts match when all bits do.
#[derive(Clone)]
pub struct Exact;

impl Method for Exact {
    type Fingerprint = (u64, u64);
    type Block = ();

    fn fingerprint(&mut self, text: &str) -> (u64, u64) {
        let hash = xxh3_128(text.as_bytes());
        (hash as u64, (hash >> 64) as u64)
    }

    fn blocks(&self) -> Vec<()> {
        vec![()]
    }

    fn value((): &(), fingerprint: &(u64, u64)) -> u64 {
        fingerprint.0
    }

    fn split(&self, (): &()) -> Option<Vec<()>> {
        None
    }

    fn compare(&mut self, (): &(), rows: &mut [Row<(u64, u64)>], emit: &mut impl FnMut(Pair)) -> u64 {
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

    fn distance(&self, a: &(u64, u64), b: &(u64, u64)) -> Option<u32> {
        (a == b).then_some(0)
    }

    fn features(&self, text: &str, set: &mut Vec<u64>) {
        Features::Chars(5).set(text, set);
    }
}
