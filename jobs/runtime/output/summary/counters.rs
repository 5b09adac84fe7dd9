//! Counters of a run, and how people see them.

use std::fmt;

use cluster::InputFile;
use serde::{Deserialize, Serialize};

use crate::corpus::plan::Plan;

/// File of the input.
#[derive(Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct InputEntry {
    /// Path of the file with the prefix of its store, as messages show it.
    pub uri: String,
    /// Length of the file in bytes, compressed if it is.
    pub bytes: u64,
}

impl InputEntry {
    /// Returns the entry of a file of the plan.
    pub fn of(file: &InputFile) -> Self {
        InputEntry { uri: file.full_path(), bytes: file.bytes }
    }
}

/// Counters of the files of an input, without those of a reference.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub struct InputCounters {
    /// Number of files of the input.
    pub input_files: u64,
    /// Length of these files in bytes, compressed if they are.
    pub input_bytes: u64,
    /// Number of splits that the files were cut into.
    pub splits: u64,
}

impl InputCounters {
    /// Counts the files of a plan.
    pub fn of(plan: &Plan) -> Self {
        let (_, files) = plan.files_by_side();
        InputCounters {
            input_files: files.len() as u64,
            input_bytes: files.iter().map(|file| file.bytes).sum(),
            splits: plan.input_splits().len() as u64,
        }
    }
}

/// Counters of what was read of a reference.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub struct ReferenceCounters {
    /// Number of files of the reference.
    pub files: u64,
    /// Length of these files in bytes, compressed if they are.
    pub bytes: u64,
    /// Number of splits that these files were cut into.
    pub splits: u64,
    /// Number of documents, without rejected records.
    pub documents: u64,
    /// Length of the texts of these documents before they are cleaned, in bytes of UTF-8.
    pub text_bytes: u64,
    /// Number of documents whose illegal bytes were read as U+FFFD.
    pub replaced: u64,
    /// Number of documents without text.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub without_text: u64,
    /// Number of rejected records of the reference, with those that the user wants to leave out.
    pub rejected: u64,
}

/// Counters of what a night has done to earlier nights.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub struct NightCounters {
    /// Number of documents that were withdrawn.
    pub withdrawn: u64,
    /// Number of earlier decisions that have changed.
    pub corrections: u64,
}

/// Counters of a run. Those of records and documents are of the input alone.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct Counters {
    /// Counters of the reference, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<ReferenceCounters>,
    /// Counters of a night, if the run is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub night: Option<NightCounters>,
    /// Counters of the files of the input, which are recorded beside the others.
    #[serde(flatten)]
    pub input: InputCounters,
    /// Number of records, rejected ones included.
    pub records_read: u64,
    /// Length of the texts of the documents before they are cleaned, in bytes of UTF-8.
    pub text_bytes: u64,
    /// Number of documents whose illegal bytes were read as U+FFFD.
    pub replaced: u64,
    /// Number of documents without text, which are kept: none is a duplicate of another one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub without_text: u64,
    /// Number of documents of code, if the method reads code in its own way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<u64>,
    /// Number of lines that were left out of the comparison, if there is a list of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignored_lines: Option<u64>,
    /// Number of documents of both sides that were compared without some of their lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shortened: Option<u64>,
    /// Number of documents without those that are identical to an earlier one.
    pub distinct: u64,
    /// Number of pairs that the search found, before they were verified.
    pub candidates: u64,
    /// Number of comparisons of two documents by their similarity, if the method counts them.
    pub comparisons: Option<u64>,
    /// Number of comparisons of two documents by a block of their fingerprints, if the method counts them.
    pub block_comparisons: Option<u64>,
    /// Number of rows of `pairs/`.
    pub pairs: u64,
    /// Number of clusters of two or more documents.
    pub clusters: u64,
    /// Number of documents of the largest cluster; 0 if there is none.
    pub largest_cluster: u64,
    /// Number of documents that stay.
    pub kept: u64,
    /// Number of documents that go, which is the sum of the next three.
    pub removed: u64,
    /// Number of documents that go because they are identical to one that stays.
    pub removed_identical: u64,
    /// Number of documents that go because they match one that stays and is not identical.
    pub removed_similar: u64,
    /// Number of documents that go because a chain of matches ties them to one that stays.
    pub removed_chain: u64,
    /// Number of rejected records, with those that the user wants to leave out.
    pub rejected: u64,
    /// Number of rejected records, of both sides, that the user wants to leave out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped: u64,
}

impl Counters {
    /// Returns the number of documents to be removed, once they are counted.
    pub fn to_remove(&self) -> u64 {
        self.removed_identical + self.removed_similar + self.removed_chain
    }

    /// Returns the number of records of both sides that were rejected, without those that the user wants to leave out.
    pub fn rejected_in_all(&self) -> u64 {
        self.rejected + self.reference.map_or(0, |reference| reference.rejected) - self.dropped
    }

    /// Whether records of either side were rejected, without those that the user wants to leave out.
    pub fn any_rejected(&self) -> bool {
        self.rejected_in_all() > 0
    }
}

/// Whether a counter is 0, for fields that `_SUCCESS` leaves out then.
pub fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A counter as people see it: the group that it is in, its name, and its value.
pub(crate) type CounterLine<'a> = (&'a str, &'a str, u64);

/// Writes counters that are in no groups: a name and a value each.
pub fn write_plain_counters(f: &mut fmt::Formatter<'_>, counters: &[(&str, u64)]) -> fmt::Result {
    f.write_str("Counters")?;
    counters.iter().try_for_each(|(name, value)| write!(f, "\n    {name}={value}"))
}

/// Writes counters, group by group.
pub fn write_counters<'a>(
    f: &mut fmt::Formatter<'_>,
    groups: impl IntoIterator<Item = &'a [CounterLine<'a>]>,
) -> fmt::Result {
    f.write_str("Counters")?;
    for group in groups {
        write!(f, "\n    {}", group[0].0)?;
        group.iter().try_for_each(|(_, name, value)| write!(f, "\n        {name}={value}"))?;
    }
    Ok(())
}
