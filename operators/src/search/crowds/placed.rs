//! A search whose records say where their documents stand in keep order, for rounds in which not all documents take part.

use std::collections::BinaryHeap;

use super::leaders::Leaders;
use super::met_before::{Before, ComparedAs, EarlierBuckets};
use super::place::{KeepPlace, SETTLED_FIRST, Standing};
use super::template_numbers::NumberCounts;
use super::{Asks, PairSink, WHOLE};
use crate::record::Sides;
use crate::record::{DocId, Pair};
use crate::search::candidate_search::{CandidateSearch, PassLoad};
use crate::sets::Rule;

/// Number of documents that one of a crowd may ask, for each that it may ask in one crowded bucket.
const OF_BUCKET: usize = 4;

/// A search in which two records of a bucket meet whatever the others are.
pub trait BucketSearch: CandidateSearch {
    /// Calls `each` with the buckets of the records of a pass in which two or more meet. Records of a bucket come in keep
    /// order, and those of the reference before all others. Two records may meet in several buckets.
    fn each_bucket(
        &self,
        pass: &Self::Pass,
        records: &mut [PlacedRecord<Self::Record>],
        each: TakeRecords<Self::Record>,
    );
    /// Returns the distance of two records of one bucket, unless they cannot match.
    fn may_match(&self, one: &Self::Record, other: &Self::Record) -> Option<u32>;
    /// Returns what a record is compared by: [`may_match`](Self::may_match) tells the same of records for which this is equal.
    fn compared_as(record: &Self::Record) -> ComparedAs;
    /// Returns the sides whose pairs are looked for.
    fn sides(&self) -> Sides;
}

/// A record with the place of its document in keep order.
pub type PlacedRecord<R> = (KeepPlace, R);
/// Takes the records of a bucket.
pub type TakeRecords<'a, R> = &'a mut dyn FnMut(&[PlacedRecord<R>]);

/// Orders records by their buckets, and calls `each` with those of two or more, as [`BucketSearch::each_bucket`] asks for.
pub(crate) fn each_equal<R, K: Ord>(
    records: &mut [PlacedRecord<R>],
    sides: Sides,
    doc: impl Fn(&R) -> DocId,
    bucket: impl Fn(&R) -> K,
    each: impl FnMut(&[PlacedRecord<R>]),
) {
    records.sort_unstable_by_key(|(place, record)| {
        (bucket(record), !sides.is_reference(doc(record)), place.rank)
    });
    let buckets = records.chunk_by(|a, b| bucket(&a.1) == bucket(&b.1));
    buckets.filter(|records| records.len() > 1).for_each(each);
}

/// The same search among records with the places of their documents, for texts that match by a rule.
pub struct PlacedSearch<S> {
    search: S,
    rule: Rule,
    earlier: EarlierBuckets,
}

impl<S: BucketSearch> PlacedSearch<S> {
    /// Places the records of a search. `rule`: the rule by which candidates are verified.
    pub fn new(search: S, rule: &Rule) -> Self {
        PlacedSearch { search, rule: rule.clone(), earlier: EarlierBuckets::default() }
    }
}

impl<S: BucketSearch> CandidateSearch for PlacedSearch<S> {
    type Record = PlacedRecord<S::Record>;
    type Pass = S::Pass;

    fn passes(&self) -> Vec<S::Pass> {
        self.search.passes()
    }

    fn key(pass: &S::Pass, record: &Self::Record) -> u64 {
        S::key(pass, &record.1)
    }

    fn doc(record: &Self::Record) -> DocId {
        S::doc(&record.1)
    }

    fn narrower(&self, pass: &S::Pass) -> Option<Vec<S::Pass>> {
        self.search.narrower(pass)
    }

    fn candidates(&mut self, pass: &S::Pass, records: &mut [Self::Record], found: &mut PairSink) -> PassLoad {
        let mut load = PassLoad { records: records.len() as u64, ..PassLoad::default() };
        let PlacedSearch { search, rule, earlier } = self;
        search.each_bucket(pass, records, &mut |bucket| {
            load.largest_bucket = load.largest_bucket.max(bucket.len() as u64);
            load.compared += walk((search, rule), bucket, earlier, found);
        });
        load
    }
}

/// Lets each record of a bucket ask those before it. `records`: in keep order. Returns the number of pairs compared.
///
/// Cost: .3 to 1 ns a pair, and 50 ns for one that may match by the sketches.
fn walk<S: BucketSearch>(
    (search, rule): (&S, &Rule),
    records: &[PlacedRecord<S::Record>],
    earlier: &mut EarlierBuckets,
    found: &mut PairSink,
) -> u64 {
    let asks = found.asks();
    let crowded = asks == Asks::Nearest && records.len() > WHOLE;
    let mut walk =
        BucketWalk { search, rule, records, before: Vec::new(), asks, crowded, met: BinaryHeap::new() };
    if crowded {
        let docs = records.iter().map(|(_, record)| S::doc(record));
        found.crowd.add(docs, (records.len() as u64, S::doc(&records[0].1)));
    }
    if !records.iter().any(|record| walk.asks_any(record)) {
        return 0;
    }
    walk.before = earlier.enter(records.iter().map(|(_, record)| S::compared_as(record)), found.takes_all());
    let numbers = records.iter().map(|(place, _)| &place.numbers);
    let counts = (records.len() > WHOLE).then(|| NumberCounts::new(numbers));
    let mut leaders = Standing::ALL.map(|_| Leaders::new(counts.as_ref()));
    let mut compared = 0;
    for (at, record) in records.iter().enumerate() {
        if walk.asks_any(record) {
            compared += walk.ask(at, &mut leaders, found);
        }
        if walk.leads(record) {
            leaders[record.0.standing as usize].push(at, &record.0, walk.before[at]);
        }
    }
    compared
}

/// The records of a bucket, in keep order.
struct BucketWalk<'a, S: BucketSearch> {
    search: &'a S,
    rule: &'a Rule,
    records: &'a [PlacedRecord<S::Record>],
    /// The earlier buckets of each.
    before: Vec<Before>,
    asks: Asks,
    /// Whether not all before a record may be asked.
    crowded: bool,
    /// Buffer for the records that one asks: whether it is not settled, the distance of the sketches, its position, and the distance of the
    /// pair.
    met: BinaryHeap<(bool, u32, usize, u32)>,
}

impl<S: BucketSearch> BucketWalk<'_, S> {
    fn is_reference(&self, record: &PlacedRecord<S::Record>) -> bool {
        self.search.sides().is_reference(S::doc(&record.1))
    }

    /// Whether a record asks others. Those of the reference ask nobody.
    fn asks_any(&self, record: &PlacedRecord<S::Record>) -> bool {
        !self.is_reference(record) && (self.asks == Asks::Nearest || !record.0.stays())
    }

    /// Whether later records may ask this one.
    fn leads(&self, record: &PlacedRecord<S::Record>) -> bool {
        let of_sides = self.is_reference(record) || self.search.sides().within();
        of_sides && (self.asks == Asks::Nearest || record.0.stays())
    }

    /// Lets a record ask those before it, of each standing. Returns the number of pairs compared.
    fn ask(&mut self, at: usize, leaders: &mut [Leaders; 3], found: &mut PairSink) -> u64 {
        let (place, record) = &self.records[at];
        let doc = S::doc(record);
        let mut met = std::mem::take(&mut self.met);
        let most = most(doc, (*place, self.crowded), found);
        let (mut compared, mut cut) = (0, false);
        for (standing, leaders) in Standing::ALL.into_iter().zip(leaders) {
            if self.crowded && !asks_those(place, standing) {
                cut |= place.standing != Standing::Settled && !leaders.is_empty();
                continue;
            }
            let unsettled = standing != Standing::Settled;
            compared += leaders.near((place, self.before[at]), self.rule, |leader, apart| {
                let far = (unsettled, apart, leader, 0);
                let other = S::doc(&self.records[leader].1);
                if !self.is_worth(place, leader, apart) {
                    return;
                }
                if met.len() == most && met.peek().is_none_or(|farthest| far > *farthest) {
                    cut = true;
                } else if other != doc
                    && found.belongs(&Pair::new(other, doc, 0))
                    && let Some(distance) = self.search.may_match(&self.records[leader].1, record)
                {
                    met.push((unsettled, apart, leader, distance));
                    cut |= met.len() > most && met.pop().is_some();
                }
            });
        }
        if cut {
            found.crowd.cut.insert(doc);
        }
        for (unsettled, apart, leader, distance) in met.drain() {
            let pair = Pair::new(S::doc(&self.records[leader].1), doc, distance);
            found.ask(pair, doc, u32::from(unsettled) << 16 | apart);
        }
        self.met = met;
        compared
    }

    /// Whether an answer may change what is decided, by the distance of the sketches. A document goes for the most similar one, and of
    /// equal ones for the first in keep order.
    fn is_worth(&self, place: &KeepPlace, leader: usize, apart: u32) -> bool {
        let leader = &self.records[leader];
        let both_stayed = place.stayed && leader.0.stayed;
        let may_go_for = || self.is_reference(leader) || place.may_go_for(&leader.0, apart, self.rule);
        !both_stayed && (self.asks != Asks::Staying || may_go_for())
    }
}

/// Whether a document asks those of a standing before it in a crowded bucket.
fn asks_those(place: &KeepPlace, standing: Standing) -> bool {
    match place.standing {
        // It was compared with all that took part in the last round.
        Standing::Settled => standing == Standing::New,
        _ => standing == Standing::Settled || place.tries > SETTLED_FIRST,
    }
}

/// Returns how many documents one may ask in a bucket.
fn most(doc: DocId, (place, crowded): (KeepPlace, bool), found: &PairSink) -> usize {
    let most = found.asks().most(place);
    if crowded {
        most.div_ceil(OF_BUCKET)
    } else if !found.crowd.docs.is_empty() && found.crowd.docs.contains_key(&doc) {
        most
    } else {
        usize::MAX
    }
}
