//! The files of a version that is not committed yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use cluster::Store;

use runtime::output::vanish;

/// Files that a run writes for a version of a state. They are litter once another run has taken the state over, unless a
/// version may name them.
pub(super) struct UnnamedRuns {
    pub store: Arc<dyn Store>,
    /// Folder in `_temporary` that is for this run alone.
    pub own: String,
    /// Folder with the files of all versions.
    pub folder: String,
    /// Part of the names of the files, which no other run has.
    pub run: String,
    /// Whether a version may name them.
    pub may_be_named: Arc<AtomicBool>,
}

impl UnnamedRuns {
    /// Removes the files that are there, and the folder of the run.
    ///
    /// # Errors
    /// Those of the store.
    pub fn remove(&self) -> Result<()> {
        vanish(self.store.as_ref(), &self.own)?;
        if self.may_be_named.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mine = format!("-{}.", self.run);
        let files = self.store.everything(&self.folder)?.into_iter().map(|entry| entry.path);
        Ok(self.store.remove_files(&files.filter(|path| path.contains(&mine)).collect::<Vec<_>>())?)
    }
}
