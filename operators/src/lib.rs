//! What a near-duplicate job computes: records, methods, the block join, and the dataflow that joins them.
//!
//! Arrows: this crate knows no file, no host and no command line. Inside it, only `flow` names the engine.

mod record;

pub use record::{Doc, DocBatch, DocId, Reject};
