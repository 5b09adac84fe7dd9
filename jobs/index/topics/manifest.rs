//! The manifest of a topic: its segments, and where they end.

use std::collections::BTreeMap;

use cluster::runs::RunSummary;
use serde::{Deserialize, Serialize};

use super::table::IndexTable;
use crate::fingerprints::FingerprintSummary;

/// Name of the file.
pub(crate) const MANIFEST: &str = "manifest.json";

/// Name of a file of fingerprints, without its ending.
pub(crate) const FINGERPRINTS: &str = "fingerprints";

/// The state of a topic on disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct TopicManifest {
    /// Number behind the last document that is in a segment.
    pub end: u64,
    /// Documents with lower numbers have expired.
    pub oldest: u64,
    /// Changes of the topic with lower numbers in the log are in the segments.
    pub flushed: u64,
    /// Number in the log of the change that the topic was begun before, by which one that was dropped and begun anew is told from it; 0 if
    /// an earlier program has made it.
    #[serde(default)]
    pub begun: u64,
    /// Time of the last document, in seconds since 1970.
    pub last_time: u64,
    /// Number of the next segment.
    pub next_segment: u64,
    /// Segments in the order of their documents.
    pub segments: Vec<SegmentEntry>,
    /// Documents of segments that were deleted and whose rows are not gone yet, sorted.
    pub deleted: Vec<u64>,
}

/// Files of a segment: some documents of a topic that follow each other.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct SegmentEntry {
    /// Number of the segment, which is the name of its folder.
    pub number: u64,
    /// Number of its first document, and that behind its last one.
    pub first: u64,
    pub end: u64,
    /// Number of documents that it has.
    pub documents: u64,
    pub tables: BTreeMap<IndexTable, RunSummary>,
    /// The file of fingerprints that the table of keys is replaced by, if fingerprints have four blocks.
    pub fingerprints: Option<FingerprintSummary>,
}

impl SegmentEntry {
    /// Returns the number of bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files().map(|(_, bytes)| bytes).sum()
    }

    /// Returns the name of each file without its ending, and its length.
    pub fn files(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let tables = self.tables.iter().map(|(table, summary)| (table.name(), summary.bytes));
        tables.chain(self.fingerprints.iter().map(|summary| (FINGERPRINTS, summary.bytes)))
    }
}
