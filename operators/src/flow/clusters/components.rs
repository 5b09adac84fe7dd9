//! Connected components of documents that match, found by all workers together.
//!
//! A *link* leads from a document to an earlier one of its component. At the end each document but the first
//! has one link, and it leads to the first. Two steps alternate until that is so. Each is one exchange, after
//! which the links of a document lie on the worker that reads the document.
//!
//! ```text
//! large star   a document with later and earlier ones links each later one to its earliest instead of itself
//! small star   a document with several earlier ones keeps the link to the earliest, and links each other one to it
//!
//! links 2-1 3-2 4-3 5-4    large star    2-1 3-1 4-2 5-3
//!                          small star    nothing to do
//!                          large star    2-1 3-1 4-1 5-1: that of 4 by 2, that of 5 by 3
//! ```
//!
//! Source: Kiveris, Lattanzi, Mirrokni, Rastogi, Vassilvitskii, "Connected Components in MapReduce and Beyond",
//! SoCC 2014. They prove that some log² n rounds are enough for `n` documents.

use foldhash::HashMap;
use timely::worker::Worker;

use crate::flow::exchange::shuffle::SortingShuffle;
use crate::flow::exchange::sum::total;
use crate::flow::reader_of;
use crate::record::DocId;
use crate::{Error, ExternalSort, Sorted, SpillBudget};

/// A document and an earlier one of its component; in the large star also the other way round.
type Link = (DocId, DocId);

/// Memory of a document in a [`Forest`], in bytes.
const DOC_BYTES: usize = 40;

/// Spanning forest of the matches of one worker (union-find). It saves links, and rounds: if one worker has all
/// matches of a component, its links are final at once.
///
/// Memory: some 40 bytes a document, or the budget. A forest that fills it gives its links away, and begins
/// again.
pub(super) struct Forest {
    /// For each document that is not the first of its tree, an earlier one.
    parent: HashMap<DocId, DocId>,
    links: ExternalSort<Link>,
    /// Number of documents at which the links are given away.
    max_docs: usize,
}

impl Forest {
    pub fn new(spill: &SpillBudget) -> Self {
        let max_docs = spill.budget().map_or(usize::MAX, |bytes| (bytes / DOC_BYTES).max(1));
        Forest { parent: HashMap::default(), links: ExternalSort::new(spill).once(), max_docs }
    }

    /// Adds two documents that match.
    pub fn join(&mut self, a: DocId, b: DocId) {
        let (a, b) = (self.first(a), self.first(b));
        if a == b {
            return;
        }
        self.parent.insert(a.max(b), a.min(b));
        if self.parent.len() >= self.max_docs {
            self.flush_links();
        }
    }

    /// Returns the first document of a tree, and halves the way to it.
    fn first(&mut self, mut doc: DocId) -> DocId {
        while let Some(&parent) = self.parent.get(&doc) {
            let Some(&higher) = self.parent.get(&parent) else { return parent };
            self.parent.insert(doc, higher);
            doc = higher;
        }
        doc
    }

    fn flush_links(&mut self) {
        let docs: Vec<DocId> = self.parent.keys().copied().collect();
        for doc in docs {
            let first = self.first(doc);
            self.links.push((doc, first));
        }
        self.parent.clear();
    }

    /// Joins the forests of all workers. Returns each document of this worker that matches another, with the
    /// first document of its component.
    ///
    /// Cost: each link is exchanged three times in a round. Nearly all components of a corpus take two rounds,
    /// a chain of `n` documents some log2 `n`. Memory: `spill` for each of three sorts at once.
    pub fn components(mut self, worker: &mut Worker, spill: &SpillBudget) -> Result<Sorted<Link>, Error> {
        self.flush_links();
        drop(self.parent);
        let mut links = self.links;
        loop {
            let mut large = link_shuffle(worker, "LargeStar", spill);
            links.finish()?.each(|(doc, earlier)| {
                large.send(worker, (doc, earlier));
                large.send(worker, (earlier, doc));
            })?;
            let mut stars = large.finish(worker)?;
            let mut small = link_shuffle(worker, "SmallStar", spill);
            let mut found = ExternalSort::new(spill);
            let mut unfinished = 0;
            let mut star = Star::default();
            stars.each(|(doc, other)| {
                let (earliest, later) = star.next(doc, other);
                if later {
                    small.send(worker, (other, earliest));
                }
                // The first neighbour of a document comes before all others.
                if star.neighbours == 1 {
                    found.push((doc, earliest));
                }
                unfinished += usize::from(star.neighbours > 1 && earliest != doc);
            })?;
            drop(stars);
            // A worker that waits for the sum would keep others from sending, so all have sent before.
            let small = small.close(worker);
            if total(worker, unfinished) == 0 {
                return found.finish();
            }
            drop(found);
            links = ExternalSort::new(spill).once();
            let mut star = Star::default();
            small.finish()?.each(|(doc, other)| {
                let (earliest, _) = star.next(doc, other);
                links.push((if star.neighbours == 1 { doc } else { other }, earliest));
            })?;
        }
    }
}

/// Opens a shuffle that brings each link once to the worker that reads its first document.
fn link_shuffle(worker: &mut Worker, name: &str, spill: &SpillBudget) -> SortingShuffle<Link> {
    SortingShuffle::new(worker, name, |link: &Link| reader_of(link.0), ExternalSort::new(spill).once())
}

/// State of reading the neighbours of one document after the other, in order.
#[derive(Default)]
struct Star {
    doc: Option<DocId>,
    /// Earliest of the document and its neighbours.
    earliest: DocId,
    /// Number of its neighbours that were read.
    neighbours: usize,
}

impl Star {
    /// Reads the next neighbour. Returns the earliest of the document and its neighbours, and whether the
    /// neighbour comes after the document.
    fn next(&mut self, doc: DocId, other: DocId) -> (DocId, bool) {
        if self.doc != Some(doc) {
            *self = Star { doc: Some(doc), earliest: doc.min(other), neighbours: 0 };
        }
        self.neighbours += 1;
        (self.earliest, other > doc)
    }
}
