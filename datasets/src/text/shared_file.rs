//! State that all pieces of one file share, so that a file that must be read from its beginning can be read by
//! several workers.

use std::sync::Arc;

use operators::SpillBudget;

use super::contents::Contents;
use super::record_starts::RecordStarts;

/// State that all pieces of one file share in a process. Readers fill it when they first need it.
#[derive(Default)]
pub struct SharedFile {
    /// The decompressed contents, where the pieces of a compressed file are ranges of them.
    pub(crate) contents: Option<Arc<Contents>>,
    /// Places where records start, in formats that find them only by reading all records before.
    pub(crate) starts: RecordStarts,
}

impl SharedFile {
    /// Returns the state of a compressed file that is cut by its contents. They are decompressed once by a
    /// thread of their own, which the first reader starts, and lie in the folder of `spill` until the last
    /// piece is gone.
    pub fn decompressed(spill: &SpillBudget) -> Self {
        SharedFile { contents: Some(Arc::new(Contents::new(spill))), starts: RecordStarts::default() }
    }

    /// Returns a state with the same contents, for the thread that finds the places where records start. It
    /// does not keep those places, so that the thread notices when nobody asks for them any more.
    pub(crate) fn without_starts(&self) -> Arc<Self> {
        Arc::new(SharedFile { contents: self.contents.clone(), starts: RecordStarts::default() })
    }
}
