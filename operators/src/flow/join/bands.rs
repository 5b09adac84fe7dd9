//! Candidates by bands of MinHash signatures, exchanged by the hash of the band.

use timely::worker::Worker;

use super::fingerprints::{BlockLoad, Compared};
use crate::flow::skew::heavy::Skew;
use crate::flow::skew::keyed_join::KeyedJoin;
use crate::record::{DocId, Pair};
use crate::{Error, ExternalSort, SpillBudget};

/// Pairs of documents that agree on a band, found band by band.
///
/// Memory: 16 bytes for each row of the band at hand, one for each kind of set of a document, twice if there are several workers;
/// 24 for each pair. With a budget a half of it each.
pub struct BandJoin {
    scratch: SpillBudget,
    meeting: KeyedJoin<(u64, u64)>,
    pairs: ExternalSort<Pair>,
    loads: Vec<BlockLoad>,
}

impl BandJoin {
    /// Of no band yet. Bands of very many documents, as `skew` says, are spread.
    pub fn new(skew: Skew, scratch: &SpillBudget) -> Self {
        let scratch = scratch.shared_by(2);
        let (meeting, pairs) = (KeyedJoin::new(skew, &scratch), ExternalSort::new(&scratch).once());
        BandJoin { scratch, meeting, pairs, loads: Vec::new() }
    }

    /// Joins a band. `scan`: gives the band's hash and the place of each document that this worker reads, every time the
    /// same; an identical earlier one stands for others, which must not be among them.
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

    /// All pairs; the loads are of each band.
    pub fn finish(self, worker: &mut Worker) -> Result<Compared, Error> {
        drop(self.meeting);
        Compared::new(worker, self.pairs, self.loads, &self.scratch)
    }
}
