//! The join of fingerprints: shuffles rows by block, and reduces each block to its matching pairs.

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

/// Number of times that the rows of a heavy value are divided by the values of narrower blocks before they
/// meet in tiles. The number is small because each division sends a row once per narrower block.
const SPLITS: u32 = 2;
/// Number of equal parts of a budget: one for the rows, two for the rows of heavy values (one for each of the
/// [`SPLITS`]), one for the rows that arrived, one for the tiles, two for the buffers with which a method
/// compares rows, and one for the pairs.
const HOLDERS: usize = 8;

/// Result of a join on one worker.
pub struct Compared {
    /// Pairs whose earlier document this worker reads. Each pair is on one worker, once.
    pub pairs: Sorted<Pair>,
    /// Load of this worker for each block or band; one load in all for the join by prefixes.
    pub loads: Vec<BlockLoad>,
}

impl Compared {
    /// Sends each pair to the worker that reads its earlier document.
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

/// Load of one worker for one block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct BlockLoad {
    /// Number of rows that arrived. Rows of heavy values are counted each time that they arrive.
    pub rows: u64,
    /// Approximate largest number of rows that share a value. Rows are counted in 65,536 counters by the hash
    /// of the value.
    pub largest_bucket: u64,
    /// Number of pairs that were compared.
    pub compared: u64,
}

impl BlockLoad {
    /// Measures rows before they are compared.
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

/// Rows of one worker, which are kept until they are compared. Rows can only be added.
///
/// Memory: 24 bytes a row, or 32 with fingerprints of 128 bits; with a budget, an eighth of it.
pub struct RowSpool<F> {
    spool: Spool,
    /// Budget of each of the [`HOLDERS`].
    scratch: SpillBudget,
    fingerprint: PhantomData<F>,
}

impl<F: Record> RowSpool<F> {
    /// Makes a spool without rows. `scratch`: budget for the rows and for comparing them.
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

/// Finds all matching pairs among the rows of all workers, block by block.
///
/// For each block, the rows go to the worker of their value, where [`Method::compare`] reduces them to pairs.
/// With a budget this is done in rounds, each with as many values as have rows that fit. The rows of *heavy*
/// values, which are too many for one worker by the bounds of `skew`, are divided by narrower blocks, and
/// those that are heavy again meet in tiles.
///
/// ```text
/// block 2 of 4, 2 workers    rows      sent to
/// values 0000 to fffe        900,000   the worker of the value
/// value ffff: heavy          100,000   the workers of the values of the narrower blocks of block 2
///   still heavy after two    20,000    tiles on both workers
/// ```
///
/// Memory: a copy of this worker's share of the rows of the current block (several copies of rows of heavy
/// values), the buffers of the method's join, and the pairs.
pub fn compare<M: Method>(
    worker: &mut Worker,
    method: &mut M,
    rows: RowSpool<M::Fingerprint>,
    skew: Skew,
) -> Result<Compared, Error> {
    let scratch = rows.scratch.clone();
    // Rounds differ in size, since a value is in one round as a whole. So the mean round fills half of the
    // memory.
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
    /// Number of rows that may arrive at once; `None` if all may.
    fit: Option<u64>,
    /// Buffer for the rows of a round.
    arrived: Vec<Row<M::Fingerprint>>,
    load: BlockLoad,
    pairs: ExternalSort<Pair>,
}

impl<M: Method> Join<'_, M> {
    /// Finds the pairs that belong to a block. `splits`: number of times that the block may still be split.
    fn block(
        &mut self,
        worker: &mut Worker,
        block: &M::Block,
        rows: &RowSpool<M::Fingerprint>,
        splits: u32,
    ) -> Result<(), Error> {
        // Values may differ in few bits, and the engine routes by the low bits, so values are spread first.
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

/// Returns the round of a key: by its leading bits, because the low bits choose the worker.
fn round_of(key: u64, rounds: u64) -> u64 {
    ((u128::from(key) * u128::from(rounds)) >> 64) as u64
}
