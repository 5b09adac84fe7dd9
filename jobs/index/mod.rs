//! The job `index`: an online index that answers whether a near-duplicate of a document is known.
//!
//! A document is first a record of the write-ahead log and a part of a table in memory, and later a row of the tables
//! of a segment; `topics` has all of this for each topic. `index_folder.rs` opens and changes an index, with the settings
//! that `settings.rs` and `sealed_file.rs` keep, `replay.rs` makes the changes of the log
//! again, and `query.rs` answers. `load.rs` reads documents, and `tools.rs` runs
//! what `args.rs` declares; for an index in HBase, `hbase` does. This room uses `cluster::write_ahead_log` and `corpus`, and of `dedup` the options.

mod args;
mod hbase;
mod index_folder;
mod load;
mod query;
mod replay;
mod sealed_file;
mod settings;
mod stats;
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
