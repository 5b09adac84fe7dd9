//! The manifest of a version of a state: what it was made by, its nights, and its files.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use cluster::runs::RunSummary;
use serde::{Deserialize, Serialize};

use super::table::StateTable;
use runtime::cli::exit::WrongUse;

/// Version of the format of a state. Since 2, documents have a priority.
pub const FORMAT: u32 = 5;

/// Settings that all nights of a state must have in common.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Pinned {
    /// Method with all parameters.
    pub method: String,
    /// Verification of matching fingerprints; empty if the method measures similarity itself.
    pub verify: String,
    /// Policy: which of two matching documents stays.
    pub policy: String,
    /// Hash of the user's stop words and dictionary.
    pub words: String,
}

/// A night: some documents that were added or withdrawn together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct NightEntry {
    /// Name of the night, which no other night of the state has.
    pub name: String,
    /// Output folder.
    pub output: String,
    /// Hash of the input files with their lengths, and of the list of withdrawn documents.
    pub input: String,
    /// Version of the state that the night has made.
    pub version: u64,
    /// Number of its first document, and that behind its last one.
    pub first: u64,
    /// Number behind its last document, from which on later nights have theirs.
    pub end: u64,
    /// Number of documents that it read, without rejected records: `kept` and `removed` together.
    pub documents: u64,
    /// Number of its documents that stayed when it was committed.
    pub kept: u64,
    /// Number of its documents that were removed when it was committed.
    pub removed: u64,
    /// Number of its rejected records, with those that the user wants to leave out.
    pub rejected: u64,
    /// Documents that were withdrawn.
    pub withdrawn: u64,
    /// Earlier decisions that have changed.
    pub corrections: u64,
}

/// A file of the state.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct RunEntry {
    /// Table that the rows of the file belong to.
    pub table: StateTable,
    /// Version that has written the file. Rows of later versions count.
    pub version: u64,
    /// Path below the folder of the state.
    pub file: String,
    /// Number of rows, length in bytes and first and last key, by which the file is opened.
    pub summary: RunSummary,
}

/// A file with corpus statistics.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct StatisticsFile {
    /// Path below the folder of the state.
    pub file: String,
    /// BLAKE3 hash of its bytes, in hexadecimal.
    pub blake3: String,
}

/// A version of a state. It is written once and never changed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct StateManifest {
    /// Version of the format that the state is written in; programs read `FORMAT` alone.
    pub format: u32,
    /// Number of the version, which is also the name of its file; 0 before the first night.
    pub version: u64,
    /// Version of the program that wrote it.
    pub program: String,
    /// Settings of the first night, which every later night must have too.
    pub pinned: Pinned,
    /// Secret by which texts are hashed to find equal ones.
    pub secret: [u64; 2],
    /// Corpus statistics that the method weighs features by.
    pub statistics: Option<StatisticsFile>,
    /// Night that has made the version, or the reason for it, such as `compact`.
    pub made_by: String,
    /// Oldest version that may stay: earlier ones hold what a compaction has erased.
    #[serde(default)]
    pub oldest: u64,
    /// Number behind the last document, withdrawn and rejected ones included.
    pub end: u64,
    /// Nights that the version is made of, the oldest first.
    pub nights: Vec<NightEntry>,
    /// Nights that a repair has taken out, because their files were damaged, and that it has yet to run again.
    #[serde(default)]
    pub lost: Vec<NightEntry>,
    /// Files, the oldest first.
    pub runs: Vec<RunEntry>,
}

impl StateManifest {
    /// Makes the manifest of a state without documents.
    pub fn empty(pinned: Pinned, secret: [u64; 2]) -> Self {
        StateManifest {
            format: FORMAT,
            version: 0,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            pinned,
            secret,
            statistics: None,
            made_by: String::new(),
            oldest: 0,
            end: 0,
            nights: Vec::new(),
            lost: Vec::new(),
            runs: Vec::new(),
        }
    }

    /// Returns an error that names the first difference if the state was made by other means than `asked`.
    pub fn check_pinned(&self, uri: &str, asked: &Pinned) -> Result<()> {
        let pinned = &self.pinned;
        let values = [
            ("the method", &pinned.method, &asked.method),
            ("--verify", &pinned.verify, &asked.verify),
            ("--policy", &pinned.policy, &asked.policy),
            ("the hash of stop words and user dictionary", &pinned.words, &asked.words),
        ];
        match values.into_iter().find(|(_, ours, asked)| ours != asked) {
            Some((name, ours, asked)) => bail!(WrongUse(format!(
                "the state \"{uri}\" was made with another configuration: {name} is \"{ours}\" there and \"{asked}\" here"
            ))),
            None => Ok(()),
        }
    }

    /// Returns an error if the state has lost nights to damage, unless `night` is the first of them, with the input
    /// that it had.
    pub fn check_complete(&self, uri: &str, night: &str, input: &str) -> Result<()> {
        match self.lost.first().filter(|lost| (&*lost.name, &*lost.input) != (night, input)) {
            Some(lost) => bail!(WrongUse(format!(
                "the state \"{uri}\" has lost the night \"{}\" to damage: get it back with nightly check --repair, or give it \
                 up with nightly rollback",
                lost.name
            ))),
            None => Ok(()),
        }
    }

    /// Returns a warning if the state has lost nights to damage.
    pub fn warning_of_lost(&self) -> Option<String> {
        let lost = self.lost.first()?;
        Some(format!(
            "the state has lost the night \"{}\" to damage: its documents and those of later nights are missing",
            lost.name
        ))
    }

    /// Returns the night that has a document.
    pub fn night_of(&self, number: u64) -> Option<&NightEntry> {
        let at = self.nights.partition_point(|night| night.end <= number);
        self.nights.get(at).filter(|night| night.first <= number)
    }

    /// Returns the files of a table, the oldest first.
    pub fn runs_of(&self, table: StateTable) -> impl DoubleEndedIterator<Item = &RunEntry> {
        self.runs.iter().filter(move |run| run.table == table)
    }

    /// Returns the paths of all files, below the folder of the state.
    pub fn files(&self) -> BTreeSet<&str> {
        self.runs
            .iter()
            .map(|run| run.file.as_str())
            .chain(self.statistics.iter().map(|of| &*of.file))
            .collect()
    }
}
