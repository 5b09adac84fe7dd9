//! A run sleeps just before any of its steps while other runs take over. It wakes in the middle of what they
//! do or after it, and the run that then owns the output must come to its end.

use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use anyhow::Result;
use cluster::{Local, Store};

use super::super::OutputFolder;
use super::super::lock::BEAT;
use super::bucket_store::BucketStore;
use super::power_store::PowerStore;
use super::{Files, Job, OUT, check_reader, expected, owner};
use crate::cli::exit::WrongUse;
use crate::corpus::output_layout::SUCCESS;

const SPLITS: u32 = 1;

/// Step before which a run falls asleep, until it is woken.
pub(super) struct Pause {
    steps_left: AtomicUsize,
    asleep: Sender<&'static str>,
    wake: Mutex<Receiver<()>>,
}

impl Pause {
    /// Makes a pause before step number `step`, counted from 0, and the end from which the run is woken.
    fn before(step: usize) -> (Self, Sleeper) {
        let ((asleep, is_asleep), (wake, woken)) = (channel(), channel());
        let steps_left = AtomicUsize::new(step + 1);
        (Pause { steps_left, asleep, wake: Mutex::new(woken) }, Sleeper { is_asleep, wake })
    }

    /// Sleeps if this is the chosen step. `what`: the kind of the step.
    pub fn step(&self, what: &'static str) {
        if self.steps_left.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.asleep.send(what).unwrap();
            self.wake.lock().unwrap().recv().unwrap();
        }
    }
}

/// Other end of a [`Pause`].
struct Sleeper {
    is_asleep: Receiver<&'static str>,
    wake: Sender<()>,
}

impl Sleeper {
    /// Waits until the run sleeps, and returns the kind of the step; `None` if the run ended without
    /// sleeping.
    fn sleeps(&self) -> Option<&'static str> {
        self.is_asleep.recv().ok()
    }

    fn wake(&self) {
        self.wake.send(()).unwrap();
    }
}

fn run(store: impl Store + 'static, name: &'static str) -> Result<()> {
    run_over(store, name, true)
}

fn run_over(store: impl Store + 'static, name: &'static str, overwrite: bool) -> Result<()> {
    let job = Job { name, splits: SPLITS, overwrite };
    super::run(&(Arc::new(store) as Arc<dyn Store>), job, &mut [0; 2])
}

/// Lets one run sleep before its step `first` while `others` come to their end. The `last` one sleeps before
/// its step `second` while the first one wakes and ends. Returns whether the first run slept, and whether the
/// last one did too.
fn one_sleeps(first: usize, second: usize, others: &[&'static str], last: &'static str) -> [bool; 2] {
    let when = format!("before step {first}, then {others:?}, and before step {second} of {last}");
    let store = PowerStore::new();
    run(store.clone(), "old").unwrap();
    thread::scope(|scope| {
        let (pause, sleeper) = Pause::before(first);
        let sleeping = store.pausing(pause);
        let one = scope.spawn(move || run(sleeping, "new"));
        if sleeper.sleeps().is_none() {
            return [false; 2];
        }
        for other in others {
            run(store.clone(), other).unwrap();
        }
        let (pause, last_sleeper) = Pause::before(second);
        let sleeping = store.pausing(pause);
        let owner = scope.spawn(move || run(sleeping, last));
        let slept = last_sleeper.sleeps().is_some();
        sleeper.wake();
        let ended = one.join().unwrap();
        if slept {
            last_sleeper.wake();
        }
        if let Err(error) = owner.join().unwrap() {
            panic!("{when}: {error:#}");
        }
        // A run that had not claimed the output when it fell asleep may do so later.
        let allowed = if ended.is_ok() { vec!["new", last] } else { vec![last] };
        assert!(check_reader(store.files(OUT), SPLITS, &allowed, &when), "{when}: there is no _SUCCESS");
        assert!(
            store.files(&format!("{OUT}/_temporary")).is_empty(),
            "{when}: {:?} {:?}",
            store.files(OUT).keys(),
            ended.err()
        );
        [true, slept]
    })
}

#[test]
fn a_run_that_slept_before_any_step_disturbs_no_other() {
    for (others, last) in [(&[][..], "new"), (&[], "other"), (&["new"], "other"), (&["other"], "new")] {
        let (mut first, mut combinations) = (0, 0);
        loop {
            // Not every combination is tried for three runs.
            let apart = if others.is_empty() { 1 } else { 3 };
            let mut second = first % apart;
            let slept = loop {
                let [slept, both] = one_sleeps(first, second, others, last);
                if !both {
                    break slept;
                }
                (combinations, second) = (combinations + 1, second + apart);
            };
            if !slept {
                break;
            }
            first += 1;
        }
        assert!(combinations > 400, "{combinations}");
    }
}

/// A file that is written into a folder while it is removed must not keep the folder from being removed.
#[test]
fn the_folder_of_a_run_that_still_writes_there_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    for round in 0..100 {
        let dead = format!("{out}/_temporary/00000001-{round:016x}");
        Local.create_new(&format!("{dead}/map/begun"), b"").unwrap();
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0.. {
                    // The write fails once the folder has another name.
                    if stop.load(Ordering::Relaxed) || fs::write(format!("{dead}/map/{number}"), b"").is_err()
                    {
                        break;
                    }
                }
            });
            let store: Arc<dyn Store> = Arc::new(Local);
            let mut folder = OutputFolder::lock(store, out.to_owned(), out, owner()).unwrap();
            let taken = folder.take_over(false, None);
            stop.store(true, Ordering::Relaxed);
            taken.unwrap();
            folder.release(false).unwrap();
        });
        assert!(!Local.exists(&dead).unwrap(), "round {round}");
    }
}

/// Lets one run sleep before its request `first` to a bucket while `others` come to their end. The `last` one
/// sleeps before its request `second` while the first one wakes and ends.
///
/// Returns the kind of the request that the first run slept before, whether the last run slept, and whether
/// its output is whole at the end. `None` if the first run ended without sleeping.
fn one_is_late(
    first: usize,
    second: usize,
    others: &[&'static str],
    last: &'static str,
) -> Option<(&'static str, bool, bool)> {
    let store = BucketStore::default();
    run(store.clone(), "old").unwrap();
    thread::scope(|scope| {
        let (pause, sleeper) = Pause::before(first);
        let sleeping = store.pausing(pause);
        let one = scope.spawn(move || run(sleeping, "new"));
        let what = sleeper.sleeps()?;
        for other in others {
            run(store.clone(), other).unwrap();
        }
        let (pause, last_sleeper) = Pause::before(second);
        let sleeping = store.pausing(pause);
        let owner = scope.spawn(move || run(sleeping, last));
        let slept = last_sleeper.sleeps().is_some();
        // After two beats, the sleeper looks at the lock also where it trusts an earlier look for a while.
        thread::sleep(2 * BEAT);
        sleeper.wake();
        let ended = one.join().unwrap();
        if slept {
            last_sleeper.wake();
        }
        let when =
            format!("before request {first}, {what}, then {others:?}, and before request {second} of {last}");
        let owned = owner.join().unwrap();
        let allowed = if ended.is_ok() { vec!["new", last] } else { vec![last] };
        let whole = allowed.iter().any(|name| is_whole(store.files(OUT), name));
        if whole {
            let refused = run_over(store.clone(), "fourth", false).unwrap_err();
            assert!(refused.is::<WrongUse>(), "{when}: {refused:#}");
        }
        run(store.clone(), "fourth").unwrap();
        assert!(check_reader(store.files(OUT), SPLITS, &["fourth"], &when), "{when}");
        Some((what, slept, whole && owned.is_ok()))
    })
}

/// A bucket has no request that depends on another object. So a request that was on its way while others took
/// over and finished can remove what they have written, or write a file that they do not have. The list then
/// shows the difference, and the next run mends it.
#[test]
fn a_request_that_comes_late_to_a_bucket_does_only_what_is_known() {
    // `remove` removes `_SUCCESS` or a lock. The other two do harm only if the last run has files that the
    // sleeper removes, and lacks files that the sleeper writes.
    let known = ["remove", "remove files", "write"];
    for (others, last, known) in [
        (&[][..], "other", &known[..1]),
        (&["new"], "other", &known[..1]),
        (&["other"], "third", &known[..1]),
        (&[], "old", &known),
    ] {
        let (mut done, mut combinations) = (BTreeSet::new(), 0);
        'first: for first in 0.. {
            for second in 0.. {
                let Some((what, slept, whole)) = one_is_late(first, second, others, last) else {
                    break 'first;
                };
                if !whole {
                    done.insert(what);
                }
                combinations += 1;
                if !slept {
                    break;
                }
            }
        }
        assert_eq!(done, known.iter().copied().collect(), "{others:?} {last}");
        assert!(combinations > 800, "{combinations}");
    }
}

/// Whether the output is whole and that of the job `name`.
fn is_whole(mut files: Files, name: &str) -> bool {
    files.retain(|path, _| !path.starts_with("/_temporary"));
    let success = files.remove(&format!("/{SUCCESS}"));
    success.is_some_and(|text| String::from_utf8_lossy(&text).contains(name))
        && files == expected(name, SPLITS)
}
