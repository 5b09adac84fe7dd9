//! Child processes that a job starts of its own program: each reads documents, or runs a command that must not outlive its
//! parent.

use std::env;
use std::process::ExitCode;

use super::parent_watch::{BOUND, become_bound};
use crate::cli::exit::fail;
use crate::cli::terminal::say;

/// Does the work of a child process, if this process was started as one, and returns its exit code.
///
/// Word, PDF and HTML documents are read by child processes that can do nothing else. They are of the program that runs the
/// job, so the `main` of every program that runs jobs calls this before anything else.
pub fn serve_as_child() -> Option<ExitCode> {
    let first = env::args_os().nth(1)?;
    if first == datasets::EXTRACT {
        return Some(extract());
    }
    (first == BOUND).then(|| fail(&become_bound()))
}

/// Reads documents for the process that started this one.
fn extract() -> ExitCode {
    let Some(bounds) = datasets::Bounds::of_arguments(env::args().skip(2)) else {
        say("error: this is for dedup-job itself");
        return ExitCode::from(2);
    };
    match datasets::serve(std::io::stdin().lock(), std::io::stdout().lock(), bounds) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(format_args!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}
