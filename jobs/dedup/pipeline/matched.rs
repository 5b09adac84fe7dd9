//! Matches that a search has found so far, and the documents about which it goes on.

use anyhow::Result;
use operators::DocId;
use operators::flow::{PrefixJoin, Verify};
use operators::search::PassLoad;
use operators::search::crowds::Asks;
use timely::worker::Worker;

use super::corpus_search::SearchResult;
use super::crowd::Crowd;
use super::links::{AskedPairs, FoundLinks, IdenticalDocs};
use super::mapped::Mapped;
use super::name_spool::NameSpool;

/// Matches of one worker.
pub(super) struct Matched {
    /// Links of clusters without a document of the crowd, which no round changes.
    pub settled: FoundLinks,
    pub open: FoundLinks,
    /// Names of all documents of the input of which a pair was compared; `None` if the input is to be read again for them.
    pub names: Option<NameSpool>,
    /// Whether rounds follow, because some key on some worker is crowded.
    pub has_rounds: bool,
    pub crowd: Crowd,
    /// Prefixes of the crowd, if the method searches by them.
    pub prefixes: Option<PrefixJoin>,
    /// Pairs that were compared, if there are rounds.
    pub asked: AskedPairs,
    /// Number of pairs that were compared.
    pub compared: u64,
    /// Load of this worker in each pass of the join.
    loads: Vec<PassLoad>,
    /// The round before, if there was one.
    pub last: Option<AskedRound>,
}

/// What a round has found on one worker.
pub(super) struct AskedRound {
    pub asks: Asks,
    /// Number of matches.
    pub new: usize,
    /// Documents that did not ask all before them, in order.
    pub cut: Vec<DocId>,
}

impl Matched {
    /// Begins without matches but the identical documents. `crowd`: the documents of this worker that take part in rounds, if any
    /// follow, and their prefixes.
    pub fn new(
        worker: &Worker,
        mapped: &Mapped,
        copies: IdenticalDocs,
        loads: Vec<PassLoad>,
        (crowd, prefixes): (Option<Vec<DocId>>, Option<PrefixJoin>),
    ) -> Result<Self> {
        let (method, budget) = (&mapped.search.method, &mapped.search.spill);
        let (has_rounds, crowd) = (crowd.is_some(), crowd.unwrap_or_default());
        let of_crowd = |doc| crowd.binary_search(&doc).is_ok();
        let prefixes = prefixes.map(|prefixes| prefixes.among(of_crowd)).transpose()?;
        let stores_texts = has_rounds && mapped.stores_texts;
        let of_worker = stores_texts.then(|| mapped.docs_of(worker)).transpose()?;
        // The verification holds the rest.
        let share = budget.shared_by(Verify::HOLDERS);
        Ok(Matched {
            settled: FoundLinks::new(&share),
            open: FoundLinks::of_copies(copies, &share),
            names: method.verified.then(|| NameSpool::new(&share)),
            has_rounds,
            crowd: Crowd::new(crowd, of_worker, budget),
            prefixes,
            asked: AskedPairs::new(budget),
            compared: 0,
            loads,
            last: None,
        })
    }

    /// Returns what was counted.
    pub fn counts(self) -> SearchResult {
        SearchResult { candidates: self.compared, loads: vec![self.loads], ..SearchResult::default() }
    }
}
