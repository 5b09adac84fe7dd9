//! Candidates by bands of MinHash signatures, exchanged by the hash of the band.

use timely::worker::Worker;

use super::compare::{BlockLoad, Compared};
use super::shuffle::shuffle;
use super::skew::{Skew, meet};
use super::{owner, sort_once};
use crate::record::{DocId, Pair};

/// Pairs of documents that agree on a band, found band by band.
///
/// Memory: 16 bytes for each document of the band at hand, 24 for each pair.
pub struct BandJoin {
    skew: Skew,
    arrived: Vec<(u64, u64)>,
    pairs: Vec<Pair>,
    loads: Vec<BlockLoad>,
}

impl BandJoin {
    /// Bands of very many documents, as `skew` says, are spread.
    pub fn new(skew: Skew) -> Self {
        BandJoin { skew, arrived: Vec::new(), pairs: Vec::new(), loads: Vec::new() }
    }

    /// Joins a band. `rows`: the band's hash and the place of each document that this worker reads; an identical
    /// earlier one stands for others, which must not be among them.
    pub fn band(&mut self, worker: &mut Worker, rows: &[(u64, u64)]) {
        let (key, doc) = (|row: &(u64, u64)| row.0, |row: &(u64, u64)| DocId(row.1));
        let mut load = BlockLoad::default();
        let pairs = &mut self.pairs;
        meet(worker, self.skew, rows.iter().copied(), (key, doc), &mut self.arrived, |rows, place| {
            load.rows += rows.len() as u64;
            rows.sort_unstable();
            for same in rows.chunk_by(|a, b| a.0 == b.0) {
                load.largest_bucket = load.largest_bucket.max(same.len() as u64);
                load.compared += (same.len() * (same.len() - 1) / 2) as u64;
                for (i, one) in same.iter().enumerate() {
                    let others = same[i + 1..].iter().filter(|other| other.1 != one.1);
                    let met = others.map(|other| Pair::new(DocId(one.1), DocId(other.1), 0));
                    pairs.extend(met.filter(|pair| place.holds(pair)));
                }
            }
        });
        self.loads.push(load);
        sort_once(&mut self.pairs);
    }

    /// All pairs, each once, on the worker that reads the earlier document; the loads are of each band.
    pub fn finish(self, worker: &mut Worker) -> Compared {
        let mut pairs = shuffle(worker, "Pair", self.pairs, |pair: &Pair| owner(pair.low));
        sort_once(&mut pairs);
        Compared { pairs, loads: self.loads }
    }
}
