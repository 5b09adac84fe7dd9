//! The join by key: brings records of one key together, on one worker or, if they are too many, in tiles.

use std::mem;

use timely::worker::Worker;

use super::heavy::Skew;
use super::pair_grid::{GridCell, in_tiles};
use crate::flow::exchange::shuffle::SortingShuffle;
use crate::record::{DocId, Record};
use crate::{Error, ExternalSort, SpillBudget, hash};

/// Part of the budget that the records of one key may fill, as a divisor. Comparing them needs more memory.
const KEY_PARTS: usize = 4;
/// Least part of the budget that the records given to the caller at once fill, as a divisor, if there are
/// enough records.
const AT_ONCE_PARTS: usize = 8;

/// Join of records by key, for one set of records after the other.
///
/// Records are exchanged by key and sorted, so that the caller gets all records of a key together. Keys that
/// too many records share are *heavy*: their records meet in tiles on all workers ([`in_tiles`]), and the
/// [`GridCell`] says which pairs belong to a tile, since two records may meet in several.
///
/// ```text
/// worker 0 reads   (3, a) (4, b) (4, c)
/// worker 1 reads   (3, d) (4, e)
/// worker 0 gets    (4, b) (4, c) (4, e)    key 4 modulo 2 workers
/// worker 1 gets    (3, a) (3, d)           key 3 modulo 2 workers
/// if key 4 is heavy, then b, c and e go to the tiles of their pairs, on both workers
/// ```
///
/// Memory: with a budget, that budget, of which the records of one key fill at most a quarter. Without one,
/// the records that arrive and, if there are several workers, the records that this worker sends.
pub(crate) struct KeyedJoin<R> {
    skew: Skew,
    scratch: SpillBudget,
    /// Buffer for the records that arrive, which is used again for the next set of records.
    arrived: Vec<R>,
}

impl<R: Record + Ord> KeyedJoin<R> {
    pub fn new(skew: Skew, scratch: &SpillBudget) -> Self {
        KeyedJoin { skew, scratch: scratch.clone(), arrived: Vec::new() }
    }

    /// Calls `each` with the records of one or several keys that have met, and with the cell that says which
    /// of their pairs belong there. Returns the approximate number of records of the heaviest key, or 0 if no
    /// records meet in tiles.
    ///
    /// `scan`: gives the records of this worker, the same each time that it is called. `key`, `doc`: the key
    /// and the document of a record. Records must be ordered by key first, and the low bits of keys must be
    /// evenly spread, because they choose the worker.
    pub fn meet<E: From<Error>>(
        &mut self,
        worker: &mut Worker,
        mut scan: impl FnMut(&mut Worker, &mut dyn FnMut(&mut Worker, R)) -> Result<(), E>,
        (key, doc): (impl Fn(&R) -> u64 + Copy + 'static, impl Fn(&R) -> DocId),
        mut each: impl FnMut(&mut [R], GridCell),
    ) -> Result<u64, E> {
        // The records are scanned up to three times, so they are held if memory is unlimited.
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
        // A record arrives in a tile with its key and the tile's number, and is then copied without them.
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

    /// Returns the pairs that each worker finds, the number of pairs that it compared, and the greatest
    /// number of records of one key that it got at once.
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
