//! Verification: candidate pairs, by their features.

use std::collections::{HashMap, HashSet};
use std::mem;

use timely::worker::Worker;

use super::owner;
use super::shuffle::{Shuffle, shuffle};
use crate::record::{DocId, Pair};
use crate::similarity::Similarity;
use crate::{Error, Scratch, Sorted};

/// Candidate pairs of all workers, to be verified a portion at a time: with a budget so many that they and the features
/// of their documents fit into it, if those are not longer than others; else all.
pub struct Portions {
    pairs: Sorted<Pair>,
    /// Those before `pairs`.
    next: Vec<Pair>,
    most: Option<Most>,
    begun: bool,
}

/// How many a portion has.
#[derive(Clone, Copy)]
struct Most {
    pairs: usize,
    docs: usize,
}

/// Of a pair that waits: in a portion, and with each of its documents.
const PAIR_BYTES: usize = 3 * size_of::<Pair>();
/// Of a document with pairs that wait, or of what is needed of it, without its features.
const DOC_BYTES: usize = 128;

impl Portions {
    /// `pairs`: each once, on the worker that reads its earlier document. `doc_bytes`: what the features of a document
    /// take in the mean. What is on its way takes an eighth of the budget.
    pub fn new(pairs: Sorted<Pair>, scratch: &Scratch, doc_bytes: usize) -> Self {
        let most = scratch.budget().map(|bytes| Most {
            pairs: (bytes / 8 / PAIR_BYTES).max(1),
            docs: (bytes / 2 / (DOC_BYTES + doc_bytes)).max(2),
        });
        let (pairs, next) = match pairs {
            Sorted::InMemory(pairs) => (Sorted::InMemory(Vec::new()), pairs),
            spilled => (spilled, Vec::new()),
        };
        Portions { pairs, next, most, begun: false }
    }

    /// The next portion, `None` when no worker has any more. The first one, and those of other workers, may be empty.
    pub fn next(&mut self, worker: &mut Worker) -> Result<Option<Vec<Pair>>, Error> {
        let portion = self.portion()?;
        let to_all = (0..worker.peers() as u64).filter(|_| !portion.is_empty());
        let any = !shuffle(worker, "Portion", to_all, |&to: &u64| to).is_empty();
        let first = !mem::replace(&mut self.begun, true);
        Ok((any || first).then_some(portion))
    }

    fn portion(&mut self) -> Result<Vec<Pair>, Error> {
        let mut docs = HashSet::new();
        let mut taken = 0;
        loop {
            while let Some((most, pair)) = self.most.zip(self.next.get(taken)) {
                docs.extend([pair.low, pair.high]);
                if taken == most.pairs || docs.len() > most.docs {
                    return Ok(self.next.drain(..taken).collect());
                }
                taken += 1;
            }
            if !self.read()? {
                return Ok(mem::take(&mut self.next));
            }
        }
    }

    /// Whether there were more to be read.
    fn read(&mut self) -> Result<bool, Error> {
        let mut chunks = self.pairs.chunks(|a, b| a == b);
        let chunk = chunks.next_chunk()?;
        Ok(chunk.map(|chunk| self.next.extend_from_slice(chunk.records)).is_some())
    }
}

/// Which of this worker's documents have to be read again, and who waits for their features.
#[derive(Debug, Default)]
pub struct Needs {
    /// A document and the worker that wants its features; `None`: only its id is wanted. Sorted.
    needs: Vec<(DocId, Option<u64>)>,
}

/// In a need on its way: nobody wants the features.
const NOBODY: u64 = u64::MAX;

impl Needs {
    /// Tells every worker which of its documents are in a pair or in a group of identical ones, and, if pairs
    /// are to be verified, that their features are wanted here.
    pub fn exchange(worker: &mut Worker, pairs: &[Pair], copies: &[(DocId, DocId)], verify: bool) -> Self {
        let here = if verify { worker.index() as u64 } else { NOBODY };
        let of_pairs = pairs.iter().flat_map(|pair| [(pair.low.0, here), (pair.high.0, here)]);
        let of_copies = copies.iter().flat_map(|(doc, first)| [(doc.0, NOBODY), (first.0, NOBODY)]);
        let mut wanted: Vec<(u64, u64)> = of_pairs.chain(of_copies).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let mut needs = shuffle(worker, "Need", wanted, |need: &(u64, u64)| owner(DocId(need.0)));
        needs.sort_unstable();
        needs.dedup();
        let to = |to| (to != NOBODY).then_some(to);
        Needs { needs: needs.into_iter().map(|(doc, worker)| (DocId(doc), to(worker))).collect() }
    }

    /// Whether the document is needed at all, and by which workers its features are.
    pub fn of(&self, doc: DocId) -> Option<impl Iterator<Item = u64>> {
        let start = self.needs.partition_point(|need| need.0 < doc);
        let needs = &self.needs[start..];
        let needs = &needs[..needs.partition_point(|need| need.0 == doc)];
        (!needs.is_empty()).then(|| needs.iter().filter_map(|need| need.1))
    }

    /// Whether any document of the split is needed.
    pub fn any_of(&self, split: u32) -> bool {
        let start = self.needs.partition_point(|need| need.0.split() < split);
        self.needs.get(start).is_some_and(|need| need.0.split() == split)
    }
}

/// How alike two documents with these features are, if they match.
pub type Matching = Box<dyn Fn(&[u64], &[u64]) -> Option<Similarity>>;

/// A worker, a document, its features.
type Features = (u64, u64, Vec<u64>);

/// The features that a worker sends in a round, in bytes.
const ROUND_BYTES: usize = 1 << 20;

/// Compares the pairs at hand as the features of their documents arrive.
///
/// On their way are at most nine rounds of each worker: 9 MiB, or with a budget an eighth of it if that is less.
pub struct Verify {
    shuffle: Shuffle<Features, Vec<Features>>,
    waiting: Waiting,
    /// In bytes.
    sent: usize,
    round: usize,
}

/// Pairs that wait for features. Holds a document's features (8 bytes each) from when they arrive until its
/// last pair is decided.
struct Waiting {
    matching: Matching,
    /// For each document, its partners with the distances, and how many of these pairs are not yet decided.
    pairs: HashMap<DocId, (Vec<Pair>, usize)>,
    features: HashMap<DocId, Vec<u64>>,
    near: Vec<(Pair, Similarity)>,
}

impl Verify {
    /// Pairs whose features match will be kept.
    pub fn new(worker: &mut Worker, pairs: &[Pair], matching: Matching, scratch: &Scratch) -> Self {
        let mut of_doc = HashMap::<DocId, (Vec<Pair>, usize)>::new();
        for pair in pairs {
            for doc in [pair.low, pair.high] {
                let (pairs, undecided) = of_doc.entry(doc).or_default();
                pairs.push(*pair);
                *undecided += 1;
            }
        }
        let shuffle = Shuffle::new(worker, "Features", |features: &Features| features.0);
        let waiting = Waiting { matching, pairs: of_doc, features: HashMap::new(), near: Vec::new() };
        let round = scratch.budget().map_or(ROUND_BYTES, |bytes| ROUND_BYTES.min(bytes / 72));
        Verify { shuffle, waiting, sent: 0, round }
    }

    /// Sends a document's features to a worker that needs them. After a round of them lets the engine work, and decides
    /// the pairs whose documents are both here.
    pub fn send(&mut self, worker: &mut Worker, to: u64, doc: DocId, features: &[u64]) {
        self.shuffle.send((to, doc.0, features.to_vec()));
        self.sent += size_of_val(features);
        if self.sent >= self.round {
            self.round(worker);
        }
    }

    /// Ends a round of sending: so that others need not wait for one who has little to send.
    pub fn round(&mut self, worker: &mut Worker) {
        self.sent = 0;
        self.shuffle.round(worker);
        let arrived = self.shuffle.take();
        arrived.into_iter().for_each(|(_, doc, features)| self.waiting.arrived(DocId(doc), features));
    }

    /// Waits for all workers, and returns the pairs that are near enough.
    pub fn finish(self, worker: &mut Worker) -> Vec<(Pair, Similarity)> {
        let Verify { shuffle, mut waiting, .. } = self;
        shuffle.finish_each(worker, |(_, doc, features)| waiting.arrived(DocId(doc), features));
        waiting.near
    }
}

impl Waiting {
    /// Decides the document's pairs with those that are here. Every document arrives once.
    fn arrived(&mut self, doc: DocId, features: Vec<u64>) {
        let Some((pairs, undecided)) = self.pairs.get_mut(&doc) else { return };
        let pairs = std::mem::take(pairs);
        let mut left = *undecided;
        for pair in pairs {
            let other = if pair.low == doc { pair.high } else { pair.low };
            let Some(others) = self.features.get(&other) else { continue };
            if let Some(similarity) = (self.matching)(&features, others) {
                self.near.push((pair, similarity));
            }
            left -= 1;
            self.decided(other);
        }
        self.pairs.insert(doc, (Vec::new(), left));
        if left > 0 {
            self.features.insert(doc, features);
        }
    }

    fn decided(&mut self, doc: DocId) {
        if let Some((_, undecided)) = self.pairs.get_mut(&doc) {
            *undecided -= 1;
            if *undecided == 0 {
                self.features.remove(&doc);
            }
        }
    }
}
