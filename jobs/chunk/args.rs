//! The command line of `chunk`.

use std::time::Duration;

use super::stats::StatsBy;
#[cfg(feature = "cli")]
use runtime::cli::values::paths;

/// Deduplicate below the level of documents
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub struct Args {
    /// Tool that the user has named behind `chunk`, with its own options.
    #[cfg_attr(feature = "cli", command(subcommand))]
    pub tool: ChunkTool,
}

/// A tool for blocks, or for a store of them.
#[cfg_attr(feature = "cli", derive(clap::Subcommand))]
pub enum ChunkTool {
    #[expect(missing_docs, reason = "its arguments have the help")]
    Clean(Box<super::clean::Args>),
    #[expect(missing_docs, reason = "its arguments have the help")]
    Compare(Box<super::compare::Args>),
    /// Add files to a store that keeps each piece of content once, as a snapshot
    ///
    /// Files of any kind come back byte for byte. What Word and PDF files compress is compressed anew, so that equal parts
    /// of different versions are stored once.
    Put {
        /// Folder of the store; a new one is made if it is missing or empty
        #[cfg_attr(feature = "cli", arg(value_name = "STORE", value_parser = paths()))]
        store: String,
        /// Files and folders, local, on HDFS or in an object store; hidden files are put too, and links are followed
        #[cfg_attr(feature = "cli", arg(value_name = "INPUT", required = true, value_parser = paths()))]
        inputs: Vec<String>,
    },
    #[expect(missing_docs, reason = "its arguments have the help")]
    Export(Box<super::export::Args>),
    /// Write the files of a snapshot as they were
    Restore(RestoreArgs),
    /// Print the snapshots of a store, or the files of one
    Ls {
        /// Folder of the store
        #[cfg_attr(feature = "cli", arg(value_name = "STORE", value_parser = paths()))]
        store: String,
        /// `latest`, or the beginning of the name of a snapshot
        #[cfg_attr(feature = "cli", arg(value_name = "SNAPSHOT"))]
        snapshot: Option<String>,
        /// Print a JSON line for each
        #[cfg_attr(feature = "cli", arg(long))]
        json: bool,
    },
    /// Print the bytes that each snapshot has brought, those that go with it, and those of each kind of file
    Stats {
        /// Folder of the store
        #[cfg_attr(feature = "cli", arg(value_name = "STORE", value_parser = paths()))]
        store: String,
        /// Print a row for each of these instead
        ///
        /// New chunks are those that it was the first to bring, in the order of the snapshots and of the names in each. Own
        /// chunks are those that nothing else wants: they would go if no snapshot had it. Behind each are the bytes that
        /// the chunks take in packs.
        #[cfg_attr(feature = "cli", arg(long, value_name = "WHAT"))]
        by: Option<StatsBy>,
        /// Print JSON; with --by, a line of it for each row
        #[cfg_attr(feature = "cli", arg(long))]
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
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub struct RestoreArgs {
    /// Folder of the store
    #[cfg_attr(feature = "cli", arg(value_name = "STORE", value_parser = paths()))]
    pub store: String,
    /// Folder that the files are written to; without it, their bytes are printed one after the other
    #[cfg_attr(feature = "cli", arg(value_name = "FOLDER", value_parser = paths()))]
    pub folder: Option<String>,
    /// `latest`, or the beginning of the name of a snapshot
    #[cfg_attr(feature = "cli", arg(long, value_name = "NAME", default_value = "latest"))]
    pub snapshot: String,
    /// Restore only this file, or the files below this folder; may be given several times
    #[cfg_attr(feature = "cli", arg(long = "name", value_name = "NAME", value_parser = paths()))]
    pub names: Vec<String>,
    /// Replace files that exist
    #[cfg_attr(feature = "cli", arg(long))]
    pub overwrite: bool,
}

/// Options of `chunk check`.
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub struct CheckArgs {
    /// Folder of the store
    #[cfg_attr(feature = "cli", arg(value_name = "STORE", value_parser = paths()))]
    pub store: String,
    /// Read every byte, not only what says where the bytes are
    #[cfg_attr(feature = "cli", arg(long))]
    pub read_data: bool,
    /// Read every byte, make every file of its chunks, and compare its hash with that of the file that was put
    ///
    /// It takes as long as to restore all snapshots, but a file that several of them share is made once.
    #[cfg_attr(feature = "cli", arg(long))]
    pub read_files: bool,
}

/// Options of `chunk forget`.
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub struct ForgetArgs {
    /// Folder of the store
    #[cfg_attr(feature = "cli", arg(value_name = "STORE", value_parser = paths()))]
    pub store: String,
    /// `latest`, or the beginning of the name of a snapshot
    #[cfg_attr(feature = "cli", arg(value_name = "SNAPSHOT"))]
    pub snapshots: Vec<String>,
    /// Forget all snapshots but the newest N
    #[cfg_attr(feature = "cli", arg(long, value_name = "N"))]
    pub keep_last: Option<usize>,
    /// Forget snapshots that are older than this, such as 12h or 30d; with --keep-last, only if they are not among these
    #[cfg_attr(feature = "cli", arg(long, value_name = "AGE", value_parser = humantime::parse_duration))]
    pub older_than: Option<Duration>,
    /// Say what would be forgotten, and forget nothing
    #[cfg_attr(feature = "cli", arg(long))]
    pub dry_run: bool,
}

/// Options of `chunk prune`.
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub struct PruneArgs {
    /// Folder of the store
    #[cfg_attr(feature = "cli", arg(value_name = "STORE", value_parser = paths()))]
    pub store: String,
    /// Say what would be freed, and free nothing
    #[cfg_attr(feature = "cli", arg(long))]
    pub dry_run: bool,
}
