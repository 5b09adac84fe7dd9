//! Findings of a run that its summary lists: samples of pairs and clusters, reasons of rejects, and how the work was shared.

use std::fmt;

use operators::DocId;
use operators::search::PassLoad;
use serde::{Deserialize, Serialize};

use crate::cli::terminal::grouped;

/// Distribution of the rows of one block over buckets and workers.
#[derive(Debug, Serialize)]
pub struct BlockSkew {
    /// Number of rows that arrived at all workers; a row that arrives several times counts each time.
    pub rows: u64,
    /// Number of rows of the commonest key, which is approximate for fingerprints.
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
pub struct SamplePair {
    /// Id of the document that comes first in the corpus.
    pub a: String,
    /// Id of the document that comes later in the corpus.
    pub b: String,
    /// Distance, if the method has one.
    pub distance: Option<u32>,
    /// Similarity from 0 to 1; `None` if it was not measured.
    pub similarity: Option<f64>,
    /// Positions of `a` and `b` in the corpus.
    pub places: (DocId, DocId),
}

/// Cluster with its first documents, for people to look at.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct SampleCluster {
    /// Id of the document that names the cluster.
    pub name: String,
    /// Number of its documents.
    pub size: u64,
    /// Some of them.
    pub members: Vec<SampleMember>,
}

/// Document of a cluster.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct SampleMember {
    /// Id of the document.
    pub id: String,
    /// Position of the document in the corpus, by which its text is found again.
    pub place: DocId,
    /// Whether the document stays.
    pub kept: bool,
}

/// Documents of one class, and how many of them were removed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct RemovedShare {
    /// Name of the class: a range of characters, a file, a folder or a date.
    pub name: String,
    /// Number of documents of the class, those that stay and those that go.
    pub documents: u64,
    /// Number of these documents that were removed.
    pub removed: u64,
}

/// Records that were rejected for reasons that differ in numbers alone, with the last of them.
#[derive(Debug, Deserialize, Serialize)]
pub struct RejectReason {
    /// Number of records that were rejected for the reason.
    pub records: u64,
    /// Reason of the last of these records, with its numbers and without its line.
    pub reason: String,
    /// Path of the file that has this record.
    pub uri: String,
    /// Offset of this record in decompressed bytes, or its row or number if the reason says so.
    pub offset: u64,
    /// First bytes of this record as text, at most 80.
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
pub fn skew(loads: &[Vec<PassLoad>]) -> Vec<BlockSkew> {
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
