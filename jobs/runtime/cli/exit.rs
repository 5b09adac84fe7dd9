//! The failures of a job that users' scripts can tell apart, and their exit codes.

use std::fmt;
use std::io::ErrorKind;
use std::process::ExitCode;

use anyhow::{Error, anyhow};

use super::terminal::say;

pub use self::Failure::{AllRejected, Guarded};
pub use self::Failure::{Locked, WrongUse};

/// Failure that stops a job with an exit code of its own, and one line that says what to change.
#[derive(Debug)]
pub enum Failure {
    /// Wrong use of a command: exit code 2.
    WrongUse(String),
    /// Stop by a guard that the user set, before anything was committed: exit code 4.
    Guarded(String),
    /// Stop because another run is writing the output: exit code 11.
    Locked(String),
    /// Failure of a run that could read no record: exit code 1.
    AllRejected(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (WrongUse(line) | Guarded(line) | Locked(line) | AllRejected(line)) = self;
        f.write_str(line)
    }
}

impl std::error::Error for Failure {}

/// Returns the error of a running job. A file that is missing now was there when the job was planned, so the
/// use was not wrong.
pub fn while_running(error: Error) -> Error {
    match error.downcast_ref() {
        Some(cluster::Error::NotFound { .. }) => anyhow!("{error:#}, but did before"),
        _ => error,
    }
}

/// Whether an input changed during the job, so that finished work is of no use.
fn is_change(error: &Error) -> bool {
    let changed = |error: &cluster::Error| matches!(error, cluster::Error::Changed { .. });
    let read = |error: &_| matches!(error, datasets::Error::Store(store) if changed(store));
    error.downcast_ref().is_some_and(changed) || error.downcast_ref().is_some_and(read)
}

/// Whether the same command would fail again in the same way, so that finished work is of no use.
pub(crate) fn would_come_again(error: &Error) -> bool {
    let all_rejected = matches!(error.downcast_ref(), Some(AllRejected(_)));
    all_rejected || matches!(exit_code(error), 2 | 4) || is_change(error)
}

/// Returns what to do about a failure that its text does not tell.
fn advice(error: &anyhow::Error) -> &'static str {
    let kind =
        error.chain().filter_map(|cause| cause.downcast_ref::<std::io::Error>()).map(std::io::Error::kind);
    match kind.last() {
        Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => {
            ". The disk or the quota is full: what was there before is whole, so free some space and run this again"
        }
        _ => "",
    }
}

/// Says what has failed and what to do about it, and returns the exit code.
pub fn fail(error: &anyhow::Error) -> ExitCode {
    // Names in an error may hold any characters, but an error is one line.
    say(cluster::one_line(&format!("error: {error:#}{}", advice(error))));
    ExitCode::from(exit_code(error))
}

/// Returns the exit code of a failure (docs/guide/finished-outputs.md).
pub fn exit_code(error: &anyhow::Error) -> u8 {
    let store = error.downcast_ref::<cluster::Error>();
    let wrong_name = matches!(store, Some(cluster::Error::NotFound { .. } | cluster::Error::BadName { .. }));
    let data = error.downcast_ref::<datasets::Error>();
    let wrong_field = matches!(data, Some(datasets::Error::Field(_)));
    let method = error.downcast_ref::<operators::Error>();
    let wrong_method = method.is_some_and(operators::Error::is_wrong_use);
    match error.downcast_ref() {
        Some(Guarded(_)) => 4,
        Some(Locked(_)) => 11,
        Some(WrongUse(_)) => 2,
        Some(AllRejected(_)) => 1,
        None if wrong_method || wrong_name || wrong_field => 2,
        None => 1,
    }
}
