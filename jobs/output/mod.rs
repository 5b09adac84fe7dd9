//! The output folder of a run: readers see it whole or not at all, and a killed run is resumed.
//!
//! A run first takes the lock of the output, so that one run at a time writes there (`lock.rs`). It writes
//! its files where no reader looks: on a file system into a folder of its own below `_temporary`, in a bucket
//! as uploads that are not completed, with small files in bundles (`parts.rs`, `bundles.rs`). Every finished
//! file is noted in a list (`files.rs`). When all files are written, the run writes the job manifest, which
//! holds this list and the text of `_SUCCESS`. The job manifest is the decision: before it exists, readers
//! see nothing of the run; once it exists, this run or the next one finishes the commit (`commit.rs`).
//! `_SUCCESS` is written last, so a reader who sees it sees every file that it lists. A run that finds the
//! folder of a dead run takes it over (`take_over.rs`).
//!
//! Example: run A is killed during its commit on a file system, and run B is started with the same options.
//! Run folders are named by the number of the lock and random digits.
//!
//! ```text
//! step                    below OUT/_temporary                        readers see below OUT
//! A takes the lock        lock-00000001                               nothing
//! A writes its files      + 00000001-9e..: key, map, parts, tasks     nothing
//! A decides               + 00000001-9e../job                         nothing
//! A moves clusters, dies  parts no longer has clusters                clusters, no _SUCCESS: no output
//! B takes the lock        lock-00000002, 00000002-51.. (A's folder)   clusters, no _SUCCESS: no output
//! B finishes the commit   removed                                     clusters, pairs, kept, _SUCCESS
//! ```
//!
//! Had A been killed before it decided, B would do only the splits that A has not finished. The order of all
//! steps and the reasons are in docs/design/0020, 0046 and 0047.

mod bundles;
mod by_rename;
mod by_upload;
mod commit;
mod files;
mod lock;
pub(crate) mod map_output;
mod parts;
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
use cluster::{BlobReader, Group, Showing, Store, Stores};
use datasets::PartOutput;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use self::bundles::Bundles;
pub(crate) use self::by_upload::each_at_once;
pub(crate) use self::commit::JobManifest;
use self::files::SharedFiles;
pub(crate) use self::files::{Difference, FileList, OutputFile, found_below, hash};
use self::lock::{Lock, Owner};
pub(crate) use self::parts::{SplitParts, TaskManifest};
pub(crate) use self::success::SuccessList;
use crate::cli::exit::{WrongUse, exit_code, is_change, while_running};
use crate::cli::terminal::say;
use crate::corpus::output_layout::SUCCESS;
use crate::corpus::plan::Plan;
use crate::launch::build_identity::hash_of_program;

/// Folder of a run in which the files of the output wait for the commit; only on a file system.
const PARTS: &str = "parts";
/// Folder of a run with the unfinished work of the run that it resumes; only on a file system.
const EARLIER: &str = "earlier";
/// Name of the file in a run's folder that holds the [`Key`] of the run.
const KEY: &str = "key";
/// Number of times that a process looks for what process 0 has written: a network file system may show it
/// late.
const LOOKS: u32 = 20;
/// Pause between two of these looks.
const LOOK: Duration = Duration::from_millis(500);

/// Hash of everything that the output of a run depends on. A run may resume the work of another one with the
/// same key.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Key(String);

impl Key {
    /// Hashes this program, its options (`asked`), and the paths, lengths, modification times and tags of the
    /// input files.
    pub fn new(asked: &impl Serialize, plan: &Plan) -> Result<Self> {
        let mut text = format!("{:032x}\n{}\n", hash_of_program()?, serde_json::to_string(asked)?);
        for file in &plan.files {
            let modified = file.version.modified;
            // The tag of a local file holds the number of its device, which may change when the machine is
            // restarted.
            let tag = file.version.tag.filter(|_| !file.store.prefix().is_empty());
            writeln!(text, "{}\0{}\0{}\0{modified:?}{tag:?}", file.store.prefix(), file.path, file.bytes)?;
        }
        Ok(Key(format!("{:032x}", xxh3_128(text.as_bytes()))))
    }
}

/// Output folder that is not yet committed, as one process of a run sees it.
///
/// Process 0 claims the folder, which takes the lock, and commits it; the other processes only write files to
/// it. The example at the top of this module shows the states of a folder.
pub(crate) struct OutputFolder {
    store: Arc<dyn Store>,
    uri: String,
    path: String,
    /// Path of this run's own folder in `_temporary`, to which no other run writes.
    run: String,
    /// Lock of the output; only in the process that claimed it.
    lock: Option<Lock>,
    /// Whether another run may resume what this one has finished.
    resumable: bool,
    /// Commit that an earlier run with the same key has decided and not finished.
    decided: Option<JobManifest>,
    /// Whether this run writes nothing and only finds out what it would decide.
    rehearsal: bool,
    /// Stem of the names of parts, `part` in most runs; see [`part_stem`].
    stem: String,
    /// Files of this process that belong to no split.
    files: SharedFiles,
    /// Small files and task manifests that this process has finished; only in a store of uploads.
    bundles: Arc<Bundles>,
    /// Number of splits of the input.
    splits: u32,
}

/// Data with which another process of the job opens the output that process 0 has claimed.
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
        OutputFolder::claim(stores, uri, overwrite, plan, None, &Arc::new(Group::alone(1)))
    }

    /// Claims the folder for process 0 of `group`, and takes over or removes what earlier runs have left.
    ///
    /// | found in the output | done with it |
    /// |---|---|
    /// | decided commit of a run with this `key` | kept for the caller: [`OutputFolder::decided`] |
    /// | decided commit of a run with another key | finished first |
    /// | unfinished work of a run with this `key` | taken over, to be resumed |
    /// | anything else in `_temporary` | removed |
    /// | a finished output, or other files | refused unless `overwrite` |
    /// | an input of this run | always refused |
    ///
    /// A run without a key takes nothing over, and no later run takes anything over from it.
    ///
    /// # Errors
    /// [`Locked`](crate::cli::exit::Locked) when a running process owns the output; [`WrongUse`] for whatever
    /// is refused.
    pub fn claim(
        stores: &Stores,
        uri: &str,
        overwrite: bool,
        plan: &Plan,
        key: Option<&Key>,
        group: &Arc<Group>,
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
            // Refusing here writes nothing. Where `_temporary` exists, `take_over` decides, since it may hold
            // a commit to finish.
            if !store.exists(&format!("{path}/_temporary"))? {
                refuse_existing(store.as_ref(), &path, uri, overwrite)?;
            }
        }
        // The folder must exist so that its name can be compared with other names that lead to it.
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
        folder.beat(group)?;
        folder.take_over(overwrite, key)?;
        Ok(folder)
    }

    /// Returns an error if an input lies in the output under another prefix of the store: a name node has
    /// several names.
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

    /// Starts the beat, which shows other runs that this process is alive.
    ///
    /// Another run may nevertheless take over while this process is stopped for long. The beat notices that
    /// after the process continues, and ends all processes of the job: whatever they wrote from then on would
    /// be litter.
    fn beat(&self, group: &Arc<Group>) -> Result<()> {
        let Some(lock) = &self.lock else { return Ok(()) };
        let (group, store, run) = (Arc::clone(group), Arc::clone(&self.store), self.run.clone());
        lock.beat(move |taken: &anyhow::Error| {
            group.fail(&format!("{taken:#}"));
            // Only the first error is reported.
            drop(by_rename::vanish(store.as_ref(), &run));
            say(cluster::shown(&format!("error: {taken:#}")));
            std::process::exit(1);
        })
    }

    /// Opens the folder in another process of the job, which neither claims nor commits it.
    ///
    /// # Errors
    /// When this process does not see within 10 seconds what process 0 has written there; errors of
    /// [`Stores::locate`].
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

    /// Makes the folder of a run that has not written anything yet. `path`: path of the output; `run`: path
    /// of the run's own folder.
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

    /// Returns the data for [`OutputFolder::of_shared`]. `key`: the key with which the folder was claimed.
    pub fn shared(&self, key: &Key) -> SharedFolder {
        let (uri, run, key) = (self.uri.clone(), self.run.clone(), key.clone());
        SharedFolder { uri, run, key, rehearsal: self.rehearsal }
    }

    /// Returns the commit that an earlier run with the same key has decided, if it remains to be finished.
    pub fn decided(&self) -> Option<&JobManifest> {
        self.decided.as_ref()
    }

    /// Makes this run a rehearsal, which writes nothing: the caller finds out anew what it would decide.
    pub fn rehearse(&mut self) {
        self.rehearsal = true;
    }

    /// Whether this run is a rehearsal.
    pub fn is_rehearsal(&self) -> bool {
        self.rehearsal
    }

    /// Ends the run with its result. After a failure, finished work stays for a run that resumes this one,
    /// unless the failure would come again.
    pub fn close<T>(self, result: Result<T>) -> Result<T> {
        let result = result.map_err(|error| self.reason(while_running(error)));
        if let Err(error) = &result {
            // Only the first error is reported.
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

    /// Returns a path in the run's own folder, or that folder itself for an empty `name`.
    fn temporary(&self, name: &str) -> String {
        if name.is_empty() { self.run.clone() } else { format!("{}/{name}", self.run) }
    }

    /// Returns the name of the run's own folder, which is unique to this run.
    fn run_name(&self) -> &str {
        self.run.rsplit('/').next().unwrap_or_default()
    }

    /// Begins a file that belongs to no split and that the commit will show as `name`.
    pub fn file(&self, name: &str) -> Result<Box<dyn PartOutput>, cluster::Error> {
        self.part(name.to_owned(), &self.files)
    }

    /// Returns an error once the beat has found that another run has taken over. Makes no request.
    fn still_owned(&self) -> Result<(), cluster::Error> {
        if self.lock.as_ref().is_some_and(Lock::is_lost) {
            let taken = io::Error::other("another run has taken over the output");
            return Err(cluster::Error::io(&self.uri, "write", taken));
        }
        Ok(())
    }

    /// Asks the store, and returns an error if another run has taken over.
    fn check(&self) -> Result<()> {
        self.lock.as_ref().map_or(Ok(()), Lock::check)
    }

    /// Returns an error if another run has taken over, and asks the store only if the last answer is older
    /// than two beats.
    fn check_lately(&self) -> Result<()> {
        self.lock.as_ref().map_or(Ok(()), Lock::check_lately)
    }

    /// Returns the reason for a failed run: if another run has taken over, that is the reason, since it moves
    /// or removes the files of this run.
    fn reason(&self, error: anyhow::Error) -> anyhow::Error {
        match self.check() {
            Err(taken) if self.lock.as_ref().is_some_and(Lock::is_lost) => taken,
            _ => error,
        }
    }

    /// Ends a run that failed. Its finished work stays for a run that resumes it, unless it is `useless`; a
    /// decided commit always stays.
    fn leave(&self, useless: bool) -> Result<()> {
        let keeps = self.decided_in(&self.run)?.is_some() || (self.resumable && !useless);
        if let (false, Showing::Uploads(uploads)) = (keeps, self.store.showing()) {
            self.check()?;
            by_upload::clear(self, uploads, &self.run, None)?;
        }
        self.release(keeps)
    }

    /// Gives the output back: removes the lock, and this run's folder unless it `keeps` it. The folders of
    /// other runs stay.
    fn release(&self, keeps: bool) -> Result<()> {
        let Some(lock) = &self.lock else { return Ok(()) };
        lock.stop();
        if let Err(error) = self.check() {
            if lock.is_lost() {
                drop(by_rename::vanish(self.store.as_ref(), &self.run));
            }
            return Err(error);
        }
        // The locks of earlier runs stay as long as the folder of any other run does: they fence an owner
        // that was asleep.
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

    /// Removes locks and their beats.
    fn discard(&self, paths: &[String]) -> Result<()> {
        match self.store.showing() {
            Showing::Rename(renamer) => by_rename::discard(self, renamer, paths),
            Showing::Uploads(_) => Ok(paths.iter().try_for_each(|path| self.store.remove(path))?),
        }
    }
}

/// Returns the stem of the names of parts: `part`, and with one more `s` at its end as long as a file that
/// keeps its own name could collide with the name of a part.
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

/// Returns an error if the output has files and `overwrite` is false. Hidden files do not count, except
/// `_SUCCESS`.
fn refuse_existing(store: &dyn Store, path: &str, uri: &str, overwrite: bool) -> Result<()> {
    if !overwrite && (store.exists(&format!("{path}/{SUCCESS}"))? || !store.list(path)?.is_empty()) {
        bail!(WrongUse(format!("the output \"{uri}\" exists; --overwrite replaces it")));
    }
    Ok(())
}

/// Writes a small file, replacing one that exists.
fn put(store: &dyn Store, path: &str, contents: &[u8]) -> Result<(), cluster::Error> {
    let mut file = store.create(path)?;
    file.write_all(contents).map_err(|error| cluster::Error::io(path, "write", error))?;
    file.finish()
}

/// Returns the contents of a small file, or `None` if it does not exist.
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
