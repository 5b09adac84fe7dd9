//! The search for pairs: map, join, verify.
//!
//! The map stage (`map.rs`) stores what the search of the method needs of each document. The join (`join.rs`)
//! makes candidates of it, and verification (`verify.rs`) decides them by the rule of the method. `zhou2017`
//! has a search of its own (`retrieval.rs`). This room uses `progress`, `corpus` and `output`; `dedup`,
//! `explain` and `rethreshold` use it.

mod corpus_search;
mod join;
mod map;
mod retrieval;
mod verify;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::Result;
use operators::flow::Candidates;
use operators::method::map_records::{Bands, FINGERPRINTS, Fingerprints, Identities, Texts, Words};
use operators::method::{Method, Search};
use operators::search::bands::BandSearch;
use timely::worker::Worker;

pub(crate) use self::corpus_search::{CorpusSearch, SearchResult};
use self::join::FeatureCounters;
use crate::progress::{Stage, StageTimer};

impl CorpusSearch {
    /// Maps the splits of this process, searches on all workers, and joins the results of this process.
    pub fn run(self, method: Method) -> Result<SearchResult> {
        let Method { cleaner, search, rule, verified } = method.clone();
        let by_text = Some(self.secret).filter(|_| verified);
        let mapped = match search {
            Search::Nothing => self.map(&Identities::new(cleaner, self.secret)),
            Search::SimHash64(simhash) => self.map(&Fingerprints::new(cleaner, simhash, by_text)),
            Search::SimHash128(simhash) => self.map(&Fingerprints::new(cleaner, simhash, by_text)),
            Search::Bands(minhash) => self.map(&Bands::new(cleaner, rule, minhash, self.secret)),
            Search::Prefix => self.map(&Texts::new(cleaner, self.secret)),
            Search::Zhou(zhou) => self.map(&Words::new(cleaner, zhou)),
        }?;
        let counters = self.feature_counters(&method);
        let group = Arc::clone(&self.group);
        let (spill, progress) = (self.spill.clone(), Arc::clone(&self.progress));
        let parts = group.run(move |worker| {
            let at = self.progress.worker(worker.index());
            at.enter(Stage::Compare);
            match &method.search {
                Search::Zhou(zhou) => self.retrieve(worker, &at, zhou.clone()),
                _ => self.search(worker, &at, method.clone(), &counters),
            }
        })?;
        progress.spilled_bytes.fetch_add(spill.spilled().bytes, Ordering::Relaxed);
        Ok(SearchResult::join([mapped].into_iter().chain(parts)))
    }

    /// Finds the matches of this worker in the map output: collapses identical documents, finds candidates
    /// among the first ones, and verifies them.
    fn search(
        &self,
        worker: &mut Worker,
        at: &StageTimer,
        method: Method,
        counters: &FeatureCounters,
    ) -> Result<SearchResult> {
        let copies = self.collapse(worker)?;
        let Candidates { pairs, loads } = match &method.search {
            Search::SimHash64(simhash) => {
                self.join(worker, &copies, simhash.join.clone(), |_| FINGERPRINTS)?
            }
            Search::SimHash128(simhash) => {
                self.join(worker, &copies, simhash.join.clone(), |_| FINGERPRINTS)?
            }
            Search::Bands(minhash) => {
                let search = BandSearch::new(*minhash, &method.rule);
                self.join(worker, &copies, search, |band| Bands::section(*band))?
            }
            Search::Prefix => self.join_prefixes(worker, &copies, &method.rule, counters)?,
            Search::Nothing | Search::Zhou(_) => Candidates::none(),
        };
        let mut found = SearchResult { loads: vec![loads], ..SearchResult::default() };
        found.matches.copies = copies.0;
        at.enter(Stage::Verify);
        self.verify(worker, at, method, pairs, &mut found)?;
        Ok(found)
    }
}
