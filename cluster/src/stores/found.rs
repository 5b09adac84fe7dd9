//! An input file, which is what was planned whenever it is opened.

use std::sync::Arc;

use super::checked::{Checked, Noted, Sums};
use super::name::NameBelow;
use super::store::{Blob, Error, Store, Version};

/// An input file.
#[derive(Clone)]
pub struct Found {
    /// Where it lies.
    pub store: Arc<dyn Store>,
    /// Absolute, as the store names it.
    pub path: String,
    /// Relative to the input that led to it, or to the part of a pattern that stands before any `*`, `?`,
    /// `[` or `{`; an input that is a file gives its last name.
    pub name: NameBelow,
    /// Length in bytes.
    pub bytes: u64,
    /// What the store says of its contents.
    pub version: Version,
    /// Of all who open it.
    pub(crate) sums: Arc<Sums>,
}

impl Found {
    /// For people, and what tells it from all others: the store's prefix and the path.
    pub(crate) fn full_path(&self) -> String {
        format!("{}{}", self.store.prefix(), self.path)
    }

    /// Opens the file. It must be what was found, and what is read is compared with what was read before through this
    /// [`Found`] or a clone of it. The cells that are read are noted in `noted`.
    ///
    /// # Errors
    /// Those of the store, and [`Error::Changed`].
    pub fn open(&self, noted: Option<Arc<Noted>>) -> Result<Arc<dyn Blob>, Error> {
        Ok(Arc::new(Checked::open(&self.store, &self.path, &self.sums, noted)?))
    }

    /// The sums of what was noted: what is read later is compared with them, in another process if they are given to
    /// [`Found::restore`] there.
    pub fn sums(&self, noted: &Noted) -> Vec<(u64, u64)> {
        noted.take(&self.sums)
    }

    /// Takes the sums of what an earlier process has read.
    ///
    /// # Errors
    /// [`Error::Changed`] when something else was read since.
    pub fn restore(&self, sums: &[(u64, u64)]) -> Result<(), Error> {
        match self.sums.restore(sums) {
            true => Ok(()),
            false => Err(Error::Changed {
                path: self.full_path(),
                reason: "its bytes differ from those that an earlier run has read".to_owned(),
            }),
        }
    }
}
