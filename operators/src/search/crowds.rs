//! Crowds: buckets of so many records that not every two of them are compared.
//!
//! A greedy decision needs one pair for each document that goes: with one that stays. A family of `n` near-equal documents has
//! `n² / 2` pairs. So in a crowded bucket each document *asks* only the first ones before it in keep order that may match it.
//! The caller verifies what was asked and decides; then those that stay ask on, twice as many in each round.
//! docs/design/0072 has the rounds and the proof that the same documents stay.

use foldhash::{HashMap, HashSet};

use crate::record::{DocId, Pair};
use crate::sides::Sides;

/// Largest number of records of a bucket of which every two are compared.
const WHOLE: usize = 32;

/// Which pairs of a crowded bucket are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// Every two documents.
    All,
    /// Each document asks so many of those before it that may match it. Nobody asks if that is 0.
    First(usize),
}

/// Place of a document in keep order: the least comes first.
pub type Rank = (u64, DocId);

/// Asks for pairs of crowded buckets, and notes the documents of those in which not all was asked.
///
/// Memory: some 16 bytes for each of these documents, and 40 for each record with a rank that is reduced.
#[derive(Debug)]
pub struct Crowds {
    asks: Asks,
    /// Ranks of the documents that are being reduced, if they have any. Others are in the order of the corpus.
    ranks: HashMap<DocId, Rank>,
    docs: HashSet<DocId>,
}

impl Crowds {
    /// Begins without documents.
    pub fn new(asks: Asks) -> Self {
        Crowds { asks, ranks: HashMap::default(), docs: HashSet::default() }
    }

    /// Whether every two records of a bucket are compared, however many there are.
    pub(crate) fn asks_all(&self) -> bool {
        self.asks == Asks::All
    }

    /// Whether a bucket of so many records is crowded, so that its pairs must be asked for by [`Crowds::ask`].
    pub(super) fn limits(&self, records: usize) -> bool {
        !self.asks_all() && records > WHOLE
    }

    /// Replaces the ranks of the documents that are being reduced.
    pub(super) fn rank(&mut self, ranks: impl Iterator<Item = (DocId, Rank)>) {
        self.ranks.clear();
        self.ranks.extend(ranks);
    }

    /// Emits the pairs of a crowded bucket that are asked for, and notes its documents if some pair was not. Returns the number
    /// of pairs that were compared.
    ///
    /// `doc`: the document of a record. `may_match`: returns the distance of two records unless they cannot match. `emit`:
    /// returns whether the pair belongs here.
    ///
    /// Cost: for each document the pairs up to those that it asks for.
    pub(super) fn ask<R>(
        &mut self,
        sides: Sides,
        records: &mut [R],
        doc: impl Fn(&R) -> DocId,
        may_match: impl Fn(&R, &R) -> Option<u32>,
        mut emit: impl FnMut(Pair) -> bool,
    ) -> u64 {
        let Asks::First(most) = self.asks else { return 0 };
        records.sort_by_cached_key(|record| {
            let of = doc(record);
            (!sides.is_reference(of), self.ranks.get(&of).copied().unwrap_or((0, of)))
        });
        let (mut compared, mut cut) = (0, false);
        for (at, record) in records.iter().enumerate() {
            let mut asked = 0;
            for earlier in &records[..at] {
                if asked == most {
                    cut = true;
                    break;
                }
                let pair = Pair::new(doc(earlier), doc(record), 0);
                if pair.low == pair.high || !sides.compares(&pair) {
                    continue;
                }
                compared += 1;
                if let Some(distance) = may_match(earlier, record) {
                    asked += usize::from(emit(Pair { distance, ..pair }));
                }
            }
        }
        if cut {
            self.docs.extend(records.iter().map(doc));
        }
        compared
    }

    /// Returns the documents of buckets in which some pair was not asked for.
    pub(crate) fn into_docs(self) -> impl Iterator<Item = DocId> {
        self.docs.into_iter()
    }

    /// Returns the number of these documents.
    pub(crate) fn len(&self) -> usize {
        self.docs.len()
    }
}
