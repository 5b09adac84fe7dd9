//! A topic: documents that are compared with each other and with no others.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use anyhow::{Result, bail};
use cluster::Store;
use cluster::runs::newest_tier;
use operators::Priority;
use operators::method::KeptKeys;

use super::change::{Change, ChangeKind, KeptText, LatestInsertions, NewDoc, PreparedDoc};
use super::flush::{FlushJob, FrozenTable};
use super::manifest::{MANIFEST, SegmentEntry, TopicManifest};
use super::memory::{MemoryDoc, MemoryTable};
use super::merge::{MergeJob, MergedSegment};
use super::segment::{Segment, SegmentWriter};
use super::topic_files::TopicFiles;
use runtime::output::{read_sealed, write_sealed};

/// Number of documents below which segments count as equally large.
const SMALL_DOCUMENTS: u64 = 1 << 12;

/// A topic of an index: its segments, and the newest documents in memory.
///
/// ```text
/// documents   0 ........ 3,999,999 | 4,000,000 .. 4,999,999 | 5,000,000 .. 5,999,999 | 6,000,000 .. 6,120,411
/// where       segment 7              segment 8                frozen: being written    memory and the log
/// ```
///
/// A flush and a merge read and write files for long, so they are jobs that another thread may run while the topic goes
/// on: [`Topic::freeze`] and [`Topic::merge_job`] begin one, and [`Topic::install`] and [`Topic::replace`] end it.
///
/// Memory: the index blocks of the segments, 8 bytes for each deleted document whose rows are not gone yet, and two of
/// [`MemoryTable`].
pub(crate) struct Topic {
    store: Arc<dyn Store>,
    pub name: String,
    /// Folder of the topic.
    pub folder: String,
    pub segments: Vec<Arc<Segment>>,
    /// Documents that a [`FlushJob`] writes as a segment.
    frozen: Option<Arc<FrozenTable>>,
    memory: MemoryTable,
    /// Number of the next document.
    next: u64,
    last_time: u64,
    /// Documents with lower numbers have expired.
    pub oldest: u64,
    /// Documents of segments and of the frozen table that were deleted and whose rows are not gone yet.
    pub deleted: BTreeSet<u64>,
    /// Number in the log of the change that it was begun before.
    pub begun: u64,
    /// Changes with lower numbers in the log are in the segments.
    flushed: u64,
    next_segment: u64,
    /// Number in the log of the first change since memory was frozen; `None` if there is none.
    changed_from: Option<u64>,
    latest: LatestInsertions,
    /// Number of the first document that only the writer sees, because it is not durable yet; `None` if there is none.
    hidden_from: Option<u64>,
    /// Replaced by another one whenever texts get other numbers, which is when segments are merged.
    pub numbering: Arc<()>,
    pub files: Arc<TopicFiles>,
}

impl Topic {
    /// Opens the topic in `folder`, which may not exist yet, and no files of its segments. `flushed`: the number of the next
    /// change in the log, for a new topic.
    pub fn open(store: &Arc<dyn Store>, name: &str, folder: String, flushed: u64) -> Result<Self> {
        let manifest: Option<TopicManifest> = read_sealed(store.as_ref(), &manifest_path(&folder))?;
        if manifest.is_none() && has_segments(store.as_ref(), &folder)? {
            bail!("\"{folder}\" is damaged: it has segments and no manifest.json");
        }
        let manifest =
            manifest.unwrap_or(TopicManifest { flushed, begun: flushed, ..TopicManifest::default() });
        let segments = manifest.segments.into_iter().map(|entry| Segment::new(store, &folder, entry));
        Ok(Topic {
            store: Arc::clone(store),
            name: name.to_owned(),
            segments: segments.collect(),
            folder,
            frozen: None,
            memory: MemoryTable::default(),
            next: manifest.end,
            last_time: manifest.last_time,
            oldest: manifest.oldest,
            deleted: manifest.deleted.into_iter().collect(),
            begun: manifest.begun,
            flushed: manifest.flushed,
            next_segment: manifest.next_segment,
            changed_from: None,
            latest: LatestInsertions::new(manifest.flushed),
            hidden_from: None,
            numbering: Arc::default(),
            files: Arc::default(),
        })
    }

    /// Opens the files of all segments that are not open yet.
    ///
    /// # Errors
    /// Those of the store, and [`cluster::Error::Damaged`].
    pub fn open_files(&self) -> Result<()> {
        self.segments.iter().try_for_each(|segment| segment.files().map(|_| ()))
    }

    /// Returns the number from which on changes in the log are not in the segments.
    pub fn flushed(&self) -> u64 {
        self.flushed
    }

    /// Whether the log has changes of this topic that the segments lack.
    pub fn is_changed(&self) -> bool {
        self.changed_from.is_some() || self.frozen.is_some()
    }

    /// Returns the number of the first change in the log that neither segments nor a frozen table have.
    pub fn changed_from(&self) -> Option<u64> {
        self.changed_from
    }

    /// Whether a table is frozen, which a job is writing or could not write.
    pub fn is_frozen(&self) -> bool {
        self.frozen.is_some()
    }

    /// Makes the change that adds a document. `now`: seconds since 1970; the time of a document is never before that of
    /// an earlier one. `keys`: those of the index.
    pub fn insertion(&self, doc: &PreparedDoc, now: u64, keys: &KeptKeys) -> Change {
        let known = self.memory.texts_of(doc.keys.identity).next();
        let new = NewDoc {
            number: self.next,
            time: now.max(self.last_time),
            id: doc.id.clone(),
            text: known.unwrap_or(self.next),
            kept: known.is_none().then(|| KeptText::of(doc, keys)),
        };
        Change { topic: self.name.clone(), what: ChangeKind::Insert(new) }
    }

    /// Hides documents from a number on from readers. Returns whether none was hidden before.
    pub fn hide_from(&mut self, number: u64) -> bool {
        let none_hidden = self.hidden_from.is_none();
        self.hidden_from.get_or_insert(number);
        none_hidden
    }

    /// Shows all documents to readers.
    pub fn show(&mut self) {
        self.hidden_from = None;
    }

    /// Returns the numbers of documents that are hidden from readers.
    pub fn hidden(&self) -> Range<u64> {
        self.end_of_shown()..self.next
    }

    /// Returns the number behind the last document that readers see. It is 0 if they have never seen one.
    pub fn end_of_shown(&self) -> u64 {
        self.hidden_from.unwrap_or(self.next)
    }

    /// Returns a version that readers have seen, and the documents whose insertions alone have come behind it, each with the version that
    /// it has led to.
    pub fn latest(&self) -> (u64, Vec<(u64, u64)>) {
        self.latest.before(self.end_of_shown(), self.next)
    }

    /// Makes the change with a number in the log. `keys`: says which keys meet.
    pub fn apply(&mut self, number: u64, change: ChangeKind, keys: &KeptKeys) {
        self.changed_from.get_or_insert(number);
        self.latest.note(number, &change);
        match change {
            ChangeKind::Insert(doc) => {
                (self.next, self.last_time) = (doc.number + 1, doc.time);
                self.memory.insert(doc, keys);
            }
            ChangeKind::Delete(numbers) => {
                let memory_begins = self.memory_begins();
                for number in numbers {
                    if number < memory_begins {
                        self.deleted.insert(number);
                    } else {
                        self.memory.remove(number);
                    }
                }
            }
            ChangeKind::Expire(oldest) => {
                self.oldest = self.oldest.max(oldest);
                self.memory.expire(oldest);
                self.deleted = self.deleted.split_off(&oldest);
            }
            ChangeKind::Prioritize { number, priority } => {
                self.memory.prioritize(number, Priority(priority));
            }
            // The owner of the topics drops the topic.
            ChangeKind::Drop => {}
        }
    }

    /// Returns the number of the first document that may be in memory and neither in a segment nor frozen.
    fn memory_begins(&self) -> u64 {
        self.frozen.as_ref().map_or_else(|| self.end_of_segments(), |frozen| frozen.end)
    }

    fn end_of_segments(&self) -> u64 {
        self.segments.last().map_or(0, |segment| segment.entry.end)
    }

    /// Returns the tables in memory, the oldest documents first. Some documents of the frozen one may be deleted.
    pub fn tables(&self) -> impl Iterator<Item = &MemoryTable> {
        self.frozen.iter().map(|frozen| &frozen.table).chain([&self.memory])
    }

    /// Returns the documents in memory that are neither deleted nor expired, in order.
    pub fn docs_in_memory(&self) -> impl Iterator<Item = MemoryDoc<'_>> {
        self.docs_in_memory_from(0)
    }

    /// Returns those from a number on.
    pub fn docs_in_memory_from(&self, number: u64) -> impl Iterator<Item = MemoryDoc<'_>> {
        let docs = self.tables().flat_map(move |table| table.docs_from(number));
        docs.filter(|doc| self.is_alive(doc.number))
    }

    /// Returns about how many bytes the documents take that are in memory and not frozen.
    pub fn memory_bytes(&self) -> usize {
        self.memory.bytes()
    }

    /// Returns the number of the next document.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Whether a document that has a row is neither deleted nor expired.
    pub fn is_alive(&self, number: u64) -> bool {
        number >= self.oldest && !self.deleted.contains(&number)
    }

    /// Whether the first document with a text, which is in a segment or in memory, is neither deleted nor expired.
    pub fn has_first(&self, text: u64) -> bool {
        let removed = text >= self.memory_begins() && self.memory.doc(text).is_none();
        self.is_alive(text) && !removed
    }

    /// Writes the first segment of a new topic. `write`: writes it, and returns the texts whose first document is not there.
    /// `last_time`: that of its last document. Returns the number of its documents.
    pub fn fill(
        &mut self,
        last_time: u64,
        write: impl FnOnce(SegmentWriter) -> Result<(SegmentEntry, BTreeSet<u64>)>,
    ) -> Result<u64> {
        self.write_manifest()?;
        let number = self.take_segment();
        let (entry, deleted) = write(SegmentWriter::new(self.store.as_ref(), &self.folder, number))?;
        let documents = entry.documents;
        (self.next, self.last_time, self.deleted) = (entry.end, last_time, deleted);
        self.segments.extend((documents > 0).then(|| Segment::new(&self.store, &self.folder, entry)));
        self.write_manifest()?;
        Ok(documents)
    }

    /// Begins to write what is in memory as a segment: freezes it, unless an earlier flush has failed, whose table comes
    /// first then. `next_change`: the number of the next change in the log, all of which is durable.
    pub fn freeze(&mut self, next_change: u64) -> Result<FlushJob> {
        if self.next_segment == 0 {
            // From now on a topic without a manifest is damaged.
            self.write_manifest()?;
        }
        let table = match &self.frozen {
            Some(frozen) => Arc::clone(frozen),
            None => {
                let memory = std::mem::take(&mut self.memory);
                // Their documents are gone, but they have copies.
                let gone = memory.texts().map(|text| text.number).filter(|text| memory.doc(*text).is_none());
                self.deleted.extend(gone);
                let first = self.end_of_segments();
                let end = self.next;
                let frozen = Arc::new(FrozenTable { table: memory, first, end, next_change });
                self.changed_from = None;
                Arc::clone(self.frozen.insert(frozen))
            }
        };
        let (store, files) = (Arc::clone(&self.store), Arc::clone(&self.files));
        let folder = self.folder.clone();
        Ok(FlushJob { store, topic: self.name.clone(), folder, files, number: self.take_segment(), table })
    }

    /// Puts the segment that a flush has written in the place of the frozen table. A flush of a topic that was dropped
    /// meanwhile does nothing.
    pub fn install(&mut self, job: &FlushJob, entry: Option<SegmentEntry>) -> Result<()> {
        if !self.frozen.as_ref().is_some_and(|frozen| Arc::ptr_eq(frozen, &job.table)) {
            return Ok(());
        }
        if let Some(entry) = entry {
            self.segments.push(Segment::new(&self.store, &self.folder, entry));
        }
        self.frozen = None;
        self.flushed = job.table.next_change;
        self.write_manifest()
    }

    /// Returns the newest segments that are to be merged, because four or more are about equally large
    /// ([`newest_tier`]).
    pub fn tier(&self) -> Range<usize> {
        let documents: Vec<u64> = self.segments.iter().map(|segment| segment.entry.documents).collect();
        let end = documents.len();
        end - newest_tier(&documents, SMALL_DOCUMENTS)..end
    }

    /// Begins to merge segments that follow each other; `None` if there are none.
    pub fn merge_job(&mut self, merged: Range<usize>) -> Option<MergeJob> {
        let segments = self.segments[merged].to_vec();
        let (first, last) = (segments.first()?.entry.first, segments.last()?.entry.end);
        Some(MergeJob {
            store: Arc::clone(&self.store),
            topic: self.name.clone(),
            folder: self.folder.clone(),
            number: self.take_segment(),
            segments,
            oldest: self.oldest,
            deleted: self.deleted.range(first..last).copied().collect(),
            files: Arc::clone(&self.files),
        })
    }

    /// Puts a merged segment in the place of those that it was made of, and removes their files. A merge of a topic that
    /// was dropped meanwhile does nothing.
    pub fn replace(&mut self, job: &MergeJob, merged: MergedSegment) -> Result<()> {
        let MergedSegment { entry, gone } = merged;
        let Some(at) = self.segments.iter().position(|segment| Arc::ptr_eq(segment, &job.segments[0])) else {
            return Ok(());
        };
        let segment = Segment::new(&self.store, &self.folder, entry);
        self.segments.splice(at..at + job.segments.len(), [segment]);
        self.numbering = Arc::default();
        gone.iter().for_each(|number| {
            self.deleted.remove(number);
        });
        self.write_manifest()?;
        let folders = job.segments.iter().map(|old| format!("{}/{:08}", self.folder, old.entry.number));
        folders.into_iter().try_for_each(|folder| Ok(self.store.remove(&folder)?))
    }

    fn take_segment(&mut self) -> u64 {
        self.next_segment += 1;
        self.next_segment - 1
    }

    /// Whether segments have rows of documents that are deleted or expired.
    pub fn has_dead_rows(&self) -> bool {
        !self.deleted.is_empty()
            || self.segments.first().is_some_and(|segment| segment.entry.first < self.oldest)
    }

    /// Removes the files of segments that a crash has left, which the manifest does not name.
    pub fn remove_strangers(&self) -> Result<()> {
        let named = |number| self.segments.iter().any(|segment| segment.entry.number == number);
        for entry in self.store.children_if_any(&self.folder)? {
            let name = entry.name();
            if entry.directory && name.parse().is_ok_and(|number: u64| !named(number)) {
                self.store.remove(&entry.path)?;
            }
        }
        Ok(())
    }

    /// Returns the number behind the last document that the log is not needed for.
    fn flushed_end(&self) -> u64 {
        let all_flushed = self.frozen.is_none() && self.memory.is_empty();
        if all_flushed { self.next } else { self.end_of_segments() }
    }

    fn write_manifest(&self) -> Result<()> {
        let manifest = TopicManifest {
            end: self.flushed_end(),
            oldest: self.oldest,
            begun: self.begun,
            flushed: self.flushed,
            last_time: self.last_time,
            next_segment: self.next_segment,
            segments: self.segments.iter().map(|segment| segment.entry.clone()).collect(),
            deleted: self.deleted.iter().copied().collect(),
        };
        write_sealed(self.store.as_ref(), &manifest_path(&self.folder), &self.folder, &manifest)
    }
}

/// Whether a topic's folder has folders of segments.
fn has_segments(store: &dyn Store, folder: &str) -> Result<bool> {
    Ok(store.children_if_any(folder)?.iter().any(|entry| entry.directory))
}

fn manifest_path(folder: &str) -> String {
    format!("{folder}/{MANIFEST}")
}
