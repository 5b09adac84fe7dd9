//! Clusters: brings each connected component of matching documents to one worker, with all that is needed to
//! decide it and to write it down.
//!
//! ```text
//! FoundMatches     takes matches as they are found     a match goes to the worker that reads its first document,
//!                                                      the components are found (`components.rs`)
//! MatchedDocs      learns the names of documents      a document goes to the worker of its cluster, with its
//!                                                      matches with later documents
//! GatheredClusters gives clusters, batch by batch
//! ```
//!
//! The worker of a cluster is the one that reads its first document, or one that a hash selects. This room uses `exchange` and `spill`; the
//! jobs that decide use it.

mod batch;
mod components;
mod values;

use timely::worker::Worker;

use self::batch::COPY;
pub use self::batch::{ClusterBatch, GatheredClusters};
use self::components::Forest;
pub use self::values::{SortedValues, ValueShuffle};
use super::exchange::channel::ROUND_BYTES;
use super::exchange::shuffle::SortingShuffle;
use super::exchange::sum::total;
use super::reader_of;
use crate::record::Merit;
use crate::record::{DocId, Pair};
use crate::sets::packed_match::pack_apart;
use crate::sets::similarity::Similarity;
use crate::spill::memory_plan;
use crate::spill::merge::MergeCursor;
use crate::{Error, ExternalSort, SpillBudget, hash};

/// A match: the two documents, the earlier one first, and its kind.
type Match = (DocId, (DocId, u64));

/// Matches as they are found, on any worker.
///
/// Memory: 24 bytes a match where it arrives, and 40 for each document of this worker's matches; or the budget.
pub struct FoundMatches {
    forest: Forest,
    on_the_way: SortingShuffle<Match>,
    /// The worker of a cluster, modulo the number of workers, by the first document of the cluster.
    home: fn(DocId) -> u64,
    spill: SpillBudget,
}

impl FoundMatches {
    /// Opens the exchange. All workers must do this at the same place in their order of shuffles. `spill`: the
    /// budget for all that follows, up to the decisions.
    pub fn new(worker: &mut Worker, spill: &SpillBudget) -> Self {
        let spill = spill.shared_by(memory_plan::CLUSTERS);
        let on_the_way = SortingShuffle::new(
            worker,
            "Matches",
            |found: &Match| reader_of(found.0),
            ExternalSort::new(&spill),
        );
        FoundMatches { forest: Forest::new(&spill), on_the_way, home: reader_of, spill }
    }

    /// Spreads the clusters over all workers by a hash of their first documents. Without it, a cluster goes to the worker that reads its
    /// first document, and most of these documents are in the first splits.
    pub fn spread(self) -> Self {
        FoundMatches { home: |first| hash::spread(first.0), ..self }
    }

    /// Adds a document that is identical to an earlier one, with the first of all identical ones.
    pub fn add_copy(&mut self, worker: &mut Worker, doc: DocId, first: DocId) {
        self.add(worker, (first, (doc, COPY)));
    }

    /// Adds a pair of first documents that match.
    pub fn add_pair(&mut self, worker: &mut Worker, pair: Pair, similarity: Option<Similarity>) {
        self.add(worker, (pair.low, (pair.high, pack_apart(pair.distance, similarity))));
    }

    fn add(&mut self, worker: &mut Worker, found: Match) {
        self.forest.join(found.0, found.1.0);
        self.on_the_way.send(worker, found);
    }

    /// Waits for the matches of all workers, and finds their connected components.
    ///
    /// # Errors
    /// [`Error::Spill`], [`Error::DiskFull`] and [`Error::SpillLost`].
    pub fn finish(self, worker: &mut Worker) -> Result<MatchedDocs, Error> {
        let FoundMatches { forest, on_the_way, home, spill } = self;
        let matches = MergeCursor::new(on_the_way.finish(worker)?);
        let clusters = MergeCursor::new(forest.components(worker, &spill)?);
        let docs = ValueShuffle::new(worker, "ClusterDocs", home, &spill);
        Ok(MatchedDocs { clusters, matches, docs, read_bytes: 0, value: Vec::new(), missing: 0, spill })
    }
}

/// The documents of this worker that match another one. They must be asked for and named in the order of the
/// corpus. Calls fail where spilled records cannot be read back ([`Error::SpillLost`]).
///
/// Memory: 16 bytes a document and 24 a match, or the budget.
pub struct MatchedDocs {
    clusters: MergeCursor<(DocId, DocId)>,
    matches: MergeCursor<Match>,
    docs: ValueShuffle,
    /// Bytes of documents read in the current round.
    read_bytes: usize,
    /// Buffer for the value of a document.
    value: Vec<u8>,
    /// Number of documents that match another one, but were not named.
    missing: usize,
    spill: SpillBudget,
}

impl MatchedDocs {
    /// Returns the next document of the split that matches another one and is not yet named.
    pub fn next_of(&mut self, split: u32) -> Result<Option<DocId>, Error> {
        self.skip_to(DocId::new(split, 0))?;
        Ok(self.clusters.peek()?.map(|next| next.0).filter(|doc| doc.split() == split))
    }

    /// Names a document by its id, and says its merit. Nothing is done if the document matches no other one.
    pub fn name(&mut self, worker: &mut Worker, doc: DocId, id: &str, merit: Merit) -> Result<(), Error> {
        self.skip_to(doc)?;
        let Some((_, cluster)) = self.clusters.next_if(|next| next.0 == doc)? else { return Ok(()) };
        batch::encode(merit, id, &mut self.value);
        while let Some((_, (high, kind))) = self.matches.next_if(|found| found.0 == doc)? {
            batch::encode_match(doc, high, kind, &mut self.value);
        }
        self.docs.send(worker, (cluster, doc), &self.value);
        Ok(())
    }

    /// Notes that a document of `bytes` bytes was read. After a MiB of them a round ends, so that others need
    /// not wait for a worker that has little to send.
    pub fn note_read(&mut self, worker: &mut Worker, bytes: usize) {
        self.read_bytes += bytes;
        if self.read_bytes >= ROUND_BYTES {
            self.read_bytes = 0;
            self.docs.round(worker);
        }
    }

    fn skip_to(&mut self, doc: DocId) -> Result<(), Error> {
        while self.clusters.next_if(|next| next.0 < doc)?.is_some() {
            self.missing += 1;
        }
        while self.matches.next_if(|found| found.0 < doc)?.is_some() {}
        Ok(())
    }

    /// Waits until all workers have named all documents, and returns the clusters of this worker.
    ///
    /// # Errors
    /// [`Error::DocsMissing`] on every worker if any worker has not named one of its documents; those of spilled
    /// records.
    pub fn finish(mut self, worker: &mut Worker) -> Result<GatheredClusters, Error> {
        self.skip_to(DocId(u64::MAX))?;
        let docs = self.docs.finish(worker)?;
        // A worker that fails before it comes here keeps the others waiting, and they never see half a cluster.
        if total(worker, self.missing) > 0 {
            return Err(Error::DocsMissing);
        }
        let decisions = ValueShuffle::new(worker, "Decisions", reader_of, &self.spill);
        Ok(GatheredClusters::new(docs, decisions))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::decide::find;
    use crate::record::Priority;
    use crate::spill::budget::twins::Twin;

    /// Number of splits of the corpora of these tests.
    const SPLITS: u64 = 5;

    /// Returns document number `number` of a corpus of `docs` documents.
    fn doc(number: u64, docs: u64) -> DocId {
        let of_split = docs.div_ceil(SPLITS);
        DocId::new((number / of_split) as u32, number % of_split)
    }

    /// Returns the merit of a document of these corpora.
    fn merit(doc: DocId) -> Merit {
        Merit { chars: doc.0 + 7, priority: Priority(hash::spread(doc.0)) }
    }

    /// A cluster with the documents and the matches that came to its worker.
    type Gathered = (DocId, Vec<(DocId, String)>, Vec<(DocId, DocId)>);

    /// Gathers the clusters of these matches, which are found on any worker. Every third one is a copy. Sends
    /// the first document of its cluster to each document as its decision, and checks that it arrives.
    fn gathered(docs: u64, edges: &[(u64, u64)], workers: usize, budget: Option<usize>) -> Vec<Gathered> {
        let spill = Twin::default().budget(budget);
        let edges: Arc<[(u64, u64)]> = edges.into();
        let guards = timely::execute(timely::Config::process(workers), move |worker| {
            let mut found = FoundMatches::new(worker, &spill);
            for (number, &(a, b)) in (0_u64..).zip(edges.iter()) {
                if hash::spread(number) as usize % worker.peers() != worker.index() {
                    continue;
                }
                let pair = Pair::new(doc(a, docs), doc(b, docs), number as u32);
                match number % 3 {
                    0 => found.add_copy(worker, pair.high, pair.low),
                    _ => found.add_pair(worker, pair, None),
                }
            }
            let mut matched = found.finish(worker).unwrap();
            for doc in (0..docs).map(|number| doc(number, docs)) {
                if doc.split() as usize % worker.peers() == worker.index() {
                    matched.name(worker, doc, &format!("文{}", doc.0), merit(doc)).unwrap();
                    matched.note_read(worker, 100_000);
                }
            }
            let clusters = matched.finish(worker).unwrap();
            let mut all: Vec<Gathered> = Vec::new();
            let mut decisions = clusters
                .decide(worker, |batch, send| {
                    let mut docs = batch.docs();
                    for (copies, pairs) in batch.clusters() {
                        let copies = copies.iter().map(|&(doc, first)| (first, doc));
                        let matches: Vec<_> =
                            copies.chain(pairs.iter().map(|(pair, _)| (pair.low, pair.high))).collect();
                        let mut of_cluster: Vec<DocId> = matches.iter().flat_map(|m| [m.0, m.1]).collect();
                        of_cluster.sort_unstable();
                        of_cluster.dedup();
                        docs.retain(|doc| of_cluster.binary_search(doc).is_err());
                        of_cluster.iter().for_each(|&doc| assert_eq!(batch.merit(doc), merit(doc)));
                        of_cluster.iter().for_each(|&doc| send(doc, &of_cluster[0].0.to_le_bytes()));
                        let named = of_cluster.iter().map(|&doc| (doc, batch.id(doc).to_owned())).collect();
                        all.push((of_cluster[0], named, matches));
                    }
                    assert_eq!(docs, [], "documents without a match");
                    Ok::<(), Error>(())
                })
                .unwrap();
            let mut decided = BTreeMap::new();
            while let Some(((doc, _), first)) = decisions.next_value().unwrap() {
                assert_eq!(doc.split() as usize % worker.peers(), worker.index());
                decided.insert(doc, first.to_vec());
            }
            (all, decided)
        });
        let (mut all, mut decided) = (Vec::new(), BTreeMap::new());
        for worker in guards.unwrap().join() {
            let (clusters, decisions) = worker.unwrap();
            all.extend(clusters);
            decided.extend(decisions);
        }
        all.sort();
        for (first, named, _) in &all {
            for (doc, id) in named {
                assert_eq!(*id, format!("文{}", doc.0));
                assert_eq!(decided.remove(doc).unwrap(), first.0.to_le_bytes());
            }
        }
        assert!(decided.is_empty());
        all
    }

    /// Returns the clusters of these matches by a union-find on one thread.
    fn expected(docs: u64, edges: &[(u64, u64)]) -> BTreeMap<DocId, (Vec<DocId>, usize)> {
        let mut parent: Vec<u32> = (0..docs as u32).collect();
        for &(a, b) in edges {
            let (a, b) = (find(&mut parent, a as u32), find(&mut parent, b as u32));
            parent[a.max(b) as usize] = a.min(b);
        }
        let mut clusters = BTreeMap::<DocId, (Vec<DocId>, usize)>::new();
        for number in 0..docs {
            let first = find(&mut parent, number as u32);
            clusters.entry(doc(first.into(), docs)).or_default().0.push(doc(number, docs));
        }
        for &(a, _) in edges {
            let first = find(&mut parent, a as u32);
            clusters.entry(doc(first.into(), docs)).or_default().1 += 1;
        }
        clusters.retain(|_, (docs, _)| docs.len() > 1);
        clusters
    }

    fn check(docs: u64, edges: &[(u64, u64)], workers: usize, budget: Option<usize>) {
        let expected = expected(docs, edges);
        let gathered = gathered(docs, edges, workers, budget);
        assert_eq!(gathered.len(), expected.len());
        for (first, named, matches) in gathered {
            let (docs, count) = &expected[&first];
            assert!(named.iter().map(|(doc, _)| doc).eq(docs));
            assert_eq!(matches.len(), *count);
        }
    }

    #[test]
    fn a_document_that_is_not_found_again_fails_every_worker() {
        let guards = timely::execute(timely::Config::process(2), |worker| {
            let mut found = FoundMatches::new(worker, &SpillBudget::unused());
            let [first, missing, last] = [0, 1, 3].map(|split| DocId::new(split, 7));
            if worker.index() == 0 {
                found.add_pair(worker, Pair::new(first, missing, 0), None);
                found.add_pair(worker, Pair::new(missing, last, 0), None);
            }
            let mut matched = found.finish(worker).unwrap();
            for doc in [first, last] {
                if doc.split() as usize % 2 == worker.index() {
                    matched.name(worker, doc, "", Merit::default()).unwrap();
                }
            }
            matched.finish(worker).err()
        });
        let errors = guards.unwrap().join().into_iter().map(|error| error.unwrap());
        assert!(errors.collect::<Vec<_>>().iter().all(|error| matches!(error, Some(Error::DocsMissing))));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn clusters_arrive_whole_on_any_number_of_workers(
            edges in proptest::collection::vec((0_u64..120, 0_u64..120), 0..100),
            workers in 1_usize..5,
            budget in prop_oneof![Just(None), (4_000_usize..20_000).prop_map(Some)],
        ) {
            let edges: Vec<_> = edges.into_iter().filter(|(a, b)| a != b).collect();
            check(120, &edges, workers, budget);
        }
    }

    #[test]
    fn chains_and_stars_of_a_hundred_thousand_documents_are_one_cluster_each() {
        const DOCS: u64 = 100_000;
        // The second chain visits the corpus in a scrambled order.
        let chain: Vec<(u64, u64)> = (1..DOCS).map(|doc| (doc - 1, doc)).collect();
        let mixed: Vec<(u64, u64)> = chain.iter().map(|&(a, b)| (a * 7919 % DOCS, b * 7919 % DOCS)).collect();
        let star: Vec<(u64, u64)> = (0..DOCS).filter(|&doc| doc != 777).map(|doc| (777, doc)).collect();
        for edges in [chain, mixed, star] {
            for (workers, budget) in [(1, None), (4, None), (3, Some(4 << 20))] {
                check(DOCS, &edges, workers, budget);
            }
        }
    }
}
