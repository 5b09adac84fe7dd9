//! The summary of a run that searches for near-duplicates.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::super::output_job::{JobSummary, rejected_words};
use super::counters::{Counters, InputEntry, write_counters};
use super::findings::{BlockSkew, RejectReason, RemovedShare, SampleCluster, SamplePair};
use crate::cli::terminal::grouped;
use crate::progress::StageRow;
use crate::progress::usage::ResourceUsage;

/// Summary of a run. It is written to `_SUCCESS` and to `--summary-json`, and its counters to stderr.
#[derive(Debug, Serialize)]
pub struct Summary {
    /// Version of the program that ran.
    pub version: &'static str,
    /// Configuration of the run.
    pub configuration: Value,
    /// Counters of the run; all but `candidates` are the same for any number of workers.
    pub counters: Counters,
    /// CPU time and spilled bytes of all processes, and the most memory of one.
    pub process: ResourceUsage,
    /// Number of clusters of each size, in documents.
    pub cluster_sizes: BTreeMap<u64, u64>,
    /// Number of matching pairs of each distance, without identical documents.
    pub pairs_by_distance: BTreeMap<u32, u64>,
    /// Number of these pairs of each similarity, in hundredths, where it was measured.
    pub pairs_by_similarity: BTreeMap<u32, u64>,
    /// Distribution of the rows of each block over buckets and workers.
    pub blocks: Vec<BlockSkew>,
    /// Documents read and removed, by the length of their texts in characters. A run that did not read them has none.
    pub removed_by_length: Vec<RemovedShare>,
    /// The same by the file or folder that they came from, the largest first.
    pub removed_by_source: Vec<RemovedShare>,
    /// Up to 25 pairs, from all over the corpus.
    pub sample_pairs: Vec<SamplePair>,
    /// Up to 25 of the 200 pairs that are the least similar of those that match, the least similar first.
    pub borderline_pairs: Vec<SamplePair>,
    /// The largest clusters, the largest first.
    pub largest_clusters: Vec<SampleCluster>,
    /// Reasons for which records were rejected, the commonest first.
    pub reject_reasons: Vec<RejectReason>,
    /// Seconds that each part of the run took.
    pub seconds: BTreeMap<&'static str, f64>,
    /// Stages of the run, without the commit, which is not done when this is written.
    pub stages: Vec<StageRow>,
    /// Files of the reference, if there is one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reference: Vec<InputEntry>,
    /// Files of the input, in the order of their paths.
    pub input: Vec<InputEntry>,
    /// The rule by which records have their places: [`PLACES`](crate::corpus::plan::PLACES).
    pub places: u32,
    /// Version of the state that a night has made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<Value>,
}

impl Summary {
    /// Whether the run has written no records.
    fn is_dry(&self) -> bool {
        self.configuration["dry-run"] == true
    }

    /// Whether kept and removed records lie together.
    fn is_annotated(&self) -> bool {
        self.configuration["annotate"] == true
    }
}

impl JobSummary for Summary {
    fn result(&self) -> Option<&'static str> {
        (!self.is_dry()).then_some(if self.is_annotated() { "annotated" } else { "kept" })
    }

    fn done(&self, rejects: &str) -> String {
        let Counters { kept, removed, records_read, without_text, dropped, .. } = self.counters;
        let share = 100.0 * removed as f64 / (kept + removed).max(1) as f64;
        let some = |count: u64, words: &str| match count {
            0 => String::new(),
            count => format!(", {} {words}", grouped(count)),
        };
        let others = some(without_text, "without text") + &some(dropped, "dropped");
        let rejected = rejected_words(self.counters.rejected_in_all(), rejects);
        if self.is_annotated() {
            let [all, gone] = [kept + removed, removed].map(grouped);
            return format!(
                "annotated {all} documents: keep is false for {gone} ({share:.1} %){others}{rejected}"
            );
        }
        let [kept, records] = [kept, records_read].map(grouped);
        let verb = if self.is_dry() { "would keep" } else { "kept" };
        format!("{verb} {kept} of {records} documents, {share:.1} % removed{others}{rejected}")
    }

    fn look(&self) -> Option<&'static str> {
        // The pairs of a night name documents of others.
        self.state.is_none().then_some("show")
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (counters, process) = (&self.counters, &self.process);
        let reference = counters.reference.unwrap_or_default();
        let night = counters.night.unwrap_or_default();
        let values = [
            ("Reference", "Files", reference.files),
            ("Reference", "Bytes", reference.bytes),
            ("Reference", "Splits", reference.splits),
            ("Reference", "Documents", reference.documents),
            ("Reference", "Bytes of text", reference.text_bytes),
            ("Reference", "Documents with illegal bytes replaced", reference.replaced),
            ("Reference", "Rejected", reference.rejected),
            ("Input", "Files", counters.input.input_files),
            ("Input", "Bytes", counters.input.input_bytes),
            ("Input", "Splits", counters.input.splits),
            ("Input", "Records read", counters.records_read),
            ("Input", "Bytes of text", counters.text_bytes),
            ("Input", "Documents with illegal bytes replaced", counters.replaced),
            ("Kinds", "Documents of code", counters.code.unwrap_or(0)),
            ("Without text", "Documents of the input, none of which is a duplicate", counters.without_text),
            ("Without text", "Documents of the reference", reference.without_text),
            ("Ignored lines", "Different ones", counters.ignored_lines.unwrap_or(0)),
            ("Ignored lines", "Documents compared without some", counters.shortened.unwrap_or(0)),
            ("Search", "Distinct documents", counters.distinct),
            ("Search", "Candidates", counters.candidates),
            ("Search", "Pairs", counters.pairs),
            ("Search", "Clusters", counters.clusters),
            ("Search", "Documents of the largest", counters.largest_cluster),
            ("Comparisons", "By similarity", counters.comparisons.unwrap_or(0)),
            ("Comparisons", "By a block", counters.block_comparisons.unwrap_or(0)),
            ("Output", "Kept", counters.kept),
            ("Output", "Removed", counters.removed),
            ("Output", "  identical to a kept one", counters.removed_identical),
            ("Output", "  similar to a kept one", counters.removed_similar),
            ("Output", "  tied by a chain", counters.removed_chain),
            ("Output", "Rejected", counters.rejected),
            ("Earlier nights", "Documents withdrawn", night.withdrawn),
            ("Earlier nights", "Decisions corrected", night.corrections),
            ("Process", "CPU milliseconds", process.cpu_milliseconds),
            ("Process", "Peak bytes of memory", process.peak_memory_bytes),
            ("Process", "Bytes spilled to disk", process.spilled_bytes),
        ];
        // Few methods count comparisons, and few runs have a reference.
        let groups = values.chunk_by(|a, b| a.0 == b.0);
        write_counters(f, groups.filter(|group| group.iter().any(|value| value.2 > 0)))?;
        match self.reject_reasons.first() {
            Some(reason) => write!(f, "\n{reason}"),
            None => Ok(()),
        }
    }
}
