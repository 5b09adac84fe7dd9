//! The pairs that rounds have compared so far, and the links of documents that they have found.

use anyhow::{Result, bail};
use operators::flow::FoundMatches;
use operators::{
    DocId, ExternalSort, MergeCursor, Pair, Similarity, Sorted, SpillBudget, Spool, pack_apart, unpack_apart,
};
use timely::worker::Worker;

/// Links that this worker has found: identical documents, and matches of others. Memory: 16 bytes and 40 bytes each, the latter
/// within the budget.
pub(super) struct FoundLinks {
    /// Documents with the first one of those that are identical.
    copies: Vec<(DocId, DocId)>,
    matches: Spool<u64>,
}

impl FoundLinks {
    /// Begins without links.
    pub fn new(spill: &SpillBudget) -> Self {
        FoundLinks { copies: Vec::new(), matches: Spool::new(spill) }
    }

    /// Returns the documents that are identical to another one.
    pub fn copied(&self) -> impl Iterator<Item = DocId> {
        self.copies.iter().flat_map(|&(doc, first)| [doc, first])
    }

    /// Adds a match.
    pub fn add(&mut self, Pair { low, high, distance }: Pair, similarity: Option<Similarity>) {
        self.matches.push(low, &[high.0, pack_apart(distance, similarity)]);
    }

    /// Adds the links of a cluster.
    pub fn extend(&mut self, copies: &[(DocId, DocId)], pairs: &[(Pair, Option<Similarity>)]) {
        self.copies.extend(copies);
        pairs.iter().for_each(|&(pair, similarity)| self.add(pair, similarity));
    }

    /// Adds documents that are identical to another one.
    pub fn add_copies(&mut self, copies: impl Iterator<Item = (DocId, DocId)>) {
        self.copies.extend(copies);
    }

    /// Adds all links to those of all workers.
    pub fn add_to(&self, worker: &mut Worker, all: &mut FoundMatches) -> Result<()> {
        self.copies.iter().for_each(|&(doc, first)| all.add_copy(worker, doc, first));
        self.matches.scan(|low, values| {
            let &[high, apart] = values else { bail!("matches on disk are damaged") };
            let (distance, similarity) = unpack_apart(apart);
            all.add_pair(worker, Pair { low, high: DocId(high), distance }, similarity);
            Ok(())
        })
    }
}

/// Candidates that were compared before, sorted. Memory: 24 bytes each, or the budget.
pub(super) struct AskedPairs {
    asked: Spool<u64>,
    spill: SpillBudget,
}

impl AskedPairs {
    /// Begins without pairs.
    pub fn new(spill: &SpillBudget) -> Self {
        AskedPairs { asked: Spool::new(spill), spill: spill.clone() }
    }

    /// Returns the candidates that were not compared before, and notes them.
    pub fn fresh(&mut self, candidates: Sorted<Pair>) -> Result<Sorted<Pair>> {
        let mut candidates = MergeCursor::new(candidates);
        let before = std::mem::replace(&mut self.asked, Spool::new(&self.spill));
        let mut fresh = ExternalSort::new(&self.spill).once();
        let asked = &mut self.asked;
        let key = |pair: &Pair| (pair.low, pair.high);
        let mut take = |pair: Pair, asked: &mut Spool<u64>| {
            asked.push(pair.low, &[pair.high.0]);
            fresh.push(pair);
        };
        before.scan(|low, highs| -> Result<()> {
            let known = (low, DocId(highs[0]));
            while let Some(pair) = candidates.next_if(|pair| key(pair) < known)? {
                take(pair, asked);
            }
            while candidates.next_if(|pair| key(pair) == known)?.is_some() {}
            asked.push(low, highs);
            Ok(())
        })?;
        while let Some(pair) = candidates.next_if(|_| true)? {
            take(pair, asked);
        }
        asked.check()?;
        Ok(fresh.finish()?)
    }
}
