//! Verification: candidate pairs, by their features.

use std::collections::HashMap;

use timely::worker::Worker;

use super::needs::Needs;
use super::parts::Parts;
use super::shuffle::Shuffle;
use super::way::{ROUND_BYTES, round_bytes};
use crate::record::{DocId, Pair};
use crate::similarity::Similarity;
use crate::{Error, Runs, Scratch, Sorted};

/// How alike two documents with these features are, if they match.
pub type Matching = Box<dyn Fn(&[u64], &[u64]) -> Option<Similarity>>;

/// A part, a document, its features.
type Features = (u64, u64, Vec<u64>);

/// Compares candidate pairs by the features of their documents.
///
/// Without a budget pairs stay where they are, and are decided as features arrive. With one they are decided in
/// parts once all features are here. On their way are at most nine rounds of each worker: 9 MiB, or with a budget one
/// holder's part of it if that is less.
pub struct Verify {
    shuffle: Shuffle<Features, Vec<Features>>,
    arrived: Arrived,
    matching: Matching,
    /// In bytes, in this round.
    sent: usize,
    /// The same of the documents that were read.
    read: usize,
    round: usize,
}

enum Arrived {
    Decided(Waiting),
    Kept(Parts),
}

/// Pairs that wait for features. Memory: 48 bytes a pair, some 200 a document with pairs, and its features (8 bytes each)
/// from when they arrive until its last pair is decided.
#[derive(Default)]
struct Waiting {
    /// For each document, its partners with the distances, and how many of these pairs are not yet decided.
    pairs: HashMap<DocId, (Vec<Pair>, usize)>,
    features: HashMap<DocId, Vec<u64>>,
    candidates: u64,
    near: Vec<(Pair, Similarity)>,
}

impl Verify {
    /// Of a budget: pairs in parts, their features in two, a portion of pairs in four, and one for the names that the caller
    /// keeps. Before there are portions, what is wanted and what is on its way take less.
    pub const HOLDERS: usize = 8;

    /// `pairs`: each once, on any worker. Also says whose features are to be sent, and which documents are in a group of
    /// identical ones.
    pub fn new(
        worker: &mut Worker,
        mut pairs: Sorted<Pair>,
        copies: &[(DocId, DocId)],
        matching: Matching,
        scratch: &Scratch,
    ) -> Result<(Self, Needs), Error> {
        let scratch = scratch.shared_by(Verify::HOLDERS);
        let mut wanted = Runs::new(&scratch).once();
        let arrived = match scratch.budget() {
            None => {
                let (mut waiting, here) = (Waiting::default(), worker.index() as u64);
                pairs.each(|pair| {
                    waiting.add(pair);
                    wanted.extend([(pair.low.0, here), (pair.high.0, here)]);
                })?;
                drop(pairs);
                Arrived::Decided(waiting)
            }
            Some(bytes) => Arrived::Kept(Parts::new(worker, pairs, &mut wanted, (&scratch, bytes))?),
        };
        let round = round_bytes(scratch.budget());
        let needs = Needs::exchange(worker, wanted, copies, &scratch)?;
        let shuffle = Shuffle::new(worker, "Features", |features: &Features| features.0);
        Ok((Verify { shuffle, arrived, matching, sent: 0, read: 0, round }, needs))
    }

    /// Sends a document's features to a part that wants them. After a round of them lets the engine work.
    pub fn send(&mut self, worker: &mut Worker, part: u64, doc: DocId, features: &[u64]) {
        self.shuffle.send((part, doc.0, features.to_vec()));
        self.sent += size_of::<Features>() + size_of_val(features);
        if self.sent >= self.round {
            self.round(worker);
        }
    }

    /// Says that a document of so many bytes was read, whether it was sent or not: a round ends after a round's bytes of
    /// them too, so that others need not wait for one who has little to send.
    pub fn read(&mut self, worker: &mut Worker, bytes: usize) {
        self.read += bytes;
        if self.read >= ROUND_BYTES {
            self.round(worker);
        }
    }

    fn round(&mut self, worker: &mut Worker) {
        (self.sent, self.read) = (0, 0);
        self.shuffle.round(worker);
        let arrived = self.shuffle.take();
        arrived.into_iter().for_each(|features| self.arrived.add(features, &self.matching));
    }

    /// Waits for all workers, and decides what is not decided yet. Gives those that match to `each`, and says how many pairs
    /// there were.
    pub fn finish(self, worker: &mut Worker, mut each: impl FnMut(Pair, Similarity)) -> Result<u64, Error> {
        let Verify { shuffle, mut arrived, matching, .. } = self;
        shuffle.finish_each(worker, |features| arrived.add(features, &matching));
        let mut candidates = 0;
        let mut decided = |waiting: Waiting| {
            candidates += waiting.candidates;
            waiting.near.into_iter().for_each(|(pair, similarity)| each(pair, similarity));
        };
        match arrived {
            Arrived::Decided(waiting) => decided(waiting),
            Arrived::Kept(mut parts) => {
                while let Some((pairs, features)) = parts.next_portion()? {
                    let mut waiting = Waiting::default();
                    pairs.into_iter().for_each(|pair| waiting.add(pair));
                    features.scan(|doc, features| {
                        waiting.arrived(doc, features, &matching);
                        Ok::<(), Error>(())
                    })?;
                    decided(waiting);
                }
            }
        }
        Ok(candidates)
    }
}

impl Arrived {
    fn add(&mut self, (part, doc, features): Features, matching: &Matching) {
        match self {
            Arrived::Decided(waiting) => waiting.arrived(DocId(doc), features, matching),
            Arrived::Kept(parts) => parts.push(part, DocId(doc), &features),
        }
    }
}

impl Waiting {
    fn add(&mut self, pair: Pair) {
        self.candidates += 1;
        for doc in [pair.low, pair.high] {
            let (pairs, undecided) = self.pairs.entry(doc).or_default();
            pairs.push(pair);
            *undecided += 1;
        }
    }

    /// Decides the document's pairs with those that are here. Every document arrives once.
    fn arrived(&mut self, doc: DocId, features: impl AsRef<[u64]> + Into<Vec<u64>>, matching: &Matching) {
        let Some((pairs, undecided)) = self.pairs.get_mut(&doc) else { return };
        let pairs = std::mem::take(pairs);
        let mut left = *undecided;
        for pair in pairs {
            let other = if pair.low == doc { pair.high } else { pair.low };
            let Some(others) = self.features.get(&other) else { continue };
            if let Some(similarity) = matching(features.as_ref(), others) {
                self.near.push((pair, similarity));
            }
            left -= 1;
            self.decided(other);
        }
        self.pairs.insert(doc, (Vec::new(), left));
        if left > 0 {
            self.features.insert(doc, features.into());
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
