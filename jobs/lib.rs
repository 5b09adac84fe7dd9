//! The jobs of the command line, one module each, and what they share.
//!
//! Arrows: `jobs` joins `operators`, `cluster` and `datasets`; no algorithm lives here.

pub mod compare;
mod comparison;
pub mod dedup;
pub mod demo;
mod drive;
pub mod eval;
pub mod explain;
mod failure;
mod finish;
mod finished;
mod guards;
mod input;
mod labels;
mod options;
mod output;
pub mod pack;
mod plan;
mod plot;
mod progress;
mod reject_lines;
mod repack;
pub mod rethreshold;
mod search;
pub mod show;
mod side_by_side;
mod statistics;
mod summary;
mod tables;
pub mod tune;
pub mod unpack;
pub mod why;
mod write;

use std::fmt;
use std::io::Write as _;

use anyhow::Context;

pub use failure::{WrongUse, exit_code};
pub use progress::Show;

/// Writes a line to stderr. That nobody can read it, on a closed or full one, is no failure of the job.
pub fn say(line: impl fmt::Display) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Writes a job's answer to stdout. A reader that has seen enough, such as `head`, is no failure.
fn print(answer: impl fmt::Display) -> anyhow::Result<()> {
    match write!(std::io::stdout(), "{answer}").and_then(|()| std::io::stdout().flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(error).context("could not write to the standard output")
        }
        _ => Ok(()),
    }
}

/// What every job is given: the options that come before or after its name.
#[derive(Clone, Debug, clap::Args)]
pub struct Common {
    /// Worker threads; by default the cores of this machine
    ///
    /// The result is the same for any number.
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: Option<u16>,
    /// How progress is shown on stderr
    ///
    /// `auto` is a line that renews itself on a terminal, and a line every few seconds elsewhere.
    #[arg(long, global = true, value_name = "HOW", default_value = "auto")]
    progress: Show,
    /// Print nothing but errors
    #[arg(long, short, global = true)]
    quiet: bool,
    /// Keep the numbers of the running job in this file, for Prometheus
    ///
    /// It is replaced in one step every 5 seconds and at the end, whether the job succeeds or fails.
    #[arg(long, global = true, value_name = "FILE", value_parser = options::paths())]
    metrics_file: Option<String>,
    /// Append what happens to this file, as JSON lines
    ///
    /// Job, stages and splits that begin and end, slow workers and warnings, each with its time.
    #[arg(long, global = true, value_name = "FILE", value_parser = options::paths())]
    events: Option<String>,
}

impl Common {
    fn workers(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        self.workers.map_or_else(cores, usize::from)
    }

    fn show(&self) -> Show {
        if self.quiet { Show::None } else { self.progress }
    }
}
