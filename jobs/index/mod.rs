//! The job `index`: an online index that answers whether a near-duplicate of a document is known.
//!
//! A document is first a record of the write-ahead log and a part of a table in memory, and later a row of the tables
//! of a segment; `topics` has all of this for each topic.
//!
//! | file | does |
//! |---|---|
//! | `index_folder.rs` | opens an index, with the settings that `settings.rs` and `sealed_file.rs` keep; `replay.rs` makes the changes of the log again |
//! | `prepare.rs`, `changes.rs` | make the keys of documents; insert, delete, expire, drop |
//! | `maintenance.rs` | writes and merges segments |
//! | `load.rs`, `query.rs`, `answer_lines.rs`, `export.rs` | read a corpus, answer, print answers, and read the documents of an index |
//! | `tools`, `serve` | run what `args.rs` declares, and do the same over HTTP |
//! | `hbase` | does it with a table of HBase instead of a folder |
//!
//! This room uses `cluster::write_ahead_log` and `corpus`, and of `dedup` the options.

mod answer_lines;
mod args;
mod changes;
mod export;
mod hbase;
mod index_folder;
mod load;
mod maintenance;
mod prepare;
mod query;
mod replay;
mod sealed_file;
mod serve;
mod settings;
#[cfg(test)]
mod tests;
mod tools;
mod topics;

use anyhow::Result;

use crate::Common;

pub use args::Args;

/// Runs the job; returns 0, 3 if records were rejected, or 1 if a check has found faults.
pub fn run(common: &Common, args: Args) -> Result<u8> {
    match hbase::address(&args.tool) {
        Some(address) => hbase::run(args.tool, common, &address?),
        None => args.tool.run(common),
    }
}
