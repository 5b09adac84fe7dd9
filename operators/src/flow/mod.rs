//! The dataflow: shuffle and reduce on the workers of the engine.
//!
//! This is the only room that names the engine's dataflow. It moves records between workers with the
//! arithmetic of `sets`, `search` and `method`, and only the jobs use it. `zhou.rs` and `class_sums.rs` serve
//! `zhou2017` and `compare` alone. Reading and writing happen in the worker loop of `jobs`, where errors can be
//! returned. The only errors here are those of records that are spilled to disk.

mod class_sums;
mod clusters;
mod exchange;
mod join;
mod skew;
mod verify;
mod view;
mod zhou;

pub use crate::search::prefix::index::LookupMarks;
pub use class_sums::ClassSums;
pub use clusters::{ClusterBatch, FoundMatches, GatheredClusters, MatchedDocs, SortedValues, ValueShuffle};
pub use exchange::shuffle::{RecordScan, RecordSink, Shuffle, SortingShuffle, shuffle};
pub use exchange::sum::{sum, total, totals};
pub use join::candidates::{CandidateJoin, Candidates, PlaceOf};
pub use join::identity::collapse;
pub use join::prefix::PrefixJoin;
pub use skew::heavy::Skew;
pub use verify::wanted::WantedDocs;
pub use verify::{Matching, Verify};
pub use view::{KeyRule, LiveView, ViewChange, ViewRank, WhatIf};
pub use zhou::{Retrieved, retrieve};

use timely::worker::Worker;

use crate::record::DocId;

/// Returns the worker that reads a document's split, as a number to be taken modulo the number of workers.
pub fn reader_of(doc: DocId) -> u64 {
    doc.split().into()
}

/// Whether a worker reads a document's split.
pub fn reads(worker: &Worker, doc: DocId) -> bool {
    reader_of(doc) % worker.peers() as u64 == worker.index() as u64
}
