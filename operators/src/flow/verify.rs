//! Verification: candidate pairs, by their features.

use std::collections::HashMap;

use timely::worker::Worker;

use super::owner;
use super::shuffle::{Shuffle, shuffle};
use crate::record::{DocId, Pair};
use crate::similarity::Similarity;

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

/// Compares the pairs at hand as the features of their documents arrive.
pub struct Verify {
    shuffle: Shuffle<Features, Vec<Features>>,
    waiting: Waiting,
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
    pub fn new(worker: &mut Worker, pairs: &[Pair], matching: Matching) -> Self {
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
        Verify { shuffle, waiting }
    }

    /// Sends a document's features to a worker that needs them.
    pub fn send(&mut self, to: u64, doc: DocId, features: &[u64]) {
        self.shuffle.send((to, doc.0, features.to_vec()));
    }

    /// Ends a round of sending, and decides the pairs whose documents are both here.
    pub fn round(&mut self, worker: &mut Worker) {
        self.shuffle.round(worker);
        self.shuffle
            .take()
            .into_iter()
            .for_each(|(_, doc, features)| self.waiting.arrived(DocId(doc), features));
    }

    /// Waits for all workers, and returns the pairs that are near enough.
    pub fn finish(mut self, worker: &mut Worker) -> Vec<(Pair, Similarity)> {
        let last = self.shuffle.finish(worker);
        last.into_iter().for_each(|(_, doc, features)| self.waiting.arrived(DocId(doc), features));
        self.waiting.near
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
