//! Opens a run.

use std::sync::Arc;

use super::cursor::RunCursor;
use super::source::RunSource;
use super::summary::RunSummary;
use crate::{Blob, Error};

/// An open run, of which only the root is in memory. A copy of a reader shares it.
#[derive(Clone)]
pub struct RunReader {
    pub(super) source: Arc<RunSource>,
}

impl RunReader {
    /// Opens the run that `summary` describes, which takes one read.
    ///
    /// # Errors
    /// Those of the store, and [`Error::Damaged`] when the file does not have the length of the summary, or
    /// not its root.
    pub fn open(blob: Arc<dyn Blob>, summary: &RunSummary) -> Result<Self, Error> {
        Ok(RunReader { source: Arc::new(RunSource::open(blob, summary, false)?) })
    }

    /// Opens a run for many lookups by any number of cursors, which share the index blocks that they have read.
    ///
    /// Memory: in the end all index blocks, which are 2 to 4 % of the run.
    ///
    /// # Errors
    /// Those of [`RunReader::open`].
    pub fn open_for_lookups(blob: Arc<dyn Blob>, summary: &RunSummary) -> Result<Self, Error> {
        Ok(RunReader { source: Arc::new(RunSource::open(blob, summary, true)?) })
    }

    /// Returns the summary by which the run was opened.
    pub fn summary(&self) -> &RunSummary {
        &self.source.summary
    }

    /// Makes a cursor in front of the first row. This reads nothing.
    pub fn cursor(&self) -> RunCursor {
        RunCursor::new(self.source.clone())
    }
}
