//! SIGTERM, by which schedulers end a job.
//!
//! While a job is watched, its metrics and events first say that it ends. The process then dies of the signal, as it would
//! have without this. A second signal ends it at once.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::SIGTERM;
use signal_hook::flag;
use signal_hook::low_level::emulate_default_handler;

/// Handler of SIGTERM of this process, which is registered when a job is first watched.
#[derive(Clone, Debug, Default)]
pub(crate) struct Termination(Arc<OnceLock<Option<Flags>>>);

/// State that the handler shares with the thread that watches a job.
#[derive(Debug, Default)]
struct Flags {
    came: Arc<AtomicBool>,
    /// Whether no job is watched, so that the signal ends the process at once.
    unwatched: Arc<AtomicBool>,
}

impl Termination {
    /// Number of the signal.
    pub const SIGNAL: u8 = SIGTERM as u8;

    /// Leaves the signal to a job that handles it itself.
    pub fn left_to_job() -> Self {
        Termination(Arc::new(OnceLock::from(None)))
    }

    /// Begins to take the signal for a job that is watched.
    pub fn begin(&self) -> io::Result<()> {
        if self.0.get().is_none() {
            let flags = Flags::default();
            flag::register_conditional_default(SIGTERM, Arc::clone(&flags.came))?;
            flag::register_conditional_default(SIGTERM, Arc::clone(&flags.unwatched))?;
            flag::register(SIGTERM, Arc::clone(&flags.came))?;
            let _ = self.0.set(Some(flags));
        }
        self.flags().for_each(|flags| flags.unwatched.store(false, Ordering::SeqCst));
        Ok(())
    }

    /// Whether the signal came while a job was watched.
    pub fn came(&self) -> bool {
        self.flags().any(|flags| flags.came.load(Ordering::SeqCst))
    }

    /// Ends the time in which a job is watched. A signal that came in its last moment ends the process.
    pub fn end(&self) {
        self.flags().for_each(|flags| flags.unwatched.store(true, Ordering::SeqCst));
        if self.came() {
            Termination::die();
        }
    }

    /// Ends the process as the signal does by default.
    pub fn die() {
        let _ = emulate_default_handler(SIGTERM);
    }

    fn flags(&self) -> impl Iterator<Item = &Flags> {
        self.0.get().into_iter().flatten()
    }
}
