//! Candidates by bands of MinHash signatures, exchanged by the hash of the band.

use timely::worker::Worker;

use super::shuffle::{shuffle, shuffle_into};
use super::{owner, sort_once};
use crate::record::{DocId, Pair};

/// Pairs of documents that agree on a band, found band by band.
///
/// Memory: 16 bytes for each document of the band at hand, 24 for each pair.
#[derive(Default)]
pub struct BandJoin {
    arrived: Vec<(u64, u64)>,
    pairs: Vec<Pair>,
}

impl BandJoin {
    /// Joins a band. `rows`: the band's hash of each document that this worker reads; an identical earlier one
    /// stands for others, which must not be among them.
    pub fn band(&mut self, worker: &mut Worker, rows: impl IntoIterator<Item = (u64, DocId)>) {
        let rows = rows.into_iter().map(|(key, doc)| (key, doc.0));
        shuffle_into(worker, "Band", rows, |row: &(u64, u64)| row.0, &mut self.arrived);
        self.arrived.sort_unstable();
        for same in self.arrived.chunk_by(|a, b| a.0 == b.0) {
            for (i, one) in same.iter().enumerate() {
                let others = same[i + 1..].iter().filter(|other| other.1 != one.1);
                self.pairs.extend(others.map(|other| Pair::new(DocId(one.1), DocId(other.1), 0)));
            }
        }
        sort_once(&mut self.pairs);
    }

    /// All pairs, each once, on the worker that reads the earlier document.
    pub fn finish(self, worker: &mut Worker) -> Vec<Pair> {
        let mut pairs = shuffle(worker, "Pair", self.pairs, |pair: &Pair| owner(pair.low));
        sort_once(&mut pairs);
        pairs
    }
}
