//! Algorithms of the near-duplicate job: features of texts, fingerprints and sets, the searches for candidates,
//! the methods made of them, and the dataflow that runs them on all workers.
//!
//! This crate knows no file of the user, no host and no command line. Inside it, only `flow` names the
//! engine, and only `spill` opens files: the spill files for records that do not fit into memory. From low to
//! high, the rooms are `spill`, `text`, `fingerprint`, `sets`, `blocks`, `search`, `method`, `evaluate`, `flow`.

pub mod blocks;
pub mod classify;
mod doc_batch;
mod error;
mod evaluate;
pub mod fingerprint;
pub mod flow;
pub mod hash;
pub mod incremental;
mod merit;
pub mod method;
mod near_units;
mod packed_match;
mod record;
mod repeats;
pub mod search;
pub mod sets;
mod sides;
mod spill;
mod survivors;
pub mod text;

pub use doc_batch::{Doc, DocBatch, Reject};
pub use error::Error;
pub use evaluate::{
    Core2020, Point, RankedPair, Ranking, Removals, Score, TruthGroups, fleiss_kappa, intervals,
};
pub use fingerprint::Bits;
pub use merit::{Merit, Priority};
pub use method::curve::{Cost, Curve};
pub use near_units::{FirstUnit, NearUnit, each_first, each_renamed};
pub use packed_match::{pack_apart, unpack_apart};
pub use record::{DocId, Pair, Record, Row};
pub use repeats::{KeptUnit, RepeatedUnit, UnitOccurrence, UnitPlace, each_repeat};
pub use sets::feature_counts::{Counting, FeatureCounts};
pub use sets::similarity::{Overlap, Similarity, jaccard, shared};
pub use sides::Sides;
pub use spill::{ExternalSort, GrowingFile, MergeCursor, Sorted, SpillBudget, Spilled, Spool, ValueFile};
pub use survivors::{Matches, Member, NearPair, Reason, Removed, Resolve, survivors};
