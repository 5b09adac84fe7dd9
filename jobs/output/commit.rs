//! From parts to a visible output, in steps of which each can be done again, by this run or by the next.
//!
//! Whatever a step of the commit moves comes from or goes to the run's own folder, also what it replaces: a run that
//! takes over renames that folder first, and so none of the steps of an owner that was only asleep can succeed.

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use super::{OutputFolder, PARTS, SUCCESS, put, read};

/// The folders of an output, in the order in which they become visible.
const FOLDERS: [&str; 9] =
    ["rejects", "labels", "statistics", "clusters", "pairs", "removed", "kept", "packed", "unpacked"];
/// The job manifest.
const JOB: &str = "job";
/// What an earlier output had, until the new one is whole.
const REPLACED: &str = "replaced";

/// What a job has decided to commit. That it is there says that all it names was there before.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct JobManifest {
    folders: Vec<String>,
    /// What `_SUCCESS` will say.
    pub success: String,
}

impl OutputFolder {
    /// Makes the output visible: folder after folder, then `_SUCCESS` with `success` in it. After a failure the next run
    /// with the same key goes on with it, if the job manifest is written.
    pub fn commit(&self, success: &str) -> Result<()> {
        self.check()?;
        put(self.store.as_ref(), &self.temporary(SUCCESS), success.as_bytes())?;
        self.store.settle(&self.temporary(""))?;
        let mut folders = Vec::new();
        for folder in FOLDERS {
            if self.store.exists(&self.temporary(&format!("{PARTS}/{folder}")))? {
                folders.push(folder.to_owned());
            }
        }
        let job = JobManifest { folders, success: success.to_owned() };
        // By rename, which a run that takes over can prevent.
        let (new, decided) = (self.temporary("job.new"), self.temporary(JOB));
        put(self.store.as_ref(), &new, &serde_json::to_vec(&job)?)?;
        self.store.settle(&new)?;
        self.check()?;
        self.store.rename(&new, &decided)?;
        self.roll_forward(&job)
    }

    /// What was decided, if it was.
    pub(super) fn decided(&self) -> Result<Option<JobManifest>> {
        let job = read(self.store.as_ref(), &self.temporary(JOB))?;
        Ok(job.map(|job| serde_json::from_slice(&job)).transpose()?)
    }

    /// Does what is left of a commit, and removes what is then of no use.
    pub(super) fn roll_forward(&self, job: &JobManifest) -> Result<()> {
        let success = self.temporary(SUCCESS);
        self.store.settle(&self.temporary(""))?;
        // It is moved last.
        if self.store.exists(&success)? {
            self.store.create_dir(&self.temporary(REPLACED))?;
            self.displace(SUCCESS)?;
            self.store.settle(&self.path)?;
            for folder in FOLDERS {
                let finished = self.temporary(&format!("{PARTS}/{folder}"));
                if !job.folders.iter().any(|of_job| of_job == folder) {
                    self.displace(folder)?;
                } else if self.store.exists(&finished)? {
                    self.displace(folder)?;
                    self.check()?;
                    self.store.rename(&finished, &self.at(folder))?;
                } else if !self.store.exists(&self.at(folder))? {
                    bail!("\"{}\" is lost; remove it and run again", self.at(folder));
                }
            }
            self.store.settle(&self.path)?;
            self.check()?;
            self.store.rename(&success, &self.at(SUCCESS))?;
            self.store.settle(&self.path)?;
        }
        // All is committed, whatever is left beside it.
        if let Err(error) = self.clear() {
            crate::say(cluster::shown(&format!("warning: {error:#}")));
        }
        Ok(())
    }

    /// Moves what an earlier output had under this name out of sight.
    fn displace(&self, name: &str) -> Result<()> {
        if self.store.exists(&self.at(name))? {
            let aside = self.temporary(&format!("{REPLACED}/{name}"));
            self.store.remove(&aside)?;
            self.check()?;
            self.store.rename(&self.at(name), &aside)?;
        }
        Ok(())
    }

    /// Removes `_temporary`. The lock and the job manifest go at one moment, so that a run which finds an output without
    /// `_temporary` finds it whole.
    fn clear(&self) -> Result<()> {
        if let Some(lock) = &self.lock {
            lock.stop();
        }
        self.check()?;
        for name in ["map", PARTS, super::EARLIER, "tasks", REPLACED] {
            self.store.remove(&self.temporary(name))?;
        }
        self.remove_temporary()
    }

    /// Moves `_temporary` out of sight, with the lock in it, and removes it.
    pub(super) fn remove_temporary(&self) -> Result<()> {
        let aside = self.at("_temporary.old");
        self.store.remove(&aside)?;
        self.check()?;
        self.store.rename(&self.at("_temporary"), &aside)?;
        Ok(self.store.remove(&aside)?)
    }
}
