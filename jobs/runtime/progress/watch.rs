//! The thread that watches a running job, and shows its progress as lines, metrics and events.

use std::fs;
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Error, Result, anyhow};
use cluster::path_of_text;
use indicatif::{ProgressBar, ProgressStyle};

use super::counts::{Outlets, Progress};
use super::events::{Event, Events, Watched};
use super::metrics::{self, JobState};
use super::metrics_server::MetricsPage;
use super::options::{ProgressOptions, Show};
use super::stage::Stage;
use super::stages::{StageCounts, seconds};
use super::termination::Termination;
use super::usage::ResourceUsage;
use super::warnings::show_beside;
use crate::cli::exit::exit_code;
use crate::cli::report_file::ReportFile;
use crate::cli::terminal::say;

/// Time between two plain lines, and between two versions of the metrics.
const EVERY: Duration = Duration::from_secs(5);

/// State that the job and the watching thread share.
struct Shown {
    progress: Arc<Progress>,
    job: Watched,
    /// Start of the job, by a clock that never goes back.
    since: Instant,
    started: SystemTime,
    /// Time of the last success before this run, in seconds since 1970, or 0.
    last_success: f64,
    metrics_file: Option<String>,
    page: Option<MetricsPage>,
    bar: Option<ProgressBar>,
    termination: Termination,
    /// Whether a line is written every few seconds.
    plain: bool,
}

impl Shown {
    fn write_metrics(&self, state: JobState) -> Result<()> {
        if self.metrics_file.is_none() && self.page.is_none() {
            return Ok(());
        }
        let text = metrics::text(&self.job, self.started, state, self.last_success, &self.progress);
        if let Some(page) = &self.page {
            page.set_run(text.clone());
        }
        self.metrics_file.as_ref().map_or(Ok(()), |file| ReportFile::new(file).replace(text))
    }

    fn line(&self) -> String {
        let now = self.progress.now();
        let counts = self.progress.has_begun(Stage::Count);
        let done = self.job.input_bytes.max(1) as f64;
        let done = (now.2.file_bytes as f64 / done).min(1.0);
        match self.job.job {
            "dedup" | "nightly" => {
                let since = self.since.elapsed();
                line(now, done_of_run(now.0, now.1, done, (counts, since)), since)
            }
            // The stages of other jobs are told one by one.
            _ => line(now, done, now.1),
        }
    }
}

/// A job that is watched: a thread of its own shows the progress on stderr, as metrics and as events.
///
/// ```text
/// let watch = Watch::begin(options, watched, &progress)?;    job_started
/// let result = work(&progress);                              the workers of the job count in `progress`
/// watch.end(result)                                          job_finished or job_failed
/// ```
///
/// If the watch is dropped instead, the job has failed.
pub struct Watch {
    shown: Arc<Shown>,
    /// Sends nothing: the thread ends when it is dropped. `None` once the job has ended.
    running: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Begins to watch a job, whose workers count in `progress`.
    ///
    /// # Errors
    /// When a file of metrics or events cannot be written, or no thread can be started.
    pub fn begin(options: &ProgressOptions, job: Watched, progress: &Arc<Progress>) -> Result<Self> {
        let since = Instant::now();
        let file = |file: &Option<String>| file.as_ref().map(|file| of_process(file, job.process));
        let events = file(&options.events).map(|file| Events::open(&file)).transpose()?;
        let show = options.show(job.process);
        let bar = (show == Show::Auto && std::io::stderr().is_terminal()).then(|| {
            let style = ProgressStyle::with_template("{spinner} {msg}").ok();
            style.into_iter().fold(ProgressBar::new_spinner(), ProgressBar::with_style)
        });
        let outlets = progress.outlets.get_or_init(|| Outlets { quiet: options.quiet, bar, events });
        let started = SystemTime::now();
        let metrics_file = file(&options.metrics_file);
        let bar = outlets.bar.clone();
        let earlier = metrics_file.as_ref().and_then(|file| fs::read_to_string(path_of_text(file)).ok());
        let shown = Arc::new(Shown {
            progress: Arc::clone(progress),
            job,
            since,
            started,
            last_success: earlier.map_or(0.0, |metrics| metrics::last_success(&metrics)),
            metrics_file,
            page: options.page.clone(),
            plain: bar.is_none() && show != Show::None,
            bar,
            termination: options.termination.clone(),
        });
        shown.write_metrics(JobState::Running)?;
        shown.termination.begin()?;
        progress.tell(&Event::JobStarted(&shown.job));
        show_beside(progress);
        let (running, end) = mpsc::channel();
        let mut watch = Watch { shown: Arc::clone(&shown), running: Some(running), thread: None };
        match thread::Builder::new().name("watch".to_owned()).spawn(move || look(&shown, end)) {
            Ok(thread) => watch.thread = Some(thread),
            Err(error) => return watch.end(Err(error.into())),
        }
        Ok(watch)
    }

    /// Ends the thread, and shows how the job has ended. Returns the result of the job.
    pub fn end<T>(mut self, result: Result<T>) -> Result<T> {
        self.show_end(result.as_ref().err());
        result
    }

    /// Ends the thread, and shows that the job has succeeded, or failed with this error.
    fn show_end(&mut self, failure: Option<&Error>) {
        self.running = None;
        // The thread returns nothing, and a panic in it ends the process.
        self.thread.take().map(JoinHandle::join);
        let Shown { progress, since, bar, termination, .. } = self.shown.as_ref();
        bar.iter().for_each(ProgressBar::finish_and_clear);
        let took = seconds(since.elapsed());
        let state = match failure {
            None => {
                progress.tell_finished_before(&mut progress.board.lock(), Stage::ALL.len());
                let ResourceUsage { cpu_milliseconds, peak_memory_bytes, .. } = ResourceUsage::measure();
                let cpu_seconds = cpu_milliseconds as f64 / 1e3;
                progress.tell(&Event::JobFinished { seconds: took, cpu_seconds, peak_memory_bytes });
                JobState::Succeeded
            }
            Some(error) => {
                let exit_code = exit_code(error);
                let error = format!("{error:#}");
                progress.tell(&Event::JobFailed { seconds: took, exit_code, error: &error });
                JobState::Failed
            }
        };
        if let Err(error) = self.shown.write_metrics(state) {
            progress.say_warning(&format!("{error:#}"));
        }
        termination.end();
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if self.running.is_some() {
            self.show_end(Some(&anyhow!("the job was left before it had a result")));
        }
    }
}

/// Shows the progress until `end` is closed: the bar 5 times a second, plain lines and metrics every
/// [`EVERY`], and slow workers once a second. Ends the process if a signal asks for it.
fn look(shown: &Shown, end: Receiver<()>) {
    let often = Duration::from_millis(200);
    let (mut last_shown, mut looked) = (Instant::now(), Instant::now());
    let mut writable = true;
    while end.recv_timeout(often) == Err(RecvTimeoutError::Timeout) {
        if let Some(ended) = shown.termination.came() {
            let took = shown.started.elapsed().unwrap_or_default();
            let exit_code = ended.exit_code();
            let error = format!("{} ended it", ended.name());
            shown.progress.tell(&Event::JobFailed { seconds: seconds(took), exit_code, error: &error });
            let _ = shown.write_metrics(JobState::Failed);
            shown.bar.iter().for_each(ProgressBar::finish_and_clear);
            if let Some(left) = shown.job.left_if_ended.as_ref().filter(|_| shown.job.process == 0) {
                shown.progress.say(&format!("{}: {left}", ended.name()));
            }
            ended.die();
        }
        if let Some(bar) = &shown.bar {
            bar.set_message(shown.line());
            bar.tick();
        }
        if looked.elapsed() >= Duration::from_secs(1) {
            looked = Instant::now();
            shown.progress.name_slow();
        }
        if last_shown.elapsed() >= EVERY {
            last_shown = Instant::now();
            if shown.plain {
                say(shown.line());
            }
            if writable && let Err(error) = shown.write_metrics(JobState::Running) {
                // Only the first failure is reported.
                writable = false;
                shown.progress.warn(&format!("{error:#}"));
            }
        }
    }
}

/// Returns the file of a process: each process but the first has one of its own.
fn of_process(file: &str, process: usize) -> String {
    if process == 0 { file.to_owned() } else { format!("{file}.{process}") }
}

/// Parts of the time of a run of `dedup` that its stages take, in their order. They are those of 219,837 documents by `auto`; other methods and
/// corpora differ, so what is told of the time that is left is an estimate.
const SHARES: [(Stage, f64); 6] = [
    (Stage::Count, 0.2),
    (Stage::Map, 0.45),
    (Stage::Compare, 0.2),
    (Stage::Verify, 0.05),
    (Stage::Resolve, 0.05),
    (Stage::Write, 0.25),
];

/// Returns about which part of a whole run is done. `in_stage`: time since its present stage was begun. `read`: part of the input that the stage
/// has read. `counts`: whether the run counts features first. `since`: time since the run was begun.
fn done_of_run(stage: Stage, in_stage: Duration, read: f64, (counts, since): (bool, Duration)) -> f64 {
    let shares = || SHARES.iter().filter(|(of, _)| counts || *of != Stage::Count);
    let all: f64 = shares().map(|(_, share)| share).sum();
    let before: f64 = shares().filter(|(of, _)| *of < stage).map(|(_, share)| share).sum();
    let share = shares().find(|(of, _)| *of == stage).map_or(0.0, |(_, share)| *share);
    let of_stage = match stage {
        Stage::Count | Stage::Map | Stage::Write => read,
        // Those before tell how fast the machine is. A stage that takes longer than expected does not end before it has.
        _ => {
            let took = since.saturating_sub(in_stage).as_secs_f64().max(0.001);
            let expected = took * share / before.max(share).max(0.01);
            let passed = in_stage.as_secs_f64();
            passed / (passed + expected).max(0.001)
        }
    };
    (before + share * of_stage) / all
}

/// Returns the line that shows the progress of a job: its stage, and the time that is left of all stages. `done`: part of the job that is done.
/// `since`: time since the job was begun.
fn line((stage, elapsed, tally): (Stage, Duration, StageCounts), done: f64, since: Duration) -> String {
    let StageCounts { records, bytes, .. } = tally;
    let rate = bytes as f64 / 1e6 / elapsed.as_secs_f64().max(0.001);
    let rate = if bytes > 0 { format!(", {rate:.0} MB/s") } else { String::new() };
    let counted = if records > 0 { format!(": {records} records{rate}") } else { String::new() };
    let left = match done {
        0.0 => String::new(),
        done => format!(", {:.0} %, {:.0} s left", 100.0 * done, since.as_secs_f64() * (1.0 - done) / done),
    };
    format!("{}{counted}{left}", stage.name())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::cli::exit::WrongUse;

    #[test]
    fn the_line_names_stage_rate_and_time_left() {
        let tally = StageCounts { records: 10, bytes: 5_000_000, file_bytes: 25, ..StageCounts::default() };
        let seconds = Duration::from_secs;
        assert_eq!(
            line((Stage::Map, seconds(1), tally), 0.25, seconds(2)),
            "map: 10 records, 5 MB/s, 25 %, 6 s left"
        );
        assert_eq!(line((Stage::Start, seconds(1), StageCounts::default()), 0.0, seconds(1)), "start");
    }

    #[test]
    fn the_share_of_a_run_that_is_done_grows_to_its_end() {
        let seconds = Duration::from_secs;
        let steps = [
            (Stage::Start, 0, 0.0, 0),
            (Stage::Map, 1, 0.1, 1),
            (Stage::Map, 9, 1.0, 9),
            (Stage::Compare, 0, 0.0, 9),
            (Stage::Compare, 3, 0.0, 12),
            (Stage::Compare, 60, 0.0, 69),
            (Stage::Verify, 1, 0.3, 70),
            (Stage::Write, 1, 0.0, 71),
            (Stage::Write, 9, 1.0, 80),
            (Stage::Commit, 0, 0.0, 80),
        ];
        for counts in [false, true] {
            let done = steps.map(|(stage, in_stage, read, since)| {
                done_of_run(stage, seconds(in_stage), read, (counts, seconds(since)))
            });
            assert!(done.is_sorted() && (done[9] - 1.0).abs() < 1e-9, "{done:?}");
        }
    }

    /// Watches a job until `leave` takes the watch. Returns the last event, and the metrics.
    fn watched(leave: impl FnOnce(Watch)) -> (Value, String) {
        let folder = tempfile::tempdir().unwrap();
        let file = |name| folder.path().join(name).to_str().unwrap().to_owned();
        let options = ProgressOptions {
            progress: Show::None,
            quiet: true,
            verbose: false,
            metrics_file: Some(file("metrics")),
            events: Some(file("events")),
            page: None,
            termination: Termination::left_to_job(),
        };
        let job = Watched {
            version: "1",
            job: "dedup",
            output: "out".to_owned(),
            process: 0,
            configuration: Value::Null,
            input_files: 1,
            input_bytes: 10,
            splits: 1,
            left_if_ended: None,
        };
        leave(Watch::begin(&options, job, &Arc::default()).unwrap());
        let events = fs::read_to_string(file("events")).unwrap();
        assert_eq!(events.lines().count(), 2, "{events}");
        let last = serde_json::from_str(events.lines().last().unwrap()).unwrap();
        (last, fs::read_to_string(file("metrics")).unwrap())
    }

    #[test]
    fn a_job_that_ends_with_an_error_tells_its_exit_code() {
        let (event, metrics) = watched(|watch| {
            let result = Err::<(), _>(Error::new(WrongUse("no such file".to_owned())).context("planning"));
            assert!(watch.end(result).is_err());
        });
        assert_eq!((&event["event"], &event["exit_code"]), (&json!("job_failed"), &json!(2)));
        assert_eq!(event["error"], "planning: no such file");
        assert!(metrics.contains("\ndedup_job_failures_total 1\n"), "{metrics}");
        assert!(metrics.contains("\ndedup_job_running 0\n"), "{metrics}");
    }

    #[test]
    fn a_job_whose_watch_is_dropped_has_failed() {
        let (event, metrics) = watched(drop);
        assert_eq!((&event["event"], &event["exit_code"]), (&json!("job_failed"), &json!(1)));
        assert_eq!(event["error"], "the job was left before it had a result");
        assert!(metrics.contains("\ndedup_job_failures_total 1\n"), "{metrics}");
    }

    #[test]
    fn a_job_that_ends_with_a_result_has_succeeded() {
        let (event, metrics) = watched(|watch| assert_eq!(watch.end(Ok(7)).unwrap(), 7));
        assert_eq!(event["event"], "job_finished");
        assert!(metrics.contains("\ndedup_job_failures_total 0\n"), "{metrics}");
    }

    #[test]
    fn each_process_has_files_of_its_own() {
        assert_eq!(["a.prom", "a.prom.1"], [0, 1].map(|process| of_process("a.prom", process)));
    }
}
