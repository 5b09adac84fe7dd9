//! The summary of an export: counters for people, JSON for machines.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde_json::Value;

use runtime::cli::terminal::grouped;
use runtime::output::summary::write_plain_counters;
use runtime::output::{JobSummary, rejected_words};
use runtime::progress::StageRow;
use runtime::progress::usage::ResourceUsage;

/// Counts of an export. Those of one split have neither `snapshots` nor `splits`.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct ExportCounters {
    pub snapshots: u64,
    pub splits: u64,
    /// Number of files that were to be exported, and of their bytes.
    pub input_files: u64,
    pub input_bytes: u64,
    /// Number of records that were written, and of the bytes of their texts.
    pub files: u64,
    pub bytes: u64,
    /// Number of files whose illegal bytes were read as U+FFFD.
    pub replaced: u64,
    pub rejected: u64,
}

impl ExportCounters {
    /// Adds the counts of a split.
    pub fn add(&mut self, other: ExportCounters) {
        self.input_files += other.input_files;
        self.input_bytes += other.input_bytes;
        self.files += other.files;
        self.bytes += other.bytes;
        self.replaced += other.replaced;
        self.rejected += other.rejected;
    }
}

/// Summary of an export, as `_SUCCESS` records it.
#[derive(Debug, Serialize)]
pub(super) struct ExportSummary {
    pub version: &'static str,
    pub configuration: Value,
    /// Names of the snapshots that were exported.
    pub snapshots: Vec<String>,
    pub counters: ExportCounters,
    pub process: ResourceUsage,
    pub seconds: BTreeMap<&'static str, f64>,
    pub stages: Vec<StageRow>,
}

impl JobSummary for ExportSummary {
    fn done(&self, rejects: &str) -> String {
        let ExportCounters { files, rejected, .. } = self.counters;
        format!("{} files exported{}", grouped(files), rejected_words(rejected, rejects))
    }
}

impl fmt::Display for ExportSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (counters, process) = (&self.counters, &self.process);
        let values = [
            ("Snapshots", counters.snapshots),
            ("Input files", counters.input_files),
            ("Input bytes", counters.input_bytes),
            ("Files exported", counters.files),
            ("Bytes of text exported", counters.bytes),
            ("Files with illegal bytes replaced", counters.replaced),
            ("Rejected", counters.rejected),
            ("CPU milliseconds", process.cpu_milliseconds),
            ("Peak bytes of memory", process.peak_memory_bytes),
        ];
        write_plain_counters(f, &values)
    }
}
