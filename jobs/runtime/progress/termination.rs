//! SIGTERM and SIGINT, by which schedulers and people end a job.
//!
//! While a job is watched, its metrics and events first say that it ends. The process then dies of the signal, as it would
//! have without this. A second signal ends it at once. A signal that the process was started to ignore, as by `nohup`, stays ignored.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::low_level::{emulate_default_handler, signal_name};

use crate::cli::temporary::{is_ignored, remove_all};

/// The signals.
const SIGNALS: [i32; 2] = [SIGTERM, SIGINT];

/// Handler of the signals of this process, which is registered when a job is first watched.
#[derive(Clone, Debug, Default)]
pub struct Termination(Arc<OnceLock<Option<Flags>>>);

/// State that the handler shares with the thread that watches a job.
#[derive(Debug, Default)]
struct Flags {
    /// Whether each signal came.
    came: [Arc<AtomicBool>; SIGNALS.len()],
    /// Whether no job is watched, so that a signal ends the process at once.
    unwatched: Arc<AtomicBool>,
}

/// A signal that came while a job was watched.
#[derive(Clone, Copy, Debug)]
pub struct Ended(i32);

impl Termination {
    /// Leaves the signals to a job that handles them itself.
    pub fn left_to_job() -> Self {
        Termination(Arc::new(OnceLock::from(None)))
    }

    /// Begins to take the signals for a job that is watched.
    pub fn begin(&self) -> io::Result<()> {
        if self.0.get().is_none() {
            let flags = Flags::default();
            for (signal, came) in SIGNALS.into_iter().zip(&flags.came) {
                if is_ignored(signal) {
                    continue;
                }
                flag::register_conditional_default(signal, Arc::clone(came))?;
                flag::register_conditional_default(signal, Arc::clone(&flags.unwatched))?;
                flag::register(signal, Arc::clone(came))?;
            }
            let _ = self.0.set(Some(flags));
        }
        self.flags().for_each(|flags| flags.unwatched.store(false, Ordering::SeqCst));
        Ok(())
    }

    /// Returns the signal that came while a job was watched.
    pub fn came(&self) -> Option<Ended> {
        let came = self.flags().flat_map(|flags| SIGNALS.into_iter().zip(&flags.came));
        came.filter(|(_, came)| came.load(Ordering::SeqCst)).map(|(signal, _)| Ended(signal)).next()
    }

    /// Ends the time in which a job is watched. A signal that came in its last moment ends the process.
    pub fn end(&self) {
        self.flags().for_each(|flags| flags.unwatched.store(true, Ordering::SeqCst));
        if let Some(ended) = self.came() {
            ended.die();
        }
    }

    fn flags(&self) -> impl Iterator<Item = &Flags> {
        self.0.get().into_iter().flatten()
    }
}

impl Ended {
    /// Returns the exit code of a process that dies of the signal, as shells tell it.
    pub fn exit_code(self) -> u8 {
        128 + self.0 as u8
    }

    /// Returns the name of the signal.
    pub fn name(self) -> &'static str {
        signal_name(self.0).unwrap_or("a signal")
    }

    /// Ends the process as the signal does by default.
    pub fn die(self) {
        remove_all();
        let _ = emulate_default_handler(self.0);
    }
}
