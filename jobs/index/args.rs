//! The command line of `index`.

use std::time::Duration;

#[cfg(feature = "cli")]
use clap::builder::RangedU64ValueParser;
use operators::method::Spec;

use super::ids::IdsArgs;
use super::serve::ServeArgs;
#[cfg(feature = "cli")]
use super::topics::topic_name;
#[cfg(feature = "cli")]
use super::view::policy_of_index;
use batch::options::{RefusedLines, Verification};
use nightly::Policy;
#[cfg(feature = "cli")]
use runtime::cli::values::{paths, size};
use runtime::corpus::input::InputOptions;

/// Keep an index of documents, and ask whether near-duplicates of a document are in it
///
/// An index is a local folder, or a table of HBase: hbase://HOST:PORT/TABLE, by its Thrift2 gateway. One process may
/// change a folder at a time, and any number may read it; any number may change a table.
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub struct Args {
    #[cfg_attr(feature = "cli", command(subcommand))]
    pub(super) tool: IndexTool,
}

/// A tool for an index.
#[cfg_attr(feature = "cli", derive(clap::Subcommand))]
pub(super) enum IndexTool {
    /// Make an index of the documents of a corpus, which may be the kept/ of a finished output, or of a nightly state
    ///
    /// An index of a state has all of its documents that are not withdrawn, removed duplicates too, and the method of the
    /// state. Nothing is mapped again, and the age of a document is that of its night.
    Build {
        /// Folder of the new index, or hbase://HOST:PORT/TABLE
        #[cfg_attr(feature = "cli", arg(value_name = "INDEX", value_parser = paths()))]
        index: String,
        #[cfg_attr(feature = "cli", command(flatten))]
        corpus: CorpusArgs,
        /// Method and parameters: auto, minhash, simhash or exact, without weights by rarity [default: auto; of a state, its method]
        ///
        /// The index keeps it, written out, and every document is searched by it.
        #[cfg_attr(feature = "cli", arg(long, value_name = "SPEC"))]
        method: Option<Spec>,
        /// Compare the features of every candidate: jaccard:T, or none [default: as for dedup]
        #[cfg_attr(feature = "cli", arg(long, value_name = "HOW"))]
        verify: Option<Verification>,
        /// Keep no texts: answers are candidates then, and say that they are unverified
        #[cfg_attr(feature = "cli", arg(long, conflicts_with = "verify"))]
        no_text: bool,
    },
    /// Add the documents of a corpus
    ///
    /// Documents with the same id stay beside each other. Every thousandth document at the latest, all that were added
    /// are made durable together.
    Insert {
        #[cfg_attr(feature = "cli", command(flatten))]
        index: IndexArgs,
        #[cfg_attr(feature = "cli", command(flatten))]
        corpus: CorpusArgs,
    },
    /// Ask which documents of the index match those of a corpus, and print one JSON line for each of them
    Query {
        #[cfg_attr(feature = "cli", command(flatten))]
        index: IndexArgs,
        #[cfg_attr(feature = "cli", command(flatten))]
        corpus: CorpusArgs,
        /// Add each document that nothing in the index matches, so that of two new twins one is new
        #[cfg_attr(feature = "cli", arg(long))]
        insert: bool,
        /// Largest number of matches in an answer; "more" counts the others
        #[cfg_attr(feature = "cli", arg(long, value_name = "N", default_value_t = 10))]
        limit: usize,
        /// Largest number of bits in which fingerprints may differ, if less than that of the method
        #[cfg_attr(feature = "cli", arg(long, value_name = "BITS"))]
        within: Option<u32>,
    },
    /// Delete the documents whose ids are in a file
    Delete {
        #[cfg_attr(feature = "cli", command(flatten))]
        index: IndexArgs,
        #[cfg_attr(feature = "cli", command(flatten))]
        ids: IdsArgs,
        /// Topic that the documents are in
        #[cfg_attr(feature = "cli", arg(long, value_name = "NAME", default_value = DEFAULT_TOPIC, value_parser = topic_name))]
        topic: String,
    },
    /// Delete the documents that were added longer ago than some time
    Expire {
        #[cfg_attr(feature = "cli", command(flatten))]
        index: IndexArgs,
        /// Age from which on documents go, such as 90s, 30m, 12h or 30d
        #[cfg_attr(feature = "cli", arg(long, value_name = "AGE", value_parser = humantime::parse_duration))]
        older_than: Duration,
        /// Topic that the documents are in; by default all topics
        #[cfg_attr(feature = "cli", arg(long, value_name = "NAME", value_parser = topic_name))]
        topic: Option<String>,
    },
    /// Print the documents and bytes of each topic
    Stats {
        #[cfg_attr(feature = "cli", command(flatten))]
        index: IndexArgs,
        /// Print JSON
        #[cfg_attr(feature = "cli", arg(long))]
        json: bool,
    },
    /// Read every byte of the index, and compare it with its checksums
    Check {
        #[cfg_attr(feature = "cli", command(flatten))]
        index: IndexArgs,
    },
    /// Merge the files of each topic, and leave out what was deleted or has expired
    Compact {
        #[cfg_attr(feature = "cli", command(flatten))]
        index: IndexArgs,
    },
    /// Print which documents of a topic stay when its near-duplicates go, and the largest clusters
    ///
    /// The same documents stay as by `dedup` of an export with the method of the index. A cluster is a document that stays and those
    /// that go for it.
    View {
        #[cfg_attr(feature = "cli", command(flatten))]
        index: IndexArgs,
        /// Topic that the documents are in
        #[cfg_attr(feature = "cli", arg(long, value_name = "NAME", default_value = DEFAULT_TOPIC, value_parser = topic_name))]
        topic: String,
        #[cfg_attr(feature = "cli", command(flatten))]
        view: ViewArgs,
    },
    /// Print the documents of a topic as JSON lines: id, age, and the cleaned text if the index keeps texts
    Export {
        #[cfg_attr(feature = "cli", command(flatten))]
        index: IndexArgs,
        /// Topic that the documents are in
        #[cfg_attr(feature = "cli", arg(long, value_name = "NAME", default_value = DEFAULT_TOPIC, value_parser = topic_name))]
        topic: String,
        /// Print only those that stay when near-duplicates go, as `index view` says
        #[cfg_attr(feature = "cli", arg(long))]
        kept: bool,
        /// Which of two matching documents stays, as `index view` takes it
        #[cfg_attr(feature = "cli", arg(long, value_name = "WHICH", requires = "kept", value_parser = policy_of_index))]
        policy: Option<Policy>,
    },
    /// Print what an index of more documents would take: bytes, what a query looks at, and machines
    ///
    /// The documents of CORPUS are asked about, and what that takes in the index now is scaled to the number of documents.
    /// This holds as long as later documents resemble each other as much as those of the index do. Ask about documents
    /// that are not in the index.
    Model {
        #[cfg_attr(feature = "cli", command(flatten))]
        index: IndexArgs,
        #[cfg_attr(feature = "cli", command(flatten))]
        corpus: CorpusArgs,
        /// Numbers of documents, separated by commas
        #[cfg_attr(feature = "cli", arg(long, value_name = "N", required = true, value_delimiter = ',',
            value_parser = RangedU64ValueParser::<u64>::new().range(1..)))]
        documents: Vec<u64>,
        /// Bytes that a machine keeps
        #[cfg_attr(feature = "cli", arg(long, value_name = "SIZE", default_value = "1000G", value_parser = size))]
        disk: u64,
        /// Print JSON
        #[cfg_attr(feature = "cli", arg(long))]
        json: bool,
    },
    /// Copy the index to a folder, while another process may change it
    ///
    /// The copy is an index of its own. Files that never change are linked if both folders are on one disk.
    Snapshot {
        /// Folder of the index
        #[cfg_attr(feature = "cli", arg(value_name = "INDEX", value_parser = paths()))]
        index: String,
        /// Folder of the copy, which must not exist or be empty
        #[cfg_attr(feature = "cli", arg(value_name = "FOLDER", value_parser = paths()))]
        folder: String,
    },
    /// Answer over HTTP, and take changes
    ///
    /// GET / is a page for people, and /openapi.json describes the routes.
    Serve(Box<ServeArgs>),
    /// Remove a topic with all of its documents
    Drop {
        #[cfg_attr(feature = "cli", command(flatten))]
        index: IndexArgs,
        /// Topic to be removed
        #[cfg_attr(feature = "cli", arg(long, value_name = "NAME", value_parser = topic_name))]
        topic: String,
    },
}

/// Topic of documents for which none is named.
const DEFAULT_TOPIC: &str = "default";

/// The index that a tool is for.
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub(super) struct IndexArgs {
    /// Folder of the index, or hbase://HOST:PORT/TABLE
    #[cfg_attr(feature = "cli", arg(value_name = "INDEX", value_parser = paths()))]
    pub index: String,
    /// Seconds to wait while another process is changing the index
    #[cfg_attr(feature = "cli", arg(long, value_name = "SECONDS", default_value = "0", value_parser = RangedU64ValueParser::<u64>::new()))]
    pub wait: u64,
}

/// Documents that come to an index.
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub(super) struct CorpusArgs {
    /// Files, folders, globs or comma lists of them, local, on HDFS or in an object store
    #[cfg_attr(feature = "cli", arg(value_name = "CORPUS", required = true, value_parser = paths()))]
    pub inputs: Vec<String>,
    /// Topic of the documents, which are compared with others of the same topic alone
    #[cfg_attr(feature = "cli", arg(long, value_name = "NAME", default_value = DEFAULT_TOPIC, value_parser = topic_name))]
    pub topic: String,
    /// Field that holds a document's priority, a number, by which --policy priority decides which documents stay
    ///
    /// A record without a finite number in the field is rejected. `index export` writes it as the field priority.
    #[cfg_attr(feature = "cli", arg(long, value_name = "FIELD"))]
    pub priority_field: Option<String>,
    #[cfg_attr(feature = "cli", command(flatten))]
    pub input: InputOptions,
    #[cfg_attr(feature = "cli", command(flatten))]
    pub refused: RefusedLines,
}

/// Options of `index view`.
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub(crate) struct ViewArgs {
    /// Document that stays of two that match: old-first, newest, longest (by the cleaned text), or priority (the greatest that was given at
    /// its insertion); of equal ones the first
    #[cfg_attr(feature = "cli", arg(long, value_name = "WHICH", default_value = "old-first", value_parser = policy_of_index))]
    pub policy: Policy,
    /// Print the id of each document that stays, as JSON lines, and nothing else
    #[cfg_attr(feature = "cli", arg(long, conflicts_with_all = ["clusters", "json"]))]
    pub kept: bool,
    /// Number of clusters that are printed, the largest first
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", default_value_t = 10))]
    pub clusters: usize,
    /// Print JSON, with the ids of all documents of these clusters
    #[cfg_attr(feature = "cli", arg(long))]
    pub json: bool,
}
