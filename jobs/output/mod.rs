//! The output folder: one owner, everything under `_temporary`, moved last, `_SUCCESS` after that.
//!
//! `lock.rs` says who may write, `parts.rs` what a split leaves for a run that resumes this one, `commit.rs` how the
//! whole becomes visible (docs/design/0020).

mod commit;
mod lock;
mod parts;
#[cfg(test)]
mod power;
#[cfg(test)]
mod power_store;

use std::fmt::Write as _;
use std::io::{self, Read, Write as _};
use std::sync::Arc;

use anyhow::{Result, anyhow, bail};
use cluster::{BlobReader, Output, Store, Stores};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use self::lock::{Lock, Owner, is_of_lock};
pub(crate) use self::parts::{SplitParts, TaskManifest};
use crate::failure::while_running;
use crate::plan::Plan;
use crate::{WrongUse, exit_code};

const SUCCESS: &str = "_SUCCESS";
/// In a run's folder: what will be the output, and what was to be that of the run that it resumes.
const PARTS: &str = "parts";
const EARLIER: &str = "earlier";
/// In a run's folder: the key of the run.
const KEY: &str = "key";

/// What a run's output depends on, as a hash. What a run left is good for another one of the same key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key(String);

impl Key {
    /// Of this program's version, what it was asked for, and the input files with their lengths and times.
    pub fn new(asked: &impl Serialize, plan: &Plan) -> Result<Self> {
        let mut text = format!("{}\n{}\n", env!("CARGO_PKG_VERSION"), serde_json::to_string(asked)?);
        for file in &plan.files {
            writeln!(text, "{}\0{}\0{}\0{:?}", file.store.prefix(), file.path, file.bytes, file.modified)?;
        }
        Ok(Key(format!("{:032x}", xxh3_128(text.as_bytes()))))
    }
}

/// An output folder that is not yet committed.
pub(crate) struct OutputFolder {
    store: Arc<dyn Store>,
    uri: String,
    path: String,
    /// The path of this run's own folder in `_temporary`: no other run writes there.
    run: String,
    /// Of the process that claimed it.
    lock: Option<Lock>,
    /// Whether another run may go on with what this one has finished.
    resumable: bool,
    committed: Option<String>,
}

/// What another process of the job needs to write to the output that process 0 has claimed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct SharedFolder {
    uri: String,
    run: String,
}

impl OutputFolder {
    /// Claims the folder, and lets `work` fill and commit it. What fails is abandoned.
    pub fn fill<T>(
        stores: &Stores,
        uri: &str,
        overwrite: bool,
        plan: &Plan,
        work: impl FnOnce(&OutputFolder) -> Result<T>,
    ) -> Result<T> {
        OutputFolder::claim(stores, uri, overwrite, plan, None)?.work(work)
    }

    /// Claims the folder. What a run of the same key has finished is taken over, all else in `_temporary` removed; a
    /// finished output, or anything else that is there, is refused unless `overwrite`; an input inside it always. Without
    /// a key nothing is taken over, from this run either.
    ///
    /// # Errors
    /// [`Locked`](crate::failure::Locked) when another run that lives has claimed it; [`WrongUse`].
    pub fn claim(
        stores: &Stores,
        uri: &str,
        overwrite: bool,
        plan: &Plan,
        key: Option<&Key>,
    ) -> Result<Self> {
        let (store, path) = stores.locate(uri)?;
        let path = path.trim_end_matches('/').to_owned();
        if store.exists(&path)? {
            if store.children(&path)?.first().is_some_and(|file| file.path == path) {
                bail!(WrongUse(format!("the output \"{uri}\" is a file")));
            }
            // So that nothing is written where nothing is to be done.
            if !store.exists(&format!("{path}/_temporary"))? {
                refuse_existing(store.as_ref(), &path, uri, overwrite)?;
            }
        }
        // It must be there for its name to be told from others that lead to it.
        store.create_dir(&path)?;
        if let Some(file) = plan.file_below(store.prefix(), &path) {
            bail!(WrongUse(format!("the input \"{}\" lies in the output \"{uri}\"", file.path)));
        }
        let mut folder = OutputFolder::lock(store, path, uri, Owner::of_this_process())?;
        folder.lock.as_ref().map_or(Ok(()), Lock::beat)?;
        let taken = folder.take_over(overwrite, key);
        taken.map_err(|error| folder.reason(error))?;
        Ok(folder)
    }

    /// The folder as another process of the job sees it, which neither claims nor commits.
    ///
    /// # Errors
    /// Those of [`Stores::locate`].
    pub fn of_shared(stores: &Stores, shared: &SharedFolder) -> Result<Self> {
        let (store, path) = stores.locate(&shared.uri)?;
        let path = path.trim_end_matches('/').to_owned();
        let SharedFolder { uri, run } = shared.clone();
        Ok(OutputFolder { store, uri, path, run, lock: None, resumable: true, committed: None })
    }

    /// For [`OutputFolder::of_shared`].
    pub fn shared(&self) -> SharedFolder {
        SharedFolder { uri: self.uri.clone(), run: self.run.clone() }
    }

    /// What `_SUCCESS` says, if an earlier run had decided all and only the commit was left: it is done now.
    pub fn committed(&self) -> Option<&str> {
        self.committed.as_deref()
    }

    /// Lets `work` fill and commit the folder. After a failure, what is finished stays for a run that resumes this one,
    /// unless the failure would come again.
    pub fn work<T>(self, work: impl FnOnce(&OutputFolder) -> Result<T>) -> Result<T> {
        let result = work(&self).map_err(|error| self.reason(while_running(error)));
        if let Err(error) = &result {
            // The first error is the one to report.
            drop(self.leave(matches!(exit_code(error), 2 | 4)));
        }
        result
    }

    fn lock(store: Arc<dyn Store>, path: String, uri: &str, me: Owner) -> Result<Self> {
        let temporary = format!("{path}/_temporary");
        let lock = Lock::take(&store, &temporary, uri, me).map_err(|error| match error.downcast_ref() {
            Some(cluster::Error::Denied { .. } | cluster::Error::Io { .. }) => {
                anyhow!("could not claim the output \"{uri}\": {error:#}")
            }
            _ => error,
        })?;
        let (uri, run, lock) = (uri.to_owned(), format!("{temporary}/{}", lock.run()), Some(lock));
        Ok(OutputFolder { store, uri, path, run, lock, resumable: false, committed: None })
    }

    /// Once the lock is ours: takes what can be resumed, clears away what cannot, and commits what was decided.
    fn take_over(&mut self, overwrite: bool, key: Option<&Key>) -> Result<()> {
        let store = Arc::clone(&self.store);
        let mut others: Vec<String> = Vec::new();
        for child in store.children(&self.at("_temporary"))? {
            if child.directory {
                others.push(child.path);
            }
        }
        others.sort();
        if let Some(key) = key {
            let is_same = |other: &String| -> Result<bool> {
                Ok(read(store.as_ref(), &format!("{other}/{KEY}"))?.as_deref() == Some(key.0.as_bytes()))
            };
            while let Some(other) = others.pop() {
                if is_same(&other)? {
                    // It takes the floor from under an owner that was only asleep.
                    store.rename(&other, &self.run)?;
                    self.resumable = true;
                    break;
                }
            }
        }
        let decided = if self.resumable { self.decided()? } else { None };
        if decided.is_none()
            && let Err(error) = refuse_existing(store.as_ref(), &self.path, &self.uri, overwrite)
        {
            self.release()?;
            return Err(error);
        }
        // What is removed must not come back without the lock and the new name.
        store.settle(&self.at("_temporary"))?;
        for child in store.children(&self.at("_temporary"))?.iter().filter(|child| child.directory) {
            if child.path.trim_end_matches('/') != self.run {
                store.remove(&child.path)?;
            }
        }
        self.lock.as_ref().map_or(Ok(()), Lock::remove_earlier)?;
        if let Some(job) = decided {
            self.roll_forward(&job)?;
            self.committed = Some(job.success);
        } else if self.resumable {
            store.remove(&self.temporary(EARLIER))?;
            if store.exists(&self.temporary(PARTS))? {
                store.rename(&self.temporary(PARTS), &self.temporary(EARLIER))?;
            }
        } else if let Some(key) = key {
            put(store.as_ref(), &self.temporary(KEY), key.0.as_bytes())?;
            self.resumable = true;
        }
        Ok(())
    }

    fn at(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    /// A path in the run's own folder; the folder itself if there is no name.
    fn temporary(&self, name: &str) -> String {
        if name.is_empty() { self.run.clone() } else { format!("{}/{name}", self.run) }
    }

    /// Creates a file that the commit will move to `name`.
    pub fn file(&self, name: &str) -> Result<Box<dyn Output>, cluster::Error> {
        self.still_owned()?;
        self.store.create(&self.temporary(&format!("{PARTS}/{name}")))
    }

    /// An error once the beat has found that another run has taken over.
    fn still_owned(&self) -> Result<(), cluster::Error> {
        if self.lock.as_ref().is_some_and(Lock::is_lost) {
            let taken = io::Error::other("another run has taken over the output");
            return Err(cluster::Error::io(&self.uri, "write", taken));
        }
        Ok(())
    }

    /// An error if another run has taken over.
    fn check(&self) -> Result<()> {
        self.lock.as_ref().map_or(Ok(()), Lock::check)
    }

    /// Why a run failed: whatever was not found once another run had taken over is no wonder.
    fn reason(&self, error: anyhow::Error) -> anyhow::Error {
        match self.check() {
            Err(taken) if self.lock.as_ref().is_some_and(Lock::is_lost) => taken,
            _ => error,
        }
    }

    /// The end of a run that failed. What it has finished stays for a run that resumes it, unless it is `useless`.
    fn leave(&self, useless: bool) -> Result<()> {
        if self.decided()?.is_none() && (useless || !self.resumable) {
            self.check()?;
            self.store.remove(&self.run)?;
        }
        self.release()
    }

    /// Leaves the output to others, with what lies in `_temporary` if anything but locks does.
    fn release(&self) -> Result<()> {
        let Some(lock) = &self.lock else { return Ok(()) };
        lock.stop();
        let left = self.store.children(&self.at("_temporary"))?;
        if left.iter().all(|child| is_of_lock(&child.path)) {
            self.remove_temporary()
        } else {
            lock.release()
        }
    }
}

fn refuse_existing(store: &dyn Store, path: &str, uri: &str, overwrite: bool) -> Result<()> {
    if !overwrite && (store.exists(&format!("{path}/{SUCCESS}"))? || !store.list(path)?.is_empty()) {
        bail!(WrongUse(format!("the output \"{uri}\" exists; --overwrite replaces it")));
    }
    Ok(())
}

/// Writes a small file, in place of one that is there.
fn put(store: &dyn Store, path: &str, contents: &[u8]) -> Result<(), cluster::Error> {
    let mut file = store.create(path)?;
    file.write_all(contents).map_err(|error| cluster::Error::io(path, "write", error))?;
    file.finish()
}

/// The contents of a small file, if it is there.
fn read(store: &dyn Store, path: &str) -> Result<Option<Vec<u8>>, cluster::Error> {
    let blob = match store.open(path) {
        Err(cluster::Error::NotFound { .. }) => return Ok(None),
        blob => blob?,
    };
    let mut contents = Vec::new();
    let all = BlobReader::new(blob, 0, u64::MAX).read_to_end(&mut contents);
    all.map_err(|error| cluster::Error::io(path, "read", error))?;
    Ok(Some(contents))
}
