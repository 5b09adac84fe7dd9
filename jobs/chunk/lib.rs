//! The job `chunk`: block-level deduplication.
//!
//! `store` keeps chunks of files and snapshots of them; `put` adds files, `restore.rs` writes them again, `list.rs` and
//! `stats` say what is there, `check.rs` finds damage, and `prune.rs` removes. `export` makes a
//! corpus of a store, `compare` measures block methods, and `clean` cuts out of a corpus what repeats. This crate uses `runtime`
//! and `batch`.

#![cfg_attr(not(feature = "cli"), allow(dead_code, reason = "the command line uses the rest"))]

mod args;
mod check;
mod chunk_use;
mod clean;
mod compare;
mod export;
mod list;
mod name_filter;
mod prune;
mod put;
mod restore;
mod stats;
mod store;
mod trial_restore;

use anyhow::Result;

use runtime::Common;

pub use self::args::{Args, CheckArgs, ChunkTool, ForgetArgs, PruneArgs, RestoreArgs};

/// Runs the job; returns 0, 1 if damage was found or a file could not be restored, or 3 if something was rejected.
pub fn run(common: &Common, args: Args) -> Result<u8> {
    match args.tool {
        ChunkTool::Clean(args) => clean::run(common, *args),
        ChunkTool::Compare(args) => compare::run(common, &args),
        ChunkTool::Export(args) => export::run(common, *args),
        ChunkTool::Put { store, inputs } => put::put(common, &store, &inputs),
        ChunkTool::Restore(args) => restore::restore(common, &args),
        ChunkTool::Ls { store, snapshot, json } => list::list(&store, snapshot.as_deref(), json),
        ChunkTool::Stats { store, by, json } => stats::print_stats(&store, by, json),
        ChunkTool::Check(args) => check::check(&args, common.workers()),
        ChunkTool::Forget(args) => prune::forget(&args, common.progress.quiet),
        ChunkTool::Prune(args) => prune::prune(&args, common.progress.quiet),
    }
}
