//! The job `index`: an online index that answers whether a near-duplicate of a document is known.
//!
//! A document is first a record of the write-ahead log (`change.rs`) and a part of a table in memory
//! (`memory_table.rs`). Once many are there, they become a segment (`segment.rs`, `table.rs`), and segments are merged
//! (`merge.rs`). A topic (`topic.rs`, `topic_reader.rs`) has its own segments, and `manifest.rs` names them.
//! `index_folder.rs` opens and changes all of it, and `query.rs` answers. `tools.rs` runs what `args.rs` declares. This
//! room uses `cluster::runs`, `cluster::write_ahead_log` and `corpus`, and of `dedup` the options.

mod args;
mod change;
mod index_folder;
mod load;
mod manifest;
mod memory_table;
mod merge;
mod query;
mod segment;
mod settings;
mod stats;
mod table;
#[cfg(test)]
mod tests;
mod tools;
mod topic;
mod topic_reader;

use anyhow::Result;

use crate::Common;

pub use args::Args;

/// Runs the job; returns 0, 3 if records were rejected, or 1 if a check has found faults.
pub fn run(common: &Common, args: Args) -> Result<u8> {
    args.tool.run(common)
}
