//! Threads that read a file for all who have a piece of it, and their failures.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use cluster::Blob;

use crate::Error;

/// ReadFailure of a thread that reads a file for all of its pieces. Every reader that comes to it gets it as an
/// error of its own.
#[derive(Clone, Debug)]
pub(crate) enum ReadFailure {
    /// The data is at fault.
    Data { offset: u64, reason: String },
    /// The store or the disk is at fault, or the program.
    Other(String),
}

impl ReadFailure {
    /// Returns the failure that is told by an error of reading.
    pub fn of(error: &Error) -> Self {
        match error {
            Error::Data { offset, reason, .. } => {
                ReadFailure::Data { offset: *offset, reason: reason.clone() }
            }
            Error::Field(_) => ReadFailure::Data { offset: 0, reason: error.to_string() },
            Error::Store(error) => ReadFailure::Other(chain(error)),
        }
    }

    /// Returns the failure that is told by an error of spilling.
    pub fn of_spill(error: &operators::Error) -> Self {
        ReadFailure::Other(chain(error))
    }

    /// Returns an error of the file at `path`.
    pub fn error(&self, path: &str) -> Error {
        match self {
            ReadFailure::Data { offset, reason } => Error::data(path, *offset, reason),
            ReadFailure::Other(reason) => {
                Error::Store(cluster::Error::io(path, "read", io::Error::other(reason.clone())))
            }
        }
    }
}

/// Returns an error with its causes, as one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        line.push_str(&format!(": {error}"));
        cause = error.source();
    }
    line
}

/// Runs `work` on a thread of that name, and then calls `end` with its result. A panic, or a system without a
/// thread to give, is a failure too.
pub(crate) fn spawn(
    name: &str,
    blob: &Arc<dyn Blob>,
    work: impl FnOnce() -> Result<(), ReadFailure> + Send + 'static,
    end: impl Fn(Result<(), ReadFailure>) + Send + Sync + 'static,
) {
    let end = Arc::new(end);
    let ended = Arc::clone(&end);
    let path = blob.path().to_owned();
    let body = move || {
        let panicked =
            |_: Box<dyn Any + Send>| Err(ReadFailure::Other(format!("reading \"{path}\" panicked")));
        ended(catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(panicked));
    };
    if let Err(error) = thread::Builder::new().name(name.to_owned()).spawn(body) {
        end(Err(ReadFailure::Other(format!("could not start a thread: {error}"))));
    }
}
