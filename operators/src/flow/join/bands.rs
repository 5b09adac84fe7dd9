//! The join of MinHash signatures: finds candidate pairs by bands, which are exchanged by their hash.

use timely::worker::Worker;

use super::fingerprints::{BlockLoad, Compared};
use crate::flow::skew::heavy::Skew;
use crate::flow::skew::keyed_join::KeyedJoin;
use crate::record::{DocId, Pair};
use crate::{Error, ExternalSort, SpillBudget};

/// Join of documents that agree on a band of their signatures, band by band.
///
/// For each band, a row (the band's hash and a document) goes to the worker of the hash. Documents that share
/// a hash are candidates. A pair that agrees on several bands is kept once.
///
/// ```text
///     band 0  band 1
/// A   17      92
/// B   17      40      shares band 0 with A: a candidate
/// C   55      40      shares band 1 with B: a candidate
/// A and C share no band and never meet
/// ```
///
/// Memory: 16 bytes for each row of the current band, twice if there are several workers, and 24 bytes for
/// each pair. A document has a row for each kind of its sets. With a budget, rows and pairs get a half each.
pub struct BandJoin {
    scratch: SpillBudget,
    meeting: KeyedJoin<(u64, u64)>,
    pairs: ExternalSort<Pair>,
    loads: Vec<BlockLoad>,
}

impl BandJoin {
    /// Makes a join without bands. Hashes that very many documents share, by the bounds of `skew`, are spread
    /// over the workers.
    pub fn new(skew: Skew, scratch: &SpillBudget) -> Self {
        let scratch = scratch.shared_by(2);
        let (meeting, pairs) = (KeyedJoin::new(skew, &scratch), ExternalSort::new(&scratch).once());
        BandJoin { scratch, meeting, pairs, loads: Vec::new() }
    }

    /// Joins a band. `scan`: gives the hash of the band and the position of each document that this worker
    /// reads, the same each time that it is called. Documents identical to an earlier one must be left out,
    /// since the earlier one stands for them.
    pub fn band<E: From<Error>>(
        &mut self,
        worker: &mut Worker,
        scan: impl FnMut(&mut Worker, &mut dyn FnMut(&mut Worker, (u64, u64))) -> Result<(), E>,
    ) -> Result<(), E> {
        let (key, doc) = (|row: &(u64, u64)| row.0, |row: &(u64, u64)| DocId(row.1));
        let mut load = BlockLoad::default();
        let pairs = &mut self.pairs;
        let spread = self.meeting.meet(worker, scan, (key, doc), |rows, place| {
            load.rows += rows.len() as u64;
            for same in rows.chunk_by(|a, b| a.0 == b.0) {
                load.largest_bucket = load.largest_bucket.max(same.len() as u64);
                load.compared += (same.len() * (same.len() - 1) / 2) as u64;
                for (i, one) in same.iter().enumerate() {
                    let others = same[i + 1..].iter().filter(|other| other.1 != one.1);
                    let met = others.map(|other| Pair::new(DocId(one.1), DocId(other.1), 0));
                    pairs.extend(met.filter(|pair| place.holds(pair)));
                }
            }
        })?;
        load.largest_bucket = load.largest_bucket.max(spread);
        self.loads.push(load);
        Ok(self.pairs.check()?)
    }

    /// Returns all pairs, and the load of each band.
    pub fn finish(self, worker: &mut Worker) -> Result<Compared, Error> {
        drop(self.meeting);
        Compared::new(worker, self.pairs, self.loads, &self.scratch)
    }
}
