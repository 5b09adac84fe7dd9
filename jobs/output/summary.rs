//! The summary of a run: counters for people, JSON for machines.

use std::collections::BTreeMap;
use std::fmt;

use cluster::InputFile;
use operators::DocId;
use operators::search::PassLoad;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::output_job::{JobSummary, rejected_words};
use crate::cli::terminal::grouped;
use crate::corpus::plan::Plan;
use crate::progress::StageRow;
use crate::progress::usage::ResourceUsage;

/// Summary of a run. It is written to `_SUCCESS` and to `--summary-json`, and its counters to stderr.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    pub version: &'static str,
    /// Configuration of the run.
    pub configuration: Value,
    pub counters: Counters,
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
    pub input: Vec<InputEntry>,
    /// The rule by which records have their places: [`PLACES`](crate::corpus::plan::PLACES).
    pub places: u32,
    /// Version of the state that a night has made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<Value>,
}

/// File of the input.
#[derive(Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct InputEntry {
    pub uri: String,
    pub bytes: u64,
}

impl InputEntry {
    pub fn of(file: &InputFile) -> Self {
        InputEntry { uri: file.full_path(), bytes: file.bytes }
    }
}

/// Counters of the files of an input, without those of a reference.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(crate) struct InputCounters {
    pub input_files: u64,
    pub input_bytes: u64,
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

/// Distribution of the rows of one block over buckets and workers.
#[derive(Debug, Serialize)]
pub(crate) struct BlockSkew {
    pub rows: u64,
    pub largest_bucket: u64,
    /// Number of rows of the worker that had the most.
    pub most_rows_of_a_worker: u64,
    /// Number of pairs that all workers compared.
    pub compared: u64,
    /// Number of pairs that the worker with the most compared.
    pub most_compared_by_a_worker: u64,
}

/// Pair of documents, for people to look at.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct SamplePair {
    pub a: String,
    pub b: String,
    /// Distance, if the method has one.
    pub distance: Option<u32>,
    pub similarity: Option<f64>,
    /// Positions of `a` and `b` in the corpus.
    pub places: (DocId, DocId),
}

/// Cluster with its first documents, for people to look at.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct SampleCluster {
    pub name: String,
    /// Number of its documents.
    pub size: u64,
    /// Some of them.
    pub members: Vec<SampleMember>,
}

/// Document of a cluster.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct SampleMember {
    pub id: String,
    pub place: DocId,
    pub kept: bool,
}

/// Documents of one class, and how many of them were removed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct RemovedShare {
    pub name: String,
    pub documents: u64,
    pub removed: u64,
}

/// Records that were rejected for reasons that differ in numbers alone, with the last of them.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct RejectReason {
    pub records: u64,
    pub reason: String,
    pub uri: String,
    pub offset: u64,
    pub head: String,
}

impl fmt::Display for RejectReason {
    /// Writes the reason on one line, with its example.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RejectReason { records, reason, uri, offset, head } = self;
        let head: String = head.chars().take(60).collect();
        let (reason, unit) = match reason.split_once("; the offset is the ") {
            Some((reason, what)) if what.starts_with("row") => (reason, "row"),
            Some((reason, _)) => (reason, "record"),
            None => (reason.as_str(), "byte"),
        };
        let begins = if head.is_empty() { String::new() } else { format!(": {head}") };
        let line = format!(
            "the commonest reason of rejects ({}): {reason}; for example {uri} at {unit} {offset}{begins}",
            grouped(*records)
        );
        f.write_str(&cluster::one_line(&line))
    }
}

/// Sums up the loads of all workers, block by block.
pub(crate) fn skew(loads: &[Vec<PassLoad>]) -> Vec<BlockSkew> {
    let blocks = loads.first().map_or(0, Vec::len);
    let block = |block: usize| {
        let of_workers = || loads.iter().map(move |worker| worker[block]);
        BlockSkew {
            rows: of_workers().map(|load| load.records).sum(),
            largest_bucket: of_workers().map(|load| load.largest_bucket).max().unwrap_or(0),
            most_rows_of_a_worker: of_workers().map(|load| load.records).max().unwrap_or(0),
            compared: of_workers().map(|load| load.compared).sum(),
            most_compared_by_a_worker: of_workers().map(|load| load.compared).max().unwrap_or(0),
        }
    };
    (0..blocks).map(block).collect()
}

/// Counters of what was read of a reference.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(crate) struct ReferenceCounters {
    pub files: u64,
    pub bytes: u64,
    pub splits: u64,
    /// Number of documents, without rejected records.
    pub documents: u64,
    pub text_bytes: u64,
    /// Number of documents whose illegal bytes were read as U+FFFD.
    pub replaced: u64,
    /// Number of documents without text.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub without_text: u64,
    pub rejected: u64,
}

/// Counters of what a night has done to earlier nights.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(crate) struct NightCounters {
    /// Number of documents that were withdrawn.
    pub withdrawn: u64,
    /// Number of earlier decisions that have changed.
    pub corrections: u64,
}

/// Counters of a run. Those of records and documents are of the input alone.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct Counters {
    /// Counters of the reference, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<ReferenceCounters>,
    /// Counters of a night, if the run is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub night: Option<NightCounters>,
    #[serde(flatten)]
    pub input: InputCounters,
    pub records_read: u64,
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
    pub distinct: u64,
    pub candidates: u64,
    /// Number of comparisons of two documents by their similarity, if the method counts them.
    pub comparisons: Option<u64>,
    /// Number of comparisons of two documents by a block of their fingerprints, if the method counts them.
    pub block_comparisons: Option<u64>,
    pub pairs: u64,
    pub clusters: u64,
    pub largest_cluster: u64,
    pub kept: u64,
    pub removed: u64,
    pub removed_identical: u64,
    pub removed_similar: u64,
    pub removed_chain: u64,
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
    fn rejected_in_all(&self) -> u64 {
        self.rejected + self.reference.map_or(0, |reference| reference.rejected) - self.dropped
    }

    /// Whether records of either side were rejected, without those that the user wants to leave out.
    pub fn any_rejected(&self) -> bool {
        self.rejected_in_all() > 0
    }
}

pub(crate) fn is_zero(count: &u64) -> bool {
    *count == 0
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

/// A counter as people see it: the group that it is in, its name, and its value.
pub(crate) type CounterLine<'a> = (&'a str, &'a str, u64);

/// Writes counters that are in no groups: a name and a value each.
pub(crate) fn write_plain_counters(f: &mut fmt::Formatter<'_>, counters: &[(&str, u64)]) -> fmt::Result {
    f.write_str("Counters")?;
    counters.iter().try_for_each(|(name, value)| write!(f, "\n    {name}={value}"))
}

/// Writes counters, group by group.
pub(crate) fn write_counters<'a>(
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
