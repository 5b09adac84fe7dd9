//! Places where records start, in a format that tells them only to a reader of everything before.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};

use cluster::Blob;
use parking_lot::{Condvar, Mutex};

use super::background::{ReadFailure, spawn};
use crate::Error;

/// Distance of the places that are kept, in bytes. A reader skips at most this many bytes before its piece.
const STEP: u64 = 1 << 20;

/// For each MiB of a file, the first record that starts in it or behind it.
///
/// A thread of its own, which the first reader starts, reads the file from its beginning and finds them.
/// Memory: 8 bytes for each MiB.
pub(crate) struct RecordStarts {
    found: Arc<Found>,
    begun: Once,
}

#[derive(Default)]
struct Found {
    so_far: Mutex<FoundSoFar>,
    grown: Condvar,
    /// Whether nobody asks any more.
    abandoned: AtomicBool,
}

#[derive(Default)]
struct FoundSoFar {
    /// The first record at or behind each multiple of [`STEP`].
    starts: Vec<u64>,
    /// Set when the thread has ended; with its failure, if it failed.
    ended: Option<Result<(), ReadFailure>>,
}

impl Default for RecordStarts {
    fn default() -> Self {
        RecordStarts { found: Arc::default(), begun: Once::new() }
    }
}

impl RecordStarts {
    /// Starts the thread, if none has been started. `scan` calls its argument with the offset of each record,
    /// in order, until that returns `false` since nobody asks any more.
    pub fn begin(
        &self,
        blob: &Arc<dyn Blob>,
        scan: impl FnOnce(&dyn Fn(u64) -> bool) -> Result<(), Error> + Send + 'static,
    ) {
        self.begun.call_once(|| {
            let (found, ended) = (Arc::clone(&self.found), Arc::clone(&self.found));
            spawn(
                "find-records",
                blob,
                move || scan(&|offset| found.add(offset)).map_err(|error| ReadFailure::of(&error)),
                move |result| {
                    ended.so_far.lock().ended = Some(result);
                    ended.grown.notify_all();
                },
            );
        });
    }

    /// Returns a place where a record starts, from which on a reader finds the first record at or behind
    /// `offset`, or the damage or the end of the file before it. Waits until the place is known.
    ///
    /// # Errors
    /// That of the store, if the scan has ended with one before the place.
    pub fn before(&self, path: &str, offset: u64) -> Result<u64, Error> {
        let step = (offset / STEP) as usize;
        let mut found = self.found.so_far.lock();
        self.found.grown.wait_while(&mut found, |found| found.starts.len() <= step && found.ended.is_none());
        match (found.starts.get(step).or(found.starts.last()), &found.ended) {
            (_, Some(Err(failure @ ReadFailure::Other(_)))) if found.starts.len() <= step => {
                Err(failure.error(path))
            }
            (start, _) => Ok(start.copied().unwrap_or_default()),
        }
    }
}

impl Drop for RecordStarts {
    fn drop(&mut self) {
        self.found.abandoned.store(true, Ordering::Relaxed);
    }
}

impl Found {
    /// Adds the next record, and returns whether anybody still asks.
    fn add(&self, offset: u64) -> bool {
        let steps = (offset / STEP) as usize + 1;
        let mut found = self.so_far.lock();
        if found.starts.len() < steps {
            found.starts.resize(steps, offset);
            self.grown.notify_all();
        }
        !self.abandoned.load(Ordering::Relaxed)
    }
}
