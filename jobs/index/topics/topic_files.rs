//! Keeps the files of a topic while jobs write them.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, bail};
use parking_lot::Mutex;

/// The files of a topic, which jobs write and which a drop removes: never both at a time.
#[derive(Default)]
pub(crate) struct TopicFiles {
    dropped: AtomicBool,
    /// Held while a job writes.
    writing: Mutex<()>,
}

impl TopicFiles {
    /// Calls `write`, unless the topic is dropped. [`TopicFiles::end_jobs`] waits until it is done.
    ///
    /// # Errors
    /// Those of `write`, and when the topic is dropped.
    pub fn write<T>(&self, write: impl FnOnce() -> Result<T>) -> Result<T> {
        let _writing = self.writing.lock();
        self.check()?;
        write()
    }

    /// Returns an error if the topic is dropped.
    pub fn check(&self) -> Result<()> {
        if self.are_dropped() {
            bail!("the topic is dropped");
        }
        Ok(())
    }

    /// Whether the topic is dropped.
    pub fn are_dropped(&self) -> bool {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Lets no job write any more. Returns whether none does.
    pub fn have_ended_jobs(&self) -> bool {
        self.dropped.store(true, Ordering::Relaxed);
        self.writing.try_lock().is_some()
    }

    /// Lets jobs write again, since the topic is not dropped after all.
    pub fn allow_jobs(&self) {
        self.dropped.store(false, Ordering::Relaxed);
    }

    /// Lets no job write any more, and waits for the one that does.
    pub fn end_jobs(&self) {
        self.dropped.store(true, Ordering::Relaxed);
        drop(self.writing.lock());
    }
}
