//! Folders for temporary files, which go with the process. Those of a process that SIGKILL has ended go when another one makes a folder.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
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

/// Beginning of the names of folders.
const PREFIX: &str = "dedup-job-";
/// File in a folder that is locked as long as the process lives.
const LOCK_FILE: &str = "of-a-running-dedup-job";
/// Age from which on a folder without a lock is of a process that is dead, and not of one that has not locked it yet.
const DEAD: Duration = Duration::from_secs(60);

/// A folder for temporary files, which is removed when it is dropped, and when SIGINT, SIGTERM or SIGHUP ends the process.
#[derive(Debug)]
pub struct TemporaryFolder {
    folder: TempDir,
    _lock: File,
}

impl TemporaryFolder {
    /// Makes one in a folder.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn new(local: &Path) -> Result<Self> {
        HANDLER.call_once(remove_at_signals);
        remove_dead(local);
        let make = || -> io::Result<_> {
            let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(local)?;
            let lock = File::create(folder.path().join(LOCK_FILE))?;
            // Some file systems have no locks; nobody removes a folder there that is not its own.
            let _ = lock.try_lock();
            Ok((folder, lock))
        };
        let (folder, lock) = make().with_context(|| {
            format!(
                "could not make a folder for temporary files in \"{}\": --local-dir names another place",
                local.display()
            )
        })?;
        FOLDERS.lock().push(folder.path().to_path_buf());
        Ok(TemporaryFolder { folder, _lock: lock })
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        FOLDERS.lock().retain(|folder| folder != self.folder.path());
    }
}

/// Removes the folders of processes that are dead. What cannot be removed stays.
fn remove_dead(local: &Path) {
    for entry in fs::read_dir(local).into_iter().flatten().flatten() {
        let is_of_us = entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes());
        let is_dead = |lock: &File| {
            let age =
                lock.metadata().and_then(|lock| lock.modified()).ok().and_then(|time| time.elapsed().ok());
            age.is_some_and(|age| age > DEAD) && lock.try_lock().is_ok()
        };
        if is_of_us && File::open(entry.path().join(LOCK_FILE)).is_ok_and(|lock| is_dead(&lock)) {
            let _ = fs::remove_dir_all(entry.path());
        }
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

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn the_folder_of_a_dead_process_goes_and_others_stay() {
        let local = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            fs::create_dir(local.path().join(name)).unwrap();
            let lock = File::create(local.path().join(name).join(LOCK_FILE)).unwrap();
            lock.set_modified(SystemTime::now() - 2 * DEAD).unwrap();
            lock
        };
        drop(make("dedup-job-dead"));
        let alive = make("dedup-job-alive");
        alive.lock().unwrap();
        drop(make("other-dead"));
        fs::create_dir(local.path().join("dedup-job-of-the-user")).unwrap();
        let young = make("dedup-job-young");
        young.set_modified(SystemTime::now()).unwrap();
        drop(young);
        let folder = TemporaryFolder::new(local.path()).unwrap();
        let there = |name: &str| local.path().join(name).exists();
        assert!(!there("dedup-job-dead") && folder.path().exists());
        let others = ["dedup-job-alive", "other-dead", "dedup-job-of-the-user", "dedup-job-young"];
        assert!(others.into_iter().all(there));
    }
}
