//! Candidate pairs in parts, so that of each the features of its documents can be looked at together.

use timely::worker::Worker;

use super::bundles::Bundles;
use crate::flow::exchange::shuffle::SortingShuffle;
use crate::flow::owner;
use crate::record::{DocId, Pair};
use crate::spill::budget::FRAME_BYTES;
use crate::spill::merge::Cursor;
use crate::{Error, Runs, Scratch, Sorted, Spool, hash};

/// A worker has so many at the most.
const MOST_PARTS: usize = 64;

/// A pair: its later document, the earlier one, the distance.
type ByLater = ((u64, u64), u64);

/// The pairs that this worker decides, in parts, with the features of their documents on disk.
///
/// A part is chosen by the first document that the later one of a pair is a candidate with. Of documents that are all
/// alike this is one, so they are in one part; else the features of a document are in several. The documents of a part
/// that does not fit into memory meet in [`Bundles`].
pub(crate) struct Parts {
    pairs: Cursor<(u64, Pair)>,
    /// Of each part, by its number on this worker.
    features: Vec<OfPart>,
    /// Of one holder.
    scratch: Scratch,
    /// The same in bytes.
    budget: usize,
    peers: u64,
}

struct OfPart {
    spool: Spool,
    docs: usize,
    numbers: usize,
}

impl Parts {
    /// Takes the pairs to where they are decided, and adds each part in which a document is wanted to `wanted`.
    /// `scratch`: of one holder, and its budget; pairs take two, on their way half of one more, and features two.
    pub fn new(
        worker: &mut Worker,
        mut pairs: Sorted<Pair>,
        wanted: &mut Runs<(u64, u64)>,
        (scratch, budget): (&Scratch, usize),
    ) -> Result<Self, Error> {
        // Each keeps a frame at hand, and another one once it has written.
        let parts = (budget / (2 * FRAME_BYTES)).clamp(1, MOST_PARTS);
        let peers = worker.peers() as u64;
        let all = parts as u64 * peers;

        let owner_of_later = |pair: &ByLater| owner(DocId(pair.0.0));
        let mut by_later = SortingShuffle::new(worker, "Later", owner_of_later, Runs::new(scratch));
        pairs.each(|pair| by_later.send(worker, ((pair.high.0, pair.low.0), pair.distance.into())))?;
        drop(pairs);
        let mut by_later = by_later.finish(worker)?;

        let mut by_part =
            SortingShuffle::new(worker, "Part", |pair: &(u64, Pair)| pair.0, Runs::new(scratch));
        let (mut later, mut part) = (None, 0);
        by_later.each(|((high, low), distance)| {
            if later.replace(high) != Some(high) {
                part = hash::spread(low) % all;
            }
            by_part.send(worker, (part, Pair::new(DocId(low), DocId(high), distance as u32)));
            wanted.extend([(low, part), (high, part)]);
        })?;
        drop(by_later);
        let pairs = Cursor::new(by_part.finish(worker)?);
        let of_part = scratch.shared_by(parts);
        let features = (0..parts).map(|_| OfPart { spool: Spool::new(&of_part), docs: 0, numbers: 0 });
        Ok(Parts { pairs, features: features.collect(), scratch: scratch.clone(), budget, peers })
    }

    /// Keeps the features of a document for a part of this worker.
    pub fn push(&mut self, part: u64, doc: DocId, features: &[u64]) {
        let of_part = &mut self.features[(part / self.peers) as usize];
        of_part.spool.push(doc, features);
        of_part.docs += 1;
        of_part.numbers += features.len();
    }

    /// Calls `decide` with every pair, and the features of its documents where both have arrived.
    pub fn decide(self, mut decide: impl FnMut(Pair, Option<[&[u64]; 2]>)) -> Result<(), Error> {
        let Parts { mut pairs, features, scratch, budget, peers } = self;
        for (part, OfPart { spool, docs, numbers }) in (0..).zip(features) {
            let mut bundles = Bundles::new(spool, (docs, numbers), (&scratch, budget))?;
            let mut by_cell = Runs::new(&scratch);
            while let Some((_, pair)) = pairs.next_if(|pair| pair.0 / peers == part)? {
                by_cell.push((bundles.cell(&pair), pair));
            }
            let mut by_cell = Cursor::new(by_cell.finish()?);
            while let Some((_, pair)) = by_cell.next_if(|_| true)? {
                decide(pair, bundles.features(&pair)?);
            }
        }
        Ok(())
    }
}
