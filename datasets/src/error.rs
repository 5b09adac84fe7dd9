//! Errors of reading or writing a corpus.

use std::io;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Failure of reading or writing a file.
#[derive(Debug, Error)]
pub enum Error {
    /// The bytes break the rules of the format.
    #[error("\"{path}\" at byte {offset}: {reason}")]
    Data {
        /// The file.
        path: String,
        /// Offset of the fault, in bytes from the start of the file.
        offset: u64,
        /// Description of the fault, in lower case, without a full stop.
        reason: String,
    },
    /// The file lacks a field. The file is at fault where other files have the field, otherwise the user, who
    /// asked for it.
    #[error("\"{}\" has no field \"{}\"; it has {}", .0.path, .0.field, .0.found.join(", "))]
    Field(MissingField),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] cluster::Error),
}

/// A file without a field that was asked for.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct MissingField {
    /// The file.
    pub path: String,
    /// The field that was requested.
    pub field: String,
    /// The fields that the file has.
    pub found: Vec<String>,
}

impl Error {
    /// Returns the error of a file that breaks its format at `offset`.
    pub fn data(path: &str, offset: u64, reason: impl ToString) -> Self {
        Error::Data { path: path.to_owned(), offset, reason: reason.to_string() }
    }

    /// Returns whether the data is at fault, and not the store or the user.
    pub fn is_data(&self) -> bool {
        matches!(self, Error::Data { .. } | Error::Field(_))
    }

    /// Converts an error of reading `path` near `offset`: to the store's own error if it came from there,
    /// otherwise to an error of the data.
    pub fn reading(path: &str, offset: u64, error: io::Error) -> Self {
        match error.downcast::<cluster::Error>() {
            Ok(store) => Error::Store(store),
            Err(error) => Error::data(path, offset, error),
        }
    }

    /// Converts an error of writing a part of `folder`: to the store's own error if it came from there.
    pub fn writing(folder: &str, error: io::Error) -> Self {
        Error::Store(cluster::Error::of_write(folder, error))
    }

    /// Returns the error of a file whose second reading gives other records than its first. The data is never
    /// at fault: the fates that were decided on the first reading no longer fit.
    pub fn changed(path: &str) -> Self {
        let source = io::Error::other("it has changed since it was first read");
        Error::Store(cluster::Error::io(path, "divide", source))
    }
}
