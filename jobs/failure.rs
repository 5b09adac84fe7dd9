//! How a job fails, as users' scripts see it.

use std::fmt;

/// The command was wrong: exit code 2, and one line that says what to change.
#[derive(Debug)]
pub struct WrongUse(pub String);

impl fmt::Display for WrongUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WrongUse {}

/// A guard that the user set stopped the job before anything was committed: exit code 4.
#[derive(Debug)]
pub(crate) struct Guarded(pub String);

impl fmt::Display for Guarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Guarded {}

/// The exit code that a failure ends the process with (README.md, "Use it").
pub fn exit_code(error: &anyhow::Error) -> u8 {
    let store = error.downcast_ref::<cluster::Error>();
    let wrong_name = matches!(store, Some(cluster::Error::NotFound { .. } | cluster::Error::BadName { .. }));
    let data = error.downcast_ref::<datasets::Error>();
    let wrong_field = matches!(data, Some(datasets::Error::Field { .. }));
    if error.is::<Guarded>() {
        4
    } else if error.is::<WrongUse>() || error.is::<operators::Error>() || wrong_name || wrong_field {
        2
    } else {
        1
    }
}
