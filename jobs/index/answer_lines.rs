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

/// Says how many records were rejected, and which was the first, even to those who want only errors. Returns the exit code.
pub(super) fn code(rejects: &Rejects, input: &Input) -> Result<u8> {
    if rejects.faults() == 0 {
        return Ok(0);
    }
    let first = rejects.first_in_words(&input.plan, &input.reading)?;
    say(format_args!("warning: {} records were rejected; the first: {first}", rejects.faults()));
    Ok(3)
}
