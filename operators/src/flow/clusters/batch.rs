//! Clusters that have been gathered, some at a time.

use timely::worker::Worker;

use super::values::{SortedValues, ValueShuffle, put_number, take_number};
use crate::Error;
use crate::decide::{Matches, NearPair};
use crate::record::{DocId, Pair};
use crate::record::{Merit, Priority};
use crate::sets::packed_match::unpack_apart;

/// Number of documents from which on a batch takes no more clusters. A batch of this size stays in the
/// processor's cache.
const BATCH_DOCS: usize = if cfg!(test) { 8 } else { 8 << 10 };

/// Kind of a match of two identical documents. [`pack_apart`] makes the kind of any other match.
pub(super) const COPY: u64 = 0;
/// The clusters of this worker, in the order of their first documents, and the exchange of what is decided.
pub struct GatheredClusters {
    docs: SortedValues,
    decisions: ValueShuffle,
}

impl GatheredClusters {
    pub(super) fn new(docs: SortedValues, decisions: ValueShuffle) -> Self {
        GatheredClusters { docs, decisions }
    }

    /// Calls `each` with batches of whole clusters, until it fails. `each` sends decisions about documents. A
    /// decision goes to the worker that reads the document. Returns the decisions that have come to this
    /// worker, in the order of the corpus.
    ///
    /// The batches are the same for any number of workers, unless clusters are spread. Memory: a batch, which has more than 8,192
    /// documents only if the last cluster is that large.
    pub fn decide<E: From<Error>>(
        self,
        worker: &mut Worker,
        mut each: impl FnMut(&ClusterBatch, &mut dyn FnMut(DocId, &[u8])) -> Result<(), E>,
    ) -> Result<SortedValues, E> {
        let GatheredClusters { mut docs, mut decisions } = self;
        let mut batch = ClusterBatch::default();
        while batch.fill(&mut docs)? {
            each(&batch, &mut |doc, decision| decisions.send(worker, (doc, DocId::default()), decision))?;
            decisions.round(worker);
        }
        drop(docs);
        Ok(decisions.finish(worker)?)
    }
}

/// Some clusters whose first documents are in one split.
#[derive(Debug, Default)]
pub struct ClusterBatch {
    /// Matches, cluster by cluster. In a cluster, copies are sorted by their first document, then by document.
    matches: Matches,
    /// For each cluster the number of its copies and of its pairs.
    clusters: Vec<(usize, usize)>,
    /// All documents. When the batch is full they are sorted by position.
    docs: Vec<ClusterDoc>,
    ids: String,
}

/// A document of a cluster, with its name as a range of all names.
#[derive(Clone, Copy, Debug)]
struct ClusterDoc {
    doc: DocId,
    merit: Merit,
    start: usize,
    end: usize,
}

impl ClusterBatch {
    /// Returns the number of the split that has the first documents of the clusters.
    pub fn split(&self) -> u32 {
        self.docs.first().map_or(0, |first| first.doc.split())
    }

    /// Returns the matches of all clusters. In each cluster, copies are sorted by their first document.
    pub fn matches(&self) -> &Matches {
        &self.matches
    }

    /// Returns the matches of each cluster.
    pub fn clusters(&self) -> impl Iterator<Item = (&[(DocId, DocId)], &[NearPair])> {
        let (mut copies, mut pairs) = (&self.matches.copies[..], &self.matches.pairs[..]);
        self.clusters.iter().map(move |&(of_copies, of_pairs)| {
            let (cluster_copies, cluster_pairs);
            (cluster_copies, copies) = copies.split_at(of_copies);
            (cluster_pairs, pairs) = pairs.split_at(of_pairs);
            (cluster_copies, cluster_pairs)
        })
    }

    /// Returns the same documents with other matches, cluster by cluster.
    pub fn with_matches(&self, clusters: Vec<Matches>) -> Self {
        let mut batch = ClusterBatch { docs: self.docs.clone(), ids: self.ids.clone(), ..Self::default() };
        for Matches { copies, pairs } in clusters {
            batch.clusters.push((copies.len(), pairs.len()));
            batch.matches.copies.extend(copies);
            batch.matches.pairs.extend(pairs);
        }
        batch
    }

    /// Returns the documents that are identical to `first`. `copies`: those of its cluster.
    pub fn copies_of(copies: &[(DocId, DocId)], first: DocId) -> &[(DocId, DocId)] {
        let start = copies.partition_point(|copy| copy.1 < first);
        let end = copies.partition_point(|copy| copy.1 <= first);
        &copies[start..end]
    }

    /// Returns all documents, in the order of the corpus.
    #[cfg(test)]
    pub(super) fn docs(&self) -> Vec<DocId> {
        self.docs.iter().map(|doc| doc.doc).collect()
    }

    /// Returns the id of a document.
    ///
    /// # Panics
    /// When the document is in no cluster of the batch.
    pub fn id(&self, doc: DocId) -> &str {
        let ClusterDoc { start, end, .. } = self.find(doc);
        &self.ids[start..end]
    }

    /// Returns what keep orders compare of a document.
    ///
    /// # Panics
    /// When the document is in no cluster of the batch.
    pub fn merit(&self, doc: DocId) -> Merit {
        self.find(doc).merit
    }

    fn find(&self, doc: DocId) -> ClusterDoc {
        self.docs[self.docs.partition_point(|other| other.doc < doc)]
    }

    /// Fills a batch with the next clusters, and returns whether there are any.
    fn fill(&mut self, docs: &mut SortedValues) -> Result<bool, Error> {
        self.clear();
        while let Some((cluster, _)) = docs.peek()? {
            let other_split = self.docs.first().is_some_and(|first| first.doc.split() != cluster.split());
            if other_split || self.docs.len() >= BATCH_DOCS {
                break;
            }
            let matches = |batch: &Self| (batch.matches.copies.len(), batch.matches.pairs.len());
            let before = matches(self);
            while docs.peek()?.is_some_and(|key| key.0 == cluster)
                && let Some(((_, doc), value)) = docs.next_value()?
            {
                self.decode(doc, value);
            }
            let after = matches(self);
            self.clusters.push((after.0 - before.0, after.1 - before.1));
        }
        self.docs.sort_unstable_by_key(|doc| doc.doc);
        Ok(!self.docs.is_empty())
    }

    fn clear(&mut self) {
        self.matches.copies.clear();
        self.matches.pairs.clear();
        self.clusters.clear();
        self.docs.clear();
        self.ids.clear();
    }

    /// Adds a document by its encoded value.
    fn decode(&mut self, doc: DocId, value: &[u8]) {
        let rest = &mut &value[..];
        let merit = Merit { chars: take_number(rest), priority: Priority(take_number(rest)) };
        let id_bytes = take_number(rest) as usize;
        let (id, mut matches) = rest.split_at(id_bytes.min(rest.len()));
        let start = self.ids.len();
        self.ids.push_str(&String::from_utf8_lossy(id));
        self.docs.push(ClusterDoc { doc, merit, start, end: self.ids.len() });
        while !matches.is_empty() {
            let high = DocId(doc.0 + take_number(&mut matches));
            match take_number(&mut matches) {
                COPY => self.matches.copies.push((high, doc)),
                kind => {
                    let (distance, similarity) = unpack_apart(kind);
                    self.matches.pairs.push((Pair { low: doc, high, distance }, similarity));
                }
            }
        }
    }
}

/// Replaces `to` by the value of a document of a cluster: the length of its text in characters, its priority, the
/// length of its id, and the id. The matches with later documents follow, each by [`encode_match`].
pub(super) fn encode(merit: Merit, id: &str, to: &mut Vec<u8>) {
    to.clear();
    put_number(merit.chars, to);
    put_number(merit.priority.0, to);
    put_number(id.len() as u64, to);
    to.extend(id.as_bytes());
}

/// Adds a match with a later document, `high`, to the value of a document, `low`.
pub(super) fn encode_match(low: DocId, high: DocId, kind: u64, to: &mut Vec<u8>) {
    put_number(high.0 - low.0, to);
    put_number(kind, to);
}
