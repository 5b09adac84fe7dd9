//! The search of `zhou2017`: documents travel from copy to copy of the corpus, until one deletes them.

use timely::worker::Worker;

use super::exchange::shuffle::{Shuffle, shuffle};
use super::exchange::sum::total;
use crate::hash;
use crate::record::Pair;
use crate::search::PassLoad;
use crate::search::zhou::Zhou;
use crate::search::zhou::copy_search::{BucketSize, COPIES, Comparisons, CopySearch, RowExchange, WordRow};
use crate::sets::similarity::Similarity;

/// Number of documents of a round of sending.
const ROUND: usize = 1 << 12;

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

/// Searches documents copy by copy ([`Retrieval`](crate::search::zhou::retrieval::Retrieval)). `rows`: those that this worker has
/// read. All workers must call it.
///
/// Memory: the words of all documents, 8 bytes each; a document is on one worker at a time.
pub fn retrieve(worker: &mut Worker, method: &Zhou, mut rows: Vec<WordRow>) -> Retrieved {
    let mut found = Retrieved::default();
    let original = total(worker, rows.len());
    for copy in 0..COPIES {
        let pairs = &mut found.pairs;
        let duplicate = |kept: &WordRow, row: &WordRow| {
            let pair = method.duplicates(kept, row);
            pairs.extend(pair);
            pair.is_some()
        };
        let mut search =
            CopySearch::new((method.retrieval, method.splitting), original, &mut *worker, duplicate);
        rows = search.search(copy, rows);
        found.comparisons = found.comparisons + search.comparisons;
        found.loads.push(search.load);
    }
    found
}

impl RowExchange for &mut Worker {
    fn by_group(&mut self, rows: Vec<WordRow>, group: u32) -> Vec<WordRow> {
        let key = move |row: &WordRow| hash::spread((row.fingerprint & group).into());
        let mut sent = Shuffle::<WordRow, Vec<WordRow>>::new(self, "Copy", key);
        for (number, row) in (1..).zip(rows) {
            sent.send(row);
            if number % ROUND == 0 {
                sent.round(self);
            }
        }
        sent.finish(self)
    }

    fn total(&mut self, count: u64) -> u64 {
        total(self, count as usize)
    }

    fn all(&mut self, sizes: Vec<BucketSize>) -> Vec<BucketSize> {
        let peers = self.peers() as u64;
        let to_each = sizes.into_iter().flat_map(|size| (0..peers).map(move |to| (to, size)));
        let all = shuffle(self, "Sizes", to_each, |&(to, _): &(u64, BucketSize)| to);
        all.into_iter().map(|(_, size)| size).collect()
    }
}
