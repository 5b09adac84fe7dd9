//! Verification beyond memory: divides candidate pairs into parts, and decides them part by part with the
//! features of their documents.

use timely::worker::Worker;

use super::bundles::FeatureBundles;
use crate::flow::exchange::shuffle::SortingShuffle;
use crate::flow::owner;
use crate::record::{DocId, Pair};
use crate::spill::budget::FRAME_BYTES;
use crate::spill::merge::MergeCursor;
use crate::{Error, ExternalSort, Sorted, SpillBudget, Spool, hash};

/// Greatest number of parts of a worker.
const MOST_PARTS: usize = 64;

/// A pair, keyed by its later document: the later one, the earlier one, the distance.
type ByLater = ((u64, u64), u64);

/// The pairs that this worker decides, in parts, with the features of their documents on disk.
///
/// All pairs of one later document are in one part, which is chosen by the hash of the first document that
/// the later one is a candidate with. If documents are all alike, that is the same document for all of them,
/// so they are in one part and their features are written once. Other documents may be in several parts, and
/// their features are then written once for each. The documents of a part that does not fit into memory meet
/// in [`FeatureBundles`].
///
/// Example with the pairs 1-2, 1-3, 2-3 and 4-5: the later documents 2 and 3 have the first candidate 1, so
/// their three pairs are in the part `hash(1)`; the pair 4-5 is in the part `hash(4)`.
pub(crate) struct VerifyPartitions {
    pairs: MergeCursor<(u64, Pair)>,
    /// Features of each part, by the part's number on this worker.
    features: Vec<OfPart>,
    /// Budget of one holder.
    spill: SpillBudget,
    /// Budget of one holder, in bytes.
    budget: usize,
    peers: u64,
}

struct OfPart {
    spool: Spool<u64>,
    docs: usize,
    numbers: usize,
}

impl VerifyPartitions {
    /// Sends the pairs to the workers that decide them, and adds to `wanted` each document with each part
    /// that wants its features. `spill`, `budget`: the budget of one holder, and the same in bytes. The
    /// pairs take two holders, and half of one more while they travel; the features take two.
    pub fn new(
        worker: &mut Worker,
        mut pairs: Sorted<Pair>,
        wanted: &mut ExternalSort<(u64, u64)>,
        (spill, budget): (&SpillBudget, usize),
    ) -> Result<Self, Error> {
        // The spool of a part holds a frame, and another one once it has written.
        let parts = (budget / (2 * FRAME_BYTES)).clamp(1, MOST_PARTS);
        let peers = worker.peers() as u64;
        let all = parts as u64 * peers;

        let owner_of_later = |pair: &ByLater| owner(DocId(pair.0.0));
        let mut by_later = SortingShuffle::new(worker, "Later", owner_of_later, ExternalSort::new(spill));
        pairs.each(|pair| by_later.send(worker, ((pair.high.0, pair.low.0), pair.distance.into())))?;
        drop(pairs);
        let mut by_later = by_later.finish(worker)?;

        let mut by_part =
            SortingShuffle::new(worker, "Part", |pair: &(u64, Pair)| pair.0, ExternalSort::new(spill));
        let (mut later, mut part) = (None, 0);
        by_later.each(|((high, low), distance)| {
            if later.replace(high) != Some(high) {
                part = hash::spread(low) % all;
            }
            by_part.send(worker, (part, Pair::new(DocId(low), DocId(high), distance as u32)));
            wanted.extend([(low, part), (high, part)]);
        })?;
        drop(by_later);
        let pairs = MergeCursor::new(by_part.finish(worker)?);
        let of_part = spill.shared_by(parts);
        let features = (0..parts).map(|_| OfPart { spool: Spool::new(&of_part), docs: 0, numbers: 0 });
        Ok(VerifyPartitions { pairs, features: features.collect(), spill: spill.clone(), budget, peers })
    }

    /// Stores the features of a document for a part of this worker.
    pub fn push(&mut self, part: u64, doc: DocId, features: &[u64]) {
        let of_part = &mut self.features[(part / self.peers) as usize];
        of_part.spool.push(doc, features);
        of_part.docs += 1;
        of_part.numbers += features.len();
    }

    /// Calls `decide` with every pair, and with the features of its documents if both have arrived.
    pub fn decide(self, mut decide: impl FnMut(Pair, Option<[&[u64]; 2]>)) -> Result<(), Error> {
        let VerifyPartitions { mut pairs, features, spill, budget, peers } = self;
        for (part, OfPart { spool, docs, numbers }) in (0..).zip(features) {
            let mut bundles = FeatureBundles::new(spool, (docs, numbers), (&spill, budget))?;
            let mut by_cell = ExternalSort::new(&spill);
            while let Some((_, pair)) = pairs.next_if(|pair| pair.0 / peers == part)? {
                by_cell.push((bundles.cell(&pair), pair));
            }
            let mut by_cell = MergeCursor::new(by_cell.finish()?);
            while let Some((_, pair)) = by_cell.next_if(|_| true)? {
                decide(pair, bundles.features(&pair)?);
            }
        }
        Ok(())
    }
}
