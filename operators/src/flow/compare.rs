//! Shuffle and reduce: every pair of matching fingerprints, once.

use std::rc::Rc;

use timely::worker::Worker;

use super::owner;
use super::shuffle::{shuffle, shuffle_into};
use crate::hash;
use crate::method::Method;
use crate::record::{Pair, Row};

/// Finds all matching pairs among the rows of all workers, block by block, and delivers each to the worker
/// that reads its earlier document.
///
/// Memory: a copy of this worker's share of the rows for the block at hand, what the method's join needs,
/// and the pairs.
pub fn compare<M: Method>(worker: &mut Worker, method: &mut M, rows: Vec<Row<M::Fingerprint>>) -> Vec<Pair> {
    let mut pairs = Vec::new();
    let mut arrived = Vec::new();
    let keys = Rc::new(method.clone());
    for block in 0..method.blocks() {
        let keys = Rc::clone(&keys);
        // Values differ in few bits, and the engine routes by the low ones: spread them first.
        let key = move |row: &Row<M::Fingerprint>| hash::spread(keys.block(block, &row.fingerprint));
        shuffle_into(worker, "Block", rows.iter().copied(), key, &mut arrived);
        method.compare(block, &mut arrived, &mut |pair| pairs.push(pair));
    }
    drop((rows, arrived));
    shuffle(worker, "Pair", pairs, |pair: &Pair| owner(pair.low))
}
