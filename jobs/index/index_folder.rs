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
use operators::hash::Secret;
use operators::method::{KeptKeys, Method, Spec};
use operators::text::document_frequencies::Statistics;
use operators::text::features::Lexicon;
use serde::{Deserialize, Serialize};

use super::sealed_file::{read_sealed, write_sealed};
use super::settings::{IndexSettings, read_settings};
use super::topics::{Change, ChangeKind, PreparedDoc, Topic, TopicReader, merge, tier};
use crate::cli::exit::{Locked, WrongUse};
use crate::dedup::options::Verification;

/// Number of bytes of documents in memory from which on they are written as segments.
const MEMORY_BYTES: usize = 1 << 28;
/// Folder that a topic is moved to before its files are removed, so that none is half there.
const DROPPED: &str = "_dropped";
/// Number of times that a reader begins anew because a writer has moved documents from the log to segments meanwhile.
const ATTEMPTS: usize = 20;

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
    /// Makes an empty index.
    ///
    /// # Errors
    /// [`WrongUse`] when the folder has files.
    pub fn create(path: &str, settings: &IndexSettings) -> Result<()> {
        let (store, path) = (Local, absolute(path)?);
        if !store.children(&path).or_else(nothing_there)?.is_empty() {
            bail!(WrongUse(format!(
                "\"{path}\" is no empty folder: index insert adds documents to an index"
            )));
        }
        store.create_dir(&path)?;
        LogWriter::create(&path_of_text(&path).join("log"))?;
        write_sealed(&store, &format!("{path}/index.json"), &path, settings)
    }

    /// Opens an index to change it. `wait`: how long to wait for the process that is changing it. `warn`: gets what a
    /// crash has left.
    ///
    /// # Errors
    /// [`WrongUse`] when there is no index; [`Locked`] when another process is changing it.
    pub fn open(path: &str, lexicon: &Lexicon, wait: Duration, warn: impl FnOnce(TornTail)) -> Result<Self> {
        let mut index = IndexFolder::without_topics(path, lexicon)?;
        let lock = lock(&index.path, wait)?;
        index.open_topics()?;
        index.topics.values().try_for_each(Topic::remove_strangers)?;
        let floor = index.log_floor()?;
        let (store, path) = (Arc::clone(&index.store), index.path.clone());
        store.remove(&format!("{path}/{DROPPED}"))?;
        let (folder, mut replay) = index.replay();
        let (log, torn) = LogWriter::open(&folder, floor.from, |number, record| {
            // A crash may have left the files of a topic that was dropped.
            let dropped = replay.change(number, record)?;
            dropped.map_or(Ok(()), |name| remove_topic(store.as_ref(), &path, &name))
        })?;
        if let Some(torn) = torn {
            warn(torn);
        }
        index.writer = Some(IndexWriter { log, _lock: lock });
        Ok(index)
    }

    /// Opens an index to read it, as it is now, while another process may change it.
    ///
    /// # Errors
    /// [`WrongUse`] when there is no index.
    pub fn open_to_read(path: &str, lexicon: &Lexicon) -> Result<Self> {
        let mut failed = None;
        for _ in 0..ATTEMPTS {
            let mut index = IndexFolder::without_topics(path, lexicon)?;
            match index.read_all() {
                Ok(()) => return Ok(index),
                // A writer may have removed what a manifest has just named, or the log that it has not named.
                Err(error) => failed = Some(error),
            }
            thread::sleep(Duration::from_millis(20));
        }
        Err(failed.context("the index cannot be read")?)
    }

    fn read_all(&mut self) -> Result<()> {
        let floor = self.log_floor()?;
        self.open_topics()?;
        let (folder, mut replay) = self.replay();
        read_log(&folder, floor.from, |number, record| replay.change(number, record).map(|_| ()))?;
        if self.log_floor()? != floor {
            bail!("the index has changed while it was read");
        }
        Ok(())
    }

    fn without_topics(path: &str, lexicon: &Lexicon) -> Result<Self> {
        let (store, path) = (Arc::new(Local) as Arc<dyn Store>, absolute(path)?);
        let settings = read_settings(store.as_ref(), &format!("{path}/index.json"))?;
        let settings =
            settings.with_context(|| WrongUse(format!("\"{path}\" is no index: index build makes one")))?;
        let verify: Option<Verification> = match &*settings.verify {
            "" => None,
            verify => Some(verify.parse().map_err(anyhow::Error::msg)?),
        };
        let spec: Spec = settings.method.parse()?;
        let least = verify.and_then(|verify| verify.0);
        let method = spec.method(lexicon, &Statistics::default(), least)?;
        let keys = KeptKeys::new(&method, Secret::of_words(settings.secret));
        let keys =
            keys.with_context(|| WrongUse(format!("the method {spec} has no keys that an index can keep")))?;
        Ok(IndexFolder { store, path, settings, method, keys, topics: BTreeMap::new(), writer: None })
    }

    fn open_topics(&mut self) -> Result<()> {
        for entry in self.store.children(&format!("{}/topics", self.path)).or_else(nothing_there)? {
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

/// Makes the changes of a log again.
struct Replay<'a> {
    store: &'a Arc<dyn Store>,
    path: &'a str,
    topics: &'a mut BTreeMap<String, Topic>,
    keys: &'a KeptKeys,
}

impl Replay<'_> {
    /// Makes a change again. Returns the name of the topic that it has dropped.
    fn change(&mut self, number: u64, record: &[u8]) -> Result<Option<String>> {
        let Change { topic: name, what } =
            postcard::from_bytes(record).context("the log is of another version of this program")?;
        let topic = topic_of(self.topics, self.store, self.path, &name, number)?;
        if number < topic.flushed() {
            return Ok(None);
        }
        if what == ChangeKind::Drop {
            self.topics.remove(&name);
            return Ok(Some(name));
        }
        topic.apply(what, self.keys);
        Ok(None)
    }
}

/// Returns a topic, which is begun if there is none. `next_change`: the number of the next change in the log.
fn topic_of<'a>(
    topics: &'a mut BTreeMap<String, Topic>,
    store: &Arc<dyn Store>,
    path: &str,
    name: &str,
    next_change: u64,
) -> Result<&'a mut Topic> {
    if !topics.contains_key(name) {
        let topic = Topic::open(store, name, format!("{path}/topics/{name}"), next_change)?;
        topics.insert(name.to_owned(), topic);
    }
    topics.get_mut(name).context("a topic that was opened is open")
}

/// Removes the files of a topic, once the log has its end.
fn remove_topic(store: &dyn Store, path: &str, name: &str) -> Result<()> {
    let (folder, dropped) = (format!("{path}/topics/{name}"), format!("{path}/{DROPPED}"));
    if let (true, Showing::Rename(renames)) = (store.exists(&folder)?, store.showing()) {
        store.remove(&dropped)?;
        renames.rename(&folder, &dropped)?;
        store.remove(&dropped)?;
    }
    Ok(())
}

fn absolute(path: &str) -> Result<String> {
    let absolute = std::path::absolute(path_of_text(path))?;
    Ok(cluster::text_of_path(absolute.as_os_str()))
}

fn nothing_there<T: Default>(error: cluster::Error) -> Result<T, cluster::Error> {
    match error {
        cluster::Error::NotFound { .. } => Ok(T::default()),
        error => Err(error),
    }
}

/// Takes the lock of an index.
fn lock(path: &str, wait: Duration) -> Result<File> {
    let file = Path::new(&path_of_text(path)).join("lock");
    let open = File::options().create(true).truncate(false).write(true).open(&file);
    let open = open.with_context(|| format!("could not open \"{path}/lock\""))?;
    let end = Instant::now() + wait;
    loop {
        match open.try_lock() {
            Ok(()) => return Ok(open),
            Err(TryLockError::Error(error)) => {
                return Err(error).context(format!("could not lock \"{path}\""));
            }
            Err(TryLockError::WouldBlock) if Instant::now() >= end => {
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
        let bytes: usize = self.topics.values().map(|topic| topic.memory.bytes()).sum();
        if bytes >= MEMORY_BYTES { self.flush() } else { Ok(()) }
    }

    /// Writes all that is in memory as segments, merges segments, and removes the log.
    pub fn flush(&mut self) -> Result<()> {
        let log = self.log()?;
        log.commit()?;
        let next_change = log.next();
        for topic in self.topics.values_mut().filter(|topic| topic.is_changed()) {
            topic.flush(&self.keys, next_change)?;
            let documents: Vec<u64> = topic.segments.iter().map(|segment| segment.entry.documents).collect();
            if let Some(merged) = tier(&documents) {
                merge(topic, merged)?;
            }
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
