//! An index on disk: opening, changing and closing it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use cluster::write_ahead_log::{LogWriter, TornTail, read_log};
use cluster::{Local, Showing, Store, path_of_text};
use operators::method::{KeptKeys, Method};
use operators::text::features::Lexicon;
use serde::{Deserialize, Serialize};

use super::replay::{DROPPED, Replay, remove_topic, topic_of};
use super::sealed_file::{read_sealed, write_sealed};
use super::settings::{IndexSettings, read_settings};
use super::topics::{Change, ChangeKind, PreparedDoc, Topic, TopicReader, merge, merge_tier};
use crate::cli::exit::{Locked, WrongUse, while_running};

/// Number of bytes of documents in memory from which on they are written as segments.
const MEMORY_BYTES: usize = 1 << 28;
/// Number of bytes of documents in memory up to which they are left to the log when a command ends.
const LEFT_BYTES: usize = 1 << 24;
/// File with the settings of an index, and its name while the index is being built.
const SETTINGS: &str = "index.json";
const BUILDING: &str = "building.json";
/// Number of times that a reader begins anew because a writer has moved documents from the log to segments meanwhile.
const ATTEMPTS: usize = 10;

/// An open index.
///
/// One process may write it; the lock is that of the operating system, so it ends with its process. Any number of
/// processes may read it meanwhile, each as it was when it was opened.
pub(super) struct IndexFolder {
    store: Arc<dyn Store>,
    path: String,
    pub settings: IndexSettings,
    pub method: Method,
    pub keys: KeptKeys,
    pub topics: BTreeMap<String, Topic>,
    /// Bytes at the end of the log that were no whole group when the index was opened. A writer has cut them off.
    pub torn: Option<TornTail>,
    writer: Option<IndexWriter>,
}

/// Beginning of the log that is still wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
struct LogFloor {
    /// Changes with lower numbers are in the segments of all topics.
    from: u64,
}

struct IndexWriter {
    log: LogWriter,
    /// Holds the lock.
    _lock: File,
}

impl IndexFolder {
    /// Makes an empty index, which is none before [`IndexFolder::finish_build`]. It takes the place of one that was never
    /// finished.
    ///
    /// # Errors
    /// [`WrongUse`] when the folder has other files; [`Locked`] when another process is building there.
    pub fn build(path: &str, settings: &IndexSettings, lexicon: &Lexicon) -> Result<Self> {
        let (store, path) = (Local, absolute(path)?);
        store.create_dir(&path)?;
        let lock = lock(&path, Duration::ZERO)?;
        let unfinished = store.exists(&format!("{path}/{BUILDING}"))?;
        for entry in store.children(&path)? {
            let name = entry.path.rsplit('/').next().unwrap_or_default();
            if name != "lock" && (!unfinished || name == SETTINGS) {
                bail!(WrongUse(format!(
                    "\"{path}\" is no empty folder: index insert adds documents to an index"
                )));
            }
        }
        write_sealed(&store, &format!("{path}/{BUILDING}"), &path, settings)?;
        for name in ["log", "topics", "log.json"] {
            store.remove(&format!("{path}/{name}"))?;
        }
        LogWriter::create(&path_of_text(&path).join("log"))?;
        let mut index = IndexFolder::without_topics(&path, BUILDING, lexicon)?;
        index.claim(lock)?;
        Ok(index)
    }

    /// Writes all that is in memory as segments, and makes the index one that others see.
    pub fn finish_build(&mut self) -> Result<()> {
        self.flush()?;
        if let Showing::Rename(renames) = self.store.showing() {
            renames.rename(&format!("{}/{BUILDING}", self.path), &format!("{}/{SETTINGS}", self.path))?;
        }
        Ok(self.store.settle(&self.path)?)
    }

    /// Opens an index to change it. `wait`: how long to wait for the process that is changing it.
    ///
    /// # Errors
    /// [`WrongUse`] when there is no index; [`Locked`] when another process is changing it.
    pub fn open(path: &str, lexicon: &Lexicon, wait: Duration) -> Result<Self> {
        let mut index = IndexFolder::without_topics(path, SETTINGS, lexicon)?;
        let lock = lock(&index.path, wait)?;
        index.claim(lock).map_err(while_running)?;
        Ok(index)
    }

    /// Reads everything, puts in order what a crash has left, and begins to write.
    fn claim(&mut self, lock: File) -> Result<()> {
        self.open_topics()?;
        self.topics.values().try_for_each(Topic::remove_strangers)?;
        let floor = self.log_floor()?;
        let (store, path) = (Arc::clone(&self.store), self.path.clone());
        store.remove(&format!("{path}/{DROPPED}"))?;
        let (folder, mut replay) = self.replay();
        let (log, torn) = LogWriter::open(&folder, floor.from, |number, record| {
            // A crash may have left the files of a topic that was dropped.
            let dropped = replay.change(number, record)?;
            dropped.map_or(Ok(()), |name| remove_topic(store.as_ref(), &path, &name))
        })?;
        self.torn = torn;
        self.writer = Some(IndexWriter { log, _lock: lock });
        Ok(())
    }

    /// Opens an index to read it, as it is now, while another process may change it.
    ///
    /// # Errors
    /// [`WrongUse`] when there is no index.
    pub fn open_to_read(path: &str, lexicon: &Lexicon) -> Result<Self> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let mut index = IndexFolder::without_topics(path, SETTINGS, lexicon)?;
            match index.read_all() {
                Ok(true) => return Ok(index),
                Ok(false) if attempts == ATTEMPTS => {
                    bail!("the index \"{path}\" changes faster than it can be read")
                }
                // A writer may have removed what a manifest has just named.
                Err(error) if attempts == ATTEMPTS || !is_missing(&error) => {
                    return Err(while_running(error));
                }
                _ => thread::sleep(Duration::from_millis(50)),
            }
        }
    }

    /// Reads topics and log. Returns whether they belong together.
    fn read_all(&mut self) -> Result<bool> {
        let floor = self.log_floor()?;
        self.open_topics()?;
        let (folder, mut replay) = self.replay();
        let read = read_log(&folder, floor.from, |number, record| replay.change(number, record).map(|_| ()));
        if self.log_floor()? != floor {
            return Ok(false);
        }
        self.torn = read?.torn;
        Ok(true)
    }

    fn without_topics(path: &str, settings: &str, lexicon: &Lexicon) -> Result<Self> {
        let (store, path) = (Arc::new(Local) as Arc<dyn Store>, absolute(path)?);
        let settings = read_settings(store.as_ref(), &format!("{path}/{settings}"))?;
        let settings =
            settings.with_context(|| WrongUse(format!("\"{path}\" is no index: index build makes one")))?;
        let (method, keys) = settings.method(lexicon)?;
        Ok(IndexFolder {
            store,
            path,
            settings,
            method,
            keys,
            topics: BTreeMap::new(),
            torn: None,
            writer: None,
        })
    }

    fn open_topics(&mut self) -> Result<()> {
        for entry in self.store.children_if_any(&format!("{}/topics", self.path))? {
            if !entry.directory {
                continue;
            }
            let name = entry.path.rsplit('/').next().unwrap_or_default().to_owned();
            let topic = Topic::open(&self.store, &name, entry.path.clone(), 0)?;
            self.topics.insert(name, topic);
        }
        Ok(())
    }

    fn log_floor(&self) -> Result<LogFloor> {
        Ok(read_sealed(self.store.as_ref(), &format!("{}/log.json", self.path))?.unwrap_or_default())
    }

    /// Returns the folder of the log, and what makes its changes again.
    fn replay(&mut self) -> (PathBuf, Replay<'_>) {
        let IndexFolder { store, path, topics, keys, .. } = self;
        (path_of_text(path).join("log"), Replay { store, path, topics, keys })
    }
}

/// Whether a file was missing.
fn is_missing(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(cluster::Error::NotFound { .. }))
}

fn absolute(path: &str) -> Result<String> {
    if path.contains("://") {
        bail!(WrongUse(format!("\"{path}\" is no local folder: an index is one")));
    }
    let absolute = std::path::absolute(path_of_text(path))?;
    Ok(cluster::text_of_path(absolute.as_os_str()))
}

/// Takes the lock of an index.
fn lock(path: &str, wait: Duration) -> Result<File> {
    let file = Path::new(&path_of_text(path)).join("lock");
    let open = File::options().create(true).truncate(false).write(true).open(&file);
    let open = open.with_context(|| format!("could not open \"{path}/lock\""))?;
    let start = Instant::now();
    loop {
        match open.try_lock() {
            Ok(()) => return Ok(open),
            Err(TryLockError::Error(error)) => {
                return Err(error).context(format!("could not lock \"{path}\""));
            }
            Err(TryLockError::WouldBlock) if start.elapsed() >= wait => {
                bail!(Locked(format!("another process is changing the index \"{path}\"")))
            }
            Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(50)),
        }
    }
}

impl IndexFolder {
    /// Returns a topic; `None` if no document has ever come to it.
    pub fn topic(&self, name: &str) -> Option<&Topic> {
        self.topics.get(name)
    }

    /// Adds a document to a topic. It is durable after [`IndexFolder::commit`]. `now`: seconds since 1970.
    pub fn insert(&mut self, topic: &str, doc: &PreparedDoc, now: u64) -> Result<()> {
        let next_change = self.log()?.next();
        let topic = topic_of(&mut self.topics, &self.store, &self.path, topic, next_change)?;
        let change = topic.insertion(doc, now);
        self.change(change)
    }

    /// Deletes the documents of a topic with some ids. Returns how many there were.
    pub fn delete(&mut self, topic: &str, ids: &BTreeSet<String>) -> Result<usize> {
        let Some(topic) = self.topics.get(topic) else { return Ok(0) };
        let in_memory = topic.memory.docs().filter(|(_, doc)| ids.contains(&*doc.id));
        let mut numbers: Vec<u64> = in_memory.map(|(number, _)| number).collect();
        let mut reader = TopicReader::new(topic);
        for id in ids {
            numbers.extend(reader.docs_with_id(id)?);
        }
        let count = numbers.len();
        if count > 0 {
            let topic = topic.name.clone();
            self.change(Change { topic, what: ChangeKind::Delete(numbers) })?;
        }
        Ok(count)
    }

    /// Lets the documents of a topic expire that were added before a time, in seconds since 1970.
    pub fn expire(&mut self, topic: &str, before: u64) -> Result<()> {
        let Some(topic) = self.topics.get(topic) else { return Ok(()) };
        let mut reader = TopicReader::new(topic);
        // Documents are in the order of their times.
        let (mut oldest, mut end) = (topic.oldest, topic.next());
        while oldest < end {
            let middle = oldest.midpoint(end);
            match reader.doc_from(middle)? {
                Some(doc) if doc.time < before => oldest = doc.number + 1,
                _ => end = middle,
            }
        }
        if oldest > topic.oldest {
            let topic = topic.name.clone();
            self.change(Change { topic, what: ChangeKind::Expire(oldest) })?;
        }
        Ok(())
    }

    /// Merges all segments of each topic into one, without what is deleted or expired.
    pub fn compact(&mut self) -> Result<()> {
        self.flush()?;
        for topic in self.topics.values_mut() {
            let segments = topic.segments.len();
            if segments > 1 || topic.has_dead_rows() {
                merge(topic, 0..segments)?;
            }
        }
        Ok(())
    }

    /// Drops a topic with all of its documents. Returns whether there was one.
    pub fn drop_topic(&mut self, name: &str) -> Result<bool> {
        if !self.topics.contains_key(name) {
            return Ok(false);
        }
        self.change(Change { topic: name.to_owned(), what: ChangeKind::Drop })?;
        self.log()?.commit()?;
        self.topics.remove(name);
        remove_topic(self.store.as_ref(), &self.path, name)?;
        Ok(true)
    }

    /// Notes a change in the log, and makes it.
    fn change(&mut self, change: Change) -> Result<()> {
        let record = postcard::to_allocvec(&change)?;
        let number = self.log()?.append(&record)?;
        let topic = topic_of(&mut self.topics, &self.store, &self.path, &change.topic, number)?;
        topic.apply(change.what, &self.keys);
        Ok(())
    }

    /// Makes all changes durable. If much is in memory, it is written as segments, and segments are merged.
    pub fn commit(&mut self) -> Result<()> {
        self.log()?.commit()?;
        self.flush_beyond(MEMORY_BYTES)
    }

    /// Ends a change of many documents: makes it durable, and leaves no long log for others to read.
    pub fn finish(&mut self) -> Result<()> {
        self.log()?.commit()?;
        self.flush_beyond(LEFT_BYTES)
    }

    fn flush_beyond(&mut self, bytes: usize) -> Result<()> {
        let in_memory: usize = self.topics.values().map(|topic| topic.memory.bytes()).sum();
        if in_memory >= bytes { self.flush() } else { Ok(()) }
    }

    /// Writes all that is in memory as segments, merges segments, and removes the log.
    pub fn flush(&mut self) -> Result<()> {
        let log = self.log()?;
        log.commit()?;
        let next_change = log.next();
        for topic in self.topics.values_mut().filter(|topic| topic.is_changed()) {
            topic.flush(&self.keys, next_change)?;
            merge_tier(topic)?;
        }
        let floor = LogFloor { from: next_change };
        write_sealed(self.store.as_ref(), &format!("{}/log.json", self.path), &self.path, &floor)?;
        let log = self.log()?;
        log.begin_file()?;
        Ok(log.remove_before(next_change)?)
    }

    fn log(&mut self) -> Result<&mut LogWriter> {
        let writer = self.writer.as_mut().context("the index is open to be read")?;
        Ok(&mut writer.log)
    }
}
