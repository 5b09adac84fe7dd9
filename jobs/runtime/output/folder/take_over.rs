//! Takes over what earlier runs have left, once this run has the lock.
//!
//! Each earlier run has a folder in `_temporary`. A decided commit is finished, work of a run with the same
//! key is resumed, and everything else is removed. The owner of such a folder may only be asleep, so each
//! step leaves it nothing that it could still change.

use std::sync::Arc;

use anyhow::Result;
use cluster::{Showing, Stores};

use super::by_upload;
use super::fence::other_runs;
use super::lock::LockOwner;
use super::output_folder::{EarlierWork, OutputFolder, refuse_existing};
use super::run_folder::{EARLIER, KEY, PARTS};
use crate::output::key::Key;
use crate::output::manifests::{JOB, JobManifest};
use crate::output::requests::{put, read};

impl OutputFolder {
    /// Finishes the commits that dead runs have decided in an output, and keeps these runs from deciding anything more: their
    /// owners may only be asleep. On a file system the work of the last one stays for a run of the same key.
    ///
    /// # Errors
    /// [`Locked`](crate::cli::exit::Locked) when a run is writing the output; those of the commit.
    pub fn finish_abandoned(stores: &Stores, uri: &str) -> Result<()> {
        let (store, path) = stores.locate(uri)?;
        let path = path.trim_end_matches('/').to_owned();
        if !store.exists(&format!("{path}/_temporary"))? {
            return Ok(());
        }
        let mut folder = OutputFolder::lock(store, path, uri, LockOwner::of_this_process())?;
        let mut undecided = Vec::new();
        for other in folder.other_runs()? {
            match folder.decided_in(&other)? {
                Some(job) => folder.finish_for(other, &job, false)?,
                None => undecided.push(other),
            }
        }
        let mut keeps = false;
        if matches!(folder.run.store.showing(), Showing::Rename(_))
            && let Some(last) = undecided.pop()
        {
            // The new name makes each later step of its owner fail, which may have decided just before.
            keeps = folder.adopt_run(last)?;
        }
        undecided.into_iter().try_for_each(|other| folder.give_up(other, false))?;
        match folder.decided_in(&folder.run.own)? {
            Some(_) => folder.finish_decided(),
            None => folder.release(keeps),
        }
    }

    /// Finishes, takes over or removes the folders of all earlier runs, and prepares the folder of this run.
    ///
    /// # Errors
    /// [`WrongUse`](crate::WrongUse) when the output exists and is not to be replaced; the lock is then
    /// released.
    pub(super) fn take_over(&mut self, overwrite: bool, key: Option<&Key>) -> Result<()> {
        let mut others = Vec::new();
        // A run that was asleep since it took the lock may find that even the folder is gone.
        for other in self.other_runs().map_err(|error| self.run.reason(error))? {
            let same = match key {
                Some(key) => {
                    read(self.run.store.as_ref(), &format!("{other}/{KEY}"))?.as_deref()
                        == Some(key.0.as_bytes())
                }
                None => false,
            };
            match self.decided_in(&other)? {
                Some(job) if !same => {
                    self.finish_for(other, &job, overwrite).map_err(|error| self.run.reason(error))?
                }
                _ => others.push((other, same)),
            }
        }
        if let Some(at) = others.iter().rposition(|(_, same)| *same) {
            let (other, _) = others.remove(at);
            let begun = self.run.store.open(&format!("{other}/{KEY}")).and_then(|key| key.version());
            self.resumable = self.adopt_run(other)?;
            self.decided = self.decided_in(&self.run.own)?;
            if self.resumable && self.decided.is_none() {
                let (mapped, written) = (self.finished_splits("map")?, self.finished_splits("tasks")?);
                self.earlier = Some(EarlierWork::Resumed {
                    begun: begun.ok().and_then(|version| version.modified),
                    mapped,
                    written,
                });
            }
        } else if key.is_some() && self.decided.is_none() && !others.is_empty() {
            self.earlier = Some(EarlierWork::OfOtherKey);
        }
        if self.decided.is_none()
            && let Err(error) =
                refuse_existing(self.run.store.as_ref(), &self.run.path, &self.run.uri, overwrite)
        {
            self.release(self.resumable)?;
            return Err(error);
        }
        self.begin(others.into_iter().map(|(other, _)| other).collect(), key)
            .map_err(|error| self.run.reason(error))
    }

    /// Returns the number of splits of which a folder of the run has a file, whose name is the number of the split.
    fn finished_splits(&self, folder: &str) -> Result<usize> {
        let files = self.run.store.children_if_any(&self.run.temporary(folder))?;
        Ok(files.iter().filter(|file| file.name().parse::<u32>().is_ok()).count())
    }

    /// Returns the folders of other runs, the earliest first.
    pub(super) fn other_runs(&self) -> Result<Vec<String>> {
        other_runs(self.run.store.as_ref(), &self.run.at("_temporary"), &self.run.own)
    }

    /// Finishes the half-visible commit of another run. If that fails and `overwrite` is set, the commit is
    /// given up with a warning, since this run replaces the output anyway.
    fn finish_for(&mut self, other: String, job: &JobManifest, overwrite: bool) -> Result<()> {
        let mine = self.run.own.clone();
        if !self.adopt_run(other)? {
            return Ok(());
        }
        let finished = self.show(job);
        let theirs = std::mem::replace(&mut self.run.own, mine);
        let finished = match finished {
            Err(error) if overwrite => {
                log::warn!("an earlier commit is given up and replaced: {error:#}");
                false
            }
            finished => finished.map(|()| true)?,
        };
        self.run.check()?;
        if let Showing::Uploads(uploads) = self.run.store.showing() {
            by_upload::clear(&self.run, uploads, &theirs, Some(job).filter(|_| finished))?;
        }
        Ok(self.run.store.remove(&theirs)?)
    }

    /// Makes visible what an earlier run with the same key has decided. If that fails, the commit is given
    /// up, and this run begins anew. Must be called only with `--overwrite`.
    pub fn show_or_give_up(&mut self, key: Option<&Key>) -> Result<()> {
        let Some(job) = &self.decided else { return Ok(()) };
        let Err(error) = self.show(job) else { return Ok(()) };
        self.run.check()?;
        log::warn!("an earlier commit of this job is given up, and all is done anew: {error:#}");
        // Nothing may take the manifest for a decision while the rest is removed.
        let given_up = self.run.own.clone();
        if let Showing::Uploads(uploads) = self.run.store.showing() {
            by_upload::clear(&self.run, uploads, &given_up, None)?;
        }
        self.run.store.remove(&format!("{given_up}/{JOB}"))?;
        self.run.store.settle(&self.run.at("_temporary"))?;
        self.run.store.remove(&given_up)?;
        if let Some(lock) = &self.run.lock {
            self.run.own = format!("{}/{}", self.run.at("_temporary"), lock.run());
        }
        (self.decided, self.resumable) = (None, false);
        self.begin(Vec::new(), key)
    }

    /// Makes the folder of a dead run the folder of this run. Returns `false` if the folder is gone: its
    /// owner was only asleep, and has removed it.
    fn adopt_run(&mut self, other: String) -> Result<bool> {
        match self.run.store.showing() {
            // The new name makes every later step of an owner that was only asleep fail.
            Showing::Rename(renamer) => match renamer.rename(&other, &self.run.own) {
                Err(_) if !self.run.store.exists(&other)? => return Ok(false),
                renamed => renamed?,
            },
            // An owner that was only asleep goes on with the same work until it looks at the lock; only one
            // of the two can decide.
            Showing::Uploads(_) => self.run.own = other,
        }
        Ok(true)
    }

    /// Keeps a dead run from deciding, and removes its folder. If it has decided meanwhile, its commit is finished.
    fn give_up(&mut self, other: String, overwrite: bool) -> Result<()> {
        if let Showing::Uploads(uploads) = self.run.store.showing() {
            if !by_upload::abandon(self.run.store.as_ref(), &other)?
                && let Some(job) = self.decided_in(&other)?
            {
                return self.finish_for(other, &job, overwrite);
            }
            by_upload::clear(&self.run, uploads, &other, None)?;
        }
        self.run.lock.as_ref().map_or(Ok(()), |lock| lock.remove_run(&other))
    }

    /// Removes the runs that nobody resumes, and prepares the folder of this run.
    fn begin(&mut self, others: Vec<String>, key: Option<&Key>) -> Result<()> {
        let store = Arc::clone(&self.run.store);
        // The lock and the new name must be durable before anything is removed: otherwise a loss of power
        // could undo them alone.
        store.settle(&self.run.at("_temporary"))?;
        for other in others {
            self.give_up(other, true)?;
        }
        if let Some(lock) = &self.run.lock {
            lock.discard(&lock.earlier_paths()?)?;
        }
        if self.decided.is_some() {
            return Ok(());
        }
        if !self.resumable {
            // Without a key the file is empty, and equals the key of no other run.
            put(store.as_ref(), &self.run.temporary(KEY), key.map_or(b"", |key| key.0.as_bytes()))?;
            self.resumable = key.is_some();
        } else if let Showing::Rename(renamer) = store.showing() {
            store.remove(&self.run.temporary(EARLIER))?;
            if store.exists(&self.run.temporary(PARTS))? {
                renamer.rename(&self.run.temporary(PARTS), &self.run.temporary(EARLIER))?;
            }
        }
        Ok(())
    }
}
