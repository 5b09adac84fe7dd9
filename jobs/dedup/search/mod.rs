//! The search for pairs: map, join, verify.
//!
//! The map stage (`map.rs`) stores what the search of the method needs of each document. The join (`join.rs`)
//! makes candidates of it, and verification (`verify.rs`) decides them by the rule of the method. `zhou2017`
//! has a search of its own (`retrieval.rs`). Every search ends with its clusters, which are decided at once. This room uses `progress`, `corpus` and `output`; `dedup`,
//! `explain` and `rethreshold` use it.

mod asked;
mod asking;
mod corpus_search;
mod crowd;
mod earlier;
mod earlier_join;
mod found_docs;
mod join;
mod kept_rows;
mod map;
mod night;
mod retrieval;
mod rounds;
mod verify;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::{Result, bail};
use operators::fingerprint::Bits;
use operators::fingerprint::block_tables::BlockTable;
use operators::flow::{Candidates, GatheredClusters, PrefixJoin, Skew};
use operators::method::map_records::{Bands, FINGERPRINTS, Fingerprints, Identities, Texts, Words};
use operators::method::{Method, Search, SimHash};
use operators::search::bands::BandSearch;
use operators::search::blocks::BlockSearch;
use operators::search::crowds::Asks;
use operators::sets::minhash::MinHash;
use timely::worker::Worker;

pub(crate) use self::corpus_search::{CorpusSearch, SearchResult, SideCounts};
use self::earlier_join::EarlierJoin;
use self::join::FeatureCounters;
use self::map::IdenticalDocs;
pub(crate) use self::map::PartMapper;
use crate::progress::{Stage, StageTimer};
use crate::state::NightState;

impl CorpusSearch {
    /// Maps the splits of this process, searches on all workers, and calls `decide` on each with its clusters.
    /// Returns the joined results of this process, and those of `decide`.
    pub fn run<T: Send + 'static>(
        self,
        method: Method,
        decide: impl Fn(&mut Worker, GatheredClusters) -> Result<T> + Send + Sync + 'static,
    ) -> Result<(SearchResult, Vec<T>)> {
        let mapped = self.map_all(&method)?;
        self.find(mapped, method, decide)
    }

    /// Maps the splits of this process. Returns the counts and rejects of all of them.
    pub fn map_all(&self, method: &Method) -> Result<SearchResult> {
        let Method { cleaner, search, rule, verified } = method.clone();
        // Texts that differ in ignored lines alone have one fingerprint, and are not identical.
        let by_text = Some(self.secret).filter(|_| verified || self.ignored.is_some());
        match search {
            Search::Nothing => self.map(cleaner, &Identities::new(self.secret)),
            Search::SimHash64(simhash) => self.map(cleaner, &Fingerprints::new(simhash, by_text)),
            Search::SimHash128(simhash) => self.map(cleaner, &Fingerprints::new(simhash, by_text)),
            Search::Bands(minhash) => self.map(cleaner, &Bands::new(rule, minhash, self.secret)),
            Search::Prefix => self.map(cleaner, &Texts::new(self.secret)),
            Search::Zhou(zhou) => self.map(cleaner, &Words::new(zhou)),
        }
    }

    /// Searches the map output on all workers, and calls `decide` on each with its clusters. `mapped`: the
    /// result of [`CorpusSearch::map_all`]. Returns the joined results of this process, and those of `decide`.
    pub fn find<T: Send + 'static>(
        self,
        mapped: SearchResult,
        method: Method,
        decide: impl Fn(&mut Worker, GatheredClusters) -> Result<T> + Send + Sync + 'static,
    ) -> Result<(SearchResult, Vec<T>)> {
        let counters = self.feature_counters(&method);
        let group = Arc::clone(&self.group);
        let (spill, progress) = (self.spill.clone(), Arc::clone(&self.progress));
        let parts = group.run(move |worker| {
            let at = self.progress.worker(worker.index());
            at.enter(Stage::Compare);
            let mut found = SearchResult::default();
            let clusters = match &method.search {
                Search::Zhou(zhou) => self.retrieve(worker, &at, zhou.clone(), &mut found),
                _ => self.search(worker, &at, method.clone(), &counters, &mut found),
            }?;
            at.enter(Stage::Resolve);
            anyhow::Ok((found, decide(worker, clusters)?))
        })?;
        progress.spilled_bytes.fetch_add(spill.spilled().bytes, Ordering::Relaxed);
        let (found, decided): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        Ok((SearchResult::join([mapped].into_iter().chain(found)), decided))
    }

    /// Finds the clusters of this worker in the map output: collapses identical documents, finds candidates
    /// among the first ones, and verifies them.
    fn search(
        &self,
        worker: &mut Worker,
        at: &StageTimer,
        method: Method,
        counters: &FeatureCounters,
        found: &mut SearchResult,
    ) -> Result<GatheredClusters> {
        if let Some(night) = &self.night {
            return self.search_night(worker, at, (&method, night), found);
        }
        let copies = self.collapse(worker)?;
        let prefixes = match &method.search {
            Search::Prefix => Some(self.join_prefixes(worker, &copies, &method.rule, counters)?),
            _ => None,
        };
        let Candidates { pairs, loads, crowd, .. } =
            self.candidates(worker, &method, (&copies, prefixes.as_ref()), None)?;
        found.loads = vec![loads];
        at.enter(Stage::Verify);
        let copies = copies.of_input(self.sides);
        match crowd {
            None => {
                drop(prefixes);
                self.verify(worker, at, &method, pairs, copies, found)
            }
            Some(crowd) => {
                let docs =
                    self.rounds(worker, at, (&method, prefixes, None), (pairs, copies, crowd), found)?;
                at.enter(Stage::Resolve);
                self.gather(worker, at, &docs)
            }
        }
    }

    /// Finds the candidates: all, or those of keys that are not crowded if rounds follow.
    fn candidates(
        &self,
        worker: &mut Worker,
        method: &Method,
        (copies, prefixes): (&IdenticalDocs, Option<&PrefixJoin>),
        earlier: Option<&mut EarlierJoin>,
    ) -> Result<Candidates> {
        let asks = if self.leaders.is_some() && method.verified { Asks::Nearest } else { Asks::All };
        Ok(match &method.search {
            Search::SimHash64(simhash) => {
                self.join(worker, copies, self.blocks(simhash, method), earlier, asks)?
            }
            Search::SimHash128(simhash) => {
                self.join(worker, copies, self.blocks(simhash, method), earlier, asks)?
            }
            Search::Bands(minhash) => {
                self.join(worker, copies, self.bands(minhash, method), earlier, asks)?
            }
            Search::Prefix => match prefixes {
                Some(prefixes) => prefixes.candidates(worker, Skew::default(), asks, None)?,
                None => Candidates::none(),
            },
            Search::Nothing | Search::Zhou(_) => Candidates::none(),
        })
    }

    /// Returns the search by the fingerprints of a method, and the section of the map output that has the records of a pass.
    fn blocks<W: Bits>(
        &self,
        simhash: &SimHash<W>,
        method: &Method,
    ) -> (BlockSearch<W>, impl Fn(&BlockTable<W>) -> usize + use<W>) {
        let verified = Some(&method.rule).filter(|_| method.verified);
        (BlockSearch::new(simhash.join.clone(), verified).between(self.sides), |_| FINGERPRINTS)
    }

    /// Returns the search by the bands of a method, and the section of the map output that has the records of a pass.
    fn bands(&self, minhash: &MinHash, method: &Method) -> (BandSearch, impl Fn(&u32) -> usize + use<>) {
        (BandSearch::new(*minhash, &method.rule).between(self.sides), |band| Bands::section(*band))
    }

    /// Writes what the state keeps of the documents of this worker.
    fn keep(
        &self,
        worker: &mut Worker,
        copies: &IdenticalDocs,
        method: &Method,
        (night, found): (&NightState, &mut SearchResult),
    ) -> Result<()> {
        let mut runs = night.runs(&format!("{:05}", worker.index()));
        let texts = match &method.search {
            Search::SimHash64(simhash) => {
                self.keep_keys(worker, (night, &mut runs), copies, self.blocks(simhash, method))?;
                FINGERPRINTS + 1
            }
            Search::SimHash128(simhash) => {
                self.keep_keys(worker, (night, &mut runs), copies, self.blocks(simhash, method))?;
                FINGERPRINTS + 1
            }
            Search::Bands(minhash) => {
                self.keep_keys(worker, (night, &mut runs), copies, self.bands(minhash, method))?;
                Texts::TEXTS
            }
            Search::Nothing => 1,
            Search::Prefix | Search::Zhou(_) => bail!("this method keeps no keys"),
        };
        let with_texts = !matches!(method.search, Search::Nothing);
        self.keep_documents(worker, (night, &mut runs), copies, (texts, with_texts))?;
        found.runs = runs.entries();
        Ok(())
    }
}
