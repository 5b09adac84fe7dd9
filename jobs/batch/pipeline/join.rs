//! The join: finds candidates in the map output, among the first ones of identical documents.

use anyhow::Result;
use operators::flow::{CandidateJoin, Candidates, PlaceOf, PrefixJoin, RecordSink, Skew, total};
use operators::search::crowds::Asks;
use operators::search::crowds::placed::PlacedSearch;
use operators::search::map_records::records;
use operators::search::{KeyedSearch, PassLoad, Search, SearchVisitor, TextSearch};
use operators::{DocId, Pair, Sorted};
use timely::worker::Worker;

use super::crowd::Crowd;
use super::earlier::{Earlier, KeptPass, NewKey};
use super::links::IdenticalDocs;
use super::mapped::Mapped;
use super::matched::Matched;
use super::prefixes::join_prefixes;
use runtime::progress::{Stage, StageTimer};

/// Candidates of one worker. Documents with crowded keys have none yet and are listed in `crowd`.
pub(super) struct Joined {
    pub pairs: Sorted<Pair>,
    pub loads: Vec<PassLoad>,
    /// The crowd of this worker, in order, each with the first document of its family; `None` if no key of any worker is
    /// crowded.
    pub crowd: Option<Vec<(DocId, DocId)>>,
    /// Prefixes, if the method searches by them and there is a crowd.
    pub prefixes: Option<PrefixJoin>,
}

/// Finds the candidates: all, or if only the matches that decide are wanted those of keys that are not crowded. Returns `None`, on
/// all workers, if the join must be made anew.
pub(super) fn join(
    worker: &mut Worker,
    at: &StageTimer,
    mapped: &Mapped,
    copies: &IdenticalDocs,
    earlier: &mut dyn Earlier,
) -> Result<Option<Joined>> {
    at.enter(Stage::Compare);
    let (search, method) = (&mapped.search, &mapped.search.method);
    let asks = if search.leaders.is_some() && method.verified { Asks::Nearest } else { Asks::All };
    let prefixes = match &method.search {
        Search::Prefix => Some(join_prefixes(worker, mapped, copies)?),
        _ => None,
    };
    let Candidates { pairs, loads, crowd, .. } = match &prefixes {
        Some(prefixes) => prefixes.candidates(worker, Skew::default(), asks, None)?,
        None => method
            .search
            .visit(&search.context(), JoinFirsts { worker, mapped, copies, earlier: &mut *earlier, asks })?,
    };
    let pairs = earlier.candidates(worker, mapped, pairs)?;
    let prefixes = prefixes.filter(|_| crowd.is_some());
    Ok(pairs.map(|pairs| Joined { pairs, loads, crowd, prefixes }))
}

/// Finds candidates of a round, in which the documents of the crowd ask: those that take part and stay, or for
/// [`Asks::Staying`] all.
pub(super) fn join_round(
    worker: &mut Worker,
    at: &StageTimer,
    mapped: &Mapped,
    matched: &Matched,
    asks: Asks,
    earlier: &dyn Earlier,
) -> Result<Candidates> {
    at.enter(Stage::Compare);
    let place = |doc| {
        let place = matched.crowd.place(doc);
        place.filter(|place| asks == Asks::Staying || place.takes_part() && place.stays())
    };
    match &matched.prefixes {
        Some(prefixes) => Ok(prefixes.candidates(worker, Skew::default(), asks, Some(&place))?),
        None => {
            let search = &mapped.search;
            let join = JoinCrowd { worker, mapped, crowd: &matched.crowd, place: &place, asks, earlier };
            search.method.search.visit(&search.context(), join)
        }
    }
}

/// Finds candidates among the first ones of identical documents, and of these with earlier texts.
struct JoinFirsts<'a> {
    worker: &'a mut Worker,
    mapped: &'a Mapped,
    copies: &'a IdenticalDocs,
    earlier: &'a mut dyn Earlier,
    asks: Asks,
}

impl SearchVisitor for JoinFirsts<'_> {
    type Output = Result<Candidates>;

    /// Returns no candidates: the prefix search has a join of its own, and `exact` has none.
    fn visit<S: TextSearch + Clone>(self, _: S) -> Result<Candidates> {
        Ok(Candidates::none())
    }

    fn visit_keyed<S: KeyedSearch>(self, search: S) -> Result<Candidates> {
        let JoinFirsts { worker, mapped, copies, earlier, asks } = self;
        let kept = search.clone();
        let mut join = CandidateJoin::new(search, Skew::default(), &mapped.search.spill).asking(asks);
        let scan = |worker: &mut Worker, pass: &S::Pass, each: RecordSink<S::Record>| {
            let mut firsts = copies.walk();
            mapped.section(worker, S::section(pass), |worker, frame| {
                let of_firsts = records(frame).filter(|record| firsts.is_first(S::doc(record)));
                of_firsts.for_each(|record| each(worker, record));
            })
        };
        let docs = mapped.docs_of(worker)? as usize;
        let docs = total(worker, docs);
        let passes = join.passes();
        for some in passes.chunks(join.at_once(worker, docs)) {
            join.passes_at_once(worker, some, &mut |worker, number, each| {
                earlier.records(worker, S::section(&some[number]), &mut |worker, bytes| {
                    records(bytes).for_each(|record| each(worker, record));
                })?;
                scan(worker, &some[number], each)
            })?;
        }
        for (number, pass) in (0..).zip(&passes) {
            let of_pass = KeptPass {
                number,
                section: S::section(pass),
                key_bits: S::key_bits(pass),
                keys: &|bytes, each| {
                    records(bytes).for_each(|record| each(NewKey::new::<S>(pass, &record)));
                },
                distance: &|one, other| kept.key_distance(one, other),
            };
            earlier.meet(worker, &of_pass, &mut |worker, each| {
                scan(worker, pass, &mut |_, record| each(NewKey::new::<S>(pass, &record)))
            })?;
        }
        earlier.end_passes(kept.sieve())?;
        Ok(join.finish(worker, |pair| pair.low)?)
    }
}

/// Finds candidates of a round by the records of the crowd, each with the place of its document.
struct JoinCrowd<'a> {
    worker: &'a mut Worker,
    mapped: &'a Mapped,
    crowd: &'a Crowd,
    place: &'a PlaceOf<'a>,
    asks: Asks,
    earlier: &'a dyn Earlier,
}

impl SearchVisitor for JoinCrowd<'_> {
    type Output = Result<Candidates>;

    fn visit<S: TextSearch + Clone>(self, _: S) -> Result<Candidates> {
        Ok(Candidates::none())
    }

    fn visit_keyed<S: KeyedSearch>(self, search: S) -> Result<Candidates> {
        let JoinCrowd { worker, mapped, crowd, place, asks, earlier } = self;
        let search = PlacedSearch::new(search, &mapped.search.method.rule);
        let mut join = CandidateJoin::new(search, Skew::default(), &mapped.search.spill).asking(asks);
        let scan = |worker: &mut Worker, section, each: RecordSink<S::Record>| {
            earlier.records(worker, section, &mut |worker, bytes| {
                records(bytes).for_each(|record| each(worker, record));
            })?;
            mapped.section(worker, section, |worker, frame| {
                records(frame).for_each(|record| each(worker, record));
            })
        };
        let of_crowd = if asks == Asks::Staying { crowd.docs().len() } else { crowd.taking_part() };
        let of_crowd = total(worker, of_crowd);
        for some in join.passes().chunks(join.at_once(worker, of_crowd)) {
            join.passes_at_once(worker, some, &mut |worker, number, each| {
                let section = S::section(&some[number]);
                let scan = |worker: &mut Worker, each: RecordSink<S::Record>| scan(worker, section, each);
                crowd.records(worker, section, (S::doc, place), scan, each)
            })?;
        }
        Ok(join.finish_round(worker, place)?)
    }
}
