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
//! This crate uses
//! `cluster::write_ahead_log` and the corpus of `runtime`, of `batch` the options and the search, and of `nightly` the state. A
//! program that has an index of its own uses [`IndexFolder`]: docs/guide/extending.md has one.

#![cfg_attr(
    not(feature = "cli"),
    allow(dead_code, unused_imports, reason = "the command line and the server use the rest")
)]

#[cfg(feature = "cli")]
mod answer_lines;
#[cfg(feature = "cli")]
mod args;
mod changes;
mod export;
mod fingerprints;
#[cfg(feature = "hbase")]
mod hbase;
mod held_folder;
mod hidden_changes;
#[cfg(feature = "cli")]
mod ids;
mod index_folder;
#[cfg(feature = "cli")]
mod load;
mod maintenance;
mod prepare;
mod query;
mod replay;
#[cfg(feature = "cli")]
mod serve;
mod settings;
#[cfg(test)]
mod tests;
#[cfg(feature = "cli")]
mod tools;
mod topics;
#[cfg(feature = "cli")]
mod view;

#[cfg(feature = "cli")]
use anyhow::Result;
#[cfg(feature = "cli")]
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[cfg(feature = "cli")]
use runtime::Common;

#[cfg(feature = "cli")]
pub use args::Args;
pub use index_folder::IndexFolder;
pub use prepare::Preparer;
pub use query::{AnsweredMatch, QueryAnswer, QueryLimits};
pub use topics::PreparedDoc;

/// Runs the job; returns 0, 3 if records were rejected, or 1 if a check has found faults.
#[cfg(feature = "cli")]
pub fn run(common: &Common, args: Args) -> Result<u8> {
    allow_open_files();
    args.tool.run(common)
}

/// Lets the process open as many files as the system allows, because thousands of topics have several each.
#[cfg(feature = "cli")]
fn allow_open_files() {
    let limit = getrlimit(Resource::Nofile);
    // Without it, opening too many is an error with the name of the file.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// The program of the guide, which is compiled and run as a test.
#[cfg(doctest)]
#[doc = include_str!("../../docs/guide/extending.md")]
struct GuideProgram;
