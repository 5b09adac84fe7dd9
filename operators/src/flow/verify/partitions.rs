//! Verification beyond memory: divides candidate pairs into many small parts, and decides them part by part with
//! the features of their documents.

use std::ops::Range;

use timely::worker::Worker;

use super::bundles::{FeatureBundles, FeatureSize};
use crate::flow::exchange::shuffle::SortingShuffle;
use crate::flow::reader_of;
use crate::record::{DocId, Pair};
use crate::spill::merge::MergeCursor;
use crate::{Error, ExternalSort, Sorted, SpillBudget, Spool, hash};

/// Number of parts of a worker. Their sizes take 16 bytes each.
const PARTS: usize = 1 << 12;
/// Least and greatest number of ranges that are written at once.
const RANGES: (usize, usize) = (8, 64);
/// Memory of a range that is written, in bytes, if the budget allows so much for each of the least number.
const RANGE_BYTES: usize = 32 << 10;

/// A pair, keyed by its later document: the later one, the earlier one, the distance.
type ByLater = ((u64, u64), u64);

/// The pairs that this worker decides, in parts, with the features of their documents on disk.
///
/// All pairs of one later document are in one part, which is chosen by the hash of the first document that
/// the later one is a candidate with. If documents are all alike, that is the same document for all of them,
/// so they are in one part and their features are written once. Other documents may be in several parts, and
/// their features are then written once for each.
///
/// Features are written by ranges of parts while they arrive. A range that does not fit into memory is
/// divided into narrower ones, as in a Grace hash join, until it fits or is a single part. So features are
/// written once for each division, which are one or two, and each is read once after it. Only the documents
/// of a single part that does not fit are read more often; they meet in [`FeatureBundles`].
///
/// Example with the pairs 1-2, 1-3, 2-3 and 4-5: the later documents 2 and 3 have the first candidate 1, so
/// their three pairs are in the part `hash(1)`; the pair 4-5 is in the part `hash(4)`. If the features of all
/// five documents do not fit into memory, those of 1, 2 and 3 are written to one file and those of 4 and 5
/// to another one.
///
/// Source: Kitsuregawa, Tanaka, Moto-oka, "Application of Hash to Data Base Machine and Its Architecture",
/// New Generation Computing 1, 1983.
pub(crate) struct VerifyPartitions {
    pairs: MergeCursor<(u64, Pair)>,
    /// Features by ranges of parts, which together are all parts of this worker.
    ranges: Vec<PartRange>,
    /// Size of each part, by its number on this worker.
    sizes: Vec<FeatureSize>,
    /// A part and the features of a document, as they are spilled. Used again for each document.
    row: Vec<u64>,
    /// Budget of one holder.
    spill: SpillBudget,
    /// Budget of one holder, in bytes.
    budget: usize,
    peers: u64,
}

/// Documents of some successive parts. The first number of each document is its part on this worker, and its
/// features follow.
struct PartRange {
    parts: Range<usize>,
    rows: Spool<u64>,
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
        let peers = worker.peers() as u64;
        let all = PARTS as u64 * peers;

        let reader_of_later = |pair: &ByLater| reader_of(DocId(pair.0.0));
        let mut by_later = SortingShuffle::new(worker, "Later", reader_of_later, ExternalSort::new(spill));
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
        let count = (2 * budget / RANGE_BYTES).clamp(RANGES.0, RANGES.1);
        let of_range = spill.shared_by(count.div_ceil(2));
        let first = |range: usize| (range * PARTS).div_ceil(count);
        let ranges = (0..count)
            .map(|range| PartRange { parts: first(range)..first(range + 1), rows: Spool::new(&of_range) })
            .collect();
        let sizes = vec![FeatureSize::default(); PARTS];
        Ok(VerifyPartitions { pairs, ranges, sizes, row: Vec::new(), spill: spill.clone(), budget, peers })
    }

    /// Stores the features of a document for a part of this worker.
    pub fn push(&mut self, part: u64, doc: DocId, features: &[u64]) {
        let part = (part / self.peers) as usize;
        self.row.clear();
        self.row.push(part as u64);
        self.row.extend(features);
        let range = part * self.ranges.len() / PARTS;
        self.ranges[range].rows.push(doc, &self.row);
        self.sizes[part] += FeatureSize { docs: 1, numbers: features.len() };
    }

    /// Calls `decide` with every pair, and with the features of its documents if both have arrived.
    pub fn decide(mut self, mut decide: impl FnMut(Pair, Option<[&[u64]; 2]>)) -> Result<(), Error> {
        let mut ranges = std::mem::take(&mut self.ranges);
        ranges.reverse();
        while let Some(range) = ranges.pop() {
            let size = range.size(&self.sizes);
            if range.parts.len() > 1 && size.bytes() > 2 * self.budget {
                let narrower = self.divide(range)?;
                ranges.extend(narrower.into_iter().rev());
                continue;
            }
            let mut bundles = FeatureBundles::new(range.rows, size, (&self.spill, self.budget))?;
            let mut by_cell = ExternalSort::new(&self.spill);
            let last = range.parts.end as u64;
            while let Some((_, pair)) = self.pairs.next_if(|pair| pair.0 / self.peers < last)? {
                by_cell.push((bundles.cell(&pair), pair));
            }
            let mut by_cell = MergeCursor::new(by_cell.finish()?);
            while let Some((_, pair)) = by_cell.next_if(|_| true)? {
                decide(pair, bundles.features(&pair)?);
            }
        }
        Ok(())
    }

    /// Divides the documents of a range by narrower ranges, each of which fits into memory or is a single part,
    /// unless that would be too many ranges. All of them together take half a holder.
    fn divide(&self, range: PartRange) -> Result<Vec<PartRange>, Error> {
        let most = (self.budget / 2 / RANGE_BYTES).clamp(RANGES.0, RANGES.1);
        // Two successive ranges do not fit into one, so there are at most `most` of them.
        let fits = (2 * self.budget).max(2 * range.size(&self.sizes).bytes() / (most - 1));
        let mut narrower = Vec::new();
        let mut start = range.parts.start;
        let of_range = self.spill.shared_by(2 * most);
        while start < range.parts.end {
            let mut size = FeatureSize::default();
            let taken = self.sizes[start..range.parts.end].iter().take_while(|part| {
                size += **part;
                size.bytes() <= fits
            });
            let end = start + taken.count().max(1);
            narrower.push(PartRange { parts: start..end, rows: Spool::new(&of_range) });
            start = end;
        }
        range.rows.scan(|doc, row| {
            let at = narrower.partition_point(|narrow| narrow.parts.end as u64 <= row[0]);
            narrower[at].rows.push(doc, row);
            Ok::<(), Error>(())
        })?;
        Ok(narrower)
    }
}

impl PartRange {
    fn size(&self, sizes: &[FeatureSize]) -> FeatureSize {
        let mut all = FeatureSize::default();
        sizes[self.parts.clone()].iter().for_each(|part| all += *part);
        all
    }
}
