//! Joins: the candidate pairs of each search, by fingerprints in blocks, prefixes of sets, bands, and the retrieval of
//! `zhou2017`.
//!
//! Uses `exchange`, `skew` and the arithmetic outside of `flow`.

pub(crate) mod bands;
pub(crate) mod fingerprints;
pub(crate) mod prefix;
pub(crate) mod zhou;
