//! Corpus formats, a file or folder each, listed in `FORMATS` (`lib.rs`) but for `unknown`, which refuses a file.
//! `tree.rs` is what the formats of folders share.
//!
//! This room uses `text` and `parts`; `lib.rs`, `pack` and `confined` use it.

pub(crate) mod csv;
pub(crate) mod elements;
pub(crate) mod jsonl;
pub(crate) mod office;
pub(crate) mod parquet;
pub(crate) mod plain_lines;
pub(crate) mod sequence_file;
pub(crate) mod tancorp;
pub(crate) mod tree;
pub(crate) mod unknown;
pub(crate) mod warc;

use crate::{FORMATS, Format};

/// Other names that formats go by.
const OTHER_NAMES: [(&str, &str); 20] = [
    ("json", "jsonl"),
    ("ndjson", "jsonl"),
    ("jsonlines", "jsonl"),
    ("text", "lines"),
    ("txt", "lines"),
    ("plain", "lines"),
    ("sequence", "sequencefile"),
    ("seq", "sequencefile"),
    ("sogou", "sogoucs"),
    ("weibo", "weibo-csv"),
    ("tan", "tancorp"),
    ("pq", "parquet"),
    ("pdf", "office"),
    ("docx", "office"),
    ("word", "office"),
    ("html", "office"),
    ("wiki", "wikiextractor"),
    ("wet", "warc"),
    ("markdown", "tancorp"),
    ("md", "tancorp"),
];

/// Returns the format of a name, which may be another one that people give it, in upper or lower case.
pub fn format_named(name: &str) -> Option<&'static dyn Format> {
    let lower = name.to_ascii_lowercase();
    let name = OTHER_NAMES.iter().find(|(other, _)| *other == lower).map_or(&*lower, |(_, name)| name);
    FORMATS.iter().copied().find(|format| format.name() == name)
}
