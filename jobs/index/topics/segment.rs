//! Segments: the files of some documents of a topic, which never change.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use anyhow::Result;
use cluster::Store;
use cluster::runs::{RunCursor, RunReader, RunSummary, RunWriter};
use operators::method::KeptKeys;
use parking_lot::Mutex;

use super::manifest::{FINGERPRINTS, SegmentEntry};
use super::memory::{MemoryDoc, MemoryKey, MemoryTable, MemoryText};
use super::table::IndexTable;
use crate::fingerprints::{FingerprintFile, FingerprintScratch, FingerprintSummary, FingerprintWriter};
use nightly::state::key_of_id;

/// A segment, whose files are opened when they are first wanted.
pub(crate) struct Segment {
    store: Arc<dyn Store>,
    /// Folder of the topic.
    folder: String,
    pub entry: SegmentEntry,
    files: OnceLock<SegmentFiles>,
    /// Cursors that nobody uses just now. A new one costs more than a query of few documents.
    idle: Mutex<Vec<SegmentCursors>>,
}

/// The open files of a segment.
pub(crate) struct SegmentFiles {
    readers: BTreeMap<IndexTable, RunReader>,
    /// Its fingerprints, if they have four blocks; the keys are in a run else.
    pub fingerprints: Option<FingerprintFile>,
}

/// Largest number of cursors that are kept for later.
const MOST_IDLE: usize = 64;

impl Segment {
    /// Makes the segment of a topic in `folder`. This opens nothing.
    pub fn new(store: &Arc<dyn Store>, folder: &str, entry: SegmentEntry) -> Arc<Self> {
        let store = Arc::clone(store);
        let folder = folder.to_owned();
        Arc::new(Segment { store, folder, entry, files: OnceLock::new(), idle: Mutex::default() })
    }

    /// Returns the files. The first call opens them.
    ///
    /// # Errors
    /// Those of the store, and [`cluster::Error::Damaged`].
    pub fn files(&self) -> Result<&SegmentFiles> {
        if let Some(files) = self.files.get() {
            return Ok(files);
        }
        let files = SegmentFiles::open(self.store.as_ref(), &self.folder, &self.entry)?;
        Ok(self.files.get_or_init(|| files))
    }

    /// Returns a cursor for each table, wherever it is.
    ///
    /// # Errors
    /// Those of [`Segment::files`].
    pub fn cursors(&self) -> Result<SegmentCursors> {
        if let Some(idle) = self.idle.lock().pop() {
            return Ok(SegmentCursors { reads: 0, ..idle });
        }
        let files = self.files()?;
        let tables = IndexTable::ALL.map(|table| files.run(table).map(RunReader::cursor));
        Ok(SegmentCursors { tables, scratch: FingerprintScratch::default(), reads: 0 })
    }

    /// Keeps cursors for whoever needs some next.
    pub fn give_back(&self, cursors: SegmentCursors) {
        let mut idle = self.idle.lock();
        if idle.len() < MOST_IDLE {
            idle.push(cursors);
        }
    }

    /// Compares every byte with its checksum.
    pub fn check(&self) -> Result<()> {
        let files = self.files()?;
        files.fingerprints.as_ref().map_or(Ok(()), FingerprintFile::check)?;
        Ok(files.readers.values().try_for_each(RunReader::check)?)
    }
}

impl SegmentFiles {
    fn open(store: &dyn Store, folder: &str, entry: &SegmentEntry) -> Result<Self> {
        let mut readers = BTreeMap::new();
        for (&table, summary) in &entry.tables {
            let blob = store.open_settled(&path(folder, entry.number, table.name()))?;
            readers.insert(table, RunReader::open_for_lookups(blob, summary)?);
        }
        let fingerprints = entry.fingerprints.as_ref().map(|summary| {
            let blob = store.open_settled(&path(folder, entry.number, FINGERPRINTS))?;
            FingerprintFile::open(blob, summary)
        });
        let fingerprints = fingerprints.transpose()?;
        Ok(SegmentFiles { readers, fingerprints })
    }

    /// Returns the run of a table; `None` if the segment has no rows of it.
    pub fn run(&self, table: IndexTable) -> Option<&RunReader> {
        self.readers.get(&table)
    }
}

/// Cursors of a segment, one for each table that has rows, and buffers for its fingerprints.
pub(crate) struct SegmentCursors {
    tables: [Option<RunCursor>; IndexTable::ALL.len()],
    pub scratch: FingerprintScratch,
    /// Number of pieces of files that were read.
    pub reads: u64,
}

impl SegmentCursors {
    /// Returns the cursor of a table at the first row whose key is not less than `key`.
    pub fn at(&mut self, table: IndexTable, key: &[u64]) -> Result<Option<&mut RunCursor>> {
        let Some(cursor) = &mut self.tables[table as usize] else { return Ok(None) };
        cursor.look_up(key)?;
        self.reads += 1;
        Ok(Some(cursor))
    }

    /// Calls `each` with the words of the rows of a table whose keys begin with `prefix`, until it returns false.
    pub fn rows(
        &mut self,
        table: IndexTable,
        prefix: &[u64],
        mut each: impl FnMut(&[u64]) -> bool,
    ) -> Result<()> {
        let Some(cursor) = self.at(table, prefix)? else { return Ok(()) };
        while let Some(row) = cursor.next_row()?.filter(|row| row.words.starts_with(prefix)) {
            if !each(row.words) {
                break;
            }
        }
        Ok(())
    }
}

/// Files of a segment that is being written.
pub(crate) struct SegmentWriter<'a> {
    store: &'a dyn Store,
    folder: &'a str,
    number: u64,
    tables: BTreeMap<IndexTable, RunSummary>,
    fingerprints: Option<FingerprintSummary>,
}

impl<'a> SegmentWriter<'a> {
    /// Begins a segment of the topic in `folder`.
    pub fn new(store: &'a dyn Store, folder: &'a str, number: u64) -> Self {
        SegmentWriter { store, folder, number, tables: BTreeMap::new(), fingerprints: None }
    }

    /// Writes a table. `rows` pushes its rows in the order of their keys. A table without rows leaves no file.
    pub fn table(
        &mut self,
        table: IndexTable,
        rows: impl FnOnce(&mut dyn FnMut(&[u64], &[u8]) -> Result<()>) -> Result<()>,
    ) -> Result<()> {
        let path = path(self.folder, self.number, table.name());
        let mut run = RunWriter::new(self.store.create(&path)?, &path, table.shape())?;
        if table == IndexTable::Documents {
            run = run.with_small_leaves();
        }
        let mut has_rows = false;
        rows(&mut |words, bytes| {
            has_rows = true;
            Ok(run.push(words, bytes)?)
        })?;
        if has_rows {
            self.tables.insert(table, run.finish()?);
        }
        Ok(())
    }

    /// Writes the file of fingerprints. `entries`: the largest number of them. `numbers`: the least number of a text, and
    /// one that is greater than all. Without fingerprints no file is named.
    pub fn fingerprints(
        &mut self,
        entries: u64,
        numbers: (u64, u64),
        write: impl FnOnce(&mut FingerprintWriter) -> Result<()>,
    ) -> Result<()> {
        let path = path(self.folder, self.number, FINGERPRINTS);
        let mut file = FingerprintWriter::new(self.store, &path, entries, numbers)?;
        write(&mut file)?;
        self.fingerprints = file.finish()?;
        Ok(())
    }

    /// Makes the files durable. `documents`: the first document, and that behind the last one.
    pub fn finish(self, (first, end): (u64, u64)) -> Result<SegmentEntry> {
        let documents = self.tables.get(&IndexTable::Documents).map_or(0, |summary| summary.rows);
        if !self.tables.is_empty() {
            self.store.settle(&format!("{}/{:08}", self.folder, self.number))?;
        }
        let SegmentWriter { number, tables, fingerprints, .. } = self;
        Ok(SegmentEntry { number, first, end, documents, tables, fingerprints })
    }
}

/// Writes what is in memory as a segment. `keys`: those of the index. `documents`: as for [`SegmentWriter::finish`].
pub(crate) fn write_memory(
    mut writer: SegmentWriter,
    memory: &MemoryTable,
    keys: &KeptKeys,
    documents: (u64, u64),
) -> Result<SegmentEntry> {
    let texts = || memory.texts();
    if keys.need_identities() {
        let identity = |text: MemoryText| [text.identity.0, text.identity.1, text.number];
        write_sorted(&mut writer, IndexTable::Identities, texts().map(identity).collect())?;
    }
    if keys.have_four_blocks() {
        // The key of the first pass is the fingerprint.
        let word = |text: MemoryText| text.keys.first().map(|key| (key.high, text.number));
        let words: Vec<_> = texts().filter_map(word).collect();
        let first = words.iter().map(|&(_, text)| text).min().unwrap_or_default();
        let entries = words.len() as u64;
        writer.fingerprints(entries, (first, documents.1), |file| file.push_all(words))?;
    } else {
        let key = |text: u64| move |key: &MemoryKey| [key.pass.into(), key.high, key.low, text];
        let keys = texts().flat_map(|text| text.keys.iter().map(key(text.number)));
        write_sorted(&mut writer, IndexTable::Keys, keys.collect())?;
    }
    let with_sketches = texts().filter(|text| text.sketches != [0; 2]);
    writer.table(IndexTable::Sketches, |push| {
        with_sketches
            .into_iter()
            .try_for_each(|text| push(&[text.number, text.sketches[0], text.sketches[1]], b""))
    })?;
    writer.table(IndexTable::Texts, |push| {
        let mut with_text = texts().filter(|text| !text.text.is_empty());
        with_text.try_for_each(|text| push(&[text.number], text.text.as_bytes()))
    })?;
    writer.table(IndexTable::Documents, |push| {
        memory
            .docs()
            .try_for_each(|doc| push(&[doc.number, doc.time, doc.number - doc.text], doc.id.as_bytes()))
    })?;
    writer.table(IndexTable::Copies, |push| {
        memory.copies().try_for_each(|(text, number)| push(&[text, number], b""))
    })?;
    writer.table(IndexTable::Priorities, |push| {
        memory.priorities().try_for_each(|(number, priority)| push(&[number, priority.0], b""))
    })?;
    let id = |doc: MemoryDoc| [key_of_id(doc.id.as_bytes()), doc.number];
    write_sorted(&mut writer, IndexTable::Ids, memory.docs().map(id).collect())?;
    writer.finish(documents)
}

/// Sorts the rows of a table, and writes each once: a text whose two sets have one key has it once.
fn write_sorted<const WORDS: usize>(
    writer: &mut SegmentWriter,
    table: IndexTable,
    mut rows: Vec<[u64; WORDS]>,
) -> Result<()> {
    rows.sort_unstable();
    rows.dedup();
    writer.table(table, |push| rows.iter().try_for_each(|row| push(row, b"")))
}

fn path(folder: &str, number: u64, file: &str) -> String {
    format!("{folder}/{number:08}/{file}.run")
}
