//! Progress on stderr.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::say;

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

/// What the job is at. No job has all of them, but each has its own in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    Start,
    Count,
    Map,
    Compare,
    Verify,
    Resolve,
    Write,
    Pack,
    Unpack,
    Commit,
}

const STAGES: [(Stage, &str); 10] = [
    (Stage::Start, "start"),
    (Stage::Count, "count"),
    (Stage::Map, "map"),
    (Stage::Compare, "compare"),
    (Stage::Verify, "verify"),
    (Stage::Resolve, "resolve"),
    (Stage::Write, "write"),
    (Stage::Pack, "pack"),
    (Stage::Unpack, "unpack"),
    (Stage::Commit, "commit"),
];

/// Counters that the workers advance and the reporter shows. A stage begins when the first worker enters it.
#[derive(Default)]
pub(crate) struct Progress {
    stage: AtomicU8,
    records: AtomicU64,
    bytes: AtomicU64,
    file_bytes: AtomicU64,
}

impl Progress {
    /// A worker begins a stage.
    pub fn enter(&self, stage: Stage) {
        if self.stage.fetch_max(stage as u8, Ordering::Relaxed) < stage as u8 {
            for counter in [&self.records, &self.bytes, &self.file_bytes] {
                counter.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Some records, of so many bytes, have gone through the stage.
    pub fn read(&self, records: u64, bytes: u64) {
        self.records.fetch_add(records, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// So much of the input files has gone through the stage.
    pub fn done(&self, file_bytes: u64) {
        self.file_bytes.fetch_add(file_bytes, Ordering::Relaxed);
    }
}

/// Shows a [`Progress`] until it is dropped.
pub(crate) struct Reporter {
    thread: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Reporter {
    /// `input_bytes`: of all files, for the time that is left.
    pub fn start(progress: Arc<Progress>, show: Show, input_bytes: u64) -> Self {
        let bar = show == Show::Auto && std::io::stderr().is_terminal();
        if show == Show::None {
            return Reporter { thread: None };
        }
        let every = if bar { Duration::from_millis(200) } else { Duration::from_secs(5) };
        let (stop, stopped) = mpsc::channel();
        let thread = thread::spawn(move || {
            let style = ProgressStyle::with_template("{spinner} {msg}").ok();
            let bar =
                bar.then(|| style.into_iter().fold(ProgressBar::new_spinner(), ProgressBar::with_style));
            let mut looked = Instant::now();
            let mut started = (Stage::Start as u8, looked);
            while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                let stage = progress.stage.load(Ordering::Relaxed);
                if stage != started.0 {
                    // Some time after the last look; from now on would be no time for what is done already.
                    started = (stage, looked);
                }
                looked = Instant::now();
                let line = line(&progress, stage, started.1.elapsed(), input_bytes);
                match &bar {
                    Some(bar) => {
                        bar.set_message(line);
                        bar.tick();
                    }
                    None => say(line),
                }
            }
            bar.iter().for_each(ProgressBar::finish_and_clear);
        });
        Reporter { thread: Some((stop, thread)) }
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.thread.take() {
            drop(stop);
            // A panic of the reporter has ended the process already.
            let _ = thread.join();
        }
    }
}

fn line(progress: &Progress, stage: u8, elapsed: Duration, input_bytes: u64) -> String {
    let name = STAGES[usize::from(stage)].1;
    let records = progress.records.load(Ordering::Relaxed);
    if records == 0 {
        return name.to_owned();
    }
    let seconds = elapsed.as_secs_f64().max(0.001);
    let rate = progress.bytes.load(Ordering::Relaxed) as f64 / 1e6 / seconds;
    let done = progress.file_bytes.load(Ordering::Relaxed) as f64 / input_bytes.max(1) as f64;
    let left = if done > 0.0 && name != "verify" {
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
    fn a_stage_that_another_worker_has_left_is_not_entered_again() {
        let progress = Progress::default();
        progress.enter(Stage::Compare);
        progress.read(7, 1_000_000);
        progress.enter(Stage::Map);
        assert_eq!(
            line(&progress, Stage::Compare as u8, Duration::from_secs(1), 1),
            "compare: 7 records, 1 MB/s"
        );
    }

    #[test]
    fn the_line_names_stage_rate_and_time_left() {
        let progress = Progress::default();
        progress.read(10, 5_000_000);
        progress.done(25);
        let line = line(&progress, Stage::Map as u8, Duration::from_secs(1), 100);
        assert_eq!(line, "map: 10 records, 5 MB/s, 25 %, 3 s left");
    }
}
