//! The summary of a run: counters for people, JSON for machines.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::near::NearCounts;
use runtime::cli::terminal::grouped;
use runtime::output::summary::{InputCounters, InputEntry, write_counters};
use runtime::output::{JobSummary, rejected_words};
use runtime::progress::StageRow;
use runtime::progress::usage::ResourceUsage;

/// Summary of a run of `chunk clean`. It is written to `_SUCCESS` and to `--summary-json`, and its counters to stderr.
#[derive(Debug, Serialize)]
pub(super) struct CleanSummary {
    pub version: &'static str,
    pub configuration: Value,
    pub counters: CleanCounters,
    pub process: ResourceUsage,
    pub seconds: BTreeMap<&'static str, f64>,
    pub stages: Vec<StageRow>,
    pub input: Vec<InputEntry>,
    /// The rule by which records have their places: [`PLACES`](runtime::corpus::plan::PLACES).
    pub places: u32,
}

/// Counters of a run.
#[derive(Debug, Default, Serialize)]
pub(super) struct CleanCounters {
    #[serde(flatten)]
    pub input: InputCounters,
    pub records_read: u64,
    pub text_bytes: u64,
    /// Number of documents whose illegal bytes were read as U+FFFD.
    pub replaced: u64,
    /// Number of units that are not white space.
    pub units: u64,
    /// Number of these that are long enough to be cut.
    pub long_units: u64,
    /// Counts of the search for near units, if there was one.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub near: Option<NearCounts>,
    pub kept: u64,
    /// Number of kept documents with a shorter text.
    pub cut: u64,
    /// Number of units that were cut out of them.
    pub cut_units: u64,
    /// Number of bytes of these units.
    pub cut_bytes: u64,
    /// Number of documents of which nothing would be left.
    pub removed: u64,
    /// Number of bytes of the units of these.
    pub removed_bytes: u64,
    pub rejected: u64,
    /// Number of those that the user wants to leave out.
    #[serde(skip_serializing_if = "runtime::output::summary::is_zero")]
    pub dropped: u64,
}

impl JobSummary for CleanSummary {
    fn result(&self) -> Option<&'static str> {
        Some("kept")
    }

    fn done(&self, rejects: &str) -> String {
        let CleanCounters { kept, cut, records_read, rejected, dropped, .. } = self.counters;
        let [kept, cut, records] = [kept, cut, records_read].map(grouped);
        format!(
            "kept {kept} of {records} documents, {cut} of them with a shorter text{}",
            rejected_words(rejected - dropped, rejects)
        )
    }
}

impl fmt::Display for CleanSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (counters, process) = (&self.counters, &self.process);
        let input = [
            ("Input", "Files", counters.input.input_files),
            ("Input", "Bytes", counters.input.input_bytes),
            ("Input", "Splits", counters.input.splits),
            ("Input", "Records read", counters.records_read),
            ("Input", "Bytes of text", counters.text_bytes),
            ("Input", "Documents with illegal bytes replaced", counters.replaced),
            ("Units", "All", counters.units),
            ("Units", "Long enough to be cut", counters.long_units),
        ];
        let near = counters.near.map_or(Vec::new(), |near| {
            vec![
                ("Units", "  different ones", near.different_units),
                ("Units", "  pairs of these that were compared", near.candidates),
                ("Units", "  near an earlier one that stays, or equal once cleaned", near.near_units),
            ]
        });
        let output = [
            ("Output", "Kept", counters.kept),
            ("Output", "  with a shorter text", counters.cut),
            ("Output", "  units cut out of them", counters.cut_units),
            ("Output", "  bytes of these units", counters.cut_bytes),
            ("Output", "Removed, as nothing would be left", counters.removed),
            ("Output", "  bytes of their units", counters.removed_bytes),
            ("Output", "Rejected", counters.rejected),
            ("Process", "CPU milliseconds", process.cpu_milliseconds),
            ("Process", "Peak bytes of memory", process.peak_memory_bytes),
            ("Process", "Bytes in temporary files", process.spilled_bytes),
        ];
        let values = [&input[..], &near, &output].concat();
        write_counters(f, values.chunk_by(|a, b| a.0 == b.0))
    }
}
