//! A topic: documents that are compared with each other and with no others.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use anyhow::{Result, bail};
use cluster::Store;
use operators::method::KeptKeys;

use super::change::{Change, ChangeKind, KeptText, NewDoc, PreparedDoc};
use super::manifest::{SegmentEntry, TopicManifest};
use super::memory_table::MemoryTable;
use super::segment::{Segment, SegmentWriter, write_memory};
use crate::index::sealed_file::{read_sealed, write_sealed};

/// A topic of an index: its segments, and the newest documents in memory.
///
/// ```text
/// documents   0 ........ 3,999,999 | 4,000,000 .. 4,999,999 | 5,000,000 .. 5,120,411
/// where       segment 7              segment 8                memory and the log
/// ```
///
/// Memory: the index blocks of the segments, 8 bytes for each deleted document whose rows are not gone yet, and the
/// [`MemoryTable`].
pub(in crate::index) struct Topic {
    store: Arc<dyn Store>,
    pub name: String,
    /// Folder of the topic.
    pub folder: String,
    pub segments: Vec<Segment>,
    pub memory: MemoryTable,
    /// Number of the next document.
    next: u64,
    last_time: u64,
    /// Documents with lower numbers have expired.
    pub oldest: u64,
    /// Documents of segments that were deleted and whose rows are not gone yet.
    pub deleted: BTreeSet<u64>,
    /// Changes with lower numbers in the log are in the segments.
    flushed: u64,
    next_segment: u64,
    /// Whether it has changed since its manifest was written.
    changed: bool,
}

impl Topic {
    /// Opens the topic in `folder`, which may not exist yet. `flushed`: the number of the next change in the log, for a
    /// new topic.
    pub fn open(store: &Arc<dyn Store>, name: &str, folder: String, flushed: u64) -> Result<Self> {
        let manifest: Option<TopicManifest> = read_sealed(store.as_ref(), &manifest_path(&folder))?;
        if manifest.is_none() && has_segments(store.as_ref(), &folder)? {
            bail!("\"{folder}\" is damaged: it has segments and no manifest.json");
        }
        let manifest = manifest.unwrap_or(TopicManifest { flushed, ..TopicManifest::default() });
        let segments =
            manifest.segments.into_iter().map(|entry| Segment::open(store.as_ref(), &folder, entry));
        Ok(Topic {
            store: Arc::clone(store),
            name: name.to_owned(),
            segments: segments.collect::<Result<_>>()?,
            folder,
            memory: MemoryTable::default(),
            next: manifest.end,
            last_time: manifest.last_time,
            oldest: manifest.oldest,
            deleted: manifest.deleted.into_iter().collect(),
            flushed: manifest.flushed,
            next_segment: manifest.next_segment,
            changed: false,
        })
    }

    /// Returns the number from which on changes in the log are not in the segments.
    pub fn flushed(&self) -> u64 {
        self.flushed
    }

    /// Whether the log has changes of this topic that the segments lack.
    pub fn is_changed(&self) -> bool {
        self.changed
    }

    /// Makes the change that adds a document. `now`: seconds since 1970; the time of a document is never before that of
    /// an earlier one.
    pub fn insertion(&self, doc: &PreparedDoc, now: u64) -> Change {
        let known = self.memory.text_of(doc.keys.identity);
        let new = NewDoc {
            number: self.next,
            time: now.max(self.last_time),
            id: doc.id.clone(),
            text: known.unwrap_or(self.next),
            kept: known.is_none().then(|| KeptText::of(doc)),
        };
        Change { topic: self.name.clone(), what: ChangeKind::Insert(new) }
    }

    /// Makes a change. `keys`: says which keys meet.
    pub fn apply(&mut self, change: ChangeKind, keys: &KeptKeys) {
        self.changed = true;
        match change {
            ChangeKind::Insert(doc) => {
                (self.next, self.last_time) = (doc.number + 1, doc.time);
                self.memory.insert(doc, keys);
            }
            ChangeKind::Delete(numbers) => {
                let in_segments = self.end_of_segments();
                for number in numbers {
                    if number < in_segments {
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
            // Whoever holds the topics drops it.
            ChangeKind::Drop => {}
        }
    }

    /// Returns the number behind the last document of the segments.
    pub fn end_of_segments(&self) -> u64 {
        self.segments.last().map_or(0, |segment| segment.entry.end)
    }

    /// Returns the number of the next document.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Whether a document that has a row is neither deleted nor expired.
    pub fn is_alive(&self, number: u64) -> bool {
        number >= self.oldest && !self.deleted.contains(&number)
    }

    /// Writes what is in memory as a segment, and the manifest. `keys`: those of the index. `next_change`: the number
    /// of the next change in the log.
    pub fn flush(&mut self, keys: &KeptKeys, next_change: u64) -> Result<()> {
        // Their documents are gone, but they have copies.
        self.deleted.extend(
            self.memory.texts().map(|(text, _)| text).filter(|text| self.memory.doc(*text).is_none()),
        );
        if self.next_segment == 0 {
            // From now on a topic without a manifest is damaged.
            self.write_manifest()?;
        }
        if !self.memory.is_empty() {
            let first = self.end_of_segments();
            let writer = SegmentWriter::new(self.store.as_ref(), &self.folder, self.next_segment);
            let entry = write_memory(writer, &self.memory, keys, (first, self.next))?;
            self.next_segment += 1;
            self.segments.push(Segment::open(self.store.as_ref(), &self.folder, entry)?);
        }
        self.memory = MemoryTable::default();
        self.flushed = next_change;
        self.write_manifest()?;
        self.changed = false;
        Ok(())
    }

    /// Begins the segment that takes the place of others.
    pub fn segment_writer(&self) -> SegmentWriter<'_> {
        SegmentWriter::new(self.store.as_ref(), &self.folder, self.next_segment)
    }

    /// Puts a merged segment in the place of those that it was made of, and removes their files. `gone`: deleted
    /// documents of which nothing is left.
    pub fn replace(&mut self, merged: Range<usize>, entry: SegmentEntry, gone: &[u64]) -> Result<()> {
        self.next_segment += 1;
        let segment = Segment::open(self.store.as_ref(), &self.folder, entry)?;
        let old: Vec<u64> = self.segments.splice(merged, [segment]).map(|old| old.entry.number).collect();
        gone.iter().for_each(|number| {
            self.deleted.remove(number);
        });
        self.write_manifest()?;
        let folders = old.iter().map(|number| format!("{}/{number:08}", self.folder));
        folders.into_iter().try_for_each(|folder| Ok(self.store.remove(&folder)?))
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
            let name = entry.path.rsplit('/').next().unwrap_or_default();
            if entry.directory && name.parse().is_ok_and(|number: u64| !named(number)) {
                self.store.remove(&entry.path)?;
            }
        }
        Ok(())
    }

    fn write_manifest(&self) -> Result<()> {
        let manifest = TopicManifest {
            end: self.end_of_segments().max(if self.memory.is_empty() { self.next } else { 0 }),
            oldest: self.oldest,
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
    format!("{folder}/manifest.json")
}
