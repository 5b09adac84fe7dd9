//! Joins: one join that runs every candidate search, and what equal texts and prefixes need around it.
//!
//! This room uses `exchange`, `skew`, `search`, `sets` and `spill`; the search of `dedup` uses it.

pub(crate) mod candidates;
pub(crate) mod identity;
pub(crate) mod prefix;
mod reader_crowd;
mod several_passes;
