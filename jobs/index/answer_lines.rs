//! Prints answers, and ends a tool.

use std::io::Write;

use anyhow::{Context, Result};
use serde::Serialize;

use super::query::QueryAnswer;
use runtime::cli::terminal::{print, say};
use runtime::corpus::input::Input;
use runtime::output::rejects::Rejects;

/// Prints a line of JSON.
pub(super) fn print_line(line: impl Serialize) -> Result<()> {
    print(serde_json::to_string(&line)? + "\n")
}

/// Prints the answer about a document that may have been added. Whoever reads the answers must not go before the end.
pub(super) fn acknowledge(answer: QueryAnswer) -> Result<()> {
    let mut line = serde_json::to_string(&answer)?;
    line.push('\n');
    let written = std::io::stdout().write_all(line.as_bytes());
    written.context("could not write an answer, though its document may have been added")
}

/// Warns of rejected records, even those who want only errors: how many there are, and which is the first. Returns the exit code.
pub(super) fn warn_of_rejects(rejects: &Rejects, input: &Input) -> u8 {
    if rejects.faults() == 0 {
        return 0;
    }
    let first = rejects.first_in_words(&input.plan, &input.reading).unwrap_or_default();
    say(match rejects.faults() {
        1 => format!("warning: 1 record was rejected: {first}"),
        count => format!("warning: {count} records were rejected; the first: {first}"),
    });
    3
}
