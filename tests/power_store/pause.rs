//! A pause of a run before one of its steps.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use parking_lot::Mutex;

/// Step before which a run falls asleep, until it is woken.
pub struct Pause {
    steps_left: AtomicUsize,
    asleep: Sender<&'static str>,
    wake: Mutex<Receiver<()>>,
}

impl Pause {
    /// Makes a pause before step number `step`, counted from 0, and the end from which the run is woken.
    pub fn before(step: usize) -> (Self, Sleeper) {
        let ((asleep, is_asleep), (wake, woken)) = (channel(), channel());
        let steps_left = AtomicUsize::new(step + 1);
        (Pause { steps_left, asleep, wake: Mutex::new(woken) }, Sleeper { is_asleep, wake })
    }

    /// Sleeps if this is the chosen step. `what`: the kind of the step.
    pub fn step(&self, what: &'static str) {
        if self.steps_left.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.asleep.send(what).unwrap();
            self.wake.lock().recv().unwrap();
        }
    }
}

/// Other end of a [`Pause`].
pub struct Sleeper {
    is_asleep: Receiver<&'static str>,
    wake: Sender<()>,
}

impl Sleeper {
    /// Waits until the run sleeps, and returns the kind of the step; `None` if the run ended without
    /// sleeping.
    pub fn sleeps(&self) -> Option<&'static str> {
        self.is_asleep.recv().ok()
    }

    /// Wakes the run.
    pub fn wake(&self) {
        self.wake.send(()).unwrap();
    }
}
