//! The errors of stores, and of the processes of a job.

use std::io;

use thiserror::Error;

/// Reason why a store could not do what it was asked.
#[derive(Debug, Error)]
pub enum Error {
    /// No such file or directory exists, or no file matches the pattern.
    #[error("\"{path}\" does not exist")]
    NotFound {
        /// The path or pattern.
        path: String,
    },
    /// The file exists, but must not be read or written by this user.
    #[error("no permission for \"{path}\"")]
    Denied {
        /// The path.
        path: String,
    },
    /// The name cannot be used: it has an unknown scheme or is a bad pattern, for example.
    #[error("cannot use \"{name}\": {reason}")]
    BadName {
        /// The name as it was given.
        name: String,
        /// Reason in lower case, without a full stop.
        reason: String,
    },
    /// The processes of the job could not connect to each other, or one of them was lost or failed.
    #[error("{reason}")]
    Processes {
        /// The whole line: which process, and why.
        reason: String,
    },
    /// An input is not what it was when the job was planned, or when it was read before.
    #[error(
        "the input \"{path}\" changed while the job ran: {reason}; \
         run the job again, and if it says so once more, remove OUTPUT/_temporary before"
    )]
    Changed {
        /// The path, as messages show it.
        path: String,
        /// Reason in lower case, without a full stop.
        reason: String,
    },
    /// A file that this program has written does not have the bytes that were written.
    #[error("\"{path}\" is damaged at byte {offset}: {reason}")]
    Damaged {
        /// The path, as messages show it.
        path: String,
        /// Offset of the damaged block, in bytes.
        offset: u64,
        /// Reason in lower case, without a full stop.
        reason: String,
    },
    /// Any other failure.
    #[error("could not {action} \"{path}\"")]
    Io {
        /// The path.
        path: String,
        /// The action that failed, such as `read` or `rename`.
        action: &'static str,
        /// The cause.
        source: io::Error,
    },
}

impl Error {
    /// Returns the error of a write to an [`Output`](crate::Output), whose store may have put an error of its own inside.
    pub fn of_write(path: &str, error: io::Error) -> Self {
        Error::of(path, "write", error)
    }

    /// Returns the error of an action by which a store may have put an error of its own inside.
    pub fn of(path: &str, action: &'static str, error: io::Error) -> Self {
        error.downcast().unwrap_or_else(|source| Error::io(path, action, source))
    }

    /// Sorts an I/O error into the variants that callers treat differently.
    pub fn io(path: &str, action: &'static str, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::NotFound => Error::NotFound { path },
            io::ErrorKind::PermissionDenied => Error::Denied { path },
            _ => Error::Io { path, action, source },
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        io::Error::other(error)
    }
}
