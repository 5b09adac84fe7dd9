//! Who may write an output: the owner of the lock with the highest number, as long as it lives.
//!
//! A lock is taken by creating it, which one of several succeeds in. No clock is compared with another one: an owner of
//! this machine lives if its process does, any other if its beat changes while we look.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Result, bail};
use chrono::{DateTime, Utc};
use cluster::{Store, shown};
use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};

use super::{put, read};
use crate::cli::exit::Locked;
use crate::say;

pub(super) const BEAT: Duration = if cfg!(test) { Duration::from_millis(2) } else { Duration::from_secs(3) };
/// For so many looks an owner that lives shows it, and so far apart are they: 10 seconds in all. Not a deadline, for
/// whoever was itself stopped meanwhile must look again.
const LOOKS: u32 = 20;
const LOOK: Duration = if cfg!(test) { Duration::ZERO } else { Duration::from_millis(500) };
const LOCK: &str = "lock-";

/// What a lock says of the one who took it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Owner {
    /// For people, as is `since`.
    pub host: String,
    pub process: i32,
    pub since: String,
    /// When the process began, in the kernel's ticks: its number may be given to another one.
    pub began: u64,
    /// Of the kernel since it was started.
    pub boot: String,
    /// In which process numbers are unique.
    pub namespace: String,
    /// The name of the folder it writes to, like that of no other run.
    pub run: String,
}

impl Owner {
    /// This process, without a run. Empty where the system does not say (Linux does).
    pub fn of_this_process() -> Self {
        let line = |path| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        let process = std::process::id() as i32;
        Owner {
            host: line("/proc/sys/kernel/hostname"),
            process,
            since: DateTime::<Utc>::from(SystemTime::now()).format("%Y-%m-%d %H:%M:%S UTC").to_string(),
            began: began(process).unwrap_or(0),
            boot: line("/proc/sys/kernel/random/boot_id"),
            namespace: namespace.to_string_lossy().into_owned(),
            run: String::new(),
        }
    }

    /// Whether its process lives; `None` if it is not for this one to see.
    fn lives(&self, me: &Owner) -> Option<bool> {
        if me.boot.is_empty() || (&self.boot, &self.namespace) != (&me.boot, &me.namespace) {
            return None;
        }
        let is_there = |pid| test_kill_process(pid) != Err(rustix::io::Errno::SRCH);
        let alive = Pid::from_raw(self.process).is_some_and(is_there);
        // Of a process that others may not look at, no beginning is known.
        Some(alive && began(self.process).is_none_or(|began| began == self.began))
    }
}

/// When a process began, in ticks; 0 for one that has ended and is not yet forgotten.
fn began(process: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // Behind the name in brackets; fields 3 and 22 of proc(5).
    let mut fields = stat.rsplit(')').next()?.split_whitespace();
    let ended = matches!(fields.next()?, "Z" | "X");
    let began = fields.nth(18)?.parse().ok()?;
    Some(if ended { 0 } else { began })
}

/// The lock that a run has taken. Its beat ends with it; its file stays until it is released.
pub(super) struct Lock {
    held: Arc<Held>,
    beat: Mutex<Option<(Sender<()>, JoinHandle<()>)>>,
}

struct Held {
    store: Arc<dyn Store>,
    /// The `_temporary` of the output.
    folder: String,
    uri: String,
    number: u64,
    owner: Owner,
    lost: AtomicBool,
    /// When this run was last found to be the owner.
    checked: Mutex<Instant>,
}

impl Lock {
    /// Takes the lock of the output `uri`, whose `_temporary` is `folder`. Takes 10 seconds where an owner elsewhere
    /// must be seen to be dead.
    ///
    /// # Errors
    /// [`Locked`] when another run has it.
    pub fn take(store: &Arc<dyn Store>, folder: &str, uri: &str, me: Owner) -> Result<Self> {
        let highest = numbers(store.as_ref(), folder)?.into_iter().max();
        if let Some(number) = highest
            && lives(store.as_ref(), folder, number, &me)?
        {
            bail!(locked(store.as_ref(), folder, uri, number));
        }
        let number = highest.unwrap_or(0) + 1;
        let unique = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), &me.since);
        let owner = Owner { run: format!("{number:08}-{unique:016x}"), ..me };
        let (store, folder, uri) = (Arc::clone(store), folder.to_owned(), uri.to_owned());
        let held = Held {
            store,
            folder,
            uri,
            number,
            owner,
            lost: AtomicBool::new(false),
            checked: Mutex::new(Instant::now()),
        };
        let contents = serde_json::to_vec(&held.owner)?;
        // Who is told that something was there may have created it: the answer to a first attempt was lost.
        if !held.store.create_new(&held.path(), &contents)? && !held.is_highest()? {
            bail!(locked(held.store.as_ref(), &held.folder, &held.uri, number));
        }
        Ok(Lock { held: Arc::new(held), beat: Mutex::new(None) })
    }

    /// The name of the folder in `_temporary` that is for this run alone.
    pub fn run(&self) -> &str {
        &self.held.owner.run
    }

    /// Whether the lock is seen at the same path of another store, which then leads to the same place.
    pub fn is_seen_by(&self, store: &dyn Store) -> bool {
        let owner = read(store, &self.held.path()).ok().flatten();
        owner
            .and_then(|owner| serde_json::from_slice(&owner).ok())
            .is_some_and(|owner: Owner| owner == self.held.owner)
    }

    /// Shows from now on that this run lives. `lost` is called, with the reason, when another run has taken over.
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
                        say(shown(&format!("warning: the output may be taken for abandoned: {error:#}")));
                    }
                    Ok(()) => {}
                }
                if stopped.recv_timeout(BEAT) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("beat".to_owned()).spawn(beat)?;
        *self.beat.lock().unwrap_or_else(PoisonError::into_inner) = Some((sender, thread));
        Ok(())
    }

    /// Whether this run was found to be no longer the owner; asks nobody.
    pub fn is_lost(&self) -> bool {
        self.held.lost.load(Ordering::Relaxed)
    }

    /// Looks whether this run is still the owner.
    ///
    /// # Errors
    /// When it is not, or cannot know.
    pub fn check(&self) -> Result<()> {
        self.held.check()
    }

    /// The same, but asks only if this was not found for longer than two beats: the process was stopped, or is not answered.
    pub fn check_lately(&self) -> Result<()> {
        let checked = *self.held.checked.lock().unwrap_or_else(PoisonError::into_inner);
        if checked.elapsed() < 2 * BEAT && !self.is_lost() { Ok(()) } else { self.check() }
    }

    /// The paths of this lock and of its beat, the lock last.
    pub fn paths(&self) -> [String; 2] {
        paths(&self.held.folder, self.held.number)
    }

    /// The paths of the locks and beats that came before.
    pub fn earlier_paths(&self) -> Result<Vec<String>, cluster::Error> {
        let held = &self.held;
        let numbers = numbers(held.store.as_ref(), &held.folder)?.into_iter();
        Ok(numbers.filter(|number| *number < held.number).flat_map(|n| paths(&held.folder, n)).collect())
    }

    /// Ends the beat; one that is just being written is waited for.
    pub fn stop(&self) {
        if let Some((sender, thread)) = self.beat.lock().unwrap_or_else(PoisonError::into_inner).take() {
            drop(sender);
            drop(thread.join());
        }
    }
}

impl Held {
    fn path(&self) -> String {
        path(&self.folder, self.number)
    }

    /// A lower number, or another run with this number, is an owner that was taken for dead.
    fn is_highest(&self) -> Result<bool> {
        if numbers(self.store.as_ref(), &self.folder)?.into_iter().max() != Some(self.number) {
            return Ok(false);
        }
        let there = read(self.store.as_ref(), &self.path())?;
        Ok(there.is_some_and(|there| {
            serde_json::from_slice(&there).is_ok_and(|owner: Owner| owner == self.owner)
        }))
    }

    fn check(&self) -> Result<()> {
        let asked = Instant::now();
        if self.lost.load(Ordering::Relaxed) || !self.is_highest()? {
            self.lost.store(true, Ordering::Relaxed);
            bail!("another run has taken over the output \"{}\"", self.uri);
        }
        *self.checked.lock().unwrap_or_else(PoisonError::into_inner) = asked;
        Ok(())
    }

    fn beat(&self, count: u64) -> Result<()> {
        self.check()?;
        Ok(put(self.store.as_ref(), &beat_path(&self.folder, self.number), count.to_string().as_bytes())?)
    }
}

fn path(folder: &str, number: u64) -> String {
    format!("{folder}/{LOCK}{number:08}")
}

fn beat_path(folder: &str, number: u64) -> String {
    format!("{}.beat", path(folder, number))
}

fn paths(folder: &str, number: u64) -> [String; 2] {
    [beat_path(folder, number), path(folder, number)]
}

/// The numbers of all locks there.
fn numbers(store: &dyn Store, folder: &str) -> Result<Vec<u64>, cluster::Error> {
    let children = match store.children(folder) {
        Err(cluster::Error::NotFound { .. }) => Vec::new(),
        children => children?,
    };
    let number = |path: &str| path.rsplit('/').next()?.strip_prefix(LOCK)?.parse().ok();
    Ok(children.iter().filter_map(|child| number(&child.path)).collect())
}

/// Whether a run of this program has begun an output in that folder, and has not finished it: `_temporary` holds its lock, or
/// its own folder.
pub(crate) fn is_begun(store: &dyn Store, output: &str) -> Result<bool, cluster::Error> {
    let children = match store.children(&format!("{output}/_temporary")) {
        Err(cluster::Error::NotFound { .. }) => Vec::new(),
        children => children?,
    };
    let is_number = |text: &str| text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_ours = |path: &str| {
        let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        match name.strip_prefix(LOCK) {
            Some(lock) => is_number(lock.strip_suffix(".beat").unwrap_or(lock)),
            None => {
                name.split_once('-').is_some_and(|(number, unique)| is_number(number) && unique.len() == 16)
            }
        }
    };
    Ok(children.iter().any(|child| is_ours(&child.path)))
}

/// Whether the owner of a lock lives, as far as can be seen.
fn lives(store: &dyn Store, folder: &str, number: u64, me: &Owner) -> Result<bool> {
    let owner = read(store, &path(folder, number))?;
    let owner: Option<Owner> = owner.and_then(|owner| serde_json::from_slice(&owner).ok());
    if let Some(lives) = owner.and_then(|owner| owner.lives(me)) {
        return Ok(lives);
    }
    let look = || -> Result<_> {
        Ok((read(store, &path(folder, number))?, read(store, &beat_path(folder, number))?))
    };
    let first = look()?;
    for _ in 0..LOOKS {
        thread::sleep(LOOK);
        if look()? != first {
            return Ok(true);
        }
    }
    Ok(false)
}

fn locked(store: &dyn Store, folder: &str, uri: &str, number: u64) -> Locked {
    let owner = read(store, &path(folder, number)).ok().flatten();
    let owner: Option<Owner> = owner.and_then(|owner| serde_json::from_slice(&owner).ok());
    let by = owner.map_or("another run".to_owned(), |owner| {
        format!("process {} on {}, since {}", owner.process, owner.host, owner.since)
    });
    Locked(format!("the output \"{uri}\" is being written by {by}"))
}
