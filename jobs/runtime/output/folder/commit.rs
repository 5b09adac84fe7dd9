//! The commit makes a written output visible, in steps that can each be repeated, by this run or by the next
//! one.
//!
//! A store cannot show several files at one moment, but it can create or rename one file at one moment. So
//! the commit first writes the job manifest, which names every file of the output: with it the job is
//! decided. Then it shows the files, and last `_SUCCESS`. A run that dies in between leaves the manifest, and
//! whoever claims the output next does the remaining steps. The steps that differ by store are in
//! `by_rename.rs` and `by_upload.rs`:
//!
//! | step | file system | bucket |
//! |---|---|---|
//! | decide | compare the run's files with the list, rename `job.new` to `job` | create `job` if absent |
//! | hide | move an earlier `_SUCCESS` into the run's folder | remove an earlier `_SUCCESS` |
//! | show | move each earlier folder away and each new one in | complete uploads, write small files |
//! | compare | list the output | list the output |
//! | finish | rename `_SUCCESS` | create `_SUCCESS` if absent |
//! | clear | remove the run's folder and the lock | abort unused uploads, then the same |
//!
//! Example: what the next run finds when a run that replaces an output has died.
//!
//! ```text
//! job      _SUCCESS       the run died                the next run with the same key
//! absent   the old one    before it decided           does what is not finished, then commits
//! there    the old one    after it decided            hides, shows, compares, finishes, clears
//! there    absent         while it showed folders     shows the others, compares, finishes, clears
//! there    the new one    before it cleared           clears
//! ```

use anyhow::{Context, Result, bail};
use cluster::Showing;
use serde::Serialize;

use super::output_folder::OutputFolder;
use super::{by_rename, by_upload};
use crate::output::files::FileList;
use crate::output::manifests::{JOB, JobManifest};
use crate::output::requests::read;
use crate::output::success::success_text;

impl OutputFolder {
    /// Decides the job and makes the output visible. Returns the text of `_SUCCESS`.
    ///
    /// `summary`: the content of `_SUCCESS` besides the list of files. `written`: the files of all splits.
    /// `guards`: as in [`JobManifest`]. If an error comes after the job manifest is written, the next run
    /// finishes the commit.
    pub fn commit(&self, summary: &impl Serialize, written: FileList, guards: &str) -> Result<String> {
        self.run.check()?;
        self.write_held()?;
        let mut files = self.files.lock().clone();
        files.add(written)?;
        let success = success_text(summary, self.run.name(), &files)?;
        let guards = guards.to_owned();
        let job = JobManifest { success: success.clone(), guards, files, earlier: Default::default() };
        match self.run.store.showing() {
            Showing::Rename(renamer) => by_rename::decide(&self.run, renamer, &job)?,
            Showing::Uploads(uploads) => by_upload::decide(&self.run, uploads, job)?,
        }
        self.finish_decided()?;
        Ok(success)
    }

    /// Does the remaining steps of a decided commit, and removes what is then no longer needed.
    pub fn finish_decided(&self) -> Result<()> {
        let Some(job) = self.decided_in(&self.run.own)? else {
            bail!("another run has taken over the output \"{}\"", self.run.uri);
        };
        self.show(&job)?;
        // The output is whole, so a failure to remove what is left beside it is no error.
        if let Err(error) = self.clear(&job) {
            log::warn!("{error:#}");
        }
        Ok(())
    }

    /// Makes a decided output visible.
    pub(super) fn show(&self, job: &JobManifest) -> Result<()> {
        let shown = match self.run.store.showing() {
            Showing::Rename(renamer) => by_rename::show(&self.run, renamer, job),
            Showing::Uploads(uploads) => by_upload::show(&self.run, uploads, job),
        };
        shown.with_context(|| {
            format!(
                "the commit of the output \"{}\" is not finished: run again, and if it fails again, give it up with \
                 --overwrite or by removing \"{}{}\"",
                self.run.uri,
                self.run.store.prefix(),
                self.run.at("_temporary")
            )
        })
    }

    /// Returns the job manifest in the folder `run`, if that run has decided.
    ///
    /// # Errors
    /// When another version of this program has written it.
    pub(super) fn decided_in(&self, run: &str) -> Result<Option<JobManifest>> {
        let path = format!("{run}/{JOB}");
        let Some(job) = read(self.run.store.as_ref(), &path)? else { return Ok(None) };
        if let Showing::Uploads(_) = self.run.store.showing()
            && by_upload::is_void(self.run.store.as_ref(), run, &job)?
        {
            return Ok(None);
        }
        let job = serde_json::from_slice(&job).with_context(|| {
            format!(
                "\"{path}\" is of another version of this program, which was interrupted while it committed: start \
                 that version again, or remove \"{}\"",
                self.run.at("_temporary")
            )
        });
        job.map(Some)
    }

    /// Removes the run's folder and the lock after the commit.
    fn clear(&self, job: &JobManifest) -> Result<()> {
        if let Some(lock) = &self.run.lock {
            lock.stop();
        }
        self.run.check()?;
        match self.run.store.showing() {
            Showing::Rename(_) => by_rename::clear(&self.run)?,
            Showing::Uploads(uploads) => by_upload::clear(&self.run, uploads, &self.run.own, Some(job))?,
        }
        self.release(false)
    }
}
