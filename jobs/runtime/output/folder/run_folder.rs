//! The folder of a run in `_temporary`, and the output that it belongs to.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use anyhow::Result;
use cluster::Store;

use super::lock::Lock;
use crate::output::map_output::MapOutputs;

/// Folder of a run in which the files of the output wait for the commit; only on a file system.
pub(super) const PARTS: &str = "parts";
/// Folder of a run with the unfinished work of the run that it resumes; only on a file system.
pub(super) const EARLIER: &str = "earlier";
/// Name of the file in a run's folder that holds the [`Key`](crate::output::Key) of the run.
pub(super) const KEY: &str = "key";

/// Folder of a run in `_temporary`, to which no other run writes, and the output that it belongs to.
pub(super) struct RunFolder {
    pub store: Arc<dyn Store>,
    /// Output as the user has named it.
    pub uri: String,
    /// Path of the output.
    pub path: String,
    /// Path of the run's own folder.
    pub own: String,
    /// Lock of the output; only in the process that claimed it.
    pub lock: Option<Lock>,
    /// Numbers of the splits of the input.
    pub splits: Range<u32>,
}

impl RunFolder {
    pub fn at(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    /// Returns a path in the run's own folder, or that folder itself for an empty `name`.
    pub fn temporary(&self, name: &str) -> String {
        if name.is_empty() { self.own.clone() } else { format!("{}/{name}", self.own) }
    }

    /// Returns the name of the run's own folder, which is unique to this run.
    pub fn name(&self) -> &str {
        self.own.rsplit('/').next().unwrap_or_default()
    }

    /// Returns an error once the beat has found that another run has taken over. Makes no request.
    pub fn still_owned(&self) -> Result<(), cluster::Error> {
        if self.lock.as_ref().is_some_and(Lock::is_lost) {
            let taken = io::Error::other("another run has taken over the output");
            return Err(cluster::Error::io(&self.uri, "write", taken));
        }
        Ok(())
    }

    /// Asks the store, and returns an error if another run has taken over.
    pub fn check(&self) -> Result<()> {
        self.lock.as_ref().map_or(Ok(()), Lock::check)
    }

    /// Returns an error if another run has taken over, and asks the store only if the last answer is older
    /// than two beats.
    pub fn check_lately(&self) -> Result<()> {
        self.lock.as_ref().map_or(Ok(()), Lock::check_lately)
    }

    /// Returns the reason for a failed run: if another run has taken over, that is the reason, since it moves
    /// or removes the files of this run.
    pub fn reason(&self, error: anyhow::Error) -> anyhow::Error {
        match &self.lock {
            Some(lock) => lock.reason(error),
            None => error,
        }
    }

    /// Returns the map outputs of this run, and of the run that it resumes.
    pub fn map_outputs(&self) -> MapOutputs {
        MapOutputs::new(Arc::clone(&self.store), self.temporary("map"))
    }
}
