//! Shuffle and reduce: every pair of matching fingerprints, once.

use std::marker::PhantomData;
use std::mem;

use serde::{Deserialize, Serialize};
use timely::worker::Worker;

use crate::flow::exchange::shuffle::{SortingShuffle, shuffle_into};
use crate::flow::owner;
use crate::flow::skew::heavy::{KeyCounters, Skew};
use crate::flow::skew::pair_grid::in_tiles;
use crate::method::Method;
use crate::record::{Pair, Record, Row};
use crate::{Error, ExternalSort, Sorted, SpillBudget, Spool, hash};

/// The rows of a value that is too heavy are sent by values of narrower blocks, and those of such by narrower ones still,
/// so many times, before they meet in tiles: each time they are sent several times.
const SPLITS: u32 = 2;
/// Of a budget: rows, twice those of heavy values, those that arrived, tiles, two parts for what a method compares them
/// with, and pairs.
const HOLDERS: usize = 8;

/// The pairs of one worker, and how the rows were spread.
pub struct Compared {
    /// Each once, on the worker that reads its earlier document.
    pub pairs: Sorted<Pair>,
    /// For each block.
    pub loads: Vec<BlockLoad>,
}

impl Compared {
    /// Delivers pairs.
    pub(crate) fn new(
        worker: &mut Worker,
        pairs: ExternalSort<Pair>,
        loads: Vec<BlockLoad>,
        scratch: &SpillBudget,
    ) -> Result<Self, Error> {
        let mut pairs = pairs.finish()?;
        let arrived = ExternalSort::new(scratch).once();
        let mut shuffle = SortingShuffle::new(worker, "Pair", |pair: &Pair| owner(pair.low), arrived);
        pairs.each(|pair| shuffle.send(worker, pair))?;
        drop(pairs);
        Ok(Compared { pairs: shuffle.finish(worker)?, loads })
    }
}

/// The rows of one block on one worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct BlockLoad {
    /// How many arrived; those of heavy values several times.
    pub rows: u64,
    /// About how many have the same value at the most: counted in 65,536 counters by the value's hash.
    pub largest_bucket: u64,
    /// How many pairs were compared.
    pub compared: u64,
}

impl BlockLoad {
    /// Of rows before they are compared.
    pub(crate) fn of<T>(rows: &[T], key: impl Fn(&T) -> u64) -> Self {
        let mut counters = KeyCounters::default();
        rows.iter().for_each(|row| counters.add(key(row)));
        BlockLoad { rows: rows.len() as u64, largest_bucket: counters.largest(), compared: 0 }
    }

    fn add(&mut self, other: BlockLoad) {
        self.rows += other.rows;
        self.largest_bucket = self.largest_bucket.max(other.largest_bucket);
        self.compared += other.compared;
    }
}

/// The rows of a worker, which only grow; to be compared.
///
/// Memory: 24 bytes each, 32 for fingerprints of 128 bits; an eighth of a budget.
pub struct RowSpool<F> {
    spool: Spool,
    /// For each holder.
    scratch: SpillBudget,
    fingerprint: PhantomData<F>,
}

impl<F: Record> RowSpool<F> {
    /// No row yet. `scratch`: for them and for comparing them.
    pub fn new(scratch: &SpillBudget) -> Self {
        RowSpool::of_holder(&scratch.shared_by(HOLDERS))
    }

    fn of_holder(scratch: &SpillBudget) -> Self {
        let scratch = scratch.clone();
        RowSpool { spool: Spool::new(&scratch), scratch, fingerprint: PhantomData }
    }

    /// Adds a row.
    pub fn push(&mut self, row: Row<F>) {
        let mut bytes = [0; 16];
        row.fingerprint.write(&mut bytes[..F::BYTES]);
        let numbers = [u64::read(&bytes[..8]), u64::read(&bytes[8..])];
        self.spool.push(row.doc, &numbers[..F::BYTES.div_ceil(u64::BYTES)]);
    }

    fn scan(&self, mut each: impl FnMut(Row<F>)) -> Result<(), Error> {
        let mut bytes = [0; 16];
        self.spool.scan(|doc, numbers| {
            numbers.iter().zip(bytes.chunks_exact_mut(8)).for_each(|(number, to)| number.write(to));
            each(Row { fingerprint: F::read(&bytes[..F::BYTES]), doc });
            Ok(())
        })
    }
}

/// Finds all matching pairs among the rows of all workers, block by block. Values of very many rows, as `skew` says,
/// are spread; if there is a budget, only so many values are compared at a time as have rows that fit.
///
/// Memory: a copy of this worker's share of the rows for the block at hand (of heavy values several), what the method's
/// join needs, and the pairs.
pub fn compare<M: Method>(
    worker: &mut Worker,
    method: &mut M,
    rows: RowSpool<M::Fingerprint>,
    skew: Skew,
) -> Result<Compared, Error> {
    let scratch = rows.scratch.clone();
    // Values are spread over rounds unevenly, so that on average half of the memory is to be filled.
    let fit = scratch.budget().map(|bytes| (bytes / 2 / size_of::<Row<M::Fingerprint>>()) as u64);
    let pairs = ExternalSort::new(&scratch);
    let load = BlockLoad::default();
    let mut join = Join { method, skew, scratch, fit, arrived: Vec::new(), load, pairs };
    let mut loads = Vec::new();
    for block in join.method.blocks() {
        join.block(worker, &block, &rows, SPLITS)?;
        loads.push(mem::take(&mut join.load));
    }
    let Join { pairs, scratch, .. } = join;
    drop(rows);
    Compared::new(worker, pairs, loads, &scratch)
}

struct Join<'a, M: Method> {
    method: &'a mut M,
    skew: Skew,
    scratch: SpillBudget,
    /// So many rows may arrive at once; `None`: all.
    fit: Option<u64>,
    /// A buffer.
    arrived: Vec<Row<M::Fingerprint>>,
    load: BlockLoad,
    pairs: ExternalSort<Pair>,
}

impl<M: Method> Join<'_, M> {
    /// Finds the pairs that belong to a block, which may be split so many times.
    fn block(
        &mut self,
        worker: &mut Worker,
        block: &M::Block,
        rows: &RowSpool<M::Fingerprint>,
        splits: u32,
    ) -> Result<(), Error> {
        // Values differ in few bits, and the engine routes by the low ones: spread them first.
        let of_row = block.clone();
        let key = move |row: &Row<M::Fingerprint>| hash::spread(M::value(&of_row, &row.fingerprint));
        let heavy =
            self.skew.heavy(worker, self.fit, |_, counters| rows.scan(|row| counters.add(key(&row))))?;
        self.load.largest_bucket = self.load.largest_bucket.max(heavy.largest);
        let of_worker = heavy.all.div_ceil(worker.peers() as u64);
        let rounds = self.fit.map_or(1, |fit| of_worker.div_ceil(fit.max(1)).max(1));
        for round in 0..rounds {
            let here = |key: u64| round_of(key, rounds) == round && !heavy.has(key);
            let send = |send: &mut dyn FnMut(_)| {
                rows.scan(|row| {
                    if here(key(&row)) {
                        send(row)
                    }
                })
            };
            let budget = self.scratch.budget();
            shuffle_into(worker, "Block", budget, send, key.clone(), &mut self.arrived)?;
            self.load.add(BlockLoad::of(&self.arrived, &key));
            self.load.compared +=
                self.method.compare(block, &mut self.arrived, &mut |pair| self.pairs.push(pair));
            self.pairs.check()?;
        }
        if heavy.none() {
            return Ok(());
        }
        if let Some(blocks) = self.method.split(block).filter(|_| splits > 0) {
            let mut narrower = RowSpool::of_holder(&rows.scratch);
            rows.scan(|row| {
                if heavy.has(key(&row)) {
                    narrower.push(row)
                }
            })?;
            return blocks.iter().try_for_each(|block| self.block(worker, block, &narrower, splits - 1));
        }
        let scan = |worker: &mut Worker, send: &mut dyn FnMut(&mut Worker, _)| {
            rows.scan(|row| {
                if heavy.has(key(&row)) {
                    send(worker, row)
                }
            })
        };
        let size = (|row: &_| heavy.rows(key(row)), self.fit);
        in_tiles(worker, &self.scratch, size, scan, (&key, |row: &Row<_>| row.doc), |rows, place| {
            self.load.rows += rows.len() as u64;
            let mut emit = |pair| self.pairs.extend(Some(pair).filter(|pair| place.holds(pair)));
            self.load.compared += self.method.compare(block, rows, &mut emit);
        })?;
        self.pairs.check()
    }
}

/// Values go to rounds by the leading bits of their keys: the low ones chose the worker.
fn round_of(key: u64, rounds: u64) -> u64 {
    ((u128::from(key) * u128::from(rounds)) >> 64) as u64
}
