//! What ties a process to the launcher that has started it: when one goes, so does the other.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{self, Command};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;
use std::{env, io, thread};

use anyhow::{Context, Error, Result, anyhow, bail};
use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};

use super::role::{Place, Start};
use super::token::Token;
use crate::{WrongUse, say};

/// The first argument that makes this program a command which dies with the process that has started it.
pub const BOUND: &str = "__bound";
/// How often a launcher writes a line.
pub(crate) const BEAT: Duration = Duration::from_secs(1);
/// Beats that may be missing.
const SILENT_BEATS: u32 = 10;

/// What a launcher writes to a process's standard input: a line of it as JSON, and then an empty line each [`BEAT`].
#[derive(Serialize, Deserialize)]
pub(crate) struct Handed {
    /// `host:port` of each process; none where there is just one.
    pub addresses: Vec<String>,
    /// Of each process.
    pub workers: usize,
    pub token: String,
}

/// Waits for what the launcher hands to process `index`. From then on this process ends with an error when its standard
/// input ends or is silent, and is killed when its parent dies, even while it is stopped.
pub(crate) fn hold(index: usize) -> Result<Start> {
    // That the parent has died before this is seen by the end of the standard input.
    set_parent_process_death_signal(Some(Signal::KILL)).context("could not bind to the launcher")?;
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in io::stdin().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    let handed = next(&lines)?;
    let Handed { addresses, workers, token } =
        serde_json::from_str(&handed).context("could not read what the launcher says")?;
    thread::spawn(move || {
        loop {
            if let Err(error) = next(&lines) {
                say(format_args!("error: {error}"));
                process::exit(1);
            }
        }
    });
    if addresses.is_empty() {
        return Ok(Start::Alone(workers));
    }
    Ok(Start::Process(Place { index, addresses, workers, token: Some(Token(token.into_bytes())) }))
}

/// Waits for a line. Time is counted in own ticks: who was stopped himself must not blame the launcher.
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

/// A command that dies with this thread. It is this program first, which asks the system for that and then becomes the command.
pub(crate) fn bound(command: impl IntoIterator<Item = OsString>) -> Result<Command> {
    let program = env::current_exe().context("could not find this program")?;
    let mut bound = Command::new(program);
    bound.arg(BOUND).arg(process::id().to_string()).args(command);
    Ok(bound)
}

/// Becomes the command that `bound` was given; returns only if that fails.
pub fn become_bound() -> Error {
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
