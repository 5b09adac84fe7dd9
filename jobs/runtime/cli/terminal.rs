//! Lines for people: messages on stderr, answers on stdout.

use std::fmt;
use std::io::Write;

use anyhow::{Context, Result};
use serde::Serialize;

/// Writes a line to stderr. A closed or full stderr is no failure of the job.
pub fn say(line: impl fmt::Display) {
    if cfg!(test) {
        return eprintln!("{line}"); // the test harness shows stderr of tests that fail
    }
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Writes a number with separators of thousands.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Writes a value to stdout as JSON that people can read.
pub fn print_json(value: &impl Serialize) -> Result<()> {
    print(serde_json::to_string_pretty(value)? + "\n")
}

/// Writes the answer of a job to stdout. A reader that has seen enough, such as `head`, is no failure.
pub fn print(answer: impl fmt::Display) -> Result<()> {
    match write!(std::io::stdout(), "{answer}").and_then(|()| std::io::stdout().flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(error).context("could not write to the standard output")
        }
        _ => Ok(()),
    }
}
