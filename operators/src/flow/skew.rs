//! Skew: rows that are too many for one worker, because they share a value, are spread over all of them.
//!
//! A counting pass before the exchange finds such values, so that all workers know the same ones. What is done with their
//! rows is the caller's: send them by narrower values, or, where there are none, let them meet in tiles.

use std::collections::BTreeMap;

use timely::worker::Worker;

use super::shuffle::{shuffle, shuffle_into};
use crate::hash;
use crate::record::{DocId, Pair, Record};

/// Rows are counted by so many bits of their keys.
const COUNTER_BITS: u32 = 16;
/// In place of a counter: all rows.
const ALL: u64 = 1 << COUNTER_BITS;
/// A value is looked at when it has so many times the rows of a counter.
const SUSPECT: u64 = 4;
/// So many others a row is compared with, where values are of use: buckets of up to 128 are compared pair by pair.
const COMPARED: u64 = 64;
/// So many tiles there are at the least for each worker: they are not all of one size.
const TILES: u64 = 4;

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
pub(super) struct Heavy {
    /// Whether the rows of a counter are; empty if there are none.
    counters: Vec<bool>,
    /// The rows of the largest.
    pub largest: u64,
}

impl Heavy {
    pub fn none(&self) -> bool {
        self.counters.is_empty()
    }

    /// Whether a row with this key is one of them.
    pub fn has(&self, key: u64) -> bool {
        !self.none() && self.counters[counter(key)]
    }
}

impl Skew {
    /// Counts the rows of all workers by their keys, which must be spread over all bits. Every worker gets the same.
    ///
    /// Cost: each row's key once more, and 512 KB; nothing for one worker.
    pub(super) fn heavy(self, worker: &mut Worker, keys: impl Iterator<Item = u64>) -> Heavy {
        let peers = worker.peers() as u64;
        if peers == 1 {
            return Heavy::default();
        }
        let counters = counted(keys);
        let rows: u64 = counters.iter().sum();
        // Of what is more than the sum of these on all workers, one worker has more than its own.
        let least = self.least_rows / peers + ((SUSPECT * rows) >> COUNTER_BITS);
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
        self.choose(all, sums, peers)
    }

    /// Which of the counters with these sums are heavy, the largest first, as if each value that is left had all its
    /// pairs compared, and a heavy one, once spread, few.
    fn choose(self, all: u64, sums: BTreeMap<u64, u64>, peers: u64) -> Heavy {
        let pairs = |count: u64| u128::from(count) * u128::from(count.saturating_sub(1)) / 2;
        let few = |count: u64| u128::from(count) * u128::from(COMPARED);
        let mut largest_first: Vec<(u64, u64)> = sums.into_iter().map(|(at, count)| (count, at)).collect();
        largest_first.sort_unstable_by(|a, b| b.cmp(a));
        let mut work = few(all);
        largest_first.iter().for_each(|&(count, _)| work = work - few(count) + pairs(count));
        let mut heavy = Heavy::default();
        for (count, at) in largest_first {
            let parts = u128::from(self.share) * u128::from(peers);
            if count <= self.least_rows || pairs(count).saturating_mul(parts) <= work {
                break;
            }
            work = work - pairs(count) + few(count);
            heavy.counters.resize(1 << COUNTER_BITS, false);
            heavy.counters[at as usize] = true;
            heavy.largest = heavy.largest.max(count);
        }
        heavy
    }
}

/// How many keys fall on each counter.
pub(super) fn counted(keys: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut counters = vec![0; 1 << COUNTER_BITS];
    keys.for_each(|key| counters[counter(key)] += 1);
    counters
}

/// The low bits choose the worker.
fn counter(key: u64) -> usize {
    (key >> (64 - COUNTER_BITS)) as usize
}

/// Adds the counts of all workers to the sums of each.
fn add_up(worker: &mut Worker, sums: &mut BTreeMap<u64, u64>, counts: impl Iterator<Item = (u64, u64)>) {
    let peers = worker.peers() as u64;
    let to_each = counts.flat_map(|count| (0..peers).map(move |to| (to, count)));
    for (_, (at, count)) in shuffle(worker, "Skew", to_each, |&(to, _): &(u64, (u64, u64))| to) {
        *sums.entry(at).or_default() += count;
    }
}

/// Documents fall into parts; each two parts meet in a tile, and each part by itself.
#[derive(Clone, Copy, Debug)]
struct Tiles {
    parts: u64,
}

impl Tiles {
    fn of_workers(peers: u64) -> Self {
        let enough = (1..).find(|parts| parts * (parts + 1) / 2 >= TILES * peers);
        Tiles { parts: enough.unwrap_or(1) }
    }

    fn part(self, doc: DocId) -> u64 {
        hash::spread(doc.0) % self.parts
    }

    /// All tiles of a document.
    fn of(self, doc: DocId) -> impl Iterator<Item = u64> {
        let part = self.part(doc);
        (0..self.parts).map(move |other| tile(part, other))
    }

    /// Where a pair is to be found.
    fn of_pair(self, pair: &Pair) -> u64 {
        tile(self.part(pair.low), self.part(pair.high))
    }
}

/// Tiles are numbered from 0 on.
fn tile(part: u64, other: u64) -> u64 {
    let (low, high) = (part.min(other), part.max(other));
    high * (high + 1) / 2 + low
}

/// Where a pair is to be found among records that have met.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place(Option<(Tiles, u64)>);

impl Place {
    /// Whether it is here: of two documents that meet in many tiles in one of them.
    #[inline]
    pub fn holds(self, pair: &Pair) -> bool {
        self.0.is_none_or(|(tiles, tile)| tiles.of_pair(pair) == tile)
    }
}

/// Brings records that share a key together on many workers: calls `each` with the records of a tile of each key that is
/// here, and with which of their pairs are to be found there: every pair is in one tile.
///
/// Every record is sent to about `√8w` of `w` workers, and compared with two of so many parts of the others there.
/// Memory: so many times this worker's share of the records, and 8 bytes for each.
pub(super) fn in_tiles<R: Record>(
    worker: &mut Worker,
    records: impl IntoIterator<Item = R>,
    key: impl Fn(&R) -> u64 + 'static,
    doc: impl Fn(&R) -> DocId,
    mut each: impl FnMut(&mut [R], Place),
) {
    let tiles = Tiles::of_workers(worker.peers() as u64);
    let records = records.into_iter();
    let sent = records.flat_map(|record| tiles.of(doc(&record)).map(move |tile| (tile, record)));
    // The tiles of a key go to one worker after the other.
    let to = move |(tile, record): &(u64, R)| key(record).wrapping_add(*tile);
    let mut arrived = shuffle(worker, "Tile", sent, to);
    arrived.sort_unstable_by_key(|(tile, _)| *tile);
    let mut records = Vec::new();
    for same in arrived.chunk_by(|a, b| a.0 == b.0) {
        records.clear();
        records.extend(same.iter().map(|(_, record)| *record));
        each(&mut records, Place(Some((tiles, same[0].0))));
    }
}

/// Brings records that share a key together, on one worker or, if they are too many, in tiles: calls `each` with records
/// that have met, and with which of their pairs are to be found there. `arrived`: a buffer.
pub(super) fn meet<R: Record>(
    worker: &mut Worker,
    skew: Skew,
    records: impl Iterator<Item = R> + Clone,
    (key, doc): (impl Fn(&R) -> u64 + Clone + 'static, impl Fn(&R) -> DocId),
    arrived: &mut Vec<R>,
    mut each: impl FnMut(&mut [R], Place),
) {
    let heavy = skew.heavy(worker, records.clone().map(|record| hash::spread(key(&record))));
    let is_heavy = |record: &R| !heavy.none() && heavy.has(hash::spread(key(record)));
    let light = records.clone().filter(|record| !is_heavy(record));
    shuffle_into(worker, "Meet", light, key.clone(), arrived);
    each(arrived, Place::default());
    if !heavy.none() {
        in_tiles(worker, records.filter(is_heavy), key.clone(), doc, each);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heavy(all: u64, counts: &[u64], peers: u64) -> usize {
        let sums = (0..).zip(counts.iter().copied()).collect();
        Skew::default().choose(all, sums, peers).counters.into_iter().filter(|&heavy| heavy).count()
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

    #[test]
    fn every_pair_of_parts_has_a_tile_of_its_own() {
        for (peers, parts) in [(2, 4), (4, 6), (8, 8), (1000, 89)] {
            let tiles = Tiles::of_workers(peers);
            assert_eq!(tiles.parts, parts);
            let numbers = (0..parts).flat_map(|high| (0..=high).map(move |low| tile(low, high)));
            assert!(numbers.eq(0..parts * (parts + 1) / 2));
        }
        let tiles = Tiles::of_workers(4);
        let docs = (0..100).map(DocId);
        for (a, b) in docs.clone().flat_map(|a| docs.clone().map(move |b| (a, b))) {
            let common = tiles.of(a).filter(|&tile| tiles.of(b).any(|other| other == tile));
            let pair = Pair::new(a, b, 0);
            assert_eq!(common.filter(|&tile| tile == tiles.of_pair(&pair)).count(), 1);
        }
    }

    #[test]
    fn records_of_one_key_meet_once_each_and_evenly() {
        const SHARING: u64 = 3_000;
        for workers in [1, 2, 4, 8] {
            let work = move |worker: &mut Worker| {
                let (index, peers) = (worker.index(), worker.peers());
                let mine = (0..2 * SHARING).skip(index).step_by(peers);
                // Every other record has the key of the one before, or 7.
                let records = mine.map(|i| (if i < SHARING { 7 } else { hash::spread(i / 2) }, i));
                let (mut pairs, mut compared) = (Vec::new(), 0);
                let (key, doc) = (|record: &(u64, u64)| record.0, |record: &(u64, u64)| DocId(record.1));
                meet(worker, Skew::default(), records, (key, doc), &mut Vec::new(), |records, place| {
                    for (i, one) in records.iter().enumerate() {
                        let others = records[i + 1..].iter().filter(|other| other.0 == one.0);
                        let met: Vec<_> =
                            others.map(|other| Pair::new(DocId(one.1), DocId(other.1), 0)).collect();
                        compared += met.len();
                        pairs.extend(met.into_iter().filter(|pair| place.holds(pair)));
                    }
                });
                (pairs, compared)
            };
            let guards = timely::execute(timely::Config::process(workers), work).unwrap();
            let found: Vec<_> = guards.join().into_iter().map(Result::unwrap).collect();
            let mut pairs: Vec<Pair> = found.iter().flat_map(|(pairs, _)| pairs.iter().copied()).collect();
            let count = pairs.len() as u64;
            pairs.sort_unstable();
            pairs.dedup();
            assert_eq!((pairs.len() as u64, count), (count, SHARING * (SHARING - 1) / 2 + SHARING / 2));
            let (most, sum) =
                found.iter().fold((0, 0), |(most, sum), &(_, compared)| (most.max(compared), sum + compared));
            assert!(most * workers <= 2 * sum, "{most} of {sum} on one of {workers} workers");
        }
    }
}
