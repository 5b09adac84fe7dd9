//! Corpus formats, a file or folder each, listed in `FORMATS` (`lib.rs`) but for `unknown`, which refuses a file.
//! `tree.rs` is what the formats of folders share.
//!
//! This room uses `text` and `parts`; only `lib.rs` and `pack.rs` use it.

pub(crate) mod csv;
pub(crate) mod jsonl;
pub(crate) mod office;
pub(crate) mod parquet;
pub(crate) mod plain_lines;
pub(crate) mod sequence_file;
pub(crate) mod sogou;
pub(crate) mod tancorp;
pub(crate) mod tree;
pub(crate) mod unknown;
