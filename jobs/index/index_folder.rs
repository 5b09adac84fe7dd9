//! An index on disk, and the opening of it. `changes.rs` changes it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use cluster::write_ahead_log::{LogWriter, TornTail, read_log};
use cluster::{Entry, Local, Showing, Store, path_of_text};
use operators::hash::Secret;
use operators::method::{KeptKeys, Method, Spec};
use operators::text::features::Lexicon;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::held_folder::{FolderLock, HeldFolder};
use super::hidden_changes::{Follower, HiddenChanges};
use super::replay::{DROPPED, Replay, remove_topic};
use super::settings::{self, IndexSettings, read_settings};
use super::topics::Topic;
use runtime::Common;
use runtime::cli::exit::{WrongUse, while_running};
use runtime::output::{read_sealed, write_sealed};

/// File with the settings of an index, and its name while the index is being built.
pub(super) const SETTINGS: &str = "index.json";
pub(super) const BUILDING: &str = "building.json";
/// File with the beginning of the log.
pub(super) const LOG_FLOOR: &str = "log.json";
/// Number of bytes of documents in memory from which on they are written as segments.
pub(super) const MEMORY_BYTES: usize = 1 << 28;
/// Number of times that a reader begins anew because a writer has moved documents from the log to segments meanwhile.
const ATTEMPTS: usize = 10;

/// An open index.
///
/// One process may write it; the lock is that of the operating system, so it ends with its process. It writes to the folder
/// that it has locked, and to no other one that has taken its name. Any number of processes may read it
/// meanwhile, each as it was when it was opened.
pub struct IndexFolder {
    pub(super) store: Arc<dyn Store>,
    pub(super) path: String,
    pub(super) settings: IndexSettings,
    pub(super) method: Method,
    pub(super) keys: KeptKeys,
    pub(super) topics: BTreeMap<String, Topic>,
    /// Bytes at the end of the log that were no whole group when the index was opened. A writer has cut them off.
    pub(super) torn: Option<TornTail>,
    /// Beginning of the log, as it was when the index was opened or flushed.
    pub(super) floor: LogFloor,
    /// The log; `None` if the index is open to be read. The thread that makes changes durable holds this lock, and
    /// not that of the topics.
    pub(super) log: Option<Arc<Mutex<LogWriter>>>,
    /// Number of the change behind the last one that was read of the log, for an index that is open to be read.
    read_to: u64,
    /// The lock of an index that is open to be changed.
    pub(super) lock: Option<Arc<FolderLock>>,
    /// Buffer for a record of the log.
    pub(super) record: Vec<u8>,
    /// Changes that readers do not see yet; `None` if they see each change as soon as it is made.
    pub(super) hidden: Option<HiddenChanges>,
    /// Is told of the changes that readers see; `None` if nothing follows the index.
    pub(super) follower: Option<Follower>,
}

/// Beginning of the log that is still wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub(super) struct LogFloor {
    /// Changes with lower numbers are in the segments of all topics.
    pub from: u64,
}

impl IndexFolder {
    /// Makes an empty index, which is none before [`IndexFolder::finish_build`]. It takes the place of one that was never
    /// finished.
    ///
    /// # Errors
    /// [`WrongUse`] when the folder has other files; [`Locked`] when another process is building there.
    pub(super) fn build(path: &str, settings: &IndexSettings, lexicon: &Lexicon) -> Result<Self> {
        IndexFolder::build_on(Arc::new(Local), path, settings, lexicon)
    }

    /// Makes an empty index whose files but the log are in a store, which is that of this machine but in tests.
    pub(super) fn build_on(
        store: Arc<dyn Store>,
        path: &str,
        settings: &IndexSettings,
        lexicon: &Lexicon,
    ) -> Result<Self> {
        let path = absolute(path)?;
        // A refusal leaves nothing behind, not even the lock.
        refuse_others(store.as_ref(), &path)?;
        store.create_dir(&path)?;
        let (lock, store) = locked(store, &path, Duration::ZERO)?;
        refuse_others(store.as_ref(), &path)?;
        write_sealed(store.as_ref(), &format!("{path}/{BUILDING}"), &path, settings)?;
        for name in ["log", "topics", LOG_FLOOR] {
            store.remove(&format!("{path}/{name}"))?;
        }
        LogWriter::create(&path_of_text(&path).join("log"))?;
        let mut index = IndexFolder::without_topics(store, &path, BUILDING, lexicon)?;
        index.lock = Some(lock);
        index.claim()?;
        Ok(index)
    }

    /// Makes an empty index. `texts`: whether it keeps texts and compares them, if the method does.
    ///
    /// # Errors
    /// Those of the disk; [`WrongUse`] when the folder has files, and when the method has no keys that an index can keep.
    pub fn create(path: &str, method: &Spec, texts: bool) -> Result<Self> {
        let lexicon = Lexicon::default();
        let settings = settings::new(method, None, !texts, &lexicon, Secret::random())?;
        let mut index = IndexFolder::build(path, &settings, &lexicon)?;
        index.finish_build()?;
        Ok(index)
    }

    /// Writes all that is in memory as segments, and makes the index one that others see.
    pub(super) fn finish_build(&mut self) -> Result<()> {
        self.flush(0)?;
        if let Showing::Rename(renames) = self.store.showing() {
            renames.rename(&format!("{}/{BUILDING}", self.path), &format!("{}/{SETTINGS}", self.path))?;
        }
        Ok(self.store.settle(&self.path)?)
    }

    /// Opens an index to change it. `wait`: how long to wait for the process that is changing it.
    ///
    /// # Errors
    /// [`WrongUse`] when there is no index; [`Locked`](runtime::cli::exit::Locked) when another process is changing it.
    pub fn open(path: &str, lexicon: &Lexicon, wait: Duration) -> Result<Self> {
        IndexFolder::open_on(Arc::new(Local), path, lexicon, wait)
    }

    /// Opens an index whose files but the log are in a store.
    pub(super) fn open_on(
        store: Arc<dyn Store>,
        path: &str,
        lexicon: &Lexicon,
        wait: Duration,
    ) -> Result<Self> {
        let path = absolute(path)?;
        // A folder that is no index gets no lock.
        settings_of(store.as_ref(), &path, SETTINGS)?;
        let (lock, store) = locked(store, &path, wait)?;
        let mut index = IndexFolder::without_topics(store, &path, SETTINGS, lexicon)?;
        index.lock = Some(lock);
        index.claim().map_err(while_running)?;
        Ok(index)
    }

    /// Reads everything, puts in order what a crash has left, and begins to write.
    fn claim(&mut self) -> Result<()> {
        self.open_topics()?;
        self.topics.values().try_for_each(Topic::remove_strangers)?;
        let floor = self.log_floor()?;
        self.floor = floor;
        let store = Arc::clone(&self.store);
        let path = self.path.clone();
        store.remove(&format!("{path}/{DROPPED}"))?;
        let (folder, mut replay) = self.replay();
        let (mut log, torn) = LogWriter::open(&folder, floor.from, |number, record| {
            // A crash may have left the files of a topic that was dropped.
            let dropped = replay.change(number, record)?;
            dropped.map_or(Ok(()), |name| remove_topic(store.as_ref(), &path, &name))
        })?;
        self.torn = torn;
        if let Some(lock) = self.lock.clone() {
            log.set_owner_check(move || lock.check());
        }
        self.log = Some(Arc::new(Mutex::new(log)));
        if self.memory_bytes() >= MEMORY_BYTES {
            // Else a process that is killed soon after each opening would find more in the log each time, without end. A
            // failure, as on a full disk, is that of the next flush, and the index answers until then.
            let _ = self.write_memory(MEMORY_BYTES / 2);
        }
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
            let mut index = IndexFolder::without_topics(Arc::new(Local), path, SETTINGS, lexicon)?;
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
        // A writer may remove the files of a segment once it has merged it.
        self.topics.values().try_for_each(Topic::open_files)?;
        let (folder, mut replay) = self.replay();
        let read = read_log(&folder, floor.from, |number, record| replay.change(number, record).map(|_| ()));
        if self.log_floor()? != floor {
            return Ok(false);
        }
        let read = read?;
        (self.torn, self.read_to) = (read.torn, read.next);
        Ok(true)
    }

    /// Warns of bytes at the end of the log that are no whole group.
    pub(super) fn warn_of_torn(&self, common: &Common) {
        if let Some(torn) = &self.torn {
            let what = match self.log {
                Some(_) => "cut off: a crash has torn them",
                None => "passed over: they are being written, a crash has torn them",
            };
            common.warn(format_args!("{torn} and are {what}, or they are damaged"));
        }
    }

    fn without_topics(store: Arc<dyn Store>, path: &str, settings: &str, lexicon: &Lexicon) -> Result<Self> {
        let path = absolute(path)?;
        let settings = settings_of(store.as_ref(), &path, settings)?;
        let (method, keys) = settings.method(lexicon)?;
        Ok(IndexFolder {
            store,
            path,
            settings,
            method,
            keys,
            topics: BTreeMap::new(),
            torn: None,
            floor: LogFloor::default(),
            log: None,
            read_to: 0,
            lock: None,
            record: Vec::new(),
            hidden: None,
            follower: None,
        })
    }

    fn open_topics(&mut self) -> Result<()> {
        for entry in self.store.children_if_any(&format!("{}/topics", self.path))? {
            if !entry.directory {
                continue;
            }
            let name = entry.name().to_owned();
            let topic = Topic::open(&self.store, &name, entry.path.clone(), 0)?;
            self.topics.insert(name, topic);
        }
        Ok(())
    }

    fn log_floor(&self) -> Result<LogFloor> {
        Ok(read_sealed(self.store.as_ref(), &format!("{}/{LOG_FLOOR}", self.path))?.unwrap_or_default())
    }

    /// Returns the number of the next change in the log.
    pub(super) fn next_change(&self) -> u64 {
        self.log.as_ref().map_or(self.read_to, |log| log.lock().next())
    }

    /// Returns what differs once another process has changed the index: the files of the log, and its beginning.
    pub(super) fn version(&self) -> Result<(u64, Vec<Entry>)> {
        let files = self.store.children(&format!("{}/log", self.path))?;
        Ok((self.log_floor()?.from, files))
    }

    /// Returns an error if the index that is open to be changed is no longer at its path.
    pub(super) fn check_place(&self) -> Result<()> {
        self.lock.as_ref().map_or(Ok(()), |lock| Ok(lock.check()?))
    }

    /// Returns the folder of the log, and what makes its changes again.
    fn replay(&mut self) -> (PathBuf, Replay<'_>) {
        let IndexFolder { store, path, topics, keys, .. } = self;
        (path_of_text(path).join("log"), Replay { store, path, topics, keys })
    }
}

/// Takes the lock of the index at a path, and returns a store that changes nothing else.
fn locked(store: Arc<dyn Store>, path: &str, wait: Duration) -> Result<(Arc<FolderLock>, Arc<dyn Store>)> {
    let lock = FolderLock::take(path, wait)?;
    Ok((Arc::clone(&lock), Arc::new(HeldFolder { store, lock })))
}

/// Reads the settings of an index. `name`: that of their file.
fn settings_of(store: &dyn Store, path: &str, name: &str) -> Result<IndexSettings> {
    let settings = match path_of_text(path).is_file() {
        true => None,
        false => read_settings(store, &format!("{path}/{name}"))?,
    };
    settings.with_context(|| WrongUse(format!("\"{path}\" is no index: index build makes one")))
}

/// Returns an error if a folder has files that an index which was never finished does not have.
fn refuse_others(store: &dyn Store, path: &str) -> Result<()> {
    if store.exists(&format!("{path}/{SETTINGS}"))? {
        bail!(WrongUse(format!("\"{path}\" is an index: index insert adds documents to it")));
    }
    let is_unfinished = store.exists(&format!("{path}/{BUILDING}"))?;
    for entry in store.children_if_any(path)? {
        let name = entry.name();
        if name != "lock" && !is_unfinished {
            bail!(WrongUse(format!("\"{path}\" holds \"{name}\": name an empty folder for the index")));
        }
    }
    Ok(())
}

/// Whether a file was missing.
pub(super) fn is_missing(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(cluster::Error::NotFound { .. }))
}

pub(super) fn absolute(path: &str) -> Result<String> {
    if path.contains("://") {
        bail!(WrongUse(format!("\"{path}\" is no local folder: an index is one")));
    }
    if path.is_empty() {
        bail!(WrongUse("the name of a folder is empty".to_owned()));
    }
    let absolute = std::path::absolute(path_of_text(path))?;
    Ok(cluster::text_of_path(absolute.as_os_str()))
}
