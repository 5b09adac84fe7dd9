//! Pairs as a search finds them, and crowds: buckets with too many records to compare every two of them.
//!
//! A greedy decision needs one pair for each document that goes: with one that stays. A family of `n` near-equal documents has
//! `n² / 2` pairs. So the first time a search meets a crowded bucket it compares nothing there and notes the documents. When
//! it is known where these stand in keep order, each *asks* some of those before it, in rounds (`placed.rs`).
//! docs/design/rounds.md has the rounds and the proof that the same documents stay.

mod leaders;
pub mod met_before;
pub mod place;
pub mod placed;
mod recent_pairs;
mod template_numbers;

use foldhash::{HashMap, HashSet};

use self::place::KeepPlace;
use self::recent_pairs::RecentPairs;
use crate::record::Sides;
use crate::record::{DocId, Pair};
use crate::{Error, ExternalSort, SpillBudget};

/// Largest number of records of a bucket of which every two are compared.
const WHOLE: usize = 32;

/// Which pairs are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// Every two documents.
    All,
    /// Documents without a crowded bucket ask all. Others ask at most [`KeepPlace::most`] of those before them that may match, first
    /// those that are settled, and the nearest by their sketches. In a crowded bucket they ask only settled ones the first two times.
    Nearest,
    /// Each document that goes asks all that stay before it and for which it may go instead.
    Staying,
}

impl Asks {
    /// Returns how many documents one with a crowded bucket may ask.
    pub(crate) fn most(self, place: KeepPlace) -> usize {
        if self == Asks::Nearest { place.most() } else { usize::MAX }
    }
}

/// Pair as it is asked for: the later document; how far the two are apart, as far as it is known; the earlier one.
pub(crate) type Ask = (DocId, (u64, DocId));

/// Returns the pair of an ask.
pub(crate) fn pair_of((asker, (apart, leader)): Ask) -> Pair {
    Pair::new(leader, asker, apart as u32)
}

/// Tells the pairs that belong to the records that are being reduced.
pub(crate) type Belongs = Box<dyn Fn(&Pair) -> bool>;

/// Takes the pairs that a search finds.
///
/// Memory: 24 bytes a pair, or the budget; 32 bytes for each document with a crowded bucket or with a pair of fingerprints.
pub struct PairSink {
    asks: Asks,
    /// Tells which pairs are taken. If there is none, all are.
    belongs: Option<Belongs>,
    pub(crate) pairs: ExternalSort<Ask>,
    recent: RecentPairs,
    pub(crate) crowd: Crowded,
    /// Number of earlier documents that a document has met, where buckets do not tell who is of a crowd.
    met: HashMap<DocId, usize>,
}

/// Documents with the same largest crowded bucket: the number of its records, and its first document. Most documents that match are
/// of one family.
pub(crate) type Family = (u64, DocId);

/// Documents with crowded buckets, or whose fingerprint is near those of very many others, on the worker of the bucket.
#[derive(Default)]
pub(crate) struct Crowded {
    /// Documents with a crowded bucket, with the family of each.
    pub docs: HashMap<DocId, Family>,
    /// Documents that a document of the crowd has met and may not ask, each with a document of the family of
    /// the asker.
    pub passed: HashMap<DocId, DocId>,
    /// Documents that did not ask every earlier document that may match, or for which this is not known.
    pub cut: HashSet<DocId>,
    /// Where buckets do not tell families: documents of the crowd with another one of the same family.
    linked: HashMap<DocId, DocId>,
}

impl Crowded {
    /// Notes that documents have a crowded bucket.
    fn add(&mut self, docs: impl Iterator<Item = DocId>, family: Family) {
        for doc in docs {
            let largest = self.docs.entry(doc).or_insert(family);
            *largest = family.max(*largest);
        }
    }

    /// Notes that a document has met an earlier one that it may not ask.
    fn pass(&mut self, asker: DocId, leader: DocId) {
        let family = self.docs.get(&asker).map_or(asker, |(_, first)| *first);
        self.passed.insert(leader, family);
        self.cut.insert(asker);
    }

    /// Notes that two documents are of one family.
    fn link(&mut self, asker: DocId, leader: DocId) {
        let (one, other) = (self.first_of(asker), self.first_of(leader));
        if one != other {
            self.linked.insert(one.max(other), one.min(other));
        }
    }

    /// Returns the first known document of the family of `doc`.
    pub fn first_of(&mut self, mut doc: DocId) -> DocId {
        while let Some(&above) = self.linked.get(&doc) {
            let Some(&next) = self.linked.get(&above) else { return above };
            self.linked.insert(doc, next);
            doc = next;
        }
        doc
    }
}

impl PairSink {
    /// Begins without pairs. `passes`: number of passes of the search.
    pub fn new(passes: usize, spill: &SpillBudget) -> Self {
        PairSink {
            asks: Asks::All,
            belongs: None,
            pairs: ExternalSort::new(spill).once(),
            recent: RecentPairs::new(spill, passes),
            crowd: Crowded::default(),
            met: HashMap::default(),
        }
    }

    /// Asks for these pairs.
    pub fn asking(self, asks: Asks) -> Self {
        PairSink { asks, ..self }
    }

    /// Returns which pairs are asked for.
    pub(crate) fn asks(&self) -> Asks {
        self.asks
    }

    /// Takes from now on only the pairs that belong to the records that are being reduced; all if there is no function.
    pub(crate) fn take_those(&mut self, belongs: Option<Belongs>) {
        self.belongs = belongs;
    }

    /// Adds a pair of documents in the order of the corpus.
    #[inline]
    pub fn add(&mut self, pair: Pair) {
        if self.belongs(&pair) {
            self.ask(pair, pair.high, 0);
        }
    }

    /// Whether a pair belongs to the records that are being reduced.
    #[inline]
    fn belongs(&self, pair: &Pair) -> bool {
        self.belongs.as_ref().is_none_or(|belongs| belongs(pair))
    }

    /// Adds a pair that belongs to the records. `apart`: the distance of the sketches of the two documents.
    #[inline]
    fn ask(&mut self, pair: Pair, asker: DocId, apart: u32) {
        if self.recent.is_new(pair) {
            let leader = if pair.low == asker { pair.high } else { pair.low };
            self.pairs.push((asker, (u64::from(apart) << 32 | u64::from(pair.distance), leader)));
        }
    }

    /// Adds a pair of documents in the order of the corpus. But if the later one has met many others, and not every pair is asked
    /// for, notes that both are of the crowd.
    pub(super) fn add_unless_crowded(&mut self, pair: Pair) {
        if self.asks == Asks::All {
            return self.add(pair);
        }
        if !self.belongs(&pair) {
            return;
        }
        let met = self.met.entry(pair.high).or_default();
        *met += 1;
        if *met <= WHOLE && !self.crowd.docs.contains_key(&pair.high) {
            return self.ask(pair, pair.high, 0);
        }
        self.crowd.docs.entry(pair.high).or_insert((0, pair.high));
        self.crowd.link(pair.high, pair.low);
        self.crowd.pass(pair.high, pair.low);
    }

    /// Whether a document is of the crowd, as far as it is known.
    pub(super) fn is_of_crowd(&self, doc: DocId) -> bool {
        self.crowd.docs.contains_key(&doc) || self.crowd.passed.contains_key(&doc)
    }

    /// Whether all pairs are taken.
    fn takes_all(&self) -> bool {
        self.belongs.is_none()
    }

    /// Returns the first error so far.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.pairs.check()
    }

    /// Compares every two records of a bucket, unless it is crowded and not every pair is asked for. Returns the number of pairs
    /// compared.
    ///
    /// `records`: those of one key, in any order. `doc`: the document of a record. `may_match`: returns the distance of two
    /// records unless they cannot match.
    pub(super) fn meet<R>(
        &mut self,
        sides: Sides,
        records: &mut [R],
        doc: impl Fn(&R) -> DocId,
        may_match: impl Fn(&R, &R) -> Option<u32>,
    ) -> u64 {
        records.sort_unstable_by_key(&doc);
        let reference = records.partition_point(|record| sides.is_reference(doc(record)));
        if self.asks != Asks::All && records.len() > WHOLE && reference < records.len() {
            self.crowd.add(records.iter().map(&doc), (records.len() as u64, doc(&records[0])));
            self.crowd.cut.extend(records[reference..].iter().map(&doc));
            return 0;
        }
        let mut compared = 0;
        for (at, asker) in records.iter().enumerate().skip(reference) {
            let of_crowd = !self.crowd.docs.is_empty() && self.crowd.docs.contains_key(&doc(asker));
            let before = &records[..if sides.within() { at } else { reference }];
            compared += before.len() as u64;
            for leader in before.iter().filter(|leader| doc(leader) != doc(asker)) {
                let pair = Pair::new(doc(leader), doc(asker), 0);
                if !self.belongs(&pair) {
                    continue;
                }
                match may_match(leader, asker) {
                    Some(_) if of_crowd => self.crowd.pass(doc(asker), doc(leader)),
                    Some(distance) => self.ask(Pair { distance, ..pair }, doc(asker), 0),
                    None => {}
                }
            }
        }
        compared
    }
}
