//! Why a corpus could not be read or written.

use std::fmt;
use std::io;

/// What went wrong with a file.
#[derive(Debug)]
pub enum Error {
    /// The bytes are not what the format says.
    Data {
        /// The file.
        path: String,
        /// In bytes from the start of the file.
        offset: u64,
        /// What was expected, lower case, no full stop.
        reason: String,
    },
    /// The file has no such field: its own fault where others have it, else the user's, who asked for it.
    Field {
        /// The file.
        path: String,
        /// The field that was asked for.
        field: String,
        /// Those that there are.
        found: Vec<String>,
    },
    /// Reading or writing failed.
    Store(cluster::Error),
}

impl Error {
    /// A file that breaks its format at `offset`.
    pub fn data(path: &str, offset: u64, reason: impl ToString) -> Self {
        Error::Data { path: path.to_owned(), offset, reason: reason.to_string() }
    }

    /// Whether the data is at fault, and not the store or the user.
    pub fn is_data(&self) -> bool {
        matches!(self, Error::Data { .. } | Error::Field { .. })
    }

    /// An error met while reading `path` near `offset`: the store's own if it came from there, else the data's fault.
    pub fn reading(path: &str, offset: u64, error: io::Error) -> Self {
        match error.downcast::<cluster::Error>() {
            Ok(store) => Error::Store(store),
            Err(error) => Error::data(path, offset, error),
        }
    }

    /// An error met while writing a part of `folder`: the store's own if it came from there.
    pub fn writing(folder: &str, error: io::Error) -> Self {
        match error.downcast::<cluster::Error>() {
            Ok(store) => Error::Store(store),
            Err(error) => Error::Store(cluster::Error::io(folder, "write", error)),
        }
    }

    /// A file whose second reading gives other records than its first; never the data's fault, for the
    /// fates that were decided on the first reading fit nothing any more.
    pub fn changed(path: &str) -> Self {
        let source = io::Error::other("it has changed since it was first read");
        Error::Store(cluster::Error::io(path, "divide", source))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Data { path, offset, reason } => write!(f, "\"{path}\" at byte {offset}: {reason}"),
            Error::Field { path, field, found } => {
                write!(f, "\"{path}\" has no field \"{field}\"; it has {}", found.join(", "))
            }
            Error::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Store(error) => error.source(),
            _ => None,
        }
    }
}

impl From<cluster::Error> for Error {
    fn from(error: cluster::Error) -> Self {
        Error::Store(error)
    }
}
