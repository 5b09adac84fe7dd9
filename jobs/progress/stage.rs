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
    Pack,
    Unpack,
    Commit,
}

impl Stage {
    /// All stages, in order.
    pub const ALL: [Stage; 12] = [
        Stage::Start,
        Stage::Census,
        Stage::Count,
        Stage::Read,
        Stage::Map,
        Stage::Compare,
        Stage::Verify,
        Stage::Resolve,
        Stage::Write,
        Stage::Pack,
        Stage::Unpack,
        Stage::Commit,
    ];

    /// Returns the name of the stage for people and machines.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Start => "start",
            Stage::Census => "census",
            Stage::Count => "count",
            Stage::Read => "read",
            Stage::Map => "map",
            Stage::Compare => "compare",
            Stage::Verify => "verify",
            Stage::Resolve => "resolve",
            Stage::Write => "write",
            Stage::Pack => "pack",
            Stage::Unpack => "unpack",
            Stage::Commit => "commit",
        }
    }
}
