//! The failures of a job that users' scripts can tell apart, and their exit codes.

use std::fmt;

use anyhow::{Error, anyhow};

/// Wrong use of a command: exit code 2, and one line that says what to change.
#[derive(Debug)]
pub struct WrongUse(pub String);

impl fmt::Display for WrongUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WrongUse {}

/// Stop by a guard that the user set, before anything was committed: exit code 4.
#[derive(Debug)]
pub(crate) struct Guarded(pub String);

impl fmt::Display for Guarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Guarded {}

/// Stop because another run is writing the output: exit code 11.
#[derive(Debug)]
pub(crate) struct Locked(pub String);

impl fmt::Display for Locked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Locked {}

/// Returns the error of a running job. A file that is missing now was there when the job was planned, so the
/// use was not wrong.
pub(crate) fn while_running(error: Error) -> Error {
    match error.downcast_ref() {
        Some(cluster::Error::NotFound { .. }) => anyhow!("{error:#}, but did before"),
        _ => error,
    }
}

/// Whether an input changed during the job, so that finished work is of no use.
pub(crate) fn is_change(error: &Error) -> bool {
    let changed = |error: &cluster::Error| matches!(error, cluster::Error::Changed { .. });
    let read = |error: &_| matches!(error, datasets::Error::Store(store) if changed(store));
    error.downcast_ref().is_some_and(changed) || error.downcast_ref().is_some_and(read)
}

/// Returns the exit code of a failure (docs/guide/finished-outputs.md).
pub fn exit_code(error: &anyhow::Error) -> u8 {
    let store = error.downcast_ref::<cluster::Error>();
    let wrong_name = matches!(store, Some(cluster::Error::NotFound { .. } | cluster::Error::BadName { .. }));
    let data = error.downcast_ref::<datasets::Error>();
    let wrong_field = matches!(data, Some(datasets::Error::Field(_)));
    let method = error.downcast_ref::<operators::Error>();
    let wrong_method = method.is_some_and(operators::Error::is_wrong_use);
    if error.is::<Guarded>() {
        4
    } else if error.is::<Locked>() {
        11
    } else if error.is::<WrongUse>() || wrong_method || wrong_name || wrong_field {
        2
    } else {
        1
    }
}
