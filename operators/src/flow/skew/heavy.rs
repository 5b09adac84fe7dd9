//! Skew: finds values that too many rows share for one worker to compare or hold. Their rows are then spread
//! over all workers.

use std::collections::BTreeMap;

use timely::worker::Worker;

use crate::flow::exchange::shuffle::shuffle;
use crate::search::{COUNTER_BITS, KeyCounters, counter};

/// Number that stands for all rows, in place of a counter.
const ALL: u64 = 1 << COUNTER_BITS;
/// A counter is suspect when it has this many times the mean of the rows of a counter.
const SUSPECT: u64 = 4;
/// Mean number of rows that a row is compared with, where a block join can split the bucket: buckets of up to
/// 128 rows are compared pair by pair.
const COMPARED: u64 = 64;

/// Bounds above which the rows of a value are too many for one worker.
///
/// A counting pass before the exchange finds such *heavy* values. Each worker counts its rows in 65,536
/// counters by 16 bits of the value. The workers add up the counters that stand out on any of them, and all
/// decide alike: values are heavy, the largest first, as long as comparing all pairs of a value's rows is
/// more than a part of a worker's share of the work. Values that do not fit into memory are heavy too. The
/// caller spreads the rows of heavy values, by narrower values or in tiles.
///
/// Example with 4 workers, 200,000 rows and the default bounds. Work is the number of pairs compared; the
/// rows of values that do not stand out, and of heavy values once they are spread, count 64 each.
///
/// ```text
/// rows of the value   pairs of the value   work of all   a quarter of a worker's share
/// 100,000             5,000,000,000        5.06 * 10^9   316,000,000                     heavy
/// 10,000              50,000,000           62,000,000    3,900,000                       heavy
/// 1,000                                                                                  below `least_rows`
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skew {
    /// Number of rows up to which a value is never heavy for its work.
    pub least_rows: u64,
    /// Number of parts of a worker's share of the work. A value is heavy if comparing its rows may take more
    /// than one part.
    pub share: u64,
}

impl Default for Skew {
    fn default() -> Self {
        Skew { least_rows: 1 << 10, share: 4 }
    }
}

/// Values with too many rows, by their counters. A value of few rows may share the counter of a value with
/// many.
#[derive(Debug, Default)]
pub(crate) struct Heavy {
    /// For each counter, its number of rows if that is too many, or 0. Empty if no counter has too many.
    counters: Vec<u64>,
    /// Number of rows of the largest heavy counter.
    pub largest: u64,
}

impl Heavy {
    pub fn none(&self) -> bool {
        self.counters.is_empty()
    }

    /// Whether a row with this key has a heavy value.
    pub fn has(&self, key: u64) -> bool {
        self.rows(key) > 0
    }

    /// Returns the number of rows on the counter of this key if they are too many, else 0.
    pub fn rows(&self, key: u64) -> u64 {
        if self.none() { 0 } else { self.counters[counter(key)] }
    }
}

impl Skew {
    /// Whether any value may be heavy. `fit`: the number of rows of one value that fit into memory; `None` if all do.
    pub(crate) fn counts_rows(self, worker: &Worker, fit: Option<u64>) -> bool {
        fit.is_some() || worker.peers() > 1 && self.least_rows < u64::MAX
    }

    /// Counts the rows of all workers and returns the heavy values, the same on every worker. `scan`: counts
    /// the rows of this worker. `fit`: the number of rows of one value that fit into memory; `None` if all
    /// do.
    ///
    /// Cost: the key of each row once more, and 512 KB; nothing unless [`Skew::counts_rows`].
    pub(crate) fn heavy<E>(
        self,
        worker: &mut Worker,
        fit: Option<u64>,
        scan: impl FnOnce(&mut Worker, &mut KeyCounters) -> Result<(), E>,
    ) -> Result<Heavy, E> {
        let peers = worker.peers() as u64;
        if !self.counts_rows(worker, fit) {
            return Ok(Heavy::default());
        }
        let mut counters = KeyCounters::default();
        scan(worker, &mut counters)?;
        let KeyCounters(counters) = counters;
        let rows: u64 = counters.iter().sum();
        // A counter with more rows in all than the sum of `least` over all workers has more than `least` on at
        // least one of them.
        let least = self.least_rows / peers + ((SUSPECT * rows) >> COUNTER_BITS);
        let least = least.min(fit.unwrap_or(u64::MAX) / peers);
        let counted = (0..).zip(counters.iter().copied());
        let mut sums = BTreeMap::new();
        add_up(worker, &mut sums, counted.filter(|&(_, count)| count > least).chain([(ALL, rows)]));
        if sums.len() > 1 {
            // Counts of the suspect counters on workers that had too few rows to send them at first.
            let missing: Vec<u64> = sums.keys().copied().filter(|&at| at < ALL).collect();
            let missing = missing.into_iter().map(|at| (at, counters[at as usize]));
            add_up(worker, &mut sums, missing.filter(|&(_, count)| 0 < count && count <= least));
        }
        let all = sums.remove(&ALL).unwrap_or(0);
        Ok(self.choose(all, sums, peers, fit))
    }

    /// Chooses the heavy counters among those with the given sums, the largest first. All pairs of a value
    /// that is not heavy are taken to be compared; a heavy value, once spread, needs few comparisons.
    fn choose(self, all: u64, sums: BTreeMap<u64, u64>, peers: u64, fit: Option<u64>) -> Heavy {
        let pairs = |count: u64| u128::from(count) * u128::from(count.saturating_sub(1)) / 2;
        let few = |count: u64| u128::from(count) * u128::from(COMPARED);
        let mut largest_first: Vec<(u64, u64)> = sums.into_iter().map(|(at, count)| (count, at)).collect();
        largest_first.sort_unstable_by(|a, b| b.cmp(a));
        let mut work = few(all);
        largest_first.iter().for_each(|&(count, _)| work = work - few(count) + pairs(count));
        let mut heavy = Heavy::default();
        for (count, at) in largest_first {
            let parts = u128::from(self.share) * u128::from(peers);
            let slow = peers > 1 && count > self.least_rows && pairs(count).saturating_mul(parts) > work;
            if !slow && fit.is_none_or(|fit| count <= fit) {
                break;
            }
            work = work - pairs(count) + few(count);
            heavy.counters.resize(1 << COUNTER_BITS, 0);
            heavy.counters[at as usize] = count;
            heavy.largest = heavy.largest.max(count);
        }
        heavy
    }
}

/// Adds the counts of all workers to the sums of each.
pub(crate) fn add_up(
    worker: &mut Worker,
    sums: &mut BTreeMap<u64, u64>,
    counts: impl Iterator<Item = (u64, u64)>,
) {
    let peers = worker.peers() as u64;
    let to_each = counts.flat_map(|count| (0..peers).map(move |to| (to, count)));
    for (_, (at, count)) in shuffle(worker, "Skew", to_each, |&(to, _): &(u64, (u64, u64))| to) {
        *sums.entry(at).or_default() += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heavy(all: u64, counts: &[u64], peers: u64) -> usize {
        fitting(all, counts, peers, None)
    }

    fn fitting(all: u64, counts: &[u64], peers: u64, fit: Option<u64>) -> usize {
        let sums = (0..).zip(counts.iter().copied()).collect();
        let heavy = Skew::default().choose(all, sums, peers, fit);
        heavy.counters.into_iter().filter(|&rows| rows > 0).count()
    }

    #[test]
    fn a_value_whose_rows_exceed_memory_is_heavy() {
        assert_eq!(heavy(10_000, &[5_000, 4_000], 1), 0);
        assert_eq!(fitting(10_000, &[5_000, 4_000], 1, Some(4_500)), 1);
        assert_eq!(fitting(10_000, &[300, 200], 8, Some(250)), 1);
    }

    #[test]
    fn a_value_with_too_large_a_share_of_the_work_is_heavy() {
        assert_eq!(heavy(10_000_000, &[100_000], 2), 1);
        assert_eq!(heavy(200_000, &[100_000], 4), 1);
        // Once the first value is spread, the second one takes a worker longest.
        assert_eq!(heavy(200_000, &[10_000, 100_000], 4), 2);
        assert_eq!(heavy(200_000, &[100_000, 1_000], 4), 1);
        assert_eq!(heavy(200_000, &[], 4), 0);
    }

    #[test]
    fn values_of_equal_size_are_heavy_only_for_many_workers() {
        let even = [20_000; 512];
        assert_eq!(heavy(512 * 20_000, &even, 8), 0);
        assert_eq!(heavy(512 * 20_000, &even, 256), 512);
    }
}
