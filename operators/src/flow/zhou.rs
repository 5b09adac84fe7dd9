//! The search of `zhou2017`: documents travel from copy to copy of the corpus, until one deletes them.

use timely::worker::Worker;

use super::exchange::shuffle::Shuffle;
use super::exchange::sum::total;
use crate::hash;
use crate::record::Pair;
use crate::search::zhou::Zhou;
use crate::search::zhou::copy_search::{COPIES, Comparisons, Sizes, WordRow};
use crate::search::zhou::retrieval::Retrieval;
use crate::search::{KeyCounters, PassLoad};
use crate::sets::similarity::Similarity;

/// Number of documents of a round of sending.
const ROUND: usize = 1 << 12;

/// Searches documents copy by copy (see [`Retrieval`]). Memory: the words of all documents, 8 bytes each; a
/// document is on one worker at a time.
pub struct Retrieve {
    method: Zhou,
    first_copy: Shuffle<WordRow, Vec<WordRow>>,
}

/// Result of the search on one worker.
#[derive(Debug, Default)]
pub struct Retrieved {
    /// Each deleted document, paired with the earlier one that it is a duplicate of.
    pub pairs: Vec<(Pair, Similarity)>,
    /// Numbers of comparisons in all copies.
    pub comparisons: Comparisons,
    /// Load of each copy.
    pub loads: Vec<PassLoad>,
}

impl Retrieve {
    /// Makes a search without documents.
    pub fn new(worker: &mut Worker, method: Zhou) -> Self {
        let first_copy = to_copy(worker, method.retrieval, 0);
        Retrieve { method, first_copy }
    }

    /// Sends a document to the first copy.
    pub fn add(&mut self, row: WordRow) {
        self.first_copy.send(row);
    }

    /// Ends a round of adding.
    pub fn round(&mut self, worker: &mut Worker) {
        self.first_copy.round(worker);
    }

    /// Waits for all workers, and searches the copies one after the other.
    pub fn finish(self, worker: &mut Worker) -> Retrieved {
        let Retrieve { method, first_copy } = self;
        let mut found = Retrieved::default();
        let mut rows = first_copy.finish(worker);
        let original = total(worker, rows.len());
        for copy in 0..COPIES {
            if copy > 0 {
                let mut next = to_copy(worker, method.retrieval, copy);
                for (sent, row) in rows.into_iter().enumerate() {
                    next.send(row);
                    if sent % ROUND == ROUND - 1 {
                        next.round(worker);
                    }
                }
                rows = next.finish(worker);
            }
            let keys = rows.iter().map(|row| method.retrieval.key(copy, row.fingerprint).into());
            let largest_bucket = KeyCounters::largest_of(keys);
            found.loads.push(PassLoad { records: rows.len() as u64, largest_bucket, compared: 0 });
            let sizes = Sizes { copy: total(worker, rows.len()), original };
            found.comparisons = found.comparisons
                + method.retrieval.search(copy, sizes, &mut rows, |kept, row| {
                    let pair = method.duplicates(kept, row);
                    found.pairs.extend(pair);
                    pair.is_some()
                });
        }
        found
    }
}

/// Opens the shuffle of a copy.
fn to_copy(worker: &mut Worker, retrieval: Retrieval, copy: usize) -> Shuffle<WordRow, Vec<WordRow>> {
    Shuffle::new(worker, "Copy", move |row: &WordRow| key(retrieval, copy, row.fingerprint))
}

/// Returns the worker where the rows that one search needs meet, modulo the number of workers.
fn key(retrieval: Retrieval, copy: usize, fingerprint: u32) -> u64 {
    hash::spread(retrieval.key(copy, fingerprint).into())
}
