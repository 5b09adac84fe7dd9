//! The output folder: one owner, everything under `_temporary` or in uploads, shown last, `_SUCCESS` after that.
//!
//! `lock.rs` says who may write, `take_over.rs` what becomes of earlier runs, `parts.rs` what a split leaves for a run that
//! resumes this one, `bundles.rs` where small files wait in a bucket, `files.rs` which files belong to the output,
//! `commit.rs` how they become visible (docs/design/0020).

mod bundles;
mod by_rename;
mod by_upload;
mod commit;
mod files;
mod lock;
pub(crate) mod map_output;
mod parts;
pub(crate) mod read_back;
pub(crate) mod rejects;
mod success;
pub(crate) mod summary;
pub(crate) mod tables;
mod take_over;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::io::{self, Read, Write as _};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use cluster::{BlobReader, Cluster, Showing, Store, Stores};
use datasets::PartOutput;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use self::bundles::Bundles;
pub(crate) use self::by_upload::each_at_once;
pub(crate) use self::commit::{FOLDERS, JobManifest};
use self::files::SharedFiles;
pub(crate) use self::files::{Difference, FileList, OutputFile, found_below, hash};
pub(crate) use self::lock::is_begun;
use self::lock::{Lock, Owner};
pub(crate) use self::parts::{SplitParts, TaskManifest};
pub(crate) use self::success::SuccessList;
use crate::cli::exit::{is_change, while_running};
use crate::corpus::plan::Plan;
use crate::{WrongUse, exit_code, hash_of_program, say};

pub(crate) const SUCCESS: &str = "_SUCCESS";
/// In a run's folder: what will be the output, and what was to be that of the run that it resumes.
const PARTS: &str = "parts";
const EARLIER: &str = "earlier";
/// In a run's folder: the key of the run.
const KEY: &str = "key";
/// How often and how far apart a process looks for what process 0 has written: a network file system may show it late.
const LOOKS: u32 = 20;
const LOOK: Duration = Duration::from_millis(500);

/// What a run's output depends on, as a hash. What a run left is good for another one of the same key.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Key(String);

impl Key {
    /// Of this program, what it was asked for, and the input files with their lengths and times.
    pub fn new(asked: &impl Serialize, plan: &Plan) -> Result<Self> {
        let mut text = format!("{:032x}\n{}\n", hash_of_program()?, serde_json::to_string(asked)?);
        for file in &plan.files {
            let modified = file.version.modified;
            // The number of a local device may be another one after a start.
            let tag = file.version.tag.filter(|_| !file.store.prefix().is_empty());
            writeln!(text, "{}\0{}\0{}\0{modified:?}{tag:?}", file.store.prefix(), file.path, file.bytes)?;
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
    /// What an earlier run with the same key has decided to commit, where that is not done.
    decided: Option<JobManifest>,
    /// Whether nothing is written: all that is asked is what would be decided.
    rehearsal: bool,
    /// What the names of parts begin with.
    stem: String,
    /// What this process has written outside of splits.
    files: SharedFiles,
    /// Small files and tasks that this process has finished, in a store of uploads.
    bundles: Arc<Bundles>,
    /// How many splits the input has.
    splits: u32,
}

/// What another process of the job needs to write to the output that process 0 has claimed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct SharedFolder {
    uri: String,
    run: String,
    key: Key,
    rehearsal: bool,
}

impl OutputFolder {
    /// Claims the folder for a job of one process which no other run goes on with.
    ///
    /// # Errors
    /// Those of [`OutputFolder::claim`].
    pub fn claim_alone(stores: &Stores, uri: &str, overwrite: bool, plan: &Plan) -> Result<Self> {
        OutputFolder::claim(stores, uri, overwrite, plan, None, &Arc::new(Cluster::alone(1)))
    }

    /// Claims the folder for process 0 of `cluster`. A commit that an earlier run has decided and not finished is finished
    /// first, unless that run had this `key`: then it is [`OutputFolder::decided`]. What else a run of the same key has
    /// finished is taken over, all else in `_temporary` removed; a finished output, or anything else that is there, is
    /// refused unless `overwrite`; an input inside it always. Without a key nothing is taken over, from this run either.
    ///
    /// # Errors
    /// [`Locked`](crate::cli::exit::Locked) when another run that lives has claimed it; [`WrongUse`].
    pub fn claim(
        stores: &Stores,
        uri: &str,
        overwrite: bool,
        plan: &Plan,
        key: Option<&Key>,
        cluster: &Arc<Cluster>,
    ) -> Result<Self> {
        let (store, path) = stores.locate(uri)?;
        let path = path.trim_end_matches('/').to_owned();
        if path.is_empty() && matches!(store.showing(), Showing::Rename(_)) {
            bail!(WrongUse(format!(
                "the output \"{uri}\" is the root of a file system: name a folder in it"
            )));
        }
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
        if store.prefix().is_empty() {
            by_rename::refuse_several_file_systems(&path)?;
        }
        if let Some(file) = plan.file_below(store.prefix(), &path) {
            bail!(WrongUse(format!("the input \"{}\" lies in the output \"{uri}\"", file.path)));
        }
        let mut folder = OutputFolder::lock(store, path, uri, Owner::of_this_process())?;
        (folder.stem, folder.splits) = (part_stem(plan), plan.splits.len() as u32);
        if let Err(error) = folder.refuse_input_inside(plan) {
            folder.release(false)?;
            return Err(error);
        }
        folder.beat(cluster)?;
        folder.take_over(overwrite, key)?;
        Ok(folder)
    }

    /// An error if an input lies in the output under another name of its store: a name node has several.
    fn refuse_input_inside(&self, plan: &Plan) -> Result<()> {
        let Some(lock) = &self.lock else { return Ok(()) };
        for prefix in plan.prefixes().into_iter().filter(|prefix| *prefix != self.store.prefix()) {
            if let Some(file) = plan.file_below(prefix, &self.path)
                && lock.is_seen_by(file.store.as_ref())
            {
                bail!(WrongUse(format!(
                    "the input \"{prefix}{}\" lies in the output \"{}\"",
                    file.path, self.uri
                )));
            }
        }
        Ok(())
    }

    /// Shows from now on that this process lives. When another run takes over nevertheless, as it may after this process
    /// was stopped for long, this process ends, and with it all others of the job: whatever they wrote would be litter.
    fn beat(&self, cluster: &Arc<Cluster>) -> Result<()> {
        let Some(lock) = &self.lock else { return Ok(()) };
        let (cluster, store, run) = (Arc::clone(cluster), Arc::clone(&self.store), self.run.clone());
        lock.beat(move |taken: &anyhow::Error| {
            cluster.fail(&format!("{taken:#}"));
            // The first error is the one to report.
            drop(by_rename::vanish(store.as_ref(), &run));
            say(cluster::shown(&format!("error: {taken:#}")));
            std::process::exit(1);
        })
    }

    /// The folder as another process of the job sees it, which neither claims nor commits.
    ///
    /// # Errors
    /// When this process does not see what process 0 has written there; those of [`Stores::locate`].
    pub fn of_shared(stores: &Stores, shared: &SharedFolder, plan: &Plan) -> Result<Self> {
        let (store, path) = stores.locate(&shared.uri)?;
        let path = path.trim_end_matches('/').to_owned();
        let SharedFolder { uri, run, key, rehearsal } = shared.clone();
        for look in 0.. {
            if read(store.as_ref(), &format!("{run}/{KEY}"))?.as_deref() == Some(key.0.as_bytes()) {
                break;
            }
            if look == LOOKS {
                bail!(
                    "this process does not see the output \"{uri}\" that process 0 has begun: all processes need one \
                     shared file system there, such as HDFS, NFS or a bucket"
                );
            }
            thread::sleep(LOOK);
        }
        let mut folder = OutputFolder::new(store, uri, path, run);
        (folder.stem, folder.splits) = (part_stem(plan), plan.splits.len() as u32);
        (folder.resumable, folder.rehearsal) = (true, rehearsal);
        Ok(folder)
    }

    /// The folder of a run that has not written anything yet. `path`: of the output; `run`: of the run's own folder.
    fn new(store: Arc<dyn Store>, uri: String, path: String, run: String) -> Self {
        OutputFolder {
            store,
            uri,
            path,
            run,
            lock: None,
            resumable: false,
            decided: None,
            rehearsal: false,
            stem: "part".to_owned(),
            files: SharedFiles::default(),
            bundles: Arc::default(),
            splits: 0,
        }
    }

    /// For [`OutputFolder::of_shared`]. `key`: with which the folder was claimed.
    pub fn shared(&self, key: &Key) -> SharedFolder {
        let (uri, run, key) = (self.uri.clone(), self.run.clone(), key.clone());
        SharedFolder { uri, run, key, rehearsal: self.rehearsal }
    }

    /// What an earlier run with the same key has decided, if only the commit is left, or a part of it.
    pub fn decided(&self) -> Option<&JobManifest> {
        self.decided.as_ref()
    }

    /// Writes nothing from now on, so that what would be decided can be found out anew.
    pub fn rehearse(&mut self) {
        self.rehearsal = true;
    }

    /// Whether nothing is written.
    pub fn is_rehearsal(&self) -> bool {
        self.rehearsal
    }

    /// Ends the run with its result. After a failure, what is finished stays for a run that resumes this one, unless the
    /// failure would come again.
    pub fn close<T>(self, result: Result<T>) -> Result<T> {
        let result = result.map_err(|error| self.reason(while_running(error)));
        if let Err(error) = &result {
            // The first error is the one to report.
            drop(self.leave(matches!(exit_code(error), 2 | 4) || is_change(error)));
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
        let mut folder =
            OutputFolder::new(store, uri.to_owned(), path, format!("{temporary}/{}", lock.run()));
        folder.lock = Some(lock);
        Ok(folder)
    }

    fn at(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    /// A path in the run's own folder; the folder itself if there is no name.
    fn temporary(&self, name: &str) -> String {
        if name.is_empty() { self.run.clone() } else { format!("{}/{name}", self.run) }
    }

    /// The name of the run's own folder, which no other run has.
    fn run_name(&self) -> &str {
        self.run.rsplit('/').next().unwrap_or_default()
    }

    /// Begins a file that the commit will show as `name`; for files that belong to no split.
    pub fn file(&self, name: &str) -> Result<Box<dyn PartOutput>, cluster::Error> {
        self.part(name.to_owned(), &self.files)
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

    /// The same, of what was known at most seconds ago: asks only if this process was stopped since.
    fn check_lately(&self) -> Result<()> {
        self.lock.as_ref().map_or(Ok(()), Lock::check_lately)
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
        let keeps = self.decided_in(&self.run)?.is_some() || (self.resumable && !useless);
        if let (false, Showing::Uploads(uploads)) = (keeps, self.store.showing()) {
            self.check()?;
            by_upload::clear(self, uploads, &self.run, None)?;
        }
        self.release(keeps)
    }

    /// Leaves the output to others. What other runs have left in `_temporary` stays, and this one's folder if it `keeps` it.
    fn release(&self, keeps: bool) -> Result<()> {
        let Some(lock) = &self.lock else { return Ok(()) };
        lock.stop();
        if let Err(error) = self.check() {
            if lock.is_lost() {
                drop(by_rename::vanish(self.store.as_ref(), &self.run));
            }
            return Err(error);
        }
        // A lock stays as long as the folder of its run does: it fences an owner that was asleep.
        let mut locks = if self.other_runs()?.is_empty() { lock.earlier_paths()? } else { Vec::new() };
        locks.extend(lock.paths());
        let own = || if keeps { Ok(()) } else { self.store.remove(&self.run) };
        match self.store.showing() {
            Showing::Rename(renamer) => {
                self.discard(&locks)?;
                own()?;
                renamer.remove_empty(&self.at("_temporary"))?;
            }
            Showing::Uploads(_) => {
                own()?;
                self.discard(&locks)?;
            }
        }
        Ok(())
    }

    /// Removes locks and beats.
    fn discard(&self, paths: &[String]) -> Result<()> {
        match self.store.showing() {
            Showing::Rename(renamer) => by_rename::discard(self, renamer, paths),
            Showing::Uploads(_) => Ok(paths.iter().try_for_each(|path| self.store.remove(path))?),
        }
    }
}

/// What the names of parts begin with: `part`, unless a file that keeps its own name could have the name of a part.
fn part_stem(plan: &Plan) -> String {
    let mut stem = "part".to_owned();
    let may_meet = |name: &str, stem: &str| {
        let begins = |part: &str| part.to_lowercase().starts_with(&format!("{stem}-"));
        name.split('/').any(begins)
    };
    while plan.kept_names().any(|name| may_meet(name, &stem)) {
        stem.push('s');
    }
    stem
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
pub(crate) fn read(store: &dyn Store, path: &str) -> Result<Option<Vec<u8>>, cluster::Error> {
    let blob = match store.open(path) {
        Err(cluster::Error::NotFound { .. }) => return Ok(None),
        blob => blob?,
    };
    let mut contents = Vec::new();
    let all = BlobReader::new(blob, 0, u64::MAX).read_to_end(&mut contents);
    all.map_err(|error| cluster::Error::io(path, "read", error))?;
    Ok(Some(contents))
}
