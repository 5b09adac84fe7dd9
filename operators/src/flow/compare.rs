//! Shuffle and reduce: every pair of matching fingerprints, once.

use serde::{Deserialize, Serialize};
use timely::worker::Worker;

use super::owner;
use super::shuffle::{shuffle, shuffle_into};
use super::skew::{Skew, counted, in_tiles};
use crate::hash;
use crate::method::Method;
use crate::record::{Pair, Row};

/// The rows of a value that is too heavy are sent by values of narrower blocks, and those of such by narrower ones still,
/// so many times, before they meet in tiles: each time they are sent several times.
const SPLITS: u32 = 2;

/// The pairs of one worker, and how the rows were spread.
#[derive(Debug, Default)]
pub struct Compared {
    /// Each delivered to the worker that reads its earlier document.
    pub pairs: Vec<Pair>,
    /// For each block.
    pub loads: Vec<BlockLoad>,
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

/// Finds all matching pairs among the rows of all workers, block by block. Values of very many rows, as `skew` says,
/// are spread.
///
/// Memory: a copy of this worker's share of the rows for the block at hand (of heavy values several), what the method's
/// join needs, and the pairs.
pub fn compare<M: Method>(
    worker: &mut Worker,
    method: &mut M,
    rows: Vec<Row<M::Fingerprint>>,
    skew: Skew,
) -> Compared {
    let mut join = Join { method, skew, arrived: Vec::new(), load: BlockLoad::default(), pairs: Vec::new() };
    let mut loads = Vec::new();
    for block in join.method.blocks() {
        join.block(worker, &block, &rows, SPLITS);
        loads.push(std::mem::take(&mut join.load));
    }
    let pairs = join.pairs;
    drop((rows, join.arrived));
    Compared { pairs: shuffle(worker, "Pair", pairs, |pair: &Pair| owner(pair.low)), loads }
}

struct Join<'a, M: Method> {
    method: &'a mut M,
    skew: Skew,
    /// A buffer.
    arrived: Vec<Row<M::Fingerprint>>,
    load: BlockLoad,
    pairs: Vec<Pair>,
}

impl<M: Method> Join<'_, M> {
    /// Finds the pairs that belong to a block, which may be split so many times.
    fn block(&mut self, worker: &mut Worker, block: &M::Block, rows: &[Row<M::Fingerprint>], splits: u32) {
        // Values differ in few bits, and the engine routes by the low ones: spread them first.
        let of_row = block.clone();
        let key = move |row: &Row<M::Fingerprint>| hash::spread(M::value(&of_row, &row.fingerprint));
        let heavy = self.skew.heavy(worker, rows.iter().map(&key));
        let light = rows.iter().filter(|row| heavy.none() || !heavy.has(key(row))).copied();
        shuffle_into(worker, "Block", light, key.clone(), &mut self.arrived);
        self.load.add(load(&self.arrived, &key));
        self.load.largest_bucket = self.load.largest_bucket.max(heavy.largest);
        self.load.compared +=
            self.method.compare(block, &mut self.arrived, &mut |pair| self.pairs.push(pair));
        if heavy.none() {
            return;
        }
        let rows: Vec<_> = rows.iter().filter(|row| heavy.has(key(row))).copied().collect();
        match self.method.split(block).filter(|_| splits > 0) {
            Some(blocks) => blocks.iter().for_each(|block| self.block(worker, block, &rows, splits - 1)),
            None => in_tiles(
                worker,
                rows,
                key,
                |row| row.doc,
                |rows, place| {
                    self.load.rows += rows.len() as u64;
                    let mut emit = |pair| self.pairs.extend(Some(pair).filter(|pair| place.holds(pair)));
                    self.load.compared += self.method.compare(block, rows, &mut emit);
                },
            ),
        }
    }
}

impl BlockLoad {
    fn add(&mut self, other: BlockLoad) {
        self.rows += other.rows;
        self.largest_bucket = self.largest_bucket.max(other.largest_bucket);
        self.compared += other.compared;
    }
}

/// What is known of rows before they are compared.
pub(super) fn load<T>(rows: &[T], key: impl Fn(&T) -> u64) -> BlockLoad {
    let counters = counted(rows.iter().map(key));
    BlockLoad {
        rows: rows.len() as u64,
        largest_bucket: counters.into_iter().max().unwrap_or(0),
        ..BlockLoad::default()
    }
}
