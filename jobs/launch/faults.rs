//! Deaths on demand, for the tests of what a run survives: built with the feature `faults` alone.
//!
//! Stores and shuffles say what they are about to do at the log's trace level (`rename`, `finish`, `exchange`, …). Here one
//! of those lines becomes the end of the process.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use log::{LevelFilter, Log, Metadata, Record};
use rustix::process::{Signal, getpid, kill_process};

/// The point to die at, in the process of this number: `1 rename 3 kill`, `0 exchange:Block 1 panic`.
const VARIABLE: &str = "DEDUP_FAULT";

struct Fault {
    /// The target of the line, or target and text with a colon between them.
    point: String,
    /// How many of them are still to come.
    left: AtomicU64,
    action: Action,
}

#[derive(Clone, Copy)]
enum Action {
    Kill,
    Stop,
    Panic,
    /// The thread is busy for a minute; the process lives.
    Wait,
}

/// Arms the fault that the environment names, if it is for the process of this number.
pub fn arm(process: usize) {
    let text = std::env::var(VARIABLE).unwrap_or_default();
    let [number, point, count, action] = text.split(' ').collect::<Vec<_>>()[..] else { return };
    let action = match action {
        "kill" => Action::Kill,
        "stop" => Action::Stop,
        "wait" => Action::Wait,
        _ => Action::Panic,
    };
    let (Ok(number), Ok(count)) = (number.parse::<usize>(), count.parse()) else { return };
    if number == process {
        let fault = Fault { point: point.to_owned(), left: AtomicU64::new(count), action };
        // The process has no other logger, and this one as long as it lives.
        if log::set_logger(Box::leak(Box::new(fault))).is_ok() {
            log::set_max_level(LevelFilter::Trace);
        }
    }
}

impl Log for Fault {
    fn enabled(&self, _: &Metadata) -> bool {
        true
    }

    fn log(&self, record: &Record) {
        let is_point =
            self.point == record.target() || self.point == format!("{}:{}", record.target(), record.args());
        if !is_point || self.left.fetch_sub(1, Ordering::Relaxed) != 1 {
            return;
        }
        let signal = match self.action {
            Action::Kill => Signal::KILL,
            Action::Stop => Signal::STOP,
            Action::Wait => return std::thread::sleep(Duration::from_secs(60)),
            Action::Panic => panic!("the fault at {}", self.point),
        };
        // Of itself it always may.
        let _ = kill_process(getpid(), signal);
    }

    fn flush(&self) {}
}
