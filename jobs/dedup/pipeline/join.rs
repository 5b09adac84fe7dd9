//! The join: finds candidates in the map output, among the first ones of identical documents.

use anyhow::Result;
use operators::fingerprint::Bits;
use operators::fingerprint::block_tables::BlockTable;
use operators::flow::{CandidateJoin, Candidates, PlaceOf, PrefixJoin, RecordSink, Skew};
use operators::method::map_records::{Bands, FINGERPRINTS, records};
use operators::method::{Method, Search, SimHash};
use operators::search::PassLoad;
use operators::search::bands::BandSearch;
use operators::search::blocks::BlockSearch;
use operators::search::crowds::Asks;
use operators::search::kept::KeptSearch;
use operators::search::placed::{BucketSearch, PlacedSearch};
use operators::sets::minhash::MinHash;
use operators::{DocId, Pair, Sides, Sorted};
use timely::worker::Worker;

use super::links::IdenticalDocs;
use super::mapped::Mapped;
use super::matched::Matched;
use super::prefixes::join_prefixes;
use crate::dedup::earlier::Earlier;
use crate::progress::{Stage, StageTimer};

/// Candidates of one worker, and the documents with crowded keys, of which there are none here.
pub(super) struct Joined {
    pub pairs: Sorted<Pair>,
    pub loads: Vec<PassLoad>,
    /// The crowd of this worker, in order; `None` if no key of any worker is crowded.
    pub crowd: Option<Vec<DocId>>,
    /// Prefixes, if the method searches by them and there is a crowd.
    pub prefixes: Option<PrefixJoin>,
}

/// Finds the candidates: all, or if only the matches that decide are wanted those of keys that are not crowded. Returns `None`, on
/// all workers, if the join must be made anew.
pub(super) fn join<E: Earlier>(
    worker: &mut Worker,
    at: &StageTimer,
    mapped: &Mapped,
    copies: &IdenticalDocs,
    earlier: &mut E,
) -> Result<Option<Joined>> {
    at.enter(Stage::Compare);
    let (search, method) = (&mapped.search, &mapped.search.method);
    let asks = if search.leaders.is_some() && method.verified { Asks::Nearest } else { Asks::All };
    let (mut prefixes, sides) = (None, search.sides);
    let Candidates { pairs, loads, crowd, .. } = match &method.search {
        Search::SimHash64(simhash) => {
            join_records(worker, mapped, copies, blocks(simhash, method, sides), earlier, asks)?
        }
        Search::SimHash128(simhash) => {
            join_records(worker, mapped, copies, blocks(simhash, method, sides), earlier, asks)?
        }
        Search::Bands(minhash) => {
            join_records(worker, mapped, copies, bands(minhash, method, sides), earlier, asks)?
        }
        Search::Prefix => {
            let joined = prefixes.insert(join_prefixes(worker, mapped, copies)?);
            joined.candidates(worker, Skew::default(), asks, None)?
        }
        Search::Nothing | Search::Zhou(_) => Candidates::none(),
    };
    let pairs = earlier.candidates(worker, mapped, pairs)?;
    let prefixes = prefixes.filter(|_| crowd.is_some());
    Ok(pairs.map(|pairs| Joined { pairs, loads, crowd, prefixes }))
}

/// Finds candidates of a round, in which the documents of the crowd ask: those that take part and stay, or for
/// [`Asks::Staying`] all.
pub(super) fn join_round<E: Earlier>(
    worker: &mut Worker,
    at: &StageTimer,
    mapped: &Mapped,
    matched: &Matched,
    asks: Asks,
    earlier: &E,
) -> Result<Candidates> {
    at.enter(Stage::Compare);
    let (method, sides) = (&mapped.search.method, mapped.search.sides);
    let place = |doc| {
        let place = matched.crowd.place(doc);
        place.filter(|place| asks == Asks::Staying || place.takes_part() && place.stays())
    };
    let of_round: (&Matched, &PlaceOf, Asks) = (matched, &place, asks);
    match (&method.search, &matched.prefixes) {
        (Search::SimHash64(simhash), _) => {
            join_placed(worker, mapped, blocks(simhash, method, sides), of_round, earlier)
        }
        (Search::SimHash128(simhash), _) => {
            join_placed(worker, mapped, blocks(simhash, method, sides), of_round, earlier)
        }
        (Search::Bands(minhash), _) => {
            join_placed(worker, mapped, bands(minhash, method, sides), of_round, earlier)
        }
        (_, Some(prefixes)) => Ok(prefixes.candidates(worker, Skew::default(), asks, Some(&place))?),
        _ => Ok(Candidates::none()),
    }
}

/// Joins records by their keys, in each pass also with those of earlier texts. `section`: the section with the records of a pass.
fn join_records<S: KeptSearch + Clone>(
    worker: &mut Worker,
    mapped: &Mapped,
    copies: &IdenticalDocs,
    (search, section): (S, impl Fn(&S::Pass) -> usize),
    earlier: &mut impl Earlier,
    asks: Asks,
) -> Result<Candidates> {
    let kept = search.clone();
    let mut join = CandidateJoin::new(search, Skew::default(), &mapped.search.spill).asking(asks);
    for (number, pass) in (0..).zip(join.passes()) {
        let section = section(&pass);
        let mut scan = |worker: &mut Worker, each: RecordSink<S::Record>| {
            let mut firsts = copies.walk();
            mapped.section(worker, section, |worker, frame| {
                let of_firsts = records(frame).filter(|record| firsts.is_first(S::doc(record)));
                of_firsts.for_each(|record| each(worker, record));
            })
        };
        join.pass(worker, &pass, &mut |worker, each| {
            earlier.records(worker, section, &mut *each)?;
            scan(worker, each)
        })?;
        earlier.meet(worker, &kept, section, (number, &pass), &mut scan)?;
    }
    earlier.met(&kept)?;
    Ok(join.finish(worker, |pair| pair.low)?)
}

/// Joins the records of the crowd, each with the place of its document.
fn join_placed<S: BucketSearch>(
    worker: &mut Worker,
    mapped: &Mapped,
    (search, section): (S, impl Fn(&S::Pass) -> usize),
    (matched, place, asks): (&Matched, &PlaceOf, Asks),
    earlier: &impl Earlier,
) -> Result<Candidates> {
    let search = PlacedSearch::new(search, &mapped.search.method.rule);
    let mut join = CandidateJoin::new(search, Skew::default(), &mapped.search.spill).asking(asks);
    for pass in join.passes() {
        let section = section(&pass);
        let scan = |worker: &mut Worker, each: RecordSink<S::Record>| {
            earlier.records(worker, section, &mut *each)?;
            mapped.section(worker, section, |worker, frame| {
                records(frame).for_each(|record| each(worker, record));
            })
        };
        join.pass(worker, &pass, &mut |worker, each| {
            matched.crowd.records(worker, section, S::doc, scan, |worker, record| {
                if let Some(place) = place(S::doc(&record)) {
                    each(worker, (place, record));
                }
            })
        })?;
    }
    Ok(join.finish_round(worker, place)?)
}

/// Returns the search by the fingerprints of a method, and the section of the map output that has the records of a pass.
pub(crate) fn blocks<W: Bits>(
    simhash: &SimHash<W>,
    method: &Method,
    sides: Sides,
) -> (BlockSearch<W>, impl Fn(&BlockTable<W>) -> usize + use<W>) {
    let verified = Some(&method.rule).filter(|_| method.verified);
    (BlockSearch::new(simhash.join.clone(), verified).between(sides), |_| FINGERPRINTS)
}

/// Returns the search by the bands of a method, and the section of the map output that has the records of a pass.
pub(crate) fn bands(
    minhash: &MinHash,
    method: &Method,
    sides: Sides,
) -> (BandSearch, impl Fn(&u32) -> usize + use<>) {
    (BandSearch::new(*minhash, &method.rule).between(sides), |band| Bands::section(*band))
}
