//! A run that sleeps just before any of its steps, for so long that others take over: when it wakes, in the middle of what
//! they do or after it, the run that is the owner then comes to its end.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use anyhow::Result;

use super::power_store::PowerStore;
use super::{Job, OUT, check_reader};

const SPLITS: u32 = 1;

/// Where a run falls asleep, and how it is woken.
pub(super) struct Pause {
    steps_left: AtomicUsize,
    asleep: Sender<()>,
    wake: Mutex<Receiver<()>>,
}

impl Pause {
    /// Before the step of this number.
    fn before(step: usize) -> (Self, Sleeper) {
        let ((asleep, is_asleep), (wake, woken)) = (channel(), channel());
        let steps_left = AtomicUsize::new(step + 1);
        (Pause { steps_left, asleep, wake: Mutex::new(woken) }, Sleeper { is_asleep, wake })
    }

    pub fn step(&self) {
        if self.steps_left.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.asleep.send(()).unwrap();
            self.wake.lock().unwrap().recv().unwrap();
        }
    }
}

/// The other end of a [`Pause`].
struct Sleeper {
    is_asleep: Receiver<()>,
    wake: Sender<()>,
}

impl Sleeper {
    /// Waits until the run sleeps; false if it came to its end before.
    fn sleeps(&self) -> bool {
        self.is_asleep.recv().is_ok()
    }

    fn wake(&self) {
        self.wake.send(()).unwrap();
    }
}

fn run(store: PowerStore, name: &'static str) -> Result<()> {
    let job = Job { name, splits: SPLITS, overwrite: true };
    super::run(&(Arc::new(store) as Arc<dyn cluster::Store>), job, &mut [0; 2])
}

/// One run sleeps before its step `first`, others come to their end, and the last one sleeps before its step `second` while
/// the first one wakes and ends. Whether both came so far as to sleep.
fn one_sleeps(first: usize, second: usize, others: &[&'static str], last: &'static str) -> [bool; 2] {
    let when = format!("before step {first}, then {others:?}, and before step {second} of {last}");
    let store = PowerStore::new();
    run(store.clone(), "old").unwrap();
    thread::scope(|scope| {
        let (pause, sleeper) = Pause::before(first);
        let sleeping = store.pausing(pause);
        let one = scope.spawn(move || run(sleeping, "new"));
        if !sleeper.sleeps() {
            return [false; 2];
        }
        for other in others {
            run(store.clone(), other).unwrap();
        }
        let (pause, last_sleeper) = Pause::before(second);
        let sleeping = store.pausing(pause);
        let owner = scope.spawn(move || run(sleeping, last));
        let slept = last_sleeper.sleeps();
        sleeper.wake();
        let ended = one.join().unwrap();
        if slept {
            last_sleeper.wake();
        }
        if let Err(error) = owner.join().unwrap() {
            panic!("{when}: {error:#}");
        }
        // A run that had not yet claimed the output when it fell asleep may do so later.
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
            // Of three runs not every combination is tried.
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
