//! Joins: one file for each search, which finds its candidate pairs on all workers.
//!
//! Candidates are found by blocks of fingerprints, by prefixes of sets, by bands of signatures, and by the
//! retrieval of `zhou2017`. This room uses `exchange`, `skew` and the arithmetic of `method` and `sets`; the
//! search of `dedup` uses it.

pub(crate) mod bands;
pub(crate) mod fingerprints;
pub(crate) mod prefix;
pub(crate) mod zhou;
