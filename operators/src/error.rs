//! The error type of this crate.

use std::path::PathBuf;
use std::sync::Arc;
use std::{fmt, io};

/// Reason why a method cannot be used as asked, or why its work cannot go on.
#[derive(Clone, Debug)]
pub enum Error {
    /// The spec does not parse.
    BadSpec {
        /// Spec, as it was given.
        spec: String,
        /// Reason why the spec is refused, with the form that was expected.
        reason: String,
    },
    /// The user dictionary does not parse.
    BadDictionary {
        /// Number of the line, from 1.
        line: usize,
        /// Form that was expected.
        reason: String,
    },
    /// Neither the memory nor the folder of spill files has room for the records of the job.
    DiskFull {
        /// Folder of spill files.
        folder: PathBuf,
        /// Number of bytes that had to be written.
        bytes: usize,
    },
    /// The folder of spill files cannot be written to.
    Spill {
        /// Folder of spill files.
        folder: PathBuf,
        /// Error of the system.
        cause: Arc<io::Error>,
    },
    /// Spilled records could not be read back from the folder of spill files, or came back changed.
    SpillLost {
        /// Folder of spill files.
        folder: PathBuf,
        /// Offset in bytes from the start of the spill file, which has no name.
        offset: u64,
        /// Error of the system, or a checksum that does not match.
        cause: Arc<io::Error>,
    },
    /// A document that matches another one was not found again where it was read before.
    DocsMissing,
}

impl Error {
    /// Whether the user asked for something impossible and must change the request.
    pub fn is_wrong_use(&self) -> bool {
        matches!(self, Error::BadSpec { .. } | Error::BadDictionary { .. })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::BadSpec { spec, reason } => write!(f, "bad method \"{spec}\": {reason}"),
            Error::BadDictionary { line, reason } => write!(f, "bad user dictionary, line {line}: {reason}"),
            Error::DiskFull { folder, bytes } => {
                let (count, unit) =
                    if *bytes < 1 << 20 { (bytes.div_ceil(1 << 10), "KiB") } else { (bytes >> 20, "MiB") };
                write!(f, "the disk of \"{}\" is full: could not spill {count} {unit}", folder.display())
            }
            Error::DocsMissing => f.write_str(
                "a document was not found again in its second reading; did the input change meanwhile?",
            ),
            Error::Spill { folder, .. } => write!(f, "could not spill to \"{}\"", folder.display()),
            Error::SpillLost { folder, offset, .. } => {
                write!(f, "could not read back what was spilled to \"{}\", byte {offset}", folder.display())
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Spill { cause, .. } | Error::SpillLost { cause, .. } => Some(cause.as_ref()),
            Error::BadSpec { .. }
            | Error::BadDictionary { .. }
            | Error::DiskFull { .. }
            | Error::DocsMissing => None,
        }
    }
}
