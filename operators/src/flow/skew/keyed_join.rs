//! Records that share a key meet: on one worker or, if they are too many, in tiles.

use std::mem;

use timely::worker::Worker;

use super::heavy::Skew;
use super::pair_grid::{GridCell, in_tiles};
use crate::flow::exchange::shuffle::SortingShuffle;
use crate::record::{DocId, Record};
use crate::{Error, ExternalSort, SpillBudget, hash};

/// Of what may be held, the records of one key are at the most one in so many parts: whoever compares them needs more.
const KEY_PARTS: usize = 4;
/// Of what may be held, at least one in so many parts is given at once, if there is as much.
const AT_ONCE_PARTS: usize = 8;

/// Where records meet, once or again and again.
///
/// Memory: with a budget as much as it says, of one key a quarter; else this worker's records, and those that come to it.
pub(crate) struct KeyedJoin<R> {
    skew: Skew,
    scratch: SpillBudget,
    /// A buffer.
    arrived: Vec<R>,
}

impl<R: Record + Ord> KeyedJoin<R> {
    pub fn new(skew: Skew, scratch: &SpillBudget) -> Self {
        KeyedJoin { skew, scratch: scratch.clone(), arrived: Vec::new() }
    }

    /// Calls `each` with records that have met, and with which of their pairs are to be found there. `scan`: gives this
    /// worker's records, every time the same; they must be ordered by `key` first, whose low bits are spread. Returns about how
    /// many have the same key at the most, if some meet in tiles; else 0.
    pub fn meet<E: From<Error>>(
        &mut self,
        worker: &mut Worker,
        mut scan: impl FnMut(&mut Worker, &mut dyn FnMut(&mut Worker, R)) -> Result<(), E>,
        (key, doc): (impl Fn(&R) -> u64 + Copy + 'static, impl Fn(&R) -> DocId),
        mut each: impl FnMut(&mut [R], GridCell),
    ) -> Result<u64, E> {
        // They are looked at several times. What may be held, is.
        let mut held = Vec::new();
        let hold = self.scratch.budget().is_none() && worker.peers() > 1;
        if hold {
            scan(worker, &mut |_, record| held.push(record))?;
        }
        let mut scan = |worker: &mut Worker, each: &mut dyn FnMut(&mut Worker, R)| {
            if hold {
                held.iter().for_each(|record| each(worker, *record));
                return Ok(());
            }
            scan(worker, each)
        };
        let part = |parts: usize, of_each: usize| self.scratch.budget().map(|bytes| bytes / parts / of_each);
        // In a tile they are with its number, and then without.
        let fit = part(KEY_PARTS, size_of::<((u64, u64), R)>()).map(|rows| rows as u64);
        let at_once = part(AT_ONCE_PARTS, size_of::<R>()).unwrap_or(0);
        let spread = |record: &R| hash::spread(key(record));
        let heavy = self.skew.heavy(worker, fit, |worker, counters| {
            scan(worker, &mut |_, record| counters.add(spread(&record)))
        })?;

        let arrived = ExternalSort::new(&self.scratch).reusing(mem::take(&mut self.arrived));
        let mut light = SortingShuffle::new(worker, "Meet", key, arrived);
        scan(worker, &mut |worker, record| {
            if !heavy.has(spread(&record)) {
                light.send(worker, record);
            }
        })?;
        let mut arrived = light.finish(worker)?;
        arrived.each_group(at_once, |a, b| key(a) == key(b), |records| each(records, GridCell::default()))?;
        if heavy.none() {
            self.arrived = arrived.into_memory();
            return Ok(0);
        }
        drop(arrived);
        let scan = |worker: &mut Worker, send: &mut dyn FnMut(&mut Worker, R)| {
            scan(worker, &mut |worker, record| {
                if heavy.has(spread(&record)) {
                    send(worker, record);
                }
            })
        };
        let rows = |record: &R| heavy.rows(spread(record));
        in_tiles(worker, &self.scratch, (rows, fit), scan, (key, doc), each)?;
        Ok(heavy.largest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Pair;

    /// What each worker finds: pairs, how many it compared, and how many records it got of the same key at the most.
    fn pairs(workers: usize, budget: Option<usize>, sharing: u64) -> Vec<(Vec<Pair>, usize, usize)> {
        let work = move |worker: &mut Worker| {
            let (index, peers) = (worker.index(), worker.peers());
            // Every other record has the key of the one before, or 7.
            let record = |i: u64| (if i < sharing { 7 } else { hash::spread(i / 2) }, i);
            let scan = |worker: &mut Worker, each: &mut dyn FnMut(&mut Worker, (u64, u64))| {
                (0..2 * sharing).skip(index).step_by(peers).for_each(|i| each(worker, record(i)));
                Ok::<(), Error>(())
            };
            let (mut pairs, mut compared, mut largest) = (Vec::new(), 0, 0);
            let (key, doc) = (|record: &(u64, u64)| record.0, |record: &(u64, u64)| DocId(record.1));
            let scratch = SpillBudget::new(&std::env::temp_dir(), budget);
            let mut meeting = KeyedJoin::new(Skew::default(), &scratch);
            let each = |records: &mut [(u64, u64)], place: GridCell| {
                for same in records.chunk_by(|a, b| a.0 == b.0) {
                    largest = largest.max(same.len());
                    for (i, one) in same.iter().enumerate() {
                        let met =
                            same[i + 1..].iter().map(|other| Pair::new(DocId(one.1), DocId(other.1), 0));
                        compared += met.len();
                        pairs.extend(met.filter(|pair| place.holds(pair)));
                    }
                }
            };
            meeting.meet(worker, scan, (key, doc), each).unwrap();
            (pairs, compared, largest)
        };
        let guards = timely::execute(timely::Config::process(workers), work).unwrap();
        guards.join().into_iter().map(Result::unwrap).collect()
    }

    #[test]
    fn records_of_one_key_meet_once_each_and_evenly() {
        const SHARING: u64 = 3_000;
        for (workers, budget) in
            [(1, None), (2, None), (4, None), (8, None), (1, Some(20_000)), (4, Some(20_000))]
        {
            let found = pairs(workers, budget, SHARING);
            let mut pairs: Vec<Pair> = found.iter().flat_map(|(pairs, ..)| pairs.iter().copied()).collect();
            let count = pairs.len() as u64;
            pairs.sort_unstable();
            pairs.dedup();
            assert_eq!((pairs.len() as u64, count), (count, SHARING * (SHARING - 1) / 2 + SHARING / 2));
            let (most, sum) = found
                .iter()
                .fold((0, 0), |(most, sum), &(_, compared, _)| (most.max(compared), sum + compared));
            assert!(most * workers <= 2 * sum, "{most} of {sum} on one of {workers} workers");
            // A quarter of the budget, and by chance a little more.
            let largest = found.iter().map(|found| found.2).max().unwrap();
            assert!(budget.is_none() || largest * 16 <= 20_000 / 4 * 3 / 2, "{largest}");
        }
    }
}
