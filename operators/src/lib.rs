//! Algorithms of the near-duplicate job: features of texts, fingerprints and sets, the searches for candidates,
//! the methods made of them, and the dataflow that runs them on all workers.
//!
//! This crate knows no file of the user, no host and no command line. Inside it, only `flow` names the
//! engine, and only `spill` opens files: the spill files for records that do not fit into memory. From low to
//! high, the rooms are `record`, `spill`, `text`, `fingerprint`, `sets`, `units`, `decide`, `blocks`, `search`, `method`,
//! `evaluate`, `flow`.

pub mod blocks;
mod decide;
mod error;
mod evaluate;
pub mod fingerprint;
pub mod flow;
pub mod method;
mod record;
pub mod search;
pub mod sets;
mod spill;
pub mod text;
mod units;

pub use decide::{Matches, Member, NearPair, Reason, Removed, Resolve, incremental, survivors};
pub use error::Error;
pub use evaluate::{
    Core2020, Point, RankedPair, Ranking, Removals, Score, TruthGroups, classify, fleiss_kappa, intervals,
};
pub use fingerprint::bits::Bits;
pub use method::curve::{Cost, Curve};
pub use record::{Doc, DocBatch, DocId, Merit, Pair, Priority, Record, Reject, Row, Sides, hash};
pub use sets::feature_counts::{Counting, FeatureCounts};
pub use sets::packed_match::{pack_apart, unpack_apart};
pub use sets::similarity::{Overlap, Similarity, jaccard, shared};
pub use spill::{
    ExternalSort, GrowingFile, MergeCursor, Sorted, SpillBudget, Spilled, Spool, ValueFile, memory_plan,
};
pub use units::{
    FirstUnit, KeptUnit, NearUnit, RepeatedUnit, UnitOccurrence, UnitPlace, each_first, each_renamed,
    each_repeat,
};
