//! A search whose records say where their documents stand in keep order, for rounds in which not all documents take part.

use std::collections::BinaryHeap;

use super::leaders::Leaders;
use super::place::KeepPlace;
use super::template_numbers::NumberCounts;
use super::{Asks, PairSink, WHOLE};
use crate::record::{DocId, Pair};
use crate::search::candidate_search::{CandidateSearch, PassLoad};
use crate::sets::Rule;
use crate::sides::Sides;

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
}

impl<S: BucketSearch> PlacedSearch<S> {
    /// Places the records of a search. `rule`: the rule by which candidates are verified.
    pub fn new(search: S, rule: &Rule) -> Self {
        PlacedSearch { search, rule: rule.clone() }
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
        let PlacedSearch { search, rule } = self;
        search.each_bucket(pass, records, &mut |bucket| {
            load.largest_bucket = load.largest_bucket.max(bucket.len() as u64);
            load.compared += walk(search, rule, bucket, found);
        });
        load
    }
}

/// Lets each record of a bucket ask those before it. `records`: in keep order. Returns the number of pairs compared.
///
/// Cost: 1 ns a pair, and 50 ns for one that may match by the sketches.
fn walk<S: BucketSearch>(
    search: &S,
    rule: &Rule,
    records: &[PlacedRecord<S::Record>],
    found: &mut PairSink,
) -> u64 {
    let of = |record: &PlacedRecord<S::Record>| S::doc(&record.1);
    let (sides, asks) = (search.sides(), found.asks());
    let crowded = asks == Asks::Nearest && records.len() > WHOLE;
    if crowded {
        found.crowd.docs.extend(records.iter().map(of));
    }
    // Those before a record that are settled, and the others that it may ask.
    let numbers = records.iter().map(|(place, _)| &place.numbers);
    let counts = (records.len() > WHOLE).then(|| NumberCounts::new(numbers));
    let (mut settled, mut others) = (Leaders::new(counts.as_ref()), Leaders::new(counts.as_ref()));
    let (mut compared, mut met) = (0, BinaryHeap::new());
    for (at, record) in records.iter().enumerate() {
        let (place, doc) = (record.0, of(record));
        let reference = sides.is_reference(doc);
        if !reference && (asks == Asks::Nearest || !place.stays()) {
            // Two that are settled were compared before.
            let asks_settled = !(crowded && place.settled);
            let asks_others = !(crowded && place.tries == 1);
            let most = most(doc, (place, crowded), found);
            let mut cut = !asks_others && !others.is_empty();
            for (leaders, asked, unsettled) in
                [(&mut settled, asks_settled, false), (&mut others, asks_others, true)]
            {
                if !asked {
                    continue;
                }
                compared += leaders.near(&place, rule, |leader, apart| {
                    if place.stayed && records[leader].0.stayed {
                        return;
                    }
                    let far = (unsettled, apart, leader, 0);
                    if met.len() == most && met.peek().is_none_or(|farthest| far > *farthest) {
                        cut = true;
                        return;
                    }
                    let other = of(&records[leader]);
                    let belongs = || found.belongs(&Pair::new(other, doc, 0));
                    if other == doc || !belongs() {
                        return;
                    }
                    if let Some(distance) = search.may_match(&records[leader].1, &record.1) {
                        met.push((unsettled, apart, leader, distance));
                        cut |= met.len() > most && met.pop().is_some();
                    }
                });
            }
            if cut {
                found.crowd.cut.insert(doc);
            }
            for (unsettled, apart, leader, distance) in met.drain() {
                let pair = Pair::new(of(&records[leader]), doc, distance);
                found.ask(pair, doc, u32::from(unsettled) << 16 | apart);
            }
        }
        // Those of the reference ask nobody and always stay.
        if (reference || sides.within()) && (asks == Asks::Nearest || place.stays()) {
            let leaders = if place.settled { &mut settled } else { &mut others };
            leaders.push(at, &place);
        }
    }
    compared
}

/// Returns how many documents one may ask in a bucket.
fn most(doc: DocId, (place, crowded): (KeepPlace, bool), found: &PairSink) -> usize {
    let most = found.asks().most(place);
    if crowded {
        most.div_ceil(OF_BUCKET)
    } else if !found.crowd.docs.is_empty() && found.crowd.docs.contains(&doc) {
        most
    } else {
        usize::MAX
    }
}
