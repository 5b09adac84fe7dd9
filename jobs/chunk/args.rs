//! The command line of `chunk`.

use std::time::Duration;

use super::stats::StatsBy;
use crate::cli::values::paths;

/// Deduplicate below the level of documents
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    pub(super) tool: ChunkTool,
}

/// A tool for blocks, or for a store of them.
#[derive(clap::Subcommand)]
pub(super) enum ChunkTool {
    Clean(Box<super::clean::Args>),
    Compare(Box<super::compare::Args>),
    /// Add files to a store that keeps each piece of content once, as a snapshot
    ///
    /// Files of any kind come back byte for byte. What Word and PDF files compress is compressed anew, so that equal parts
    /// of different versions are stored once.
    Put {
        /// Folder of the store; a new one is made if it is missing or empty
        #[arg(value_name = "STORE", value_parser = paths())]
        store: String,
        /// Files and folders, local, on HDFS or in an object store; hidden files are put too, and links are followed
        #[arg(value_name = "INPUT", required = true, value_parser = paths())]
        inputs: Vec<String>,
    },
    Export(Box<super::export::Args>),
    /// Write the files of a snapshot as they were
    Restore(RestoreArgs),
    /// Print the snapshots of a store, or the files of one
    Ls {
        #[arg(value_name = "STORE", value_parser = paths())]
        store: String,
        /// `latest`, or the beginning of the name of a snapshot
        #[arg(value_name = "SNAPSHOT")]
        snapshot: Option<String>,
        /// Print a JSON line for each
        #[arg(long)]
        json: bool,
    },
    /// Print the bytes that each snapshot has brought, those that go with it, and those of each kind of file
    Stats {
        #[arg(value_name = "STORE", value_parser = paths())]
        store: String,
        /// Print a row for each of these instead
        ///
        /// New chunks are those that it was the first to bring, in the order of the snapshots and of the names in each. Own
        /// chunks are those that nothing else wants: they would go if no snapshot had it. Behind each are the bytes that
        /// the chunks take in packs.
        #[arg(long, value_name = "WHAT")]
        by: Option<StatsBy>,
        /// Print JSON; with --by, a line of it for each row
        #[arg(long)]
        json: bool,
    },
    /// Find what is damaged in a store, and which files of which snapshots cannot be restored because of it
    Check(CheckArgs),
    /// Remove snapshots; prune frees the space
    Forget(ForgetArgs),
    /// Free the space of chunks that no snapshot wants any more
    ///
    /// It may run beside puts: what they might use stays until they have ended.
    Prune(PruneArgs),
}

/// Options of `chunk restore`.
#[derive(clap::Args)]
pub(super) struct RestoreArgs {
    #[arg(value_name = "STORE", value_parser = paths())]
    pub store: String,
    /// Folder that the files are written to; without it, their bytes are printed one after the other
    #[arg(value_name = "FOLDER", value_parser = paths())]
    pub folder: Option<String>,
    /// `latest`, or the beginning of the name of a snapshot
    #[arg(long, value_name = "NAME", default_value = "latest")]
    pub snapshot: String,
    /// Restore only this file, or the files below this folder; may be given several times
    #[arg(long = "name", value_name = "NAME", value_parser = paths())]
    pub names: Vec<String>,
    /// Replace files that exist
    #[arg(long)]
    pub overwrite: bool,
}

/// Options of `chunk check`.
#[derive(clap::Args)]
pub(super) struct CheckArgs {
    #[arg(value_name = "STORE", value_parser = paths())]
    pub store: String,
    /// Read every byte, not only what says where the bytes are
    #[arg(long)]
    pub read_data: bool,
    /// Read every byte, make every file of its chunks, and compare its hash with that of the file that was put
    ///
    /// It takes as long as to restore all snapshots, but a file that several of them share is made once.
    #[arg(long)]
    pub read_files: bool,
}

/// Options of `chunk forget`.
#[derive(clap::Args)]
pub(super) struct ForgetArgs {
    #[arg(value_name = "STORE", value_parser = paths())]
    pub store: String,
    /// `latest`, or the beginning of the name of a snapshot
    #[arg(value_name = "SNAPSHOT")]
    pub snapshots: Vec<String>,
    /// Forget all snapshots but the newest N
    #[arg(long, value_name = "N")]
    pub keep_last: Option<usize>,
    /// Forget snapshots that are older than this, such as 12h or 30d; with --keep-last, only if they are not among these
    #[arg(long, value_name = "AGE", value_parser = humantime::parse_duration)]
    pub older_than: Option<Duration>,
    /// Say what would be forgotten, and forget nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// Options of `chunk prune`.
#[derive(clap::Args)]
pub(super) struct PruneArgs {
    #[arg(value_name = "STORE", value_parser = paths())]
    pub store: String,
    /// Say what would be freed, and free nothing
    #[arg(long)]
    pub dry_run: bool,
}
