//! Candidates by bands of MinHash signatures, exchanged by the hash of the band.

use timely::worker::Worker;

use super::compare::{BlockLoad, Compared};
use super::shuffle::shuffle;
use super::skew::{Skew, meet};
use super::{owner, sort_once};
use crate::minhash::MinHash;
use crate::record::{DocId, Pair};
use crate::sets::{Kind, Sets};

/// The bands of the documents of one worker: 8 bytes for each band.
pub struct Bands {
    minhash: MinHash,
    docs: Vec<DocId>,
    keys: Vec<u64>,
}

impl Bands {
    /// Of no document yet.
    pub fn new(minhash: MinHash) -> Self {
        Bands { minhash, docs: Vec::new(), keys: Vec::new() }
    }

    /// Adds a document with its sets. The first of identical ones must be added: it stands for all.
    pub fn add(&mut self, doc: DocId, sets: &Sets) {
        for set in
            [Kind::Short, Kind::Long].map(|kind| sets.of(kind)).into_iter().filter(|set| !set.is_empty())
        {
            self.docs.push(doc);
            self.minhash.bands(set, &mut self.keys);
        }
    }

    /// All pairs of documents that agree on a band, each once, on the worker that reads the earlier one.
    /// Documents in `without`, which is sorted, take no part. Bands of very many documents, as `skew` says, are spread.
    ///
    /// Memory: 16 bytes for each document, 24 for each pair.
    pub fn candidates(self, worker: &mut Worker, without: &[DocId], skew: Skew) -> Compared {
        let bands = self.minhash.bands as usize;
        let mut arrived: Vec<(u64, u64)> = Vec::new();
        let (mut pairs, mut loads) = (Vec::new(), Vec::new());
        for band in 0..bands {
            let rows = self.docs.iter().zip(self.keys.chunks_exact(bands));
            let firsts = rows.filter(|(doc, _)| without.binary_search(doc).is_err());
            let rows = firsts.map(|(doc, keys)| (keys[band], doc.0));
            let (key, doc) = (|row: &(u64, u64)| row.0, |row: &(u64, u64)| DocId(row.1));
            let mut load = BlockLoad::default();
            meet(worker, skew, rows, (key, doc), &mut arrived, |rows, place| {
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
            loads.push(load);
            sort_once(&mut pairs);
        }
        let mut pairs = shuffle(worker, "Pair", pairs, |pair: &Pair| owner(pair.low));
        sort_once(&mut pairs);
        Compared { pairs, loads }
    }
}
