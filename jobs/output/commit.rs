//! From parts to a visible output, in steps of which each can be done again, by this run or by the next.
//!
//! The job manifest is the decision: before it is there nothing of the run can be seen, and once it is there, whoever
//! claims the output next finishes the commit. `by_rename.rs` and `by_upload.rs` have the steps that differ by store.

use anyhow::{Context, Result, bail};
use cluster::Showing;
use serde::{Deserialize, Serialize};

use super::files::{FileList, noted};
use super::success::success_text;
use super::{OutputFolder, by_rename, by_upload, read};

/// The folders of an output, in the order in which they become visible.
pub(crate) const FOLDERS: [&str; 9] =
    ["rejects", "labels", "statistics", "clusters", "pairs", "removed", "kept", "packed", "unpacked"];
/// The job manifest, in a run's folder.
pub(super) const JOB: &str = "job";

/// What a job has decided to commit. That it is there says that all it names was there before.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct JobManifest {
    /// What `_SUCCESS` will say.
    pub success: String,
    /// The guards that the run has passed, as text: a run with other guards has to pass its own before it goes on.
    pub guards: String,
    /// Every file of the output.
    pub files: FileList,
    /// What an earlier output has that goes, in a store of uploads.
    pub earlier: by_upload::Earlier,
}

impl JobManifest {
    /// The folders of the output that have files, in the order in which they become visible.
    pub fn folders(&self) -> impl Iterator<Item = &'static str> {
        let has_files = |folder: &&str| {
            let prefix = format!("{folder}/");
            self.files.0.range(prefix.clone()..).next().is_some_and(|(name, _)| name.starts_with(&prefix))
        };
        FOLDERS.into_iter().filter(has_files)
    }
}

impl OutputFolder {
    /// Makes the output visible. `summary`: what `_SUCCESS` will say, besides the list of files. `written`: the files of
    /// all splits. `guards`: as in [`JobManifest`]. Returns the text of `_SUCCESS`.
    ///
    /// After a failure the next run finishes it, if the job manifest is written.
    pub fn commit(&self, summary: &impl Serialize, written: FileList, guards: &str) -> Result<String> {
        self.check()?;
        self.write_held()?;
        let mut files = noted(&self.files);
        files.add(written)?;
        let success = success_text(summary, self.run_name(), &files)?;
        let guards = guards.to_owned();
        let job = JobManifest { success: success.clone(), guards, files, earlier: Default::default() };
        match self.store.showing() {
            Showing::Rename(renamer) => by_rename::decide(self, renamer, &job)?,
            Showing::Uploads(uploads) => by_upload::decide(self, uploads, job)?,
        }
        self.finish_decided()?;
        Ok(success)
    }

    /// Does what is left of a commit that is decided, and removes what is then of no use.
    pub fn finish_decided(&self) -> Result<()> {
        let Some(job) = self.decided_in(&self.run)? else {
            bail!("another run has taken over the output \"{}\"", self.uri);
        };
        self.show(&job)?;
        // All is committed, whatever is left beside it.
        if let Err(error) = self.clear(&job) {
            crate::say(cluster::shown(&format!("warning: {error:#}")));
        }
        Ok(())
    }

    /// Makes a decided output visible.
    pub(super) fn show(&self, job: &JobManifest) -> Result<()> {
        let shown = match self.store.showing() {
            Showing::Rename(renamer) => by_rename::show(self, renamer, job),
            Showing::Uploads(uploads) => by_upload::show(self, uploads, job),
        };
        shown.with_context(|| {
            format!(
                "the commit of the output \"{}\" is not finished: run again, and if it fails again, give it up with \
                 --overwrite or by removing \"{}{}\"",
                self.uri,
                self.store.prefix(),
                self.at("_temporary")
            )
        })
    }

    /// What the run in that folder had decided, if it had.
    ///
    /// # Errors
    /// When another version of this program had decided it.
    pub(super) fn decided_in(&self, run: &str) -> Result<Option<JobManifest>> {
        let path = format!("{run}/{JOB}");
        let Some(job) = read(self.store.as_ref(), &path)? else { return Ok(None) };
        if let Showing::Uploads(_) = self.store.showing()
            && by_upload::is_void(self, run, &job)?
        {
            return Ok(None);
        }
        let job = serde_json::from_slice(&job).with_context(|| {
            format!(
                "\"{path}\" is of another version of this program, which was interrupted while it committed: start \
                 that version again, or remove \"{}\"",
                self.at("_temporary")
            )
        });
        job.map(Some)
    }

    /// Removes what is of no use any more.
    fn clear(&self, job: &JobManifest) -> Result<()> {
        if let Some(lock) = &self.lock {
            lock.stop();
        }
        self.check()?;
        match self.store.showing() {
            Showing::Rename(_) => by_rename::clear(self)?,
            Showing::Uploads(uploads) => by_upload::clear(self, uploads, &self.run, Some(job))?,
        }
        self.release(false)
    }
}
