//! Deaths on demand, for the tests of what a run survives; only in builds with the feature `faults`.
//!
//! Stores and the exchange log what they are about to do at the trace level (`rename`, `finish`, `exchange`,
//! ...). This file ends the process at one of those lines.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use log::{LevelFilter, Record};
use rustix::process::{Signal, getpid, kill_process};

/// Environment variable with the number of a process, the line of its log, how often the line comes, and the
/// action: `1 rename 3 kill`, `0 exchange:Block 1 panic`.
const VARIABLE: &str = "DEDUP_FAULT";

/// Fault that happens when a line has come a number of times.
struct FaultPoint {
    /// Target of the line, or target and text with a colon between them.
    point: String,
    /// Number of these lines that are still to come.
    left: AtomicU64,
    action: Action,
}

/// Action at the line.
#[derive(Clone, Copy)]
enum Action {
    Kill,
    Stop,
    Panic,
    /// The thread sleeps for a minute; the process stays alive.
    Wait,
}

/// The fault of this process, if it has one.
static FAULT: OnceLock<FaultPoint> = OnceLock::new();

/// Sets the fault that the environment names, if it is for the process of this number. The logger of the program calls
/// [`reach`].
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
        let fault = FaultPoint { point: point.to_owned(), left: AtomicU64::new(count), action };
        if FAULT.set(fault).is_ok() {
            log::set_max_level(LevelFilter::Trace);
        }
    }
}

/// Acts if this line of the log is the fault.
pub(crate) fn reach(record: &Record) {
    if let Some(fault) = FAULT.get() {
        fault.reach(record);
    }
}

impl FaultPoint {
    fn reach(&self, record: &Record) {
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
        // A process may always signal itself, so there is no error to handle.
        let _ = kill_process(getpid(), signal);
    }
}
