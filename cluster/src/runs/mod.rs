//! Runs: immutable files of rows in the order of their keys, each part of which has a checksum.
//!
//! A row is a key of words, a value of words, and bytes; this room does not know their meaning. A run is
//! written from sorted rows ([`RunWriter`]), read from any key on ([`RunReader`], [`RunCursor`]), and seen as
//! one with others ([`MergedRuns`]), for lookups and to merge them into one run. The room uses the traits of
//! `stores`. docs/formats.md describes the file.

mod block;
mod check;
mod cursor;
mod leaf_bytes;
mod merged;
mod packed;
mod reader;
mod source;
mod summary;
#[cfg(test)]
mod tests;
mod tier;
mod writer;

pub use cursor::{PackedRow, RunCursor, RunRow};
pub use merged::MergedRuns;
pub use reader::RunReader;
pub use summary::{BlockPlace, RunShape, RunSummary};
pub use tier::newest_tier;
pub use writer::RunWriter;
