//! The folder of an output that a run claims, writes and commits.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use cluster::{Group, Showing, Store, Stores};
use datasets::PartOutput;
use serde::{Deserialize, Serialize};

use super::bundles::Bundles;
use super::lock::{Lock, LockOwner};
use super::run_folder::{KEY, RunFolder};
use super::{by_rename, by_upload};
use crate::cli::exit::{WrongUse, while_running, would_come_again};
use crate::cli::terminal::say;
use crate::corpus::output_layout::{SUCCESS, is_begun_by_others};
use crate::corpus::own_outputs::is_output;
use crate::corpus::plan::Plan;
use crate::output::files::{FileList, SharedFiles};
use crate::output::key::Key;
use crate::output::manifests::JobManifest;
use crate::output::requests::read;
use crate::output::tables::TableFormat;

/// Number of times that a process looks for what process 0 has written: a network file system may show it
/// late.
const LOOKS: u32 = 20;
/// Pause between two of these looks.
const LOOK: Duration = Duration::from_millis(500);

/// Work that an earlier run which did not end has left of an output.
pub enum EarlierWork {
    /// It is gone on with.
    Resumed {
        /// When it began, in milliseconds since 1970 by the store's clock, if the store tells.
        begun: Option<u64>,
        /// Splits that are mapped.
        mapped: usize,
        /// Splits that are written.
        written: usize,
    },
    /// It is of no use, since options or input were others.
    OfOtherKey,
}

/// Output folder that is not yet committed, as one process of a run sees it.
///
/// Process 0 claims the folder, which takes the lock, and commits it; the other processes only write files to
/// it. The example at the top of `output` shows the states of a folder.
pub struct OutputFolder {
    pub(super) run: RunFolder,
    /// Whether another run may resume what this one has finished.
    pub(super) resumable: bool,
    /// Commit that an earlier run with the same key has decided and not finished.
    pub decided: Option<JobManifest>,
    /// Other work that it has left, in the process that claimed the output.
    pub earlier: Option<EarlierWork>,
    /// Whether this run writes nothing and only finds out anew what it would decide.
    pub rehearsal: bool,
    /// Format of the tables.
    pub table_format: TableFormat,
    /// Stem of the names of parts, `part` in most runs; see [`part_stem`].
    pub(super) stem: String,
    /// Files of this process that belong to no split.
    pub(super) files: SharedFiles,
    /// Small files and task manifests that this process has finished; only in a store of uploads.
    pub(super) bundles: Arc<Bundles>,
}

/// Data with which another process of the job opens the output that process 0 has claimed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct SharedFolder {
    uri: String,
    run: String,
    key: Key,
    rehearsal: bool,
}

impl OutputFolder {
    /// Claims the folder for process 0 of `group`, and takes over or removes what earlier runs have left.
    ///
    /// | found in the output | done with it |
    /// |---|---|
    /// | decided commit of a run with this `key` | kept for the caller in `decided` |
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
        if let Some(file) = plan.file_below(store.prefix(), &path) {
            let side = plan.side_of(file);
            bail!(WrongUse(format!("the {side} \"{}\" lies in the output \"{uri}\"", file.path)));
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
        if is_begun_by_others(store.as_ref(), &path)? {
            bail!(WrongUse(format!(
                "\"{uri}/_temporary\" is of another program, such as a job of Spark that is writing there: name another output"
            )));
        }
        let mut folder = OutputFolder::lock(store, path, uri, LockOwner::of_this_process())?;
        folder.set_plan(plan);
        if let Err(error) = folder.refuse_input_inside(plan) {
            folder.release(false)?;
            return Err(error);
        }
        folder.beat(group)?;
        folder.take_over(overwrite, key)?;
        Ok(folder)
    }

    /// Takes the names of parts and the numbers of splits from the plan of the run.
    fn set_plan(&mut self, plan: &Plan) {
        self.stem = part_stem(plan);
        self.run.splits = plan.first_split..plan.first_split + plan.splits.len() as u32;
    }

    /// Returns an error if an input lies in the output under another prefix of the store: a name node has
    /// several names.
    fn refuse_input_inside(&self, plan: &Plan) -> Result<()> {
        let Some(lock) = &self.run.lock else { return Ok(()) };
        for prefix in plan.prefixes().into_iter().filter(|prefix| *prefix != self.run.store.prefix()) {
            if let Some(file) = plan.file_below(prefix, &self.run.path)
                && lock.is_seen_by(file.store.as_ref())
            {
                bail!(WrongUse(format!(
                    "the {} \"{prefix}{}\" lies in the output \"{}\"",
                    plan.side_of(file),
                    file.path,
                    self.run.uri
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
        let Some(lock) = &self.run.lock else { return Ok(()) };
        let group = Arc::clone(group);
        let store = Arc::clone(&self.run.store);
        let run = self.run.own.clone();
        lock.beat(move |taken: &anyhow::Error| {
            group.fail(&format!("{taken:#}"));
            // Only the first error is reported.
            drop(by_rename::vanish(store.as_ref(), &run));
            say(cluster::one_line(&format!("error: {taken:#}")));
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
        let mut folder =
            OutputFolder::new(RunFolder { store, uri, path, own: run, lock: None, splits: 0..0 });
        folder.set_plan(plan);
        (folder.resumable, folder.rehearsal) = (true, rehearsal);
        Ok(folder)
    }

    /// Makes the folder of a run that has not written anything yet.
    fn new(run: RunFolder) -> Self {
        OutputFolder {
            run,
            resumable: false,
            decided: None,
            earlier: None,
            rehearsal: false,
            table_format: TableFormat::default(),
            stem: "part".to_owned(),
            files: SharedFiles::default(),
            bundles: Arc::default(),
        }
    }

    /// Returns the folder with tables of this format.
    pub fn with_tables(self, table_format: TableFormat) -> Self {
        OutputFolder { table_format, ..self }
    }

    /// Returns the data for [`OutputFolder::of_shared`]. `key`: the key with which the folder was claimed.
    pub fn shared(&self, key: &Key) -> SharedFolder {
        let uri = self.run.uri.clone();
        let run = self.run.own.clone();
        let key = key.clone();
        SharedFolder { uri, run, key, rehearsal: self.rehearsal }
    }

    /// Ends the run with its result. After a failure, finished work stays for a run that resumes this one,
    /// unless the failure would come again.
    pub fn close<T>(&self, result: Result<T>) -> Result<T> {
        let result = result.map_err(|error| self.run.reason(while_running(error)));
        if let Err(error) = &result {
            // Only the first error is reported.
            drop(self.leave(would_come_again(error)));
        }
        result
    }

    pub(super) fn lock(store: Arc<dyn Store>, path: String, uri: &str, me: LockOwner) -> Result<Self> {
        let temporary = format!("{path}/_temporary");
        let lock =
            Lock::take(&store, &temporary, &format!("output \"{uri}\""), me).map_err(|error| match error
                .downcast_ref()
            {
                Some(cluster::Error::Denied { .. } | cluster::Error::Io { .. }) => {
                    anyhow!("could not claim the output \"{uri}\": {error:#}")
                }
                _ => error,
            })?;
        let uri = uri.to_owned();
        let own = format!("{temporary}/{}", lock.run());
        Ok(OutputFolder::new(RunFolder { store, uri, path, own, lock: Some(lock), splits: 0..0 }))
    }

    /// Begins a file that belongs to no split and that the commit will show as `name`.
    pub fn file(&self, name: &str) -> Result<Box<dyn PartOutput>, cluster::Error> {
        self.part(name.to_owned(), &self.files)
    }

    /// Returns the files of this process that belong to no split and are finished. Those of process 0 are
    /// committed without being told.
    pub fn files_of_no_split(&self) -> FileList {
        self.files.lock().clone()
    }

    /// Ends a run that failed. Its finished work stays for a run that resumes it, unless it is `useless`; a
    /// decided commit always stays.
    fn leave(&self, useless: bool) -> Result<()> {
        let keeps = self.decided_in(&self.run.own)?.is_some() || (self.resumable && !useless);
        if let (false, Showing::Uploads(uploads)) = (keeps, self.run.store.showing()) {
            self.run.check()?;
            by_upload::clear(&self.run, uploads, &self.run.own, None)?;
        }
        self.release(keeps)
    }

    /// Gives the output back: removes the lock, and this run's folder unless it `keeps` it. The folders of
    /// other runs stay.
    pub(super) fn release(&self, keeps: bool) -> Result<()> {
        let Some(lock) = &self.run.lock else { return Ok(()) };
        lock.stop();
        if let Err(error) = self.run.check() {
            if lock.is_lost() {
                drop(by_rename::vanish(self.run.store.as_ref(), &self.run.own));
            }
            return Err(error);
        }
        // The locks of earlier runs stay as long as the folder of any other run does: they fence an owner
        // that was asleep.
        let mut locks = if self.other_runs()?.is_empty() { lock.earlier_paths()? } else { Vec::new() };
        locks.extend(lock.paths());
        let own = || if keeps { Ok(()) } else { self.run.store.remove(&self.run.own) };
        match self.run.store.showing() {
            Showing::Rename(renamer) => {
                lock.discard(&locks)?;
                own()?;
                renamer.remove_empty(&self.run.at("_temporary"))?;
            }
            Showing::Uploads(_) => {
                own()?;
                lock.discard(&locks)?;
            }
        }
        Ok(())
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

/// Returns an error if the output has files and `overwrite` is false, or they are of no output of this program. Hidden files do not count,
/// except `_SUCCESS`.
pub(super) fn refuse_existing(store: &dyn Store, path: &str, uri: &str, overwrite: bool) -> Result<()> {
    if !store.exists(&format!("{path}/{SUCCESS}"))? && store.list(path)?.is_empty() {
        return Ok(());
    }
    if !overwrite {
        bail!(WrongUse(format!("the output \"{uri}\" exists; --overwrite replaces it")));
    }
    if !is_output(store, &format!("{path}/"))? {
        bail!(WrongUse(format!(
            "\"{uri}\" holds files and is no output of this program, so --overwrite does not replace it: name another output, or \
             remove it before"
        )));
    }
    Ok(())
}
