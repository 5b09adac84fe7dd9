//! Shuffle and reduce: every pair of matching fingerprints, once.

use serde::{Deserialize, Serialize};
use std::rc::Rc;

use timely::worker::Worker;

use super::owner;
use super::shuffle::{shuffle, shuffle_into};
use crate::hash;
use crate::method::Method;
use crate::record::{Pair, Row};

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
    /// How many.
    pub rows: u64,
    /// About how many have the same value at the most: counted in 65,536 counters by the value's hash.
    pub largest_bucket: u64,
}

/// Finds all matching pairs among the rows of all workers, block by block.
///
/// Memory: a copy of this worker's share of the rows for the block at hand, what the method's join needs,
/// and the pairs.
pub fn compare<M: Method>(worker: &mut Worker, method: &mut M, rows: Vec<Row<M::Fingerprint>>) -> Compared {
    let mut pairs = Vec::new();
    let mut loads = Vec::new();
    let mut arrived = Vec::new();
    let keys = Rc::new(method.clone());
    for block in 0..method.blocks() {
        // Values differ in few bits, and the engine routes by the low ones: spread them first.
        let keys = Rc::clone(&keys);
        let key = move |row: &Row<M::Fingerprint>| hash::spread(keys.block(block, &row.fingerprint));
        shuffle_into(worker, "Block", rows.iter().copied(), key.clone(), &mut arrived);
        loads.push(load(&arrived, key));
        method.compare(block, &mut arrived, &mut |pair| pairs.push(pair));
    }
    drop((rows, arrived));
    Compared { pairs: shuffle(worker, "Pair", pairs, |pair: &Pair| owner(pair.low)), loads }
}

pub(super) fn load<T>(rows: &[T], key: impl Fn(&T) -> u64) -> BlockLoad {
    let mut counters = vec![0; 1 << 16];
    // The low bits chose the worker.
    rows.iter().for_each(|row| counters[(key(row) >> 48) as usize] += 1);
    BlockLoad { rows: rows.len() as u64, largest_bucket: counters.into_iter().max().unwrap_or(0) }
}
