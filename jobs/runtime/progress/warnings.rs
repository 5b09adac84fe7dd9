//! Warnings of all crates: `log::warn!` reaches people, the bar and the events of the job that is watched.

use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use log::{Level, LevelFilter, Log, Metadata, Record};
use parking_lot::Mutex;

use super::counts::Progress;
use super::events::Event;
use crate::cli::terminal::say;

/// Crates whose warnings are for users. Those of other crates are about requests that are made again.
const CRATES: [&str; 9] =
    ["batch", "chunk", "cluster", "datasets", "hbase", "index", "jobs", "nightly", "runtime"];

/// Greatest number of warnings that are held for a job that is not watched yet. A program that watches none holds no more.
const MOST_HELD: usize = 1000;

/// Logger of the program.
struct WarningLog {
    quiet: AtomicBool,
    job: Mutex<LoggedJob>,
}

/// State of the job whose events warnings become.
enum LoggedJob {
    /// No job is watched yet: warnings of its planning, which have been shown and are to be its first events.
    Planned(Vec<String>),
    Watched(Weak<Progress>),
}

impl LoggedJob {
    /// Returns the progress of the job that is watched. If there is none, or it has ended, holds a warning for the next one.
    fn watched_or_hold(&mut self, message: &str) -> Option<Arc<Progress>> {
        if let LoggedJob::Watched(progress) = self {
            match progress.upgrade() {
                Some(progress) => return Some(progress),
                None => *self = LoggedJob::Planned(Vec::new()),
            }
        }
        if let LoggedJob::Planned(held) = self
            && held.len() < MOST_HELD
        {
            held.push(message.to_owned());
        }
        None
    }
}

static LOG: WarningLog =
    WarningLog { quiet: AtomicBool::new(false), job: Mutex::new(LoggedJob::Planned(Vec::new())) };

/// Shows the warnings of all crates from now on, unless the user wants only errors. A program that has another logger keeps it.
pub(crate) fn show_warnings(quiet: bool) {
    LOG.quiet.store(quiet, Ordering::Relaxed);
    if log::set_logger(&LOG).is_ok() {
        log::set_max_level(LevelFilter::Warn);
    }
}

/// Lets warnings also be events of this job, beside its bar: those to come, and those that were shown before it was watched.
pub(super) fn show_beside(progress: &Arc<Progress>) {
    let before = mem::replace(&mut *LOG.job.lock(), LoggedJob::Watched(Arc::downgrade(progress)));
    if let LoggedJob::Planned(shown) = before {
        shown.iter().for_each(|message| progress.tell(&Event::Warning { message }));
    }
}

impl Log for WarningLog {
    fn enabled(&self, metadata: &Metadata) -> bool {
        let name = metadata.target().split("::").next().unwrap_or_default();
        metadata.level() <= Level::Warn && CRATES.contains(&name)
    }

    fn log(&self, record: &Record) {
        #[cfg(feature = "faults")]
        crate::launch::faults::reach(record);
        if !self.enabled(record.metadata()) {
            return;
        }
        let message = record.args().to_string();
        let watched = self.job.lock().watched_or_hold(&message);
        match watched {
            Some(progress) => progress.warn(&message),
            None if self.quiet.load(Ordering::Relaxed) => {}
            None => say(cluster::one_line(&format!("warning: {message}"))),
        }
    }

    fn flush(&self) {}
}
