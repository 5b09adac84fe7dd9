//! Writes documents that are in memory as a segment, while the topic goes on.

use std::sync::Arc;

use anyhow::Result;
use cluster::Store;
use operators::method::KeptKeys;

use super::manifest::SegmentEntry;
use super::memory::MemoryTable;
use super::segment::{SegmentWriter, write_memory};
use super::topic_files::TopicFiles;

/// Documents that no longer change: they become a segment.
pub(crate) struct FrozenTable {
    pub table: MemoryTable,
    /// Number of the first document that the segment may have, and that behind its last one.
    pub first: u64,
    pub end: u64,
    /// Changes with lower numbers in the log are in the segments once this table is one.
    pub next_change: u64,
}

/// The writing of a segment.
pub(crate) struct FlushJob {
    pub(super) store: Arc<dyn Store>,
    pub topic: String,
    pub(super) folder: String,
    pub files: Arc<TopicFiles>,
    pub(super) number: u64,
    pub(super) table: Arc<FrozenTable>,
}

impl FlushJob {
    /// Changes with lower numbers in the log are in the segments of the topic after this flush.
    pub fn next_change(&self) -> u64 {
        self.table.next_change
    }

    /// Writes the files, and makes them durable. Returns the entry of the manifest; `None` without documents. `keys`:
    /// those of the index.
    ///
    /// # Errors
    /// Those of the store, and when the topic is dropped.
    pub fn write(&self, keys: &KeptKeys) -> Result<Option<SegmentEntry>> {
        let FrozenTable { table, first, end, .. } = &*self.table;
        if table.is_empty() {
            return Ok(None);
        }
        self.files.write(|| {
            let writer = SegmentWriter::new(self.store.as_ref(), &self.folder, self.number);
            write_memory(writer, table, keys, (*first, *end)).map(Some)
        })
    }
}
