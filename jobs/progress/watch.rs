//! The thread that looks at a running job, and what it shows.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;

use super::events::{Event, Events};
use super::metrics::{self, JobInfo, Outcome};
use super::stages::{Tally, seconds};
use super::{Outlets, Progress, Stage, lock};
use crate::failure::exit_code;
use crate::plan::Plan;
use crate::report_file::ReportFile;
use crate::summary::Process;
use crate::{Common, WrongUse, say};

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Show {
    /// A bar on a terminal, plain lines elsewhere.
    Auto,
    /// A line every few seconds.
    Plain,
    /// Nothing.
    None,
}

/// Time between two plain lines, and between two versions of the metrics.
const EVERY: Duration = Duration::from_secs(5);

/// Job that people want to see.
pub(crate) struct Watched<'a> {
    pub common: &'a Common,
    pub name: &'a str,
    pub output: &'a str,
    pub plan: &'a Plan,
    pub configuration: &'a Value,
    /// Number of this process in the job. Each process but 0 writes files of its own.
    pub process: usize,
}

/// Does a job by `work`, and shows its `progress` on stderr, as metrics and as events.
///
/// # Errors
/// Those of `work`; a file of metrics or events that cannot be written at the start, or is an input.
pub(crate) fn watch<T>(
    job: &Watched,
    progress: &Arc<Progress>,
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let started = Instant::now();
    let common = job.common;
    let file = |option: &str, file: &Option<String>| match file {
        Some(file) if job.plan.file_below("", file).is_some() => {
            bail!(WrongUse(format!("{option} would write to the input \"{file}\"")))
        }
        file => Ok(file.as_ref().map(|file| of_process(file, job.process))),
    };
    let events = file("--events", &common.events)?.map(|file| Events::open(&file)).transpose()?;
    let metrics_file = file("--metrics-file", &common.metrics_file)?;
    let info = JobInfo {
        name: job.name,
        output: job.output,
        process: job.process,
        input_bytes: job.plan.bytes(),
        started: SystemTime::now(),
    };
    let write_metrics = |outcome| match &metrics_file {
        Some(file) => ReportFile::new(file).replace(metrics::text(&info, outcome, progress)),
        None => Ok(()),
    };
    let bar = (common.show() == Show::Auto && std::io::stderr().is_terminal()).then(|| {
        let style = ProgressStyle::with_template("{spinner} {msg}").ok();
        style.into_iter().fold(ProgressBar::new_spinner(), ProgressBar::with_style)
    });
    let outlets = Outlets { quiet: common.quiet, bar, events };
    let outlets = progress.outlets.get_or_init(|| outlets);
    write_metrics(Outcome::Running)?;
    progress.tell(&Event::JobStarted {
        version: env!("CARGO_PKG_VERSION"),
        job: job.name,
        output: job.output,
        process: job.process,
        configuration: job.configuration,
        input_files: job.plan.files.len() as u64,
        input_bytes: job.plan.bytes(),
        splits: job.plan.splits.len() as u64,
    });

    let (ended, end) = mpsc::channel::<()>();
    let result = thread::scope(|scope| {
        let line = || line(progress.now(), info.input_bytes);
        let plain = outlets.bar.is_none() && common.show() != Show::None;
        let metrics = || write_metrics(Outcome::Running);
        let watcher = scope.spawn(move || look(progress, outlets.bar.as_ref(), plain, line, metrics, end));
        let result = work();
        drop(ended);
        // A panic of the thread has ended the process already.
        let _ = watcher.join();
        result
    });
    outlets.bar.iter().for_each(ProgressBar::finish_and_clear);
    let took = seconds(started.elapsed());
    match &result {
        Ok(_) => {
            progress.tell_finished_before(&mut lock(&progress.board), Stage::ALL.len());
            let Process { cpu_milliseconds, peak_memory_bytes, .. } = Process::measure();
            let cpu_seconds = cpu_milliseconds as f64 / 1e3;
            progress.tell(&Event::JobFinished { seconds: took, cpu_seconds, peak_memory_bytes });
        }
        Err(error) => {
            let (exit_code, error) = (exit_code(error), format!("{error:#}"));
            progress.tell(&Event::JobFailed { seconds: took, exit_code, error: &error });
        }
    }
    let outcome = if result.is_ok() { Outcome::Succeeded } else { Outcome::Failed };
    if let Err(error) = write_metrics(outcome) {
        progress.say_warning(&format!("{error:#}"));
    }
    result
}

/// Shows the progress from time to time, until `end` is closed.
fn look(
    progress: &Progress,
    bar: Option<&ProgressBar>,
    plain: bool,
    line: impl Fn() -> String,
    mut write_metrics: impl FnMut() -> Result<()>,
    end: Receiver<()>,
) {
    let often = Duration::from_millis(if bar.is_some() { 200 } else { 1000 });
    let (mut shown, mut looked) = (Instant::now(), Instant::now());
    let mut writable = true;
    while end.recv_timeout(often) == Err(RecvTimeoutError::Timeout) {
        if let Some(bar) = bar {
            bar.set_message(line());
            bar.tick();
        }
        if looked.elapsed() >= Duration::from_secs(1) {
            looked = Instant::now();
            progress.name_slow();
        }
        if shown.elapsed() >= EVERY {
            shown = Instant::now();
            if plain {
                say(line());
            }
            if writable && let Err(error) = write_metrics() {
                // One warning is enough.
                writable = false;
                progress.warn(&format!("{error:#}"));
            }
        }
    }
}

/// Returns the file of a process: each process but the first has one of its own.
fn of_process(file: &str, process: usize) -> String {
    if process == 0 { file.to_owned() } else { format!("{file}.{process}") }
}

/// Returns the line that shows the progress of a stage.
fn line((stage, elapsed, tally): (Stage, Duration, Tally), input_bytes: u64) -> String {
    let name = stage.name();
    let Tally { records, bytes, file_bytes, .. } = tally;
    if records == 0 {
        return name.to_owned();
    }
    let seconds = elapsed.as_secs_f64().max(0.001);
    let rate = bytes as f64 / 1e6 / seconds;
    let done = file_bytes as f64 / input_bytes.max(1) as f64;
    let left = if done > 0.0 && stage != Stage::Verify {
        format!(", {:.0} %, {:.0} s left", 100.0 * done, seconds * (1.0 - done) / done)
    } else {
        String::new()
    };
    format!("{name}: {records} records, {rate:.0} MB/s{left}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_names_stage_rate_and_time_left() {
        let tally = Tally { records: 10, bytes: 5_000_000, file_bytes: 25, ..Tally::default() };
        let line = line((Stage::Map, Duration::from_secs(1), tally), 100);
        assert_eq!(line, "map: 10 records, 5 MB/s, 25 %, 3 s left");
    }

    #[test]
    fn each_process_has_files_of_its_own() {
        assert_eq!(["a.prom", "a.prom.1"], [0, 1].map(|process| of_process("a.prom", process)));
    }
}
