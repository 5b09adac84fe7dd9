//! Candidates by bands of MinHash signatures, exchanged by the hash of the band.

use timely::worker::Worker;

use super::owner;
use super::shuffle::SortingShuffle;
use crate::record::{DocId, Pair};
use crate::{Error, Runs, Scratch, Sorted};

/// Pairs of documents that agree on a band, found band by band.
///
/// Memory: 16 bytes for each document of the band at hand, 24 for each pair, a half of the budget each; and those of
/// one hash at once.
pub struct BandJoin {
    scratch: Scratch,
    /// A buffer.
    arrived: Vec<(u64, u64)>,
    pairs: Runs<Pair>,
}

/// The rows of a band on their way.
pub struct Band<'a> {
    join: &'a mut BandJoin,
    shuffle: SortingShuffle<(u64, u64)>,
}

impl BandJoin {
    /// Of no band yet.
    pub fn new(scratch: &Scratch) -> Self {
        let scratch = scratch.shared_by(2);
        BandJoin { pairs: Runs::new(&scratch).once(), arrived: Vec::new(), scratch }
    }

    /// Begins a band.
    pub fn band(&mut self, worker: &mut Worker) -> Band<'_> {
        let arrived = Runs::new(&self.scratch).reusing(std::mem::take(&mut self.arrived));
        let shuffle = SortingShuffle::new(worker, "Band", |row: &(u64, u64)| row.0, arrived);
        Band { join: self, shuffle }
    }

    /// All pairs, each once, on the worker that reads the earlier document.
    pub fn finish(self, worker: &mut Worker) -> Result<Sorted<Pair>, Error> {
        drop(self.arrived);
        to_owners(worker, self.pairs, &self.scratch)
    }
}

impl Band<'_> {
    /// Adds the band's hash of a document that this worker reads; an identical earlier one stands for others, which
    /// must not be added.
    pub fn add(&mut self, worker: &mut Worker, key: u64, doc: DocId) {
        self.shuffle.send(worker, (key, doc.0));
    }

    /// Waits for all workers, and finds the band's pairs.
    pub fn finish(self, worker: &mut Worker) -> Result<(), Error> {
        let mut arrived = self.shuffle.finish(worker)?;
        each_group(
            &mut arrived,
            |a, b| a.0 == b.0,
            0,
            |rows| {
                for same in rows.chunk_by(|a, b| a.0 == b.0) {
                    for (i, one) in same.iter().enumerate() {
                        let others = same[i + 1..].iter().filter(|other| other.1 != one.1);
                        let pairs = others.map(|other| Pair::new(DocId(one.1), DocId(other.1), 0));
                        self.join.pairs.extend(pairs);
                    }
                }
            },
        )?;
        self.join.arrived = arrived.into_memory();
        self.join.pairs.check()
    }
}

/// Sends pairs to the worker that reads the earlier document, each once.
pub(super) fn to_owners(
    worker: &mut Worker,
    pairs: Runs<Pair>,
    scratch: &Scratch,
) -> Result<Sorted<Pair>, Error> {
    let mut pairs = pairs.finish()?;
    let arrived = Runs::new(scratch).once();
    let mut shuffle = SortingShuffle::new(worker, "Pair", |pair: &Pair| owner(pair.low), arrived);
    let mut chunks = pairs.chunks(|a, b| a == b);
    while let Some(chunk) = chunks.next_chunk()? {
        chunk.records.iter().for_each(|pair| shuffle.send(worker, *pair));
    }
    drop(pairs);
    shuffle.finish(worker)
}

/// Calls `each` with whole groups of records that have the `same` key, at least `least` records at a time if there are so
/// many. What is in pieces is put together.
pub(super) fn each_group<R: crate::Record + Ord>(
    sorted: &mut Sorted<R>,
    same: impl Fn(&R, &R) -> bool,
    least: usize,
    mut each: impl FnMut(&mut [R]),
) -> Result<(), Error> {
    let mut held = Vec::new();
    let mut chunks = sorted.chunks(same);
    while let Some(chunk) = chunks.next_chunk()? {
        if held.is_empty() && chunk.ends && chunk.records.len() >= least {
            each(chunk.records);
            continue;
        }
        held.extend_from_slice(chunk.records);
        if chunk.ends && held.len() >= least {
            each(&mut held);
            held.clear();
        }
    }
    if !held.is_empty() {
        each(&mut held);
    }
    Ok(())
}
