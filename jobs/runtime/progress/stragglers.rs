//! Finds workers that are slow.

use std::fmt;
use std::time::Duration;

use super::stage::Stage;

/// Least time of a slow split, whatever others took.
const LEAST: Duration = Duration::from_secs(30);
/// Least time of a slow split, as a multiple of the median of the finished ones.
const TIMES: u32 = 3;
/// Time without a count after which a worker stands still.
const STILL: Duration = Duration::from_secs(60);

/// State of a worker at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WorkerState {
    pub worker: usize,
    /// Time since it last counted something; `None` if it never has.
    pub still: Option<Duration>,
    /// Split at hand; `None` also if the worker was already named for it.
    pub at_hand: Option<AtHand>,
}

/// Split that a worker is at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AtHand {
    pub stage: Stage,
    pub split: u32,
    /// First file of the split.
    pub file: String,
    /// Time since the worker began it.
    pub taken: Duration,
}

/// Slow worker that is to be named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slow {
    pub worker: usize,
    pub at_hand: AtHand,
    why: SlowReason,
}

/// Reason why a worker is slow.
#[derive(Clone, Debug, PartialEq, Eq)]
enum SlowReason {
    /// Finished splits took this time, by their median.
    Others(Duration),
    /// The worker has counted nothing for this time, while others have.
    Still(Duration),
}

/// Returns the slow workers among those that have a split at hand.
///
/// `median` returns the median time of the finished splits of a stage, if there are any. It is called only for
/// a split that is late.
///
/// ```text
/// finished splits took 25 s (median)
/// worker 0    split 7 for 95 s, last count 1 s ago     slow: 95 s is more than 3 times 25 s
/// worker 1    split 8 for 70 s, last count 65 s ago    slow: nothing for 60 s, while others count
/// worker 2    split 9 for 25 s, last count 1 s ago     not slow: less than 30 s
/// ```
pub(super) fn slow(workers: &[WorkerState], median: impl Fn(Stage) -> Option<Duration>) -> Vec<Slow> {
    let some_move = workers.iter().any(|state| state.still.is_some_and(|still| still <= STILL));
    let slow = |state: &WorkerState| {
        let at_hand = state.at_hand.clone()?;
        let others = if at_hand.taken > LEAST { median(at_hand.stage) } else { None };
        let others = others.filter(|&others| at_hand.taken > TIMES * others);
        let still = state.still.filter(|&still| still > STILL && some_move);
        let why = still.map(SlowReason::Still).or(others.map(SlowReason::Others))?;
        Some(Slow { worker: state.worker, at_hand, why })
    };
    workers.iter().filter_map(slow).collect()
}

/// Returns the middle one; of an even number, the longer of the middle two.
pub(super) fn median(times: &[Duration]) -> Option<Duration> {
    let mut times = times.to_vec();
    let middle = times.len() / 2;
    (middle < times.len()).then(|| *times.select_nth_unstable(middle).1)
}

impl fmt::Display for Slow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AtHand { split, file, taken, .. } = &self.at_hand;
        write!(f, "worker {} is slow: split {split} (\"{file}\") ", self.worker)?;
        match self.why {
            SlowReason::Others(others) => {
                write!(f, "has taken {:.0} s, others took {:.0} s", taken.as_secs_f64(), others.as_secs_f64())
            }
            SlowReason::Still(still) => {
                write!(f, "has made no progress for {:.0} s, others have", still.as_secs_f64())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Returns a worker that has been at its split for `taken` seconds and counted something `still` seconds
    /// ago.
    fn state(worker: usize, taken: u32, still: u32) -> WorkerState {
        let split = 10 + worker as u32;
        let file = format!("in/part-{worker}");
        let at_hand = AtHand { stage: Stage::Map, split, file, taken: taken * SECOND };
        WorkerState { worker, still: Some(still * SECOND), at_hand: Some(at_hand) }
    }

    fn named(workers: &[WorkerState], median: Option<u32>) -> Vec<String> {
        let slow = slow(workers, |_| median.map(|median| median * SECOND));
        slow.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_worker_that_takes_three_times_as_long_as_others_took_is_named() {
        let workers = [state(0, 12, 0), state(3, 95, 1)];
        let expected = ["worker 3 is slow: split 13 (\"in/part-3\") has taken 95 s, others took 20 s"];
        assert_eq!(named(&workers, Some(20)), expected);
        assert_eq!(named(&workers, Some(31)).len(), 1);
        assert!(named(&workers, Some(32)).is_empty());
        assert!(named(&workers, None).is_empty());
    }

    #[test]
    fn a_split_of_half_a_minute_is_not_slow() {
        assert!(named(&[state(0, 30, 0), state(1, 2, 0)], Some(1)).is_empty());
        assert_eq!(named(&[state(0, 31, 0), state(1, 2, 0)], Some(1)).len(), 1);
    }

    #[test]
    fn a_worker_that_stands_still_is_named_while_others_move() {
        let expected =
            ["worker 1 is slow: split 11 (\"in/part-1\") has made no progress for 61 s, others have"];
        assert_eq!(named(&[state(0, 70, 60), state(1, 70, 61)], None), expected);
        assert!(named(&[state(0, 70, 60), state(1, 70, 60)], None).is_empty());
        // If a disk stands still for all workers, no worker is slow.
        assert!(named(&[state(0, 70, 61), state(1, 70, 61)], None).is_empty());
        assert!(named(&[state(1, 70, 61)], None).is_empty());
    }

    #[test]
    fn a_worker_without_a_split_at_hand_is_never_named() {
        let waiting = WorkerState { at_hand: None, ..state(1, 0, 600) };
        assert!(named(&[state(0, 12, 0), waiting], Some(1)).is_empty());
        // The median is that of the stage of the split at hand.
        let of_write = |stage| (stage == Stage::Write).then_some(SECOND);
        assert!(slow(&[state(0, 12, 0), state(1, 600, 0)], of_write).is_empty());
    }

    #[test]
    fn the_median_is_not_moved_by_one_long_split() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3, 1, 900].map(|seconds| seconds * SECOND)), Some(3 * SECOND));
    }
}
