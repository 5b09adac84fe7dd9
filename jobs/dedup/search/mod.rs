//! The search for pairs: map, join, verify.
//!
//! The map stage (`map.rs`) stores what the search of the method needs of each document. The join (`join.rs`)
//! makes candidates of it, and verification (`verify.rs`) decides them by the rule of the method. `zhou2017`
//! has a search of its own (`retrieval.rs`). This room uses `progress`, `corpus` and `output`; `dedup` and
//! `explain` use it.

mod join;
mod map;
mod retrieval;
mod verify;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::Result;
use cluster::Group;
use datasets::Reading;
use operators::flow::Candidates;
use operators::hash::Secret;
use operators::method::map_records::{Bands, FINGERPRINTS, Fingerprints, Identities, Texts, Words};
use operators::method::zhou::retrieval::Comparisons;
use operators::method::{Method, Search};
use operators::search::PassLoad;
use operators::{Matches, SpillBudget};
use serde::{Deserialize, Serialize};
use timely::worker::Worker;

use self::join::FeatureCounters;
use self::map::NoField;
use crate::corpus::doc_ids::DocIds;
use crate::corpus::plan::Plan;
use crate::output::map_output::MapOutputs;
use crate::output::rejects::Rejects;
use crate::progress::{Progress, Stage, StageTimer};

/// A search of a planned corpus.
pub(crate) struct CorpusSearch {
    pub plan: Arc<Plan>,
    pub reading: Reading,
    pub cluster: Arc<Group>,
    pub progress: Arc<Progress>,
    /// Number of records that may be rejected; `None` for any number.
    pub max_rejects: Option<u64>,
    /// Folder of the map output.
    pub outputs: MapOutputs,
    /// Secret with which texts are hashed to find equal ones.
    pub secret: Secret,
    /// Memory of each worker, beyond which its records are spilled.
    pub spill: SpillBudget,
}

/// Result of a search, of one worker, of one process or of all together.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct SearchResult {
    pub matches: Matches,
    /// Ids of the documents of the matches, and perhaps of others.
    pub names: DocIds,
    pub rejects: Rejects,
    /// The first file without the fields that were asked for.
    pub without_field: Option<NoField>,
    /// Documents read, without rejected ones.
    pub docs: u64,
    pub text_bytes: u64,
    /// Documents whose illegal bytes were read as U+FFFD.
    pub replaced: u64,
    /// Pairs before verification.
    pub candidates: u64,
    /// Comparisons, if the method counts them.
    pub comparisons: Option<Comparisons>,
    /// For each worker, its load in each pass of the search.
    pub loads: Vec<Vec<PassLoad>>,
}

impl SearchResult {
    /// Joins the results of several workers or processes.
    pub fn join(parts: impl IntoIterator<Item = SearchResult>) -> Self {
        let mut all = SearchResult::default();
        for mut part in parts {
            append(&mut all.matches.copies, part.matches.copies);
            append(&mut all.matches.pairs, part.matches.pairs);
            all.names.append(part.names);
            all.rejects.join(part.rejects);
            let both = all.without_field.into_iter().chain(part.without_field.take());
            all.without_field = both.min_by_key(|missing| missing.split);
            all.docs += part.docs;
            all.text_bytes += part.text_bytes;
            all.replaced += part.replaced;
            all.candidates += part.candidates;
            all.comparisons = all.comparisons.into_iter().chain(part.comparisons).reduce(|a, b| a + b);
            all.loads.append(&mut part.loads);
        }
        all.matches.copies.sort_unstable_by_key(|&(doc, first)| (first, doc));
        all.matches.pairs.sort_unstable();
        all.names.sort();
        all
    }
}

/// Adds all of `part` to `all`. The first part is taken without being copied.
fn append<T>(all: &mut Vec<T>, part: Vec<T>) {
    if all.is_empty() { *all = part } else { all.extend(part) }
}

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
        let cluster = Arc::clone(&self.cluster);
        let (spill, progress) = (self.spill.clone(), Arc::clone(&self.progress));
        let parts = cluster.run(move |worker| {
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
            Search::Bands(minhash) => self.join(worker, &copies, *minhash, |band| Bands::section(*band))?,
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
