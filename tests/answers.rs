//! Tests that no document is removed without proof, and that the answer is the same for any number of
//! workers, order of the inputs and size of the splits.

pub mod against;
pub mod brute;
mod corpora;
mod empty_texts;
mod families;
mod fingerprints;
mod ignored_lines;
mod index_views;
mod invariance;
mod output;
mod statistics;
mod zhou;
