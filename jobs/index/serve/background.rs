//! The thread that writes and merges segments of a served index, or follows what another process changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use operators::text::features::Lexicon;
use parking_lot::{Mutex, RwLock};

use super::views::take_newer;
use crate::index_folder::{IndexFolder, MEMORY_BYTES};
use runtime::Common;

/// Time between two looks at what there is to do.
const PAUSE: Duration = Duration::from_millis(100);
/// Time after a failure, such as a full disk.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(10);
/// Time between two looks at what another process has changed.
const FOLLOW_PAUSE: Duration = Duration::from_secs(10);
/// Number of bytes of rows after which a merge looks at the time.
const PACE_BYTES: usize = 1 << 16;

/// A thread that works until it is told to end.
pub(super) struct Background {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Background {
    /// Starts the thread that writes segments and merges them, at most `merge_rate` bytes a second.
    /// `groups` is held by whoever makes a group of changes.
    pub fn maintain(
        folder: Arc<RwLock<IndexFolder>>,
        groups: Arc<Mutex<()>>,
        merge_rate: u64,
        common: &Common,
    ) -> Result<Self> {
        // There may be much to merge when the index is opened, and after each flush.
        let mut merges = true;
        Background::start("segments", PAUSE, common, move |stop| {
            if folder.read().memory_bytes() >= MEMORY_BYTES {
                flush(&folder, &groups)?;
                merges = true;
            }
            if merges {
                merge(&folder, merge_rate, stop)?;
                merges = false;
            }
            Ok(())
        })
    }

    /// Starts the thread that reads the index again when another process has changed it.
    pub fn follow(
        folder: Arc<RwLock<IndexFolder>>,
        path: String,
        lexicon: Lexicon,
        common: &Common,
    ) -> Result<Self> {
        let mut seen = folder.read().version()?;
        Background::start("follow", FOLLOW_PAUSE, common, move |_| {
            let version = folder.read().version()?;
            if version != seen {
                let changed = IndexFolder::open_to_read(&path, &lexicon)?;
                changed.settings.check_words(&path, &lexicon)?;
                take_newer(&folder, changed);
                seen = version;
            }
            Ok(())
        })
    }

    fn start(
        name: &str,
        pause: Duration,
        common: &Common,
        mut work: impl FnMut(&AtomicBool) -> Result<()> + Send + 'static,
    ) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let common = common.clone();
        let stopped = Arc::clone(&stop);
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                let mut rest = pause;
                if let Err(error) = work(&stopped)
                    && !stopped.load(Ordering::Relaxed)
                {
                    common.warn(format_args!("{error:#}; this is tried again in ten seconds"));
                    rest = PAUSE_AFTER_FAILURE;
                }
                let until = Instant::now() + rest;
                while Instant::now() < until && !stopped.load(Ordering::Relaxed) {
                    thread::sleep(PAUSE.min(rest));
                }
            }
        })?;
        Ok(Background { stop, thread })
    }

    /// Lets the thread end, and returns it. A merge that is under way is given up.
    pub fn end(self) -> JoinHandle<()> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread
    }
}

/// Writes what is in memory as segments, between two groups of changes.
fn flush(folder: &RwLock<IndexFolder>, groups: &Mutex<()>) -> Result<()> {
    let flush = {
        let _between_groups = groups.lock();
        folder.write().begin_flush(MEMORY_BYTES / 2)?
    };
    let keys = folder.read().keys.clone();
    let mut is_whole = true;
    for job in &flush.jobs {
        match job.write(&keys) {
            Ok(entry) => folder.write().finish_flush_of(job, entry)?,
            Err(_) if job.files.are_dropped() => is_whole = false,
            Err(error) => return Err(error),
        }
    }
    // The drop of a topic may fail yet, so the log stays for it until the next flush.
    if is_whole { folder.write().finish_flush(&flush) } else { Ok(()) }
}

/// Merges segments until no topic has too many of about equal size.
fn merge(folder: &RwLock<IndexFolder>, rate: u64, stop: &AtomicBool) -> Result<()> {
    let topics: Vec<String> = folder.read().topics_to_merge();
    for topic in topics {
        while let Some(job) = { folder.write().begin_merge(&topic) } {
            let began = Instant::now();
            let mut bytes = 0;
            let mut looked = 0;
            let merged = job.run(|more| {
                bytes += more;
                if bytes < looked + PACE_BYTES {
                    return Ok(());
                }
                looked = bytes;
                if stop.load(Ordering::Relaxed) {
                    bail!("the merge is given up");
                }
                let due = Duration::try_from_secs_f64(bytes as f64 / rate as f64).unwrap_or(Duration::MAX);
                while began.elapsed() < due && !stop.load(Ordering::Relaxed) && !job.files.are_dropped() {
                    thread::sleep(PAUSE.min(due.saturating_sub(began.elapsed())));
                }
                Ok(())
            });
            match merged {
                Ok(merged) => folder.write().finish_merge(&job, merged)?,
                Err(_) if job.files.are_dropped() => break,
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}
