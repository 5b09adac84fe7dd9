//! Warnings of all crates: `log::warn!` reaches people, the bar and the events of the job that is watched.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use log::{Level, LevelFilter, Log, Metadata, Record};
use parking_lot::Mutex;

use super::counts::Progress;
use crate::cli::terminal::say;

/// Crates whose warnings are for users. Those of other crates are about requests that are made again.
const CRATES: [&str; 9] =
    ["batch", "chunk", "cluster", "datasets", "hbase", "index", "jobs", "nightly", "runtime"];

/// Logger of the program.
struct WarningLog {
    quiet: AtomicBool,
    /// Progress of the job that is watched, if one is.
    watched: Mutex<Weak<Progress>>,
}

static LOG: WarningLog = WarningLog { quiet: AtomicBool::new(false), watched: Mutex::new(Weak::new()) };

/// Shows the warnings of all crates from now on, unless the user wants only errors. A program that has another logger keeps it.
pub(crate) fn show_warnings(quiet: bool) {
    LOG.quiet.store(quiet, Ordering::Relaxed);
    if log::set_logger(&LOG).is_ok() {
        log::set_max_level(LevelFilter::Warn);
    }
}

/// Lets warnings also be events of this job, beside its bar.
pub(super) fn show_beside(progress: &Arc<Progress>) {
    *LOG.watched.lock() = Arc::downgrade(progress);
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
        let watched = self.watched.lock().upgrade();
        match watched {
            Some(progress) => progress.warn(&record.args().to_string()),
            None if self.quiet.load(Ordering::Relaxed) => {}
            None => say(cluster::one_line(&format!("warning: {}", record.args()))),
        }
    }

    fn flush(&self) {}
}
