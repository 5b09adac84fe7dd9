//! The lock of an output: only the run with the highest lock may write there, as long as that run is alive.
//!
//! A run takes the lock by creating a file with the next number, in which only one of several runs succeeds.
//! Every 3 seconds its owner writes another number into a second file, the beat. A run that finds a lock must
//! know whether its owner is alive. On the same machine it asks the kernel for the process. Otherwise it
//! watches the beat for 10 seconds; no clock is compared with the clock of another machine. An owner that was
//! only asleep finds the higher number when it wakes, and ends.
//!
//! Example: runs A, B and C are on three machines.
//!
//! ```text
//!  0 s  A creates lock-00000001 and writes 0 to lock-00000001.beat, 1 after 3 s, 2 after 6 s
//!  5 s  B finds the lock, sees the beat change from 1 to 2, and ends: A is writing (exit code 11)
//! 20 s  A's machine sleeps, and its beat stays 6
//! 30 s  C finds the lock, sees the beat stay 6 for 10 s, and creates lock-00000002
//! 60 s  A's machine wakes; A's beat finds lock-00000002, and A ends
//! ```

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Result, bail};
use chrono::{DateTime, Utc};
use cluster::Store;
use parking_lot::Mutex;
use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};

use crate::cli::exit::{Failure, Locked};
use crate::corpus::output_layout::LOCK;
use crate::output::requests::{put, read};

/// Time between two beats.
pub(super) const BEAT: Duration = if cfg!(test) { Duration::from_millis(2) } else { Duration::from_secs(3) };
/// Number of looks at a beat that does not change until its owner counts as dead: 10 seconds in all. This is
/// a count and not a deadline, since a process that was itself stopped meanwhile must look again.
const LOOKS: u32 = 20;
/// Time between two looks.
const LOOK: Duration = if cfg!(test) { Duration::ZERO } else { Duration::from_millis(500) };

/// Content of a lock: the process that took it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct LockOwner {
    /// Name of the host, for people.
    pub host: String,
    /// Number of the process.
    pub process: i32,
    /// Time when the lock was taken, for people.
    pub since: String,
    /// Start of the process, in ticks of the kernel. The number of a process may be given to another one, its
    /// start not.
    pub began: u64,
    /// Id of the start of the kernel (`boot_id`).
    pub boot: String,
    /// Namespace in which process numbers are unique.
    pub namespace: String,
    /// Name of the folder of the run, which is unique to it.
    pub run: String,
}

impl LockOwner {
    /// Describes this process, without a run. Fields that the system does not know are empty; Linux knows
    /// all.
    pub fn of_this_process() -> Self {
        let line = |path| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        let process = std::process::id() as i32;
        LockOwner {
            host: line("/proc/sys/kernel/hostname"),
            process,
            since: DateTime::<Utc>::from(SystemTime::now()).format("%Y-%m-%d %H:%M:%S UTC").to_string(),
            began: began(process).unwrap_or(0),
            boot: line("/proc/sys/kernel/random/boot_id"),
            namespace: namespace.to_string_lossy().into_owned(),
            run: String::new(),
        }
    }

    /// Whether the process of this owner is alive; `None` if `me` runs on another machine or in another
    /// namespace.
    pub fn lives(&self, me: &LockOwner) -> Option<bool> {
        if me.boot.is_empty() || (&self.boot, &self.namespace) != (&me.boot, &me.namespace) {
            return None;
        }
        let is_there = |pid| test_kill_process(pid) != Err(rustix::io::Errno::SRCH);
        let alive = Pid::from_raw(self.process).is_some_and(is_there);
        // The start of a process of another user may be hidden. It then counts as alive.
        Some(alive && began(self.process).is_none_or(|began| began == self.began))
    }
}

/// Returns the start of a process in ticks; 0 if it has ended and its parent has not yet waited for it.
fn began(process: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the process is in brackets. After it come fields 3 and following of proc(5); the start is
    // field 22.
    let mut fields = stat.rsplit(')').next()?.split_whitespace();
    let ended = matches!(fields.next()?, "Z" | "X");
    let began = fields.nth(18)?.parse().ok()?;
    Some(if ended { 0 } else { began })
}

/// Lock that a run has taken. Its file stays until the run releases it; the example at the top of this file
/// shows its states.
pub struct Lock {
    held: Arc<HeldLock>,
    beat: Mutex<Option<(Sender<()>, JoinHandle<()>)>>,
}

/// State of a lock, shared with the thread of the beat.
struct HeldLock {
    store: Arc<dyn Store>,
    /// Path of the `_temporary` of the output.
    folder: String,
    /// Name of the locked thing, for messages.
    name: String,
    number: u64,
    owner: LockOwner,
    /// Whether another run was found to have taken over.
    lost: AtomicBool,
    /// Time when this run was last found to be the owner.
    checked: Mutex<Instant>,
}

impl Lock {
    /// Takes the lock of what messages call `name`, such as `output "x"`, whose `_temporary` is `folder`.
    ///
    /// Cost: 10 seconds where the owner of an earlier lock is on another machine and dead.
    ///
    /// # Errors
    /// [`Locked`] when another run has the lock.
    pub fn take(store: &Arc<dyn Store>, folder: &str, name: &str, me: LockOwner) -> Result<Self> {
        let highest = numbers(store.as_ref(), folder)?.into_iter().max();
        if let Some(number) = highest
            && lives(store.as_ref(), folder, number, &me)?
        {
            bail!(locked(store.as_ref(), folder, name, number));
        }
        let number = highest.unwrap_or(0) + 1;
        let unique = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), &me.since);
        let owner = LockOwner { run: format!("{number:08}-{unique:016x}"), ..me };
        let store = Arc::clone(store);
        let folder = folder.to_owned();
        let name = name.to_owned();
        let held = HeldLock {
            store,
            folder,
            name,
            number,
            owner,
            lost: AtomicBool::new(false),
            checked: Mutex::new(Instant::now()),
        };
        let contents = serde_json::to_vec(&held.owner)?;
        // If the file exists, this process may have created it: the answer to a first attempt was lost.
        if !held.store.create_new(&path(&held.folder, number), &contents)? && !held.is_highest()? {
            bail!(locked(held.store.as_ref(), &held.folder, &held.name, number));
        }
        Ok(Lock { held: Arc::new(held), beat: Mutex::new(None) })
    }

    /// Returns the name of the folder in `_temporary` that is for this run alone.
    pub fn run(&self) -> &str {
        &self.held.owner.run
    }

    /// Whether this lock exists at the same path of another store, which then leads to the same place.
    pub fn is_seen_by(&self, store: &dyn Store) -> bool {
        let there = owner(store, &self.held.folder, self.held.number);
        there.is_ok_and(|there| there.as_ref() == Some(&self.held.owner))
    }

    /// Starts the thread that writes the beat. It calls `lost`, with the reason, when another run has taken
    /// over.
    pub fn beat(&self, lost: impl Fn(&anyhow::Error) + Send + 'static) -> Result<()> {
        let (sender, stopped) = mpsc::channel();
        let held = Arc::clone(&self.held);
        let beat = move || {
            for count in 0u64.. {
                match held.beat(count) {
                    Err(error) if held.lost.load(Ordering::Relaxed) => {
                        lost(&error);
                        return;
                    }
                    Err(error) => {
                        log::warn!("the {} may be taken for abandoned: {error:#}", held.name);
                    }
                    Ok(()) => {}
                }
                if stopped.recv_timeout(BEAT) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("beat".to_owned()).spawn(beat)?;
        *self.beat.lock() = Some((sender, thread));
        Ok(())
    }

    /// Whether this run was found to be no longer the owner. Makes no request.
    pub fn is_lost(&self) -> bool {
        self.held.lost.load(Ordering::Relaxed)
    }

    /// Asks the store whether this run is still the owner.
    ///
    /// # Errors
    /// When it is not, or the store does not answer.
    pub fn check(&self) -> Result<()> {
        self.held.check()
    }

    /// Checks as [`Lock::check`] does, but asks the store only if this run was last found to be the owner
    /// longer than two beats ago: the process was stopped, or the store does not answer.
    pub fn check_lately(&self) -> Result<()> {
        let checked = *self.held.checked.lock();
        if checked.elapsed() < 2 * BEAT && !self.is_lost() { Ok(()) } else { self.check() }
    }

    /// Ends the beat, after the write that may be under way.
    pub fn stop(&self) {
        if let Some((sender, thread)) = self.beat.lock().take() {
            drop(sender);
            drop(thread.join());
        }
    }

    /// Returns the store of the lock.
    pub(super) fn store(&self) -> &Arc<dyn Store> {
        &self.held.store
    }

    /// Returns the folder of the lock, and its number there.
    pub(super) fn place(&self) -> (&str, u64) {
        (&self.held.folder, self.held.number)
    }
}

impl HeldLock {
    /// Whether this lock has the highest number and still names this run. Otherwise this run was taken for
    /// dead.
    fn is_highest(&self) -> Result<bool> {
        if numbers(self.store.as_ref(), &self.folder)?.into_iter().max() != Some(self.number) {
            return Ok(false);
        }
        let there = owner(self.store.as_ref(), &self.folder, self.number)?;
        Ok(there.as_ref() == Some(&self.owner))
    }

    fn check(&self) -> Result<()> {
        let asked = Instant::now();
        if self.lost.load(Ordering::Relaxed) || !self.is_highest()? {
            self.lost.store(true, Ordering::Relaxed);
            bail!("another run has taken over the {}", self.name);
        }
        *self.checked.lock() = asked;
        Ok(())
    }

    /// Checks that this run is still the owner, and writes the beat.
    fn beat(&self, count: u64) -> Result<()> {
        let asked = Instant::now();
        let path = beat_path(&self.folder, self.number);
        self.check()?;
        let put = put(self.store.as_ref(), &path, count.to_string().as_bytes());
        if put.is_ok() && asked.elapsed() < BEAT {
            return Ok(());
        }
        // This process may have slept between the two requests. If another run has taken over, that is the reason why the beat
        // could not be written. If it has removed the lock, nobody else removes this beat.
        self.check().inspect_err(|_| {
            if let Ok(None) = owner(self.store.as_ref(), &self.folder, self.number) {
                drop(self.store.remove(&path));
            }
        })?;
        Ok(put?)
    }
}

fn path(folder: &str, number: u64) -> String {
    format!("{folder}/{LOCK}{number:08}")
}

fn beat_path(folder: &str, number: u64) -> String {
    format!("{}.beat", path(folder, number))
}

/// Returns the paths of a lock and of its beat, the lock last.
pub(super) fn paths(folder: &str, number: u64) -> [String; 2] {
    [beat_path(folder, number), path(folder, number)]
}

/// Returns the numbers of all locks in `folder`.
pub(super) fn numbers(store: &dyn Store, folder: &str) -> Result<Vec<u64>, cluster::Error> {
    let children = store.children_if_any(folder)?;
    let number = |name: &str| name.strip_prefix(LOCK)?.parse().ok();
    Ok(children.iter().filter_map(|child| number(child.name())).collect())
}

/// Reads the owner of a lock; `None` if the lock is gone or names no owner.
fn owner(store: &dyn Store, folder: &str, number: u64) -> Result<Option<LockOwner>, cluster::Error> {
    let owner = read(store, &path(folder, number))?;
    Ok(owner.and_then(|owner| serde_json::from_slice(&owner).ok()))
}

/// Returns the time between two looks, which tests that stop many owners make shorter.
fn look_pause() -> Duration {
    #[cfg(feature = "faults")]
    if let Some(ms) = std::env::var("DEDUP_FAULT_LOOK_MS").ok().and_then(|ms| ms.parse().ok()) {
        return Duration::from_millis(ms);
    }
    LOOK
}

/// Whether the owner of a lock is alive, as far as `me` can see.
fn lives(store: &dyn Store, folder: &str, number: u64, me: &LockOwner) -> Result<bool> {
    if let Some(lives) = owner(store, folder, number)?.and_then(|owner| owner.lives(me)) {
        return Ok(lives);
    }
    let look = || -> Result<_> {
        Ok((read(store, &path(folder, number))?, read(store, &beat_path(folder, number))?))
    };
    let first = look()?;
    for _ in 0..LOOKS {
        thread::sleep(look_pause());
        if look()? != first {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the error that names the owner of a lock.
fn locked(store: &dyn Store, folder: &str, name: &str, number: u64) -> Failure {
    let owner = owner(store, folder, number).ok().flatten();
    let by = owner.map_or("another run".to_owned(), |owner| {
        format!("process {} on {}, since {}", owner.process, owner.host, owner.since)
    });
    Locked(format!("the {name} is being written by {by}"))
}
