//! Folders for temporary files, which go with the process, whichever way it ends but by SIGKILL.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::thread;
use std::time::Duration;

use anyhow::Result;
use parking_lot::Mutex;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use tempfile::TempDir;

/// Time that a job has to end by itself once a signal has come.
const GRACE: Duration = Duration::from_secs(1);

/// Folders that are there.
static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
static HANDLER: Once = Once::new();

/// A folder for temporary files, which is removed when it is dropped, and when SIGINT, SIGTERM or SIGHUP ends the process.
#[derive(Debug)]
pub(crate) struct TemporaryFolder(TempDir);

impl TemporaryFolder {
    /// Makes one in a folder.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn new(local: &Path) -> Result<Self> {
        HANDLER.call_once(remove_at_signals);
        let folder = tempfile::Builder::new().prefix("dedup-job-").tempdir_in(local)?;
        FOLDERS.lock().push(folder.path().to_path_buf());
        Ok(TemporaryFolder(folder))
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        FOLDERS.lock().retain(|folder| folder != self.0.path());
    }
}

/// Removes all folders, before the process dies.
pub(crate) fn remove_all() {
    for folder in FOLDERS.lock().drain(..) {
        // Other threads may write to it meanwhile.
        let _ = fs::remove_dir_all(&folder).or_else(|_| fs::remove_dir_all(&folder));
    }
}

/// Whether the process ignores a signal, as after `nohup`, where the system says so.
pub(crate) fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

/// Starts the thread that waits for signals.
fn remove_at_signals() {
    let signals = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| !is_ignored(*signal));
    let Ok(mut signals) = Signals::new(signals) else { return };
    let wait = move || {
        for signal in signals.forever() {
            thread::sleep(GRACE);
            remove_all();
            let _ = emulate_default_handler(signal);
        }
    };
    // Without the thread, folders stay when a signal ends the process.
    drop(thread::Builder::new().name("temporary folders".to_owned()).spawn(wait));
}
