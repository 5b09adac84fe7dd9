//! The job `index`: an online index that answers whether a near-duplicate of a document is known.
//!
//! A document is first a record of the write-ahead log and a part of a table in memory, and later a row of the tables
//! of a segment; `topics` has all of this for each topic.
//!
//! | file | does |
//! |---|---|
//! | `index_folder.rs` | opens an index, with the settings that `settings.rs` keeps; `replay.rs` makes the changes of the log again |
//! | `held_folder.rs` | locks the folder, and keeps changes away from another one that has taken its name |
//! | `prepare.rs`, `changes.rs` | make the keys of documents; insert, delete, expire, drop |
//! | `hidden_changes.rs` | keeps changes of a served index from readers until they are durable, and tells a follower then |
//! | `maintenance.rs` | writes and merges segments |
//! | `ids.rs` | reads the ids of documents that are to be deleted |
//! | `load.rs`, `query.rs`, `answer_lines.rs`, `export.rs` | read a corpus, answer, print answers, and read the documents of an index |
//! | `view` | decides which documents of a topic stay |
//! | `fingerprints` | keeps the fingerprints of a segment so that near ones lie together |
//! | `tools`, `serve` | run what `args.rs` declares, and do the same over HTTP |
//! | `hbase` | does it with a table of HBase instead of a folder |
//!
//! This room uses `cluster::write_ahead_log` and `corpus`, and of `dedup` the options. A program that has an index of its
//! own uses [`IndexFolder`]:
//!
//! ```
//! use jobs::index::{IndexFolder, Preparer, QueryLimits};
//! use operators::DocBatch;
//!
//! let folder = tempfile::tempdir()?;
//! let mut index = IndexFolder::create(&folder.path().to_string_lossy(), &"auto".parse()?, true)?;
//! let mut batch = DocBatch::new(0, 0);
//! batch.push("poem", "春眠不觉晓，处处闻啼鸟。夜来风雨声，花落知多少。");
//! let docs = Preparer::of(&index).prepare(&batch);
//! let (now, limits) = (1_800_000_000, QueryLimits { matches: 10, within: None });
//! assert_eq!(index.query_and_insert("poems", &docs[0], limits, now)?.new, Some(true));
//! index.commit()?;
//! assert_eq!(index.query("poems", &docs[0], limits, now)?.matches[0].id, "poem");
//! # anyhow::Ok(())
//! ```

mod answer_lines;
mod args;
mod changes;
mod export;
mod fingerprints;
mod hbase;
mod held_folder;
mod hidden_changes;
mod ids;
mod index_folder;
mod load;
mod maintenance;
mod prepare;
mod query;
mod replay;
mod serve;
mod settings;
#[cfg(test)]
mod tests;
mod tools;
mod topics;
mod view;

use anyhow::Result;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::Common;

pub use args::Args;
pub use index_folder::IndexFolder;
pub use prepare::Preparer;
pub use query::{AnsweredMatch, QueryAnswer, QueryLimits};
pub use topics::PreparedDoc;

/// Runs the job; returns 0, 3 if records were rejected, or 1 if a check has found faults.
pub fn run(common: &Common, args: Args) -> Result<u8> {
    allow_open_files();
    match hbase::address(&args.tool) {
        Some(address) => hbase::run(args.tool, common, &address?),
        None => args.tool.run(common),
    }
}

/// Lets the process open as many files as the system allows, because thousands of topics have several each.
fn allow_open_files() {
    let limit = getrlimit(Resource::Nofile);
    // Without it, opening too many is an error with the name of the file.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}
