//! Changes of an open index.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Context, Result};
use cluster::write_ahead_log::LogWriter;
use parking_lot::Mutex;

use super::hidden_changes::{HiddenChanges, HiddenRemoval, ShownChange, follower_of};
use super::index_folder::{IndexFolder, MEMORY_BYTES};
use super::replay::{remove_topic, topic_of};
use super::topics::{Change, ChangeKind, PreparedDoc, SegmentEntry, SegmentWriter, Topic, TopicReader};
use runtime::cli::exit::while_running;

/// Number of documents after which changes are made durable.
pub(super) const GROUP: usize = 1000;
/// Number of bytes of ids and texts after which they are, too.
const GROUP_BYTES: usize = 1 << 26;
/// Number of bytes of documents in memory up to which they are left to the log when a command ends.
const LEFT_BYTES: usize = 1 << 24;

/// Size of the changes that are made durable together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GroupSize {
    documents: usize,
    bytes: usize,
}

impl GroupSize {
    /// Counts a document.
    pub fn add(&mut self, doc: &PreparedDoc) {
        self.documents += 1;
        self.bytes += doc.id.len() + doc.text.len();
    }

    /// Whether it is time to make the changes durable.
    pub fn is_full(self) -> bool {
        self.documents >= GROUP || self.bytes >= GROUP_BYTES
    }
}

impl IndexFolder {
    /// Returns a topic; `None` if no document has ever come to it.
    pub(super) fn topic(&self, name: &str) -> Option<&Topic> {
        self.topics.get(name)
    }

    /// Writes the first segment of a topic, as [`Topic::fill`] does.
    pub(super) fn fill(
        &mut self,
        topic: &str,
        last_time: u64,
        write: impl FnOnce(SegmentWriter) -> Result<(SegmentEntry, BTreeSet<u64>)>,
    ) -> Result<u64> {
        let next_change = self.log()?.lock().next();
        topic_of(&mut self.topics, &self.store, &self.path, topic, next_change)?.fill(last_time, write)
    }

    /// Adds a document to a topic. It is durable after [`IndexFolder::commit`]. `now`: seconds since 1970.
    pub fn insert(&mut self, topic: &str, doc: &PreparedDoc, now: u64) -> Result<()> {
        let next_change = self.log()?.lock().next();
        let topic = topic_of(&mut self.topics, &self.store, &self.path, topic, next_change)?;
        topic.open_files().map_err(while_running)?;
        let change = topic.insertion(doc, now, &self.keys);
        let number = topic.next();
        let topic = change.topic.clone();
        self.change(change)?;
        match doc.priority.0 {
            0 => Ok(()),
            priority => self.change(Change { topic, what: ChangeKind::Prioritize { number, priority } }),
        }
    }

    /// Deletes the documents of a topic with some ids. Returns how many there were.
    pub fn delete(&mut self, topic: &str, ids: &BTreeSet<String>) -> Result<usize> {
        let numbers = self.numbers_with_ids(topic, ids)?;
        self.delete_numbers(topic, numbers)
    }

    /// Returns the numbers of the documents that have some ids.
    pub(super) fn numbers_with_ids(&self, topic: &str, ids: &BTreeSet<String>) -> Result<Vec<u64>> {
        let mut numbers = self.numbers_in_memory(topic, |id| ids.contains(id));
        numbers.extend(self.numbers_in_segments(topic, ids.iter())?);
        Ok(numbers)
    }

    /// Returns the numbers of the documents in memory that have some ids. `is_one`: whether an id is one of them.
    pub(super) fn numbers_in_memory(&self, topic: &str, is_one: impl Fn(&str) -> bool) -> Vec<u64> {
        let docs = self.topics.get(topic).into_iter().flat_map(Topic::docs_in_memory);
        docs.filter(|doc| is_one(doc.id)).map(|doc| doc.number).collect()
    }

    /// Returns those of the documents in segments.
    pub(super) fn numbers_in_segments<'a>(
        &self,
        topic: &str,
        ids: impl Iterator<Item = &'a String>,
    ) -> Result<Vec<u64>> {
        let Some(topic) = self.topics.get(topic) else { return Ok(Vec::new()) };
        let mut reader = TopicReader::of_writer(topic)?;
        let mut numbers = Vec::new();
        for id in ids {
            numbers.extend(reader.docs_with_id(id)?);
        }
        Ok(numbers)
    }

    /// Deletes documents by their numbers. Returns how many there are.
    pub(super) fn delete_numbers(&mut self, topic: &str, numbers: Vec<u64>) -> Result<usize> {
        let count = numbers.len();
        if count > 0 {
            self.change(Change { topic: topic.to_owned(), what: ChangeKind::Delete(numbers) })?;
        }
        Ok(count)
    }

    /// Lets the documents of a topic expire that were added before a time, in seconds since 1970.
    pub fn expire(&mut self, topic: &str, before: u64) -> Result<()> {
        let Some(topic) = self.topics.get(topic) else { return Ok(()) };
        let mut reader = TopicReader::of_writer(topic)?;
        // Documents are in the order of their times.
        let mut oldest = topic.oldest;
        let mut end = topic.next();
        while oldest < end {
            let middle = oldest.midpoint(end);
            match reader.doc_from(middle)? {
                Some(doc) if doc.time < before => oldest = doc.number + 1,
                _ => end = middle,
            }
        }
        drop(reader);
        if oldest > topic.oldest {
            let topic = topic.name.clone();
            self.change(Change { topic, what: ChangeKind::Expire(oldest) })?;
        }
        Ok(())
    }

    /// Drops a topic with all of its documents. Returns whether there was one.
    pub fn drop_topic(&mut self, name: &str) -> Result<bool> {
        if !self.topics.contains_key(name) {
            return Ok(false);
        }
        // Hidden changes of the topic must not reach a later topic of the same name.
        let next_change = self.commit_log()?;
        self.show(next_change);
        self.change(Change { topic: name.to_owned(), what: ChangeKind::Drop })?;
        self.log()?.lock().commit()?;
        if let Some(topic) = self.topics.remove(name) {
            topic.files.end_jobs();
        }
        if let Some(follower) = follower_of(&mut self.follower, name) {
            follower.tell(name, None);
        }
        remove_topic(self.store.as_ref(), &self.path, name)?;
        Ok(true)
    }

    /// Notes a change in the log, and makes it.
    fn change(&mut self, change: Change) -> Result<()> {
        self.record.clear();
        self.record = postcard::to_extend(&change, std::mem::take(&mut self.record))?;
        let number = self.log()?.lock().append(&self.record)?;
        let Change { topic: name, what } = change;
        let topic = topic_of(&mut self.topics, &self.store, &self.path, &name, number)?;
        match (&mut self.hidden, &what) {
            (Some(hidden), ChangeKind::Delete(_) | ChangeKind::Expire(_)) => {
                hidden.removals.push(HiddenRemoval { topic: name, number, what });
                return Ok(());
            }
            (Some(hidden), ChangeKind::Insert(doc)) if topic.hide_from(doc.number) => {
                hidden.topics.push(name);
            }
            _ => {}
        }
        topic.apply(number, what, &self.keys);
        Ok(())
    }

    /// Whether readers do not see some changes yet.
    pub(super) fn has_hidden(&self) -> bool {
        self.hidden.as_ref().is_some_and(|hidden| !hidden.topics.is_empty() || !hidden.removals.is_empty())
    }

    /// Hides changes from readers from now on, until each is durable and [`IndexFolder::show`] is called.
    pub(super) fn hide_changes(&mut self) {
        self.hidden = Some(HiddenChanges::default());
    }

    /// Shows the changes to readers that were hidden, all of which are durable, and tells the follower. `next_change`: the number of
    /// the next change in the log, which the caller may hold.
    pub(super) fn show(&mut self, next_change: u64) {
        let Some(HiddenChanges { topics, removals }) = &mut self.hidden else { return };
        if let Some(follower) = &mut self.follower {
            follower.note_shown(next_change);
        }
        for name in topics.drain(..) {
            let Some(topic) = self.topics.get_mut(&name) else { continue };
            let came = topic.hidden().map(ShownChange::Came);
            topic.show();
            if let Some(follower) = follower_of(&mut self.follower, &name) {
                follower.tell(&name, Some(came.collect()));
            }
        }
        for HiddenRemoval { topic: name, number, what } in removals.drain(..) {
            let Some(topic) = self.topics.get_mut(&name) else { continue };
            if let Some(follower) = follower_of(&mut self.follower, &name) {
                // If the change cannot be read, the follower is told so.
                follower.tell(&name, ShownChange::removals(topic, &what).ok());
            }
            topic.apply(number, what, &self.keys);
        }
    }

    /// Makes all changes durable. If much is in memory, it is written as segments, and segments are merged.
    pub fn commit(&mut self) -> Result<()> {
        let next_change = self.commit_log()?;
        self.show(next_change);
        self.flush_beyond(MEMORY_BYTES)
    }

    /// Makes the log durable. Returns the number of the next change.
    fn commit_log(&self) -> Result<u64> {
        let log = self.log()?;
        let mut log = log.lock();
        log.commit()?;
        Ok(log.next())
    }

    /// Ends a change of many documents: makes it durable, and leaves no long log for others to read.
    pub fn finish(&mut self) -> Result<()> {
        self.log()?.lock().commit()?;
        self.flush_beyond(LEFT_BYTES)
    }

    fn flush_beyond(&mut self, bytes: usize) -> Result<()> {
        if self.memory_bytes() >= bytes { self.flush(bytes / 2) } else { Ok(()) }
    }

    /// Returns the log of an index that is open to be changed.
    pub(super) fn log(&self) -> Result<Arc<Mutex<LogWriter>>> {
        self.log.clone().context("the index is open to be read")
    }
}
