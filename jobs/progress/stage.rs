//! The stages of a job.

use serde::{Deserialize, Serialize};

/// Stage of a job. No job has all stages, but each has its own in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Stage {
    #[default]
    Start,
    Census,
    Count,
    Read,
    Map,
    Compare,
    Verify,
    Resolve,
    Write,
    Report,
    Pack,
    Unpack,
    Put,
    Export,
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
