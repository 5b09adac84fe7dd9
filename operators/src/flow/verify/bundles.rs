//! Bundles: divides the documents of a part into portions that fit into memory, so that its pairs are decided
//! bundle by bundle.

use std::collections::HashMap;
use std::ops::AddAssign;

use crate::record::{DocId, Pair, Record};
use crate::{Error, SpillBudget, Spool, hash};

/// Greatest number of files of features of a part.
const MOST_SPOOLS: usize = 64;
/// Least memory of each of these files, in bytes.
const SPOOL_BYTES: usize = 16 << 10;
/// Memory of a document without its features, in bytes.
const DOC_BYTES: usize = 256;

/// Number of documents, and of all their features.
#[derive(Clone, Copy, Default)]
pub(super) struct FeatureSize {
    pub docs: usize,
    pub numbers: usize,
}

impl FeatureSize {
    /// Returns the memory that the documents take with their features, in bytes.
    pub fn bytes(self) -> usize {
        self.numbers * u64::BYTES + self.docs * DOC_BYTES
    }
}

impl AddAssign for FeatureSize {
    fn add_assign(&mut self, other: Self) {
        self.docs += other.docs;
        self.numbers += other.numbers;
    }
}

/// Documents with their features, which may take more than the memory.
///
/// They are joined with their pairs as in a block nested loop join. What fits into two holders is one bundle.
/// Other documents are divided by their hash into
/// bundles, each of the size of one holder's budget if its documents have the mean length. Pairs come sorted
/// by the two bundles of their documents, their *cell*, and two bundles are in memory at a time. With `n`
/// bundles, features are written once and read at most `n / 2 + 2` times, however many pairs there are.
///
/// Example: documents in bundles 0, 1 and 2 have pairs in the cells (0, 0), (0, 1), (0, 2), (1, 1), (1, 2)
/// and (2, 2). Bundle 0 is read once for the first three cells, bundle 1 once for each of the cells in which
/// it meets another bundle, and so on.
pub(crate) struct FeatureBundles {
    spools: Vec<Spool<u64>>,
    count: u64,
    /// Bundles of the documents of the last pair.
    held: [Bundle; 2],
}

/// Documents of a bundle in memory, with their features.
#[derive(Default)]
struct Bundle {
    number: Option<u64>,
    features: HashMap<DocId, Vec<u64>>,
}

impl FeatureBundles {
    /// Divides documents into bundles. `rows`: for each document its part and its features, of this `size` in
    /// all. `spill`, `budget`: the budget of one holder, and the same in bytes. The two bundles in memory take
    /// two more holders.
    pub fn new(
        rows: Spool<u64>,
        size: FeatureSize,
        (spill, budget): (&SpillBudget, usize),
    ) -> Result<Self, Error> {
        let bytes = size.bytes();
        let count = if bytes <= 2 * budget { 1 } else { bytes.div_ceil(budget.max(1)) };
        let most = (budget / SPOOL_BYTES).clamp(1, MOST_SPOOLS);
        let mut bundles =
            FeatureBundles { spools: vec![rows], count: count as u64, held: Default::default() };
        let spools = count.min(most);
        if spools > 1 {
            let of_spool = spill.shared_by(spools);
            let mut divided: Vec<_> = (0..spools).map(|_| Spool::new(&of_spool)).collect();
            bundles.spools[0].scan(|doc, row| {
                divided[bundles.number(doc) as usize % spools].push(doc, row);
                Ok::<(), Error>(())
            })?;
            bundles.spools = divided;
        }
        Ok(bundles)
    }

    fn number(&self, doc: DocId) -> u64 {
        // The part was chosen by the hash of a document, so the bundle is chosen by another hash.
        hash::spread(!doc.0) % self.count
    }

    /// Returns the cell of a pair. Pairs must be given to [`FeatureBundles::features`] in the order of their cells.
    pub fn cell(&self, pair: &Pair) -> u64 {
        let [low, high] = [pair.low, pair.high].map(|doc| self.number(doc));
        low.min(high) * self.count + low.max(high)
    }

    /// Returns the features of a pair's documents, if both have any.
    pub fn features(&mut self, pair: &Pair) -> Result<Option<[&[u64]; 2]>, Error> {
        let cell = self.cell(pair);
        let numbers = [cell / self.count, cell % self.count];
        for (index, number) in numbers.into_iter().enumerate() {
            // A bundle that meets itself is not held twice.
            if self.held[index].number != Some(number) && (index == 0 || numbers[0] != number) {
                self.load(index, number)?;
            }
        }
        let find = |doc: DocId| self.held.iter().find_map(|bundle| bundle.features.get(&doc));
        Ok(find(pair.low).zip(find(pair.high)).map(|(low, high)| [&low[..], &high[..]]))
    }

    fn load(&mut self, index: usize, number: u64) -> Result<(), Error> {
        let Bundle { number: old, mut features } = std::mem::take(&mut self.held[index]);
        debug_assert_ne!(old, Some(number));
        features.clear();
        let spool = &self.spools[number as usize % self.spools.len()];
        spool.scan(|doc, row| {
            if self.number(doc) == number {
                features.insert(doc, row[1..].to_vec());
            }
            Ok::<(), Error>(())
        })?;
        self.held[index] = Bundle { number: Some(number), features };
        Ok(())
    }
}
