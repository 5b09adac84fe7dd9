//! Rounds: where very many documents share a key, only the matches are looked for that decide.
//!
//! The join has compared all documents whose keys are not crowded, and has noted the *crowd*: those with crowded keys, and those that
//! these have met. In each round some more of the crowd take part, the first in keep order, and ask some of those before
//! them that stay. What was asked is verified, and all workers decide greedily by the matches so far. When all take part and
//! have asked all, those that go are compared with all that stay and may be more similar than the one that they go for.
//! docs/design/0072 proves that the same documents stay, for the same ones, as if all pairs were compared.

use std::iter;

use anyhow::Result;
use operators::flow::{Candidates, FoundMatches, PlaceOf, PrefixJoin, Skew, total};
use operators::method::map_records::StoredText;
use operators::method::{Method, Search};
use operators::search::crowds::Asks;
use operators::{DocId, Pair, Sorted};
use timely::worker::Worker;

use super::asked::{AskedPairs, FoundLinks};
use super::asking::AskingTexts;
use super::corpus_search::{CorpusSearch, SearchResult};
use super::crowd::{Crowd, decide};
use super::found_docs::FoundDocs;
use super::map::IdenticalDocs;
use crate::corpus::name_spool::NameSpool;
use crate::progress::{Stage, StageTimer};
use crate::state::NightState;

/// Number of documents of the crowd that take part at the beginning.
const FIRST: usize = 256;
/// Growth of their number, when nearly all of those before are settled.
const GROWTH: usize = 8;
/// Part of those that take part that may not be settled when others follow, as a divisor.
const UNSETTLED_PART: u64 = 16;

/// Rounds of one worker.
struct Rounds<'a> {
    search: &'a CorpusSearch,
    at: &'a StageTimer<'a>,
    method: &'a Method,
    /// Prefixes of the crowd, if the method searches by them.
    prefixes: Option<PrefixJoin>,
    /// Texts of a state that ask like new ones.
    asking: Option<&'a AskingTexts>,
    crowd: Crowd,
    asked: AskedPairs,
    /// Links of clusters without a document of the crowd, which no round changes.
    settled: FoundLinks,
    open: FoundLinks,
    /// Names of all documents of which a pair was compared.
    names: NameSpool,
    /// Number of pairs that were compared.
    compared: u64,
}

impl CorpusSearch {
    /// Finds the matches that decide where keys are crowded. `night`: the state, and its texts that ask again. `pairs`: the
    /// candidates of keys that are not crowded. `crowd`: the documents of this worker that take part.
    pub(super) fn rounds(
        &self,
        worker: &mut Worker,
        at: &StageTimer,
        (method, prefixes, night): (&Method, Option<PrefixJoin>, Option<(&NightState, &AskingTexts)>),
        (pairs, copies, crowd): (Sorted<Pair>, IdenticalDocs, Vec<DocId>),
        result: &mut SearchResult,
    ) -> Result<FoundDocs> {
        let of_crowd = |doc| crowd.binary_search(&doc).is_ok();
        let prefixes = prefixes.map(|prefixes| prefixes.among(of_crowd)).transpose()?;
        let of_worker = method.search.stores_texts().then(|| self.docs_of(worker)).transpose()?;
        let mut rounds = Rounds {
            search: self,
            at,
            method,
            prefixes,
            asking: night.map(|(_, asking)| asking),
            crowd: Crowd::new(crowd, of_worker, &self.spill),
            asked: AskedPairs::new(&self.spill),
            settled: FoundLinks::new(&self.spill),
            open: FoundLinks::new(&self.spill),
            names: NameSpool::new(&self.spill),
            compared: 0,
        };
        let touched = night.map(|(_, asking)| self.touched_by(&copies, asking));
        rounds.open.add_copies(copies.0.into_iter());
        let touched = touched.into_iter().flatten().chain(rounds.compare_others(worker, pairs)?).collect();
        night.map_or(Ok(()), |(night, _)| self.add_stored(worker, night, touched, &mut rounds.open))?;
        rounds.crowd.admit(FIRST.div_ceil(worker.peers()));
        loop {
            rounds.decide(worker)?;
            let (new, cut) = rounds.ask(worker, Asks::Nearest)?;
            rounds.crowd.settle(&cut);
            let [new, cut, taking_part] =
                [new, cut.len(), rounds.crowd.taking_part()].map(|count| total(worker, count));
            let all = total(worker, rounds.crowd.waiting()) == 0;
            if !all && UNSETTLED_PART * cut <= taking_part {
                rounds.crowd.admit(GROWTH);
            } else if new + cut == 0 {
                break;
            }
        }
        rounds.ask(worker, Asks::Staying)?;
        result.candidates += rounds.compared;
        let Rounds { settled, open, names, .. } = rounds;
        Ok(FoundDocs { links: vec![settled, open], names: Some(names) })
    }
}

impl Rounds<'_> {
    /// Compares the candidates of keys that are not crowded, and notes the documents of the crowd. Returns the documents of earlier
    /// nights that match.
    fn compare_others(&mut self, worker: &mut Worker, pairs: Sorted<Pair>) -> Result<Vec<DocId>> {
        let method = self.method;
        let Rounds { crowd, asked, open, names, .. } = self;
        let (search, mut earlier) = (self.search, Vec::new());
        let of_crowd = crowd.docs().to_vec();
        let named: Vec<DocId> = open.copied().chain(of_crowd.iter().copied()).collect();
        let pairs = asked.fresh(pairs)?;
        self.compared += self.search.compare(
            worker,
            self.at,
            method,
            (pairs, named.into_iter(), &of_crowd),
            |StoredText { doc, id, merit, text }, sets| {
                if !search.is_earlier(doc) {
                    names.add(doc, id, merit);
                }
                if let Some(sets) = sets {
                    crowd.note(doc, search.live_rank(doc, &|| merit), text, (sets, &method.rule));
                }
            },
            |_, pair, similarity| {
                earlier.extend([pair.low, pair.high].into_iter().filter(|&doc| search.is_earlier(doc)));
                open.add(pair, Some(similarity));
            },
        )?;
        Ok(earlier)
    }

    /// Asks for pairs of documents of the crowd: those that take part and stay, or for [`Asks::Staying`] all. Compares the
    /// pairs that were not compared before. Returns the number of matches of this worker, and its documents that did not
    /// ask all before them.
    fn ask(&mut self, worker: &mut Worker, asks: Asks) -> Result<(usize, Vec<DocId>)> {
        let Rounds { search, at, method, asking, crowd, open, .. } = self;
        let place = |doc| {
            crowd.place(doc).filter(|place| asks == Asks::Staying || place.takes_part() && place.stays())
        };
        at.enter(Stage::Compare);
        let of_round: (&Crowd, _, &PlaceOf) = (crowd, *asking, &place);
        let Candidates { pairs, cut, .. } = match (&method.search, &self.prefixes) {
            (Search::Bands(minhash), _) => {
                search.join_placed(worker, method, search.bands(minhash, method), asks, of_round)?
            }
            (Search::SimHash64(simhash), _) => {
                search.join_placed(worker, method, search.blocks(simhash, method), asks, of_round)?
            }
            (Search::SimHash128(simhash), _) => {
                search.join_placed(worker, method, search.blocks(simhash, method), asks, of_round)?
            }
            (_, Some(prefixes)) => prefixes.candidates(worker, Skew::default(), asks, Some(&place))?,
            _ => Candidates::none(),
        };
        at.enter(Stage::Verify);
        let pairs = self.asked.fresh(pairs)?;
        let mut new = 0;
        let each = |_: &mut Worker, pair, similarity| {
            new += 1;
            open.add(pair, Some(similarity));
        };
        self.compared += match crowd.texts() {
            Some(texts) => search.compare_kept(worker, method, pairs, texts, each)?,
            None => search.compare(worker, at, method, (pairs, iter::empty(), &[]), |_, _| (), each)?,
        };
        Ok((new, cut))
    }

    /// Decides by the matches so far which documents of the crowd stay. Sets those links aside that no round changes.
    fn decide(&mut self, worker: &mut Worker) -> Result<()> {
        let Rounds { search, crowd, settled, .. } = self;
        let mut all = FoundMatches::new(worker, &search.spill);
        self.open.add_to(worker, &mut all)?;
        let mut docs = all.finish(worker)?;
        let sort = |doc| if crowd.place(doc).is_some() { OF_CROWD } else { "" };
        search.name_earlier(worker, &mut docs, |doc, _| sort(doc))?;
        self.names.scan(|doc, _, merit| Ok(docs.name(worker, doc, sort(doc), merit)?))?;
        let mut open = FoundLinks::new(&search.spill);
        let decisions = docs.finish(worker)?.decide(worker, |batch, send| -> Result<()> {
            for (copies, pairs) in batch.clusters() {
                let of_pairs = pairs.iter().flat_map(|(pair, _)| [pair.low, pair.high]);
                let mut docs = copies.iter().flat_map(|copy| [copy.0, copy.1]).chain(of_pairs);
                let changes = docs.any(|doc| batch.id(doc) == OF_CROWD);
                let links = if changes { &mut open } else { &mut *settled };
                links.extend(copies, pairs);
            }
            decide(batch, search.sides, |doc| search.live_rank(doc, &|| batch.merit(doc)), send)
        })?;
        self.open = open;
        self.crowd.decided(decisions)
    }
}

/// Name of documents of the crowd while it is decided who stays. All others have no name.
const OF_CROWD: &str = "crowd";
