//! An input file, as it was found when the job was planned.

use std::sync::Arc;

use super::checked::Checked;
use super::error::Error;
use super::name::NameBelow;
use super::store::{Blob, Store, Version};
use super::sums::{Noted, Sums};

/// An input file. Every open checks that the file is still the one that was found.
#[derive(Clone)]
pub struct InputFile {
    /// Store that holds the file.
    pub store: Arc<dyn Store>,
    /// Absolute path, as the store names it.
    pub path: String,
    /// Path relative to the input that led to the file, or to the part of a pattern before any `*`, `?`, `[`
    /// or `{`. For an input that is a file, this is its last name.
    pub name: NameBelow,
    /// Length in bytes.
    pub bytes: u64,
    /// The store's version of the contents.
    pub version: Version,
    /// Checksums of the contents, shared by all who open the file.
    pub(crate) sums: Arc<Sums>,
}

impl InputFile {
    /// Returns the store's prefix and the path. This name is unique, and messages show it.
    pub fn full_path(&self) -> String {
        format!("{}{}", self.store.prefix(), self.path)
    }

    /// Opens the file. It must be the file that was found, and its bytes are compared with those read before
    /// through this [`InputFile`] or a clone of it. The cells that are read are added to `noted`.
    ///
    /// # Errors
    /// Those of the store, and [`Error::Changed`].
    pub fn open(&self, noted: Option<Arc<Noted>>) -> Result<Arc<dyn Blob>, Error> {
        Ok(Arc::new(Checked::open(&self.store, &self.path, &self.sums, noted)?))
    }

    /// Returns the sums of the noted cells. Another process that gives them to [`InputFile::restore`] compares
    /// its own readings with them.
    pub fn sums(&self, noted: &Noted) -> Vec<(u64, u64)> {
        noted.take(&self.sums)
    }

    /// Takes the sums of what an earlier process has read.
    ///
    /// # Errors
    /// [`Error::Changed`] when this process has read other bytes.
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
