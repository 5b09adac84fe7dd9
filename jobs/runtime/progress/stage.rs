//! The stages of a job.

use serde::{Deserialize, Serialize};

/// Stage of a job. No job has all stages, but each has its own in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// No stage: the worker has not entered one, or has left the last.
    #[default]
    Start,
    /// Reading of the input that counts its documents and their bytes.
    Census,
    /// Reading of the corpus that counts features or lines, before the stage that needs the counts.
    Count,
    /// Reading of the documents that a command such as `show`, `why` or `index` looks at.
    Read,
    /// Reading of the corpus that cleans the texts and keeps what the search needs of each.
    Map,
    /// Search for pairs in what was kept of the texts.
    Compare,
    /// Comparison of the features of each pair that was found.
    Verify,
    /// Decision about the documents of each cluster that stay.
    Resolve,
    /// Reading of the input that writes its records to the output.
    Write,
    /// Reading of the texts that the page of the run shows.
    Report,
    /// Copying of many small files into a few large ones.
    Pack,
    /// Making of files again from those that `pack` has made.
    Unpack,
    /// Copying of files into a chunk store.
    Put,
    /// Reading of a chunk store that writes its files as records.
    Export,
    /// Step in which process 0 shows the output and writes `_SUCCESS`.
    Commit,
}

impl Stage {
    /// All stages, in order.
    pub const ALL: [Stage; 15] = [
        Stage::Start,
        Stage::Census,
        Stage::Count,
        Stage::Read,
        Stage::Map,
        Stage::Compare,
        Stage::Verify,
        Stage::Resolve,
        Stage::Write,
        Stage::Report,
        Stage::Pack,
        Stage::Unpack,
        Stage::Put,
        Stage::Export,
        Stage::Commit,
    ];

    /// Names of all stages, in the same order.
    const NAMES: [&str; 15] = [
        "start", "census", "count", "read", "map", "compare", "verify", "resolve", "write", "report", "pack",
        "unpack", "put", "export", "commit",
    ];

    /// Returns the name of the stage for people and machines.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}
