//! Algorithms of the near-duplicate job: records, methods, the block join, and the dataflow that connects
//! them.
//!
//! This crate knows no file of the user, no host and no command line. Inside it, only `flow` names the
//! engine, and only `scratch` opens files: the spill files for what does not fit into memory.

pub mod block_join;
mod curve;
mod error;
pub mod features;
pub mod flow;
pub mod hamming;
pub mod hash;
mod letters;
pub mod mapped;
mod merge;
pub mod method;
pub mod minhash;
mod odd_sketch;
mod partners;
mod post;
mod prefix;
mod ranking;
mod record;
pub mod retrieval;
mod runs;
mod score;
mod scratch;
pub mod sets;
mod similarity;
mod sketch;
mod spool;
pub mod statistics;
mod survivors;
pub mod tables;
mod tally;
pub mod text;
pub mod vector;
mod weibo;
mod word;

pub use curve::{Cost, Curve};
pub use error::Error;
pub use merge::Sorted;
pub use partners::Partners;
pub use ranking::{Point, Ranking};
pub use record::{Doc, DocBatch, DocId, Pair, Record, Reject, Row};
pub use runs::Runs;
pub use score::{Core2020, Removals, Score};
pub use scratch::{Scratch, Spilled};
pub use similarity::{Overlap, Similarity, jaccard, shared};
pub use sketch::{Counting, Sketch};
pub use spool::Spool;
pub use survivors::{Matches, Member, Removed, Resolve, Tie, survivors};
pub use word::Word;
