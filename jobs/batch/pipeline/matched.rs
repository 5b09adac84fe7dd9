//! Matches that a search has found so far, and the rounds in which it goes on.
//!
//! Where very many documents share a key, only the matches are looked for that decide, in rounds.
//!
//! The join has compared all documents whose keys are not crowded, and has noted the *crowd*: those with crowded keys, and those that
//! these have met. In each round some more of the crowd take part, of each family the first in keep order, and ask some of those
//! before them that stay. What was asked is verified, and all workers decide greedily by the matches so far. When all take part and
//! have asked all, those that go are compared with all that stay and for which they may go instead.
//! docs/design/rounds.md proves that the same documents stay, for the same ones, as if all pairs were compared.

use anyhow::Result;
use operators::flow::{FoundMatches, PrefixJoin, totals};
use operators::search::PassLoad;
use operators::search::crowds::Asks;
use operators::{DocId, memory_plan};
use timely::worker::Worker;

use super::corpus_search::SearchResult;
use super::crowd::{Crowd, decide};
use super::earlier::{Earlier, live_rank};
use super::links::{AskedPairs, FoundLinks};
use super::mapped::Mapped;
use super::name_spool::NameSpool;

/// Number of documents of each family that take part at the beginning.
const FIRST: u64 = 32;
/// Growth of their number, when nearly all of those before are settled.
const GROWTH: u64 = 8;
/// Part of those that take part that may not be settled when others follow, as a divisor.
const UNSETTLED_PART: u64 = 16;

/// Number of documents that did not ask all for each match of a round, from which on asking is in vain.
const IN_VAIN: u64 = 4;

/// Matches of one worker.
pub(super) struct Matched {
    /// Links of clusters without a document of the crowd, which no round changes.
    pub settled: FoundLinks,
    pub open: FoundLinks,
    /// Names of all documents of the input of which a pair was compared; `None` if the input is to be read again for them.
    pub names: Option<NameSpool>,
    pub crowd: Crowd,
    /// Prefixes of the crowd, if the method searches by them.
    pub prefixes: Option<PrefixJoin>,
    /// Pairs that were compared, if there are rounds.
    pub asked: AskedPairs,
    /// Number of pairs that were compared.
    pub compared: u64,
    /// Load of this worker in each pass of the join.
    loads: Vec<PassLoad>,
    /// The round that comes after the last comparison.
    pub round: Round,
}

/// Progress of the rounds.
pub(super) enum Round {
    /// No key on any worker is crowded, or the last round is over.
    Over,
    /// Rounds follow.
    First,
    /// Documents of the crowd have asked for what is nearest: the number of matches of this worker, and its documents that did not ask
    /// all before them, in order.
    Asked { new: usize, cut: Vec<DocId> },
}

impl Matched {
    /// Begins without matches. `crowd`: the documents of this worker that take part in rounds, if any follow. `prefixes`: of all
    /// documents.
    pub fn new(
        worker: &Worker,
        mapped: &Mapped,
        loads: Vec<PassLoad>,
        crowd: Option<Vec<(DocId, DocId)>>,
        prefixes: Option<PrefixJoin>,
    ) -> Result<Self> {
        let (method, budget) = (&mapped.search.method, &mapped.search.spill);
        let round = crowd.as_ref().map_or(Round::Over, |_| Round::First);
        let crowd = crowd.unwrap_or_default();
        let of_crowd = |doc| crowd.binary_search_by_key(&doc, |(doc, _)| *doc).is_ok();
        let prefixes = prefixes.map(|prefixes| prefixes.among(of_crowd)).transpose()?;
        let reads_texts = matches!(round, Round::First) && mapped.stores_texts;
        let of_worker = reads_texts.then(|| mapped.docs_of(worker)).transpose()?;
        // The verification has a share for names, and the links take two more. What rounds hold is beyond the budget.
        let share = budget.shared_by(memory_plan::VERIFY);
        Ok(Matched {
            settled: FoundLinks::new(&share),
            open: FoundLinks::new(&share),
            names: method.verified.then(|| NameSpool::new(&share)),
            crowd: Crowd::new(crowd, of_worker, budget),
            prefixes,
            asked: AskedPairs::new(budget),
            compared: 0,
            loads,
            round,
        })
    }

    /// Returns what was counted.
    pub fn counts(self) -> SearchResult {
        let crowd = self.crowd.docs().len() as u64;
        SearchResult { candidates: self.compared, crowd, loads: vec![self.loads], ..SearchResult::default() }
    }

    /// Returns what the documents of the crowd ask for in the next round; `None` after the last one.
    pub fn next_round(
        &mut self,
        worker: &mut Worker,
        mapped: &Mapped,
        earlier: &dyn Earlier,
    ) -> Result<Option<Asks>> {
        match std::mem::replace(&mut self.round, Round::Over) {
            Round::Over => return Ok(None),
            Round::First => self.crowd.begin(FIRST.div_ceil(worker.peers() as u64)),
            Round::Asked { new, cut } => {
                let counts = [new, cut.len(), self.crowd.taking_part(), self.crowd.waiting()];
                let [new, all_cut, taking_part, waiting] = totals(worker, counts);
                self.crowd.settle(&cut, IN_VAIN * new <= all_cut);
                if waiting > 0 && UNSETTLED_PART * all_cut <= taking_part {
                    self.crowd.grow(GROWTH);
                } else if new + all_cut == 0 {
                    return Ok(Some(Asks::Staying));
                }
            }
        }
        self.decide(worker, mapped, earlier)?;
        Ok(Some(Asks::Nearest))
    }

    /// Decides by the matches so far which documents of the crowd stay. Sets those links aside that no round changes.
    fn decide(&mut self, worker: &mut Worker, mapped: &Mapped, earlier: &dyn Earlier) -> Result<()> {
        let Matched { crowd, settled, open: links, names, .. } = self;
        let search = &mapped.search;
        let mut all = FoundMatches::new(worker, &search.spill).spread();
        links.add_to(worker, &mut all)?;
        let mut docs = all.finish(worker)?;
        let sort = |doc| if crowd.place(doc).is_some() { OF_CROWD } else { "" };
        earlier.name(worker, &mut docs, &|doc, _| sort(doc))?;
        if let Some(names) = names {
            names.scan(|doc, _, merit| Ok(docs.name(worker, doc, sort(doc), merit)?))?;
        }
        let mut open = FoundLinks::new(&search.spill.shared_by(memory_plan::VERIFY));
        let decisions = docs.finish(worker)?.decide(worker, |batch, send| -> Result<()> {
            for (copies, pairs) in batch.clusters() {
                let of_pairs = pairs.iter().flat_map(|(pair, _)| [pair.low, pair.high]);
                let mut docs = copies.iter().flat_map(|copy| [copy.0, copy.1]).chain(of_pairs);
                let changes = docs.any(|doc| batch.id(doc) == OF_CROWD);
                let links = if changes { &mut open } else { &mut *settled };
                links.extend(copies, pairs);
            }
            decide(batch, search.sides, |doc| live_rank(search, earlier, doc, &|| batch.merit(doc)), send)
        })?;
        self.open = open;
        self.crowd.decided(decisions)
    }
}

/// Name of documents of the crowd while it is decided who stays. All others have no name.
const OF_CROWD: &str = "crowd";
