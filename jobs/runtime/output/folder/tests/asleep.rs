//! A run sleeps just before any of its steps while other runs take over. It wakes in the middle of what they
//! do or after it, and the run that then owns the output must come to its end.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use cluster::{Local, Store};

use super::super::OutputFolder;
use super::super::lock::{BEAT, Lock};
use super::bucket_store::BucketStore;
use super::power_store::{Files, Pause, PowerStore};
use super::{Job, OUT, check_reader, expected, owner};
use crate::cli::exit::WrongUse;
use crate::corpus::output_layout::SUCCESS;

const SPLITS: u32 = 1;

fn run(store: impl Store + 'static, name: &'static str) -> Result<()> {
    run_over(store, name, true)
}

fn run_over(store: impl Store + 'static, name: &'static str, overwrite: bool) -> Result<()> {
    let job = Job { name, splits: SPLITS, overwrite };
    super::run(&(Arc::new(store) as Arc<dyn Store>), job, &mut [0; 2])
}

/// Runs of which one sleeps before its step `first` while `others` come to their end. The `last` one sleeps
/// before its step `second` while the first one wakes and ends.
#[derive(Debug)]
struct Case {
    first: usize,
    second: usize,
    others: &'static [&'static str],
    last: &'static str,
}

/// Outcome of the run that slept, and of the last one.
struct Awake {
    /// Kind of the step that the first run slept before.
    what: &'static str,
    /// Whether the last run slept too.
    slept: bool,
    ended: Result<()>,
    owned: Result<()>,
    /// Names of the runs whose output may be there.
    allowed: Vec<&'static str>,
}

/// Performs the runs. `pausing`: gives the store of a run that sleeps; `delay`: time before the first one is
/// woken. `None` if it ended without sleeping.
fn sleep<S: Store + Clone + 'static>(
    store: &S,
    pausing: fn(&S, Pause) -> S,
    case: &Case,
    delay: Duration,
) -> Option<Awake> {
    run(store.clone(), "old").unwrap();
    thread::scope(|scope| {
        let [(sleeping, sleeper), (also_sleeping, last_sleeper)] = [case.first, case.second].map(|step| {
            let (pause, sleeper) = Pause::before(step);
            (pausing(store, pause), sleeper)
        });
        let one = scope.spawn(move || run(sleeping, "new"));
        let what = sleeper.sleeps()?;
        for other in case.others {
            run(store.clone(), other).unwrap();
        }
        let owner = scope.spawn(|| run(also_sleeping, case.last));
        let slept = last_sleeper.sleeps().is_some();
        thread::sleep(delay);
        sleeper.wake();
        let ended = one.join().unwrap();
        if slept {
            last_sleeper.wake();
        }
        // A run that had not claimed the output when it fell asleep may do so later.
        let allowed = if ended.is_ok() { vec!["new", case.last] } else { vec![case.last] };
        Some(Awake { what, slept, ended, owned: owner.join().unwrap(), allowed })
    })
}

/// Lets runs sleep on a file system. Returns whether the first run slept, and whether the last one did too.
fn one_sleeps(case: &Case) -> [bool; 2] {
    let store = PowerStore::new();
    let when = format!("{case:?}");
    let Some(awake) = sleep(&store, PowerStore::pausing, case, Duration::ZERO) else { return [false; 2] };
    if let Err(error) = awake.owned {
        panic!("{when}: {error:#}");
    }
    assert!(check_reader(store.files(OUT), SPLITS, &awake.allowed, &when), "{when}: there is no _SUCCESS");
    assert!(
        store.files(&format!("{OUT}/_temporary")).is_empty(),
        "{when}: {:?} {:?}",
        store.files(OUT).keys(),
        awake.ended.err()
    );
    [true, awake.slept]
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
                let [slept, both] = one_sleeps(&Case { first, second, others, last });
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

/// The beat of an owner falls asleep between its look at the lock and its write, and another run takes over,
/// ends and removes all locks. The beat that is written afterwards must not stay.
#[test]
fn an_owner_that_slept_before_its_beat_leaves_none() {
    let folder = format!("{OUT}/_temporary");
    for beats in 0..4 {
        let store = PowerStore::new();
        // Only steps that change something count: the creation of the lock, then each beat.
        let (pause, sleeper) = Pause::before(1 + beats);
        let sleeping: Arc<dyn Store> = Arc::new(PowerStore::pausing(&store, pause));
        let lock = Lock::take(&sleeping, &folder, OUT, owner()).unwrap();
        lock.beat(|_| ()).unwrap();
        sleeper.sleeps().unwrap();
        run(store.clone(), "other").unwrap();
        thread::sleep(BEAT);
        sleeper.wake();
        lock.stop();
        assert!(store.files(&folder).is_empty(), "{beats}: {:?}", store.files(&folder).keys());
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

/// Lets runs sleep before requests to a bucket. Returns the kind of the request that the first run slept
/// before, whether the last run slept, and whether its output is whole at the end. `None` if the first run
/// ended without sleeping.
fn one_is_late(case: &Case) -> Option<(&'static str, bool, bool)> {
    let store = BucketStore::default();
    // After two beats, the sleeper looks at the lock also where it trusts an earlier look for a while.
    let awake = sleep(&store, BucketStore::pausing, case, 2 * BEAT)?;
    let Awake { what, slept, .. } = awake;
    let when = format!("{what}: {case:?}");
    let whole = awake.allowed.iter().any(|name| is_whole(store.files(OUT), name));
    if whole {
        let refused = run_over(store.clone(), "fourth", false).unwrap_err();
        assert!(matches!(refused.downcast_ref(), Some(WrongUse(_))), "{when}: {refused:#}");
    }
    run(store.clone(), "fourth").unwrap();
    assert!(check_reader(store.files(OUT), SPLITS, &["fourth"], &when), "{when}");
    Some((what, slept, whole && awake.owned.is_ok()))
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
        let mut done = BTreeSet::new();
        let mut combinations = 0;
        'first: for first in 0.. {
            for second in 0.. {
                let Some((what, slept, whole)) = one_is_late(&Case { first, second, others, last }) else {
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
