//! Verification: decides candidate pairs by the features of their documents, which travel to the worker where
//! the pair waits.
//!
//! This room uses `exchange`, `sets` and `spill`. The search of `dedup` uses it, and so does the exact join,
//! which lets whole sketches travel in the place of features.

mod bundles;
mod partitions;
pub(crate) mod wanted;

use foldhash::HashMap;
use timely::worker::Worker;

use self::partitions::VerifyPartitions;
use self::wanted::WantedDocs;
use super::exchange::channel::{ROUND_BYTES, round_bytes};
use super::exchange::shuffle::Shuffle;
use crate::record::{DocId, Pair};
use crate::sets::similarity::Similarity;
use crate::spill::memory_plan;
use crate::{Error, ExternalSort, Sorted, SpillBudget};

/// Returns the similarity of two documents with these features, if they match.
pub type Matching = Box<dyn Fn(&[u64], &[u64]) -> Option<Similarity>>;

/// A part, a document, and its features.
type PartFeatures = (u64, u64, Vec<u64>);

/// Compares candidate pairs by the features of their documents.
///
/// Without a budget the pairs stay on their worker, and are decided as features arrive. With a budget they
/// are sent to parts (`partitions.rs`), which are decided once all features have arrived.
///
/// Memory of features that travel: at most nine rounds of each worker, which is 9 MiB, or with a budget one
/// holder's share if that is less.
pub struct Verify {
    shuffle: Shuffle<PartFeatures, Vec<PartFeatures>>,
    arrived: Arrived,
    matching: Matching,
    /// Bytes of features sent in the current round.
    sent: usize,
    /// Bytes of documents read in the current round.
    read: usize,
    round: usize,
}

enum Arrived {
    Decided(Waiting),
    Kept(VerifyPartitions),
}

/// Pairs that wait for features.
///
/// Memory: 48 bytes a pair, some 200 a document with pairs, and the features of a document (8 bytes each)
/// from their arrival until its last pair is decided.
#[derive(Default)]
struct Waiting {
    /// For each document, its pairs until it arrives, and the number of its pairs that are not yet decided.
    pairs: HashMap<DocId, (Vec<Pair>, usize)>,
    features: HashMap<DocId, Vec<u64>>,
    candidates: u64,
    near: Vec<(Pair, Similarity)>,
}

impl Verify {
    /// Starts the verification of `pairs`, each of which is given once, on any worker. Also returns the
    /// documents that must be read again: those whose features are to be sent, and those that are to be `named`.
    pub fn new(
        worker: &mut Worker,
        mut pairs: Sorted<Pair>,
        named: impl Iterator<Item = DocId>,
        matching: Matching,
        spill: &SpillBudget,
    ) -> Result<(Self, WantedDocs), Error> {
        let spill = spill.shared_by(memory_plan::VERIFY);
        let mut wanted = ExternalSort::new(&spill).once();
        let arrived = match spill.budget() {
            None => {
                let mut waiting = Waiting::default();
                let here = worker.index() as u64;
                pairs.each(|pair| {
                    waiting.add(pair);
                    wanted.extend([(pair.low.0, here), (pair.high.0, here)]);
                })?;
                drop(pairs);
                Arrived::Decided(waiting)
            }
            Some(bytes) => Arrived::Kept(VerifyPartitions::new(worker, pairs, &mut wanted, (&spill, bytes))?),
        };
        let round = round_bytes(spill.budget());
        let needs = WantedDocs::exchange(worker, wanted, named, &spill)?;
        let shuffle = Shuffle::new(worker, "Features", |features: &PartFeatures| features.0);
        Ok((Verify { shuffle, arrived, matching, sent: 0, read: 0, round }, needs))
    }

    /// Sends the features of a document to a part that wants them. At the end of a round, lets the engine
    /// work.
    pub fn send(&mut self, worker: &mut Worker, part: u64, doc: DocId, features: &[u64]) {
        self.shuffle.send((part, doc.0, features.to_vec()));
        self.sent += size_of::<PartFeatures>() + size_of_val(features);
        if self.sent >= self.round {
            self.round(worker);
        }
    }

    /// Notes that a document of `bytes` bytes was read, whether its features were sent or not. A round also
    /// ends after a round's bytes of these, so that others need not wait for a worker that has little to
    /// send.
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

    /// Waits for all workers, and decides the pairs that are not decided yet. Gives the pairs that match to
    /// `each`, and returns the number of candidate pairs.
    pub fn finish(
        self,
        worker: &mut Worker,
        mut each: impl FnMut(&mut Worker, Pair, Similarity),
    ) -> Result<u64, Error> {
        let Verify { shuffle, mut arrived, matching, .. } = self;
        shuffle.finish_each(worker, |features| arrived.add(features, &matching));
        let mut candidates = 0;
        match arrived {
            Arrived::Decided(waiting) => {
                candidates = waiting.candidates;
                waiting.near.into_iter().for_each(|(pair, similarity)| each(worker, pair, similarity));
            }
            Arrived::Kept(parts) => parts.decide(|pair, features| {
                candidates += 1;
                if let Some(similarity) = features.and_then(|[low, high]| matching(low, high)) {
                    each(worker, pair, similarity);
                }
            })?,
        }
        Ok(candidates)
    }
}

impl Arrived {
    fn add(&mut self, (part, doc, features): PartFeatures, matching: &Matching) {
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

    /// Decides the pairs of a document with those documents that have arrived. Every document arrives once.
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::record::Record;
    use crate::spill::budget::twins::Twin;

    #[test]
    fn documents_that_are_all_alike_are_read_as_often_as_they_fill_the_memory_and_not_once_for_some_pairs() {
        const DOCS: u64 = 300;
        const NUMBERS: u64 = 1000;
        const HOLDER_BYTES: usize = 256 << 10;
        let twin = Twin::default();
        let read = twin.read.clone();
        let spill = twin.budget(memory_plan::VERIFY * HOLDER_BYTES);
        timely::execute_directly(move |worker| {
            let pairs = (0..DOCS).flat_map(|a| (a + 1..DOCS).map(move |b| Pair::new(DocId(a), DocId(b), 0)));
            let alike: Similarity = "0.5".parse().unwrap();
            let matching: Matching =
                Box::new(move |a, b| (a[0] + 1 == b[0] || b[0] + 1 == a[0]).then_some(alike));
            let pairs = Sorted::InMemory(pairs.collect());
            let (mut verify, mut needs) =
                Verify::new(worker, pairs, [].into_iter(), matching, &spill).unwrap();
            for doc in (0..DOCS).map(DocId) {
                let features: Vec<u64> = (doc.0..doc.0 + NUMBERS).collect();
                for &part in needs.of(doc).unwrap().into_iter().flatten() {
                    verify.send(worker, part, doc, &features);
                }
            }
            let mut near = Vec::new();
            assert_eq!(verify.finish(worker, |_, pair, _| near.push(pair)).unwrap(), DOCS * (DOCS - 1) / 2);
            near.sort_unstable();
            assert!(near.iter().map(|pair| (pair.low.0, pair.high.0)).eq((1..DOCS).map(|b| (b - 1, b))));
        });
        let features_bytes = (DOCS * NUMBERS) as usize * u64::BYTES;
        let times = read.load(Ordering::Relaxed) / features_bytes;
        assert!(times < features_bytes / HOLDER_BYTES, "the features were read {times} times");
    }

    /// Verifies pairs of documents with 128 features each, on one worker. Returns the bytes that were spilled
    /// and those that were read again.
    fn spilled_and_read(pairs: Vec<Pair>, docs: u64, budget: usize) -> (u64, u64) {
        let twin = Twin::default();
        let count = pairs.len() as u64;
        let read = twin.read.clone();
        let spill = twin.budget(budget);
        let spilled = spill.clone();
        timely::execute_directly(move |worker| {
            let of_both: Matching = Box::new(|a, b| Some(Similarity::millionths((a[0] ^ b[0]) as u32)));
            let pairs = Sorted::InMemory(pairs);
            let (mut verify, mut needs) =
                Verify::new(worker, pairs, [].into_iter(), of_both, &spill).unwrap();
            for doc in (0..docs).map(DocId) {
                for &part in needs.of(doc).unwrap().into_iter().flatten() {
                    verify.send(worker, part, doc, &[doc.0; 128]);
                }
            }
            let mut near = 0;
            let decided = verify.finish(worker, |_, pair, similarity| {
                assert_eq!(similarity, Similarity::millionths((pair.low.0 ^ pair.high.0) as u32));
                near += 1;
            });
            assert_eq!((decided.unwrap(), near), (count, count));
        });
        (spilled.spilled().bytes, read.load(Ordering::Relaxed) as u64)
    }

    #[test]
    fn in_any_memory_documents_with_few_partners_are_written_few_times_and_read_as_often() {
        const DOCS: u64 = 8_000;
        let partner = |doc: u64, number: u64| crate::hash::spread(4 * doc + number) % doc;
        let pairs: std::collections::BTreeSet<Pair> = (1..DOCS)
            .flat_map(|doc| (0..2).map(move |number| Pair::new(DocId(partner(doc, number)), DocId(doc), 0)))
            .collect();
        let pairs: Vec<Pair> = pairs.into_iter().collect();
        // Each pair wants its earlier document, and each later document is wanted once more.
        let wanted = (pairs.len() as u64 + DOCS) * 128 * u64::BYTES as u64;
        for budget in [128 << 10, 256 << 10, 512 << 10, 2 << 20, 8 << 20, 32 << 20] {
            let (spilled, read) = spilled_and_read(pairs.clone(), DOCS, budget);
            assert!(spilled <= 6 * wanted, "{budget}: {spilled} of {wanted} bytes were written");
            assert!(read <= 2 * spilled, "{budget}: {spilled} bytes were written, and {read} were read");
        }
    }
}
