//! Files of fingerprints: the same 64-bit words sorted four times, so that those within three bits of a word lie in four
//! short ranges.
//!
//! Words within three bits agree on one of four blocks of 16 bits. Each table has a block in front, and a directory in
//! memory says where the words with the same first bits lie (Manku, Jain, Das Sarma, "Detecting Near-Duplicates for Web
//! Crawling", WWW 2007, section 3). `layout.rs` has the numbers of the format, `writer.rs`, `reader.rs`, `search.rs` and
//! `merge.rs` do what their names say. docs/formats.md describes the file. This room uses `cluster`; `topics` uses it.

mod layout;
mod merge;
mod reader;
mod search;
#[cfg(test)]
mod tests;
mod writer;

pub(super) use layout::{FingerprintSummary, MOST_TABLES, PAGE_ENTRIES, keys_of_word, word_of_pass};
pub(super) use merge::merge;
pub(super) use reader::FingerprintFile;
pub(super) use search::FingerprintScratch;
pub(super) use writer::FingerprintWriter;
