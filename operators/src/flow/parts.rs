//! Candidate pairs in parts, so that of each the features of its documents can be looked at together.

use std::collections::HashSet;

use timely::worker::Worker;

use super::owner;
use super::shuffle::SortingShuffle;
use crate::merge::Cursor;
use crate::record::{DocId, Pair, Record};
use crate::scratch::FRAME_BYTES;
use crate::{Error, Runs, Scratch, Sorted, Spool, hash};

/// A worker has so many at the most.
const MOST_PARTS: usize = 64;
/// Of a pair that waits: by itself, and with each of its documents.
const PAIR_BYTES: usize = 3 * size_of::<Pair>();
/// Of a document with pairs that wait, without its features.
const DOC_BYTES: usize = 256;
/// So many holders' budgets are for the features of a portion, and one more for its pairs.
const PORTION_HOLDERS: usize = 3;

/// A pair: its later document, the earlier one, the distance.
type ByLater = ((u64, u64), u64);

/// The pairs that this worker decides, in parts, with the features of their documents on disk.
///
/// A part is chosen by the first document that the later one of a pair is a candidate with. Of documents that are all
/// alike this is one, so they are in one part; else the features of a document are in several. A part that does not fit
/// into memory is looked at a portion of its pairs at a time.
pub(super) struct Parts {
    pairs: Cursor<(u64, Pair)>,
    /// Of each part, by its number on this worker.
    features: Vec<OfPart>,
    /// Of one holder, in bytes.
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
        Ok(Parts { pairs, features: features.collect(), budget, peers })
    }

    /// Keeps the features of a document for a part of this worker.
    pub fn push(&mut self, part: u64, doc: DocId, features: &[u64]) {
        let of_part = &mut self.features[(part / self.peers) as usize];
        of_part.spool.push(doc, features);
        of_part.docs += 1;
        of_part.numbers += features.len();
    }

    /// The next pairs that fit into memory with the features of their documents, if those are not longer than others of
    /// their part; and these features.
    pub fn next_portion(&mut self) -> Result<Option<(Vec<Pair>, &Spool)>, Error> {
        let Some((part, _)) = self.pairs.peek()? else { return Ok(None) };
        let of_part = &self.features[(part / self.peers) as usize];
        let doc_bytes = of_part.numbers * u64::BYTES / of_part.docs.max(1);
        let most_pairs = (self.budget / PAIR_BYTES).max(1);
        let most_docs = (PORTION_HOLDERS * self.budget / (DOC_BYTES + doc_bytes)).max(2);
        let (mut pairs, mut docs) = (Vec::new(), HashSet::new());
        while pairs.len() < most_pairs && docs.len() < most_docs {
            let Some((_, pair)) = self.pairs.next_if(|pair| pair.0 == part)? else { break };
            docs.extend([pair.low, pair.high]);
            pairs.push(pair);
        }
        Ok(Some((pairs, &of_part.spool)))
    }
}
