//! Why a method cannot be used as asked, or its work cannot go on.

use std::path::PathBuf;
use std::sync::Arc;
use std::{fmt, io};

/// Why a method cannot be used as asked, or its work cannot go on.
#[derive(Clone, Debug)]
pub enum Error {
    /// The spec does not parse.
    BadSpec {
        /// As it was given.
        spec: String,
        /// What was expected.
        reason: String,
    },
    /// The user dictionary does not parse.
    BadDictionary {
        /// From 1.
        line: usize,
        /// What was expected.
        reason: String,
    },
    /// What does not fit into memory does not fit into the scratch folder either.
    DiskFull {
        /// The scratch folder.
        folder: PathBuf,
        /// How many had to be written.
        bytes: usize,
    },
    /// The scratch folder cannot be written to.
    Scratch {
        /// The scratch folder.
        folder: PathBuf,
        /// Of the system.
        cause: Arc<io::Error>,
    },
    /// What was written to the scratch folder does not come back.
    ScratchLost {
        /// The scratch folder.
        folder: PathBuf,
        /// In bytes from the start of a file that has no name.
        offset: u64,
        /// Of the system, or that a checksum does not match.
        cause: Arc<io::Error>,
    },
}

impl Error {
    /// Whether something else should have been asked for.
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
            Error::Scratch { folder, .. } => write!(f, "could not spill to \"{}\"", folder.display()),
            Error::ScratchLost { folder, offset, .. } => {
                write!(f, "could not read back what was spilled to \"{}\", byte {offset}", folder.display())
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Scratch { cause, .. } | Error::ScratchLost { cause, .. } => Some(cause.as_ref()),
            Error::BadSpec { .. } | Error::BadDictionary { .. } | Error::DiskFull { .. } => None,
        }
    }
}
