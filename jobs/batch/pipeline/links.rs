//! Links of documents that a search has found: identical ones and matches; and the pairs that rounds have compared so far.

use anyhow::{Result, bail};
use operators::flow::FoundMatches;
use operators::{
    DocId, ExternalSort, MergeCursor, Pair, Sides, Similarity, Sorted, SpillBudget, Spool, pack_apart,
    unpack_apart,
};
use timely::worker::Worker;

/// Documents of a worker that are identical to an earlier one, each with the first of them, sorted.
#[derive(Clone, Default)]
pub struct IdenticalDocs(pub Vec<(DocId, DocId)>);

impl IdenticalDocs {
    /// Begins to walk over all documents in their order, to tell the first ones from the others.
    pub fn walk(&self) -> FirstsWalk<'_> {
        FirstsWalk { rest: &self.0 }
    }

    /// Returns all documents that are identical to another one.
    pub fn named(&self) -> impl Iterator<Item = DocId> {
        self.0.iter().flat_map(|&(doc, first)| [doc, first])
    }

    /// Leaves out the documents of the reference. The first of those that are identical stands for all of them.
    pub fn of_input(mut self, sides: Sides) -> Self {
        self.0.retain(|copy| !sides.is_reference(copy.0));
        self
    }
}

/// Tells of documents in ascending order whether no earlier one is identical.
pub struct FirstsWalk<'a> {
    /// Documents that are identical to an earlier one, without those that were passed.
    rest: &'a [(DocId, DocId)],
}

impl FirstsWalk<'_> {
    /// Whether no earlier document is identical to this one. Documents must be asked for in ascending order.
    pub fn is_first(&mut self, doc: DocId) -> bool {
        while self.rest.first().is_some_and(|copy| copy.0 < doc) {
            self.rest = &self.rest[1..];
        }
        self.rest.first().is_none_or(|copy| copy.0 != doc)
    }
}

/// Links that this worker has found: identical documents, and matches of others. Memory: 16 bytes for each of
/// the former, without a limit; 32 for each match, or the budget.
pub struct FoundLinks {
    /// Documents with the first one of those that are identical.
    copies: Vec<(DocId, DocId)>,
    matches: Spool<u64>,
}

impl FoundLinks {
    /// Begins without links.
    pub fn new(spill: &SpillBudget) -> Self {
        FoundLinks { copies: Vec::new(), matches: Spool::new(spill) }
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
    pub fn add_copies(&mut self, copies: IdenticalDocs) {
        if self.copies.is_empty() {
            self.copies = copies.0;
        } else {
            self.copies.extend(copies.0);
        }
    }

    /// Calls `each` with the first of identical documents, for each other one, and with both documents of each match.
    pub fn each_doc(&self, mut each: impl FnMut(DocId)) -> Result<()> {
        self.copies.iter().for_each(|copy| each(copy.1));
        self.matches.scan(|low, values| {
            each(low);
            each(DocId(values[0]));
            Ok(())
        })
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

/// Candidates that were compared before, sorted, as their two documents. Memory: 16 bytes each, or the budget.
pub(super) struct AskedPairs {
    asked: Sorted<(DocId, DocId)>,
    spill: SpillBudget,
}

impl AskedPairs {
    /// Begins without pairs.
    pub fn new(spill: &SpillBudget) -> Self {
        AskedPairs { asked: Sorted::InMemory(Vec::new()), spill: spill.clone() }
    }

    /// Returns the candidates that were not compared before, and notes them.
    pub fn fresh(&mut self, candidates: Sorted<Pair>) -> Result<Sorted<Pair>> {
        let before = std::mem::replace(&mut self.asked, Sorted::InMemory(Vec::new()));
        let mut before = MergeCursor::new(before);
        let mut asked = ExternalSort::new(&self.spill).once();
        let fresh = candidates.retain(&self.spill, |pair| {
            let docs = (pair.low, pair.high);
            while let Some(earlier) = before.next_if(|earlier| *earlier < docs)? {
                asked.push(earlier);
            }
            asked.push(docs);
            Ok(before.next_if(|earlier| *earlier == docs)?.is_none())
        })?;
        while let Some(earlier) = before.next_if(|_| true)? {
            asked.push(earlier);
        }
        self.asked = asked.finish()?;
        Ok(fresh)
    }
}
