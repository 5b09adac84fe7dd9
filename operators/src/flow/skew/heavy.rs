//! Skew: rows that are too many for one worker, because they share a value, are spread over all of them.
//!
//! A counting pass before the exchange finds such values, so that all workers know the same ones. What is done with their
//! rows is the caller's: send them by narrower values, or, where there are none, let them meet in tiles.
//! What is too many for the work of a worker is told from the rows of all; what is too many for its memory is known.

use std::collections::BTreeMap;

use timely::worker::Worker;

use crate::flow::exchange::shuffle::shuffle;

/// Rows are counted by so many bits of their keys.
const COUNTER_BITS: u32 = 16;
/// In place of a counter: all rows.
const ALL: u64 = 1 << COUNTER_BITS;
/// A value is looked at when it has so many times the rows of a counter.
const SUSPECT: u64 = 4;
/// So many others a row is compared with, where values are of use: buckets of up to 128 are compared pair by pair.
const COMPARED: u64 = 64;

/// When the rows of a value are too many for one worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skew {
    /// They are more than this, ...
    pub least_rows: u64,
    /// ... and to compare all of them might take a worker more than one in so many parts of its share of the work.
    pub share: u64,
}

impl Default for Skew {
    fn default() -> Self {
        Skew { least_rows: 1 << 10, share: 4 }
    }
}

/// Values whose rows are too many, by their counters: a value of few rows may be counted with one of many.
#[derive(Debug, Default)]
pub(crate) struct Heavy {
    /// The rows of each counter that are too many; empty if none are.
    counters: Vec<u64>,
    /// The rows of the largest.
    pub largest: u64,
    /// The rows of all workers, if they were counted.
    pub all: u64,
}

impl Heavy {
    pub fn none(&self) -> bool {
        self.counters.is_empty()
    }

    /// Whether a row with this key is one of them.
    pub fn has(&self, key: u64) -> bool {
        self.rows(key) > 0
    }

    /// How many rows there are on the counter of this key, if they are too many; else 0.
    pub fn rows(&self, key: u64) -> u64 {
        if self.none() { 0 } else { self.counters[counter(key)] }
    }
}

impl Skew {
    /// Counts the rows of all workers, which `scan` does for those of this one. Every worker gets the same. `fit`: so many
    /// rows that share a value fit into memory; `None`: all.
    ///
    /// Cost: each row's key once more, and 512 KB; nothing for one worker that has memory enough.
    pub(crate) fn heavy<E>(
        self,
        worker: &mut Worker,
        fit: Option<u64>,
        scan: impl FnOnce(&mut Worker, &mut Counters) -> Result<(), E>,
    ) -> Result<Heavy, E> {
        let peers = worker.peers() as u64;
        if peers == 1 && fit.is_none() {
            return Ok(Heavy::default());
        }
        let mut counters = Counters::default();
        scan(worker, &mut counters)?;
        let Counters(counters) = counters;
        let rows: u64 = counters.iter().sum();
        // Of what is more than the sum of these on all workers, one worker has more than its own.
        let least = self.least_rows / peers + ((SUSPECT * rows) >> COUNTER_BITS);
        let least = least.min(fit.unwrap_or(u64::MAX) / peers);
        let counted = (0..).zip(counters.iter().copied());
        let mut sums = BTreeMap::new();
        add_up(worker, &mut sums, counted.filter(|&(_, count)| count > least).chain([(ALL, rows)]));
        if sums.len() > 1 {
            // Those that other workers had enough of.
            let missing: Vec<u64> = sums.keys().copied().filter(|&at| at < ALL).collect();
            let missing = missing.into_iter().map(|at| (at, counters[at as usize]));
            add_up(worker, &mut sums, missing.filter(|&(_, count)| 0 < count && count <= least));
        }
        let all = sums.remove(&ALL).unwrap_or(0);
        Ok(self.choose(all, sums, peers, fit))
    }

    /// Which of the counters with these sums are heavy, the largest first, as if each value that is left had all its
    /// pairs compared, and a heavy one, once spread, few.
    fn choose(self, all: u64, sums: BTreeMap<u64, u64>, peers: u64, fit: Option<u64>) -> Heavy {
        let pairs = |count: u64| u128::from(count) * u128::from(count.saturating_sub(1)) / 2;
        let few = |count: u64| u128::from(count) * u128::from(COMPARED);
        let mut largest_first: Vec<(u64, u64)> = sums.into_iter().map(|(at, count)| (count, at)).collect();
        largest_first.sort_unstable_by(|a, b| b.cmp(a));
        let mut work = few(all);
        largest_first.iter().for_each(|&(count, _)| work = work - few(count) + pairs(count));
        let mut heavy = Heavy { all, ..Heavy::default() };
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

/// How many rows fall on each counter.
pub(crate) struct Counters(Vec<u64>);

impl Default for Counters {
    fn default() -> Self {
        Counters(vec![0; 1 << COUNTER_BITS])
    }
}

impl Counters {
    /// Counts a row by its key, which must be spread over all bits.
    #[inline]
    pub fn add(&mut self, key: u64) {
        self.0[counter(key)] += 1;
    }

    pub fn largest(&self) -> u64 {
        self.0.iter().copied().max().unwrap_or(0)
    }
}

/// The low bits choose the worker.
fn counter(key: u64) -> usize {
    (key >> (64 - COUNTER_BITS)) as usize
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
    fn what_does_not_fit_into_memory_is_heavy() {
        assert_eq!(heavy(10_000, &[5_000, 4_000], 1), 0);
        assert_eq!(fitting(10_000, &[5_000, 4_000], 1, Some(4_500)), 1);
        assert_eq!(fitting(10_000, &[300, 200], 8, Some(250)), 1);
    }

    #[test]
    fn what_stands_out_is_heavy() {
        assert_eq!(heavy(10_000_000, &[100_000], 2), 1);
        assert_eq!(heavy(200_000, &[100_000], 4), 1);
        // Once the first is spread, the second is what takes a worker longest.
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
