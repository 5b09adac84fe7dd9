//! Why a method cannot be used as asked.

use std::fmt;

/// Why a method cannot be used as asked.
#[derive(Debug)]
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
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::BadSpec { spec, reason } => write!(f, "bad method \"{spec}\": {reason}"),
            Error::BadDictionary { line, reason } => write!(f, "bad user dictionary, line {line}: {reason}"),
        }
    }
}

impl std::error::Error for Error {}
