//! The tie between a process and the launcher that has started it: when one ends, so does the other.
//!
//! The launcher writes a line to the standard input of each process every second. A process ends when these
//! lines stop or its standard input ends, which also works over ssh. On the same machine, the kernel kills it
//! when its parent dies.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{self, Command};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;
use std::{env, io, thread};

use anyhow::{Context, Error, Result, anyhow, bail};
use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};

use crate::cli::exit::WrongUse;
use crate::cli::terminal::say;

/// First argument with which this program becomes a command that dies with the process that has started it.
pub(crate) const BOUND: &str = "__bound";
/// Time between two lines of a launcher.
pub(crate) const BEAT: Duration = Duration::from_secs(1);
/// Number of beats that may be missing.
const SILENT_BEATS: u32 = 10;

/// Data that a launcher writes to the standard input of a process, as one line of JSON. An empty line follows
/// each `BEAT`.
#[derive(Serialize, Deserialize)]
pub struct Handed {
    /// `host:port` of each process; empty if there is just one.
    pub addresses: Vec<String>,
    /// Number of workers of each process.
    pub workers: usize,
    /// Secret that the processes share.
    pub token: String,
}

/// Waits for the line that the launcher hands to this process.
///
/// From then on this process ends with an error when its standard input ends or is silent for 10 s. It is
/// killed when its parent dies, even while it is stopped.
pub fn hold() -> Result<Handed> {
    // If the parent has died before this call, the standard input ends.
    set_parent_process_death_signal(Some(Signal::KILL)).context("could not bind to the launcher")?;
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in io::stdin().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    let handed = serde_json::from_str(&next(&lines)?).context("could not read what the launcher says")?;
    thread::spawn(move || {
        loop {
            if let Err(error) = next(&lines) {
                say(format_args!("error: {error}"));
                process::exit(1);
            }
        }
    });
    Ok(handed)
}

/// Waits for a line. Time is counted in waits of this process: one that was itself stopped must not blame the
/// launcher.
fn next(lines: &Receiver<String>) -> Result<String> {
    for _ in 0..SILENT_BEATS {
        match lines.recv_timeout(BEAT) {
            Ok(line) => return Ok(line),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => bail!("the launcher of this process is gone"),
        }
    }
    bail!("the launcher of this process was silent for {SILENT_BEATS} s")
}

/// Returns a command that dies with this thread. It first runs this program, which asks the system for that
/// and then becomes the command.
pub fn bound(command: impl IntoIterator<Item = OsString>) -> Result<Command> {
    let program = env::current_exe().context("could not find this program")?;
    let mut bound = Command::new(program);
    bound.arg(BOUND).arg(process::id().to_string()).args(command);
    Ok(bound)
}

/// Becomes the command that `bound` was given. Returns only if that fails.
pub(crate) fn become_bound() -> Error {
    let mut args = env::args_os().skip(2);
    let parent = args.next().and_then(|parent| parent.to_str()?.parse().ok());
    let Some(program) = args.next() else { return anyhow!("expected a process and a command") };
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return Error::new(error).context("could not bind to the launcher");
    }
    if getppid().map(|process| process.as_raw_nonzero().get()) != parent {
        return anyhow!("the launcher of this process is gone");
    }
    let error = Command::new(&program).args(args).exec();
    WrongUse(format!("could not start \"{}\": {error}", program.display())).into()
}
