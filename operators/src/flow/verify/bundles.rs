//! The documents of a part in bundles that fit into memory, so that pairs are met bundle by bundle.

use std::collections::HashMap;

use crate::record::{DocId, Pair, Record};
use crate::{Error, Scratch, Spool, hash};

/// A part has so many files of features at the most.
const MOST_SPOOLS: usize = 64;
/// What each of them takes at least.
const SPOOL_BYTES: usize = 16 << 10;
/// A document in memory, without its features.
const DOC_BYTES: usize = 256;

/// Documents with their features that may take more than the memory.
///
/// They are joined with their pairs as in a block nested loop join: the documents are divided by their hash into bundles, each of
/// one holder's budget if its documents are not longer than others, and pairs come sorted by the bundles of their two
/// documents. With `n` bundles, features are written once and read at most `n / 2 + 2` times, however many pairs there are.
/// Example: documents in bundles 0, 1 and 2 have pairs in the cells (0, 0), (0, 1), (0, 2), (1, 1), (1, 2) and (2, 2). Bundle 0
/// is read once for the first three cells, bundle 1 once for each of the cells that it is in beside another, and so on.
pub(crate) struct Bundles {
    spools: Vec<Spool>,
    count: u64,
    /// The bundles of the last pair's documents.
    held: [Bundle; 2],
}

/// Documents in memory.
#[derive(Default)]
struct Bundle {
    number: Option<u64>,
    features: HashMap<DocId, Vec<u64>>,
}

impl Bundles {
    /// `features`: those of `docs` documents, `numbers` in all. `scratch`: that of one holder, and its budget; two more are for
    /// the two bundles in memory.
    pub fn new(
        features: Spool,
        (docs, numbers): (usize, usize),
        (scratch, budget): (&Scratch, usize),
    ) -> Result<Self, Error> {
        let count = (numbers * u64::BYTES + docs * DOC_BYTES).div_ceil(budget.max(1)).max(1);
        let most = (budget / SPOOL_BYTES).clamp(1, MOST_SPOOLS);
        let mut bundles = Bundles { spools: vec![features], count: count as u64, held: Default::default() };
        let spools = count.min(most);
        if spools > 1 {
            let of_spool = scratch.shared_by(spools);
            let mut divided: Vec<_> = (0..spools).map(|_| Spool::new(&of_spool)).collect();
            bundles.spools[0].scan(|doc, features| {
                divided[bundles.number(doc) as usize % spools].push(doc, features);
                Ok::<(), Error>(())
            })?;
            bundles.spools = divided;
        }
        Ok(bundles)
    }

    fn number(&self, doc: DocId) -> u64 {
        // The part was chosen by the hash of a document's own number.
        hash::spread(!doc.0) % self.count
    }

    /// Where a pair is met: pairs are to be given to [`Bundles::features`] in the order of their cells.
    pub fn cell(&self, pair: &Pair) -> u64 {
        let [low, high] = [pair.low, pair.high].map(|doc| self.number(doc));
        low.min(high) * self.count + low.max(high)
    }

    /// The features of a pair's documents, where both have any.
    pub fn features(&mut self, pair: &Pair) -> Result<Option<[&[u64]; 2]>, Error> {
        let cell = self.cell(pair);
        let numbers = [cell / self.count, cell % self.count];
        for (index, number) in numbers.into_iter().enumerate() {
            // A bundle that is met with itself is not held twice.
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
        spool.scan(|doc, numbers| {
            if self.number(doc) == number {
                features.insert(doc, numbers.to_vec());
            }
            Ok::<(), Error>(())
        })?;
        self.held[index] = Bundle { number: Some(number), features };
        Ok(())
    }
}
