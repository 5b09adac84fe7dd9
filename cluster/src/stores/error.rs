//! The errors of stores, and of the processes of a job.

use std::{fmt, io};

/// Reason why a store could not do what it was asked.
#[derive(Debug)]
pub enum Error {
    /// No such file or directory exists, or no file matches the pattern.
    NotFound {
        /// The path or pattern.
        path: String,
    },
    /// The file exists, but must not be read or written by this user.
    Denied {
        /// The path.
        path: String,
    },
    /// The name cannot be used: it has an unknown scheme or is a bad pattern, for example.
    BadName {
        /// The name as it was given.
        name: String,
        /// Reason in lower case, without a full stop.
        reason: String,
    },
    /// The processes of the job could not connect to each other, or one of them was lost or failed.
    Processes {
        /// The whole line: which process, and why.
        reason: String,
    },
    /// An input is not what it was when the job was planned, or when it was read before.
    Changed {
        /// The path, as messages show it.
        path: String,
        /// Reason in lower case, without a full stop.
        reason: String,
    },
    /// A file that this program has written does not have the bytes that were written.
    Damaged {
        /// The path, as messages show it.
        path: String,
        /// Offset of the damaged block, in bytes.
        offset: u64,
        /// Reason in lower case, without a full stop.
        reason: String,
    },
    /// Any other failure.
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
        error.downcast().unwrap_or_else(|source| Error::io(path, "write", source))
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

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotFound { path } => write!(f, "\"{path}\" does not exist"),
            Error::Denied { path } => write!(f, "no permission for \"{path}\""),
            Error::BadName { name, reason } => write!(f, "cannot use \"{name}\": {reason}"),
            Error::Processes { reason } => f.write_str(reason),
            Error::Changed { path, reason } => {
                write!(
                    f,
                    "the input \"{path}\" changed while the job ran: {reason}; \
                     run the job again, and if it says so once more, remove OUTPUT/_temporary before"
                )
            }
            Error::Damaged { path, offset, reason } => {
                write!(f, "\"{path}\" is damaged at byte {offset}: {reason}")
            }
            Error::Io { path, action, .. } => write!(f, "could not {action} \"{path}\""),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        io::Error::other(error)
    }
}
