//! The summary of a run: counters for people, JSON for machines.
//!
//! `run_summary.rs` is the summary of `dedup` and `nightly`; `counters.rs` and `findings.rs` have its parts, which the
//! summaries of other jobs use too.

mod counters;
mod findings;
mod run_summary;

pub use self::counters::{
    Counters, InputCounters, InputEntry, NightCounters, ReferenceCounters, is_zero, write_counters,
    write_plain_counters,
};
pub use self::findings::{
    BlockSkew, RejectReason, RemovedShare, SampleCluster, SampleMember, SamplePair, skew,
};
pub use self::run_summary::Summary;
