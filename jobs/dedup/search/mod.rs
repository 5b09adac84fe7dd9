//! The search for pairs: the map stage, and then one of four searches on every worker.
//!
//! The searches are those by fingerprints (`fingerprints.rs`), by prefixes and by bands of sets (`sets.rs`),
//! and by the retrieval of `zhou2017` (`retrieval.rs`). This room uses `progress`, `corpus` and `output`;
//! `dedup` and `explain` use it.

mod fingerprints;
mod map;
mod retrieval;
mod sets;
mod verify;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use cluster::Group;
use datasets::Reading;
use operators::flow::BlockLoad;
use operators::hash::Secret;
use operators::method::map_records::{Bands, Fingerprints, Texts, Words};
use operators::method::zhou::retrieval::Comparisons;
use operators::method::{Method, MethodJob, SetMethod, SetSearch, Zhou};
use operators::text::Cleaner;
use operators::{FeatureCounts, Matches, Similarity, SpillBudget};
use serde::{Deserialize, Serialize};
use timely::worker::Worker;

use self::map::NoField;
use crate::corpus::doc_ids::DocIds;
use crate::corpus::plan::Plan;
use crate::output::map_output::MapOutputs;
use crate::output::rejects::Rejects;
use crate::progress::{Progress, StageTimer};

/// A search of a planned corpus.
pub(crate) struct CorpusSearch {
    pub plan: Arc<Plan>,
    pub reading: Reading,
    /// Least similarity of the features of a pair of matching fingerprints; `None` if pairs are not verified.
    pub verify: Option<Similarity>,
    pub cluster: Arc<Group>,
    pub progress: Arc<Progress>,
    /// Number of records that may be rejected; `None` for any number.
    pub max_rejects: Option<u64>,
    /// Folder of the map output.
    pub outputs: MapOutputs,
    /// Secret with which texts are hashed to find equal ones.
    pub secret: Secret,
    /// Memory of each worker, beyond which its records are spilled.
    pub scratch: SpillBudget,
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
    /// Number of different fingerprints or texts.
    pub distinct: u64,
    /// Pairs before verification.
    pub candidates: u64,
    /// Comparisons, if the method counts them.
    pub comparisons: Option<Comparisons>,
    /// For each worker, the rows of each block.
    pub loads: Vec<Vec<BlockLoad>>,
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
            all.distinct += part.distinct;
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

/// Part of the memory of a process that counters of features may fill, as a divisor. They are made before
/// anything else is held.
const SKETCH_SHARE: usize = 2;

/// Adds all of `part` to `all`. The first part is taken without being copied.
fn append<T>(all: &mut Vec<T>, part: Vec<T>) {
    if all.is_empty() { *all = part } else { all.extend(part) }
}

impl MethodJob for CorpusSearch {
    type Output = Result<SearchResult>;

    fn run<M: Method>(self, cleaner: Cleaner, method: M) -> Result<SearchResult> {
        let by_text = self.verify.map(|_| self.secret);
        let mapped = self.map(&Fingerprints::new(cleaner.clone(), method.clone(), by_text))?;
        self.on_workers(mapped, move |search, worker, at| {
            search.by_fingerprints(worker, at, cleaner.clone(), method.clone())
        })
    }

    fn sets(self, method: SetMethod) -> Result<SearchResult> {
        let SetMethod { cleaner, rule, search } = method;
        match search {
            SetSearch::Prefix => {
                let mapped = self.map(&Texts::new(cleaner, self.secret))?;
                let most = self.scratch.budget().map(|bytes| self.cluster.workers() * bytes / SKETCH_SHARE);
                let sketch = Arc::new(FeatureCounts::of_corpus(self.plan.bytes(), most));
                // Each worker takes one reference and drops it after its last use, to free the counters.
                let sketches = Mutex::new(vec![sketch; self.cluster.workers()]);
                self.on_workers(mapped, move |search, worker, at| {
                    let sketch = sketches.lock().unwrap_or_else(PoisonError::into_inner).pop();
                    let sketch = sketch.context("there are more workers than there should be")?;
                    search.by_prefix(worker, at, rule.clone(), sketch)
                })
            }
            SetSearch::Bands(minhash) => {
                let mapped = self.map(&Bands::new(cleaner.clone(), rule.clone(), minhash, self.secret))?;
                self.on_workers(mapped, move |search, worker, at| {
                    search.by_bands(worker, at, cleaner.clone(), rule.clone(), minhash)
                })
            }
        }
    }

    fn zhou(self, cleaner: Cleaner, method: Zhou) -> Result<SearchResult> {
        let mapped = self.map(&Words::new(cleaner, method.clone()))?;
        self.on_workers(mapped, move |search, worker, at| search.by_retrieval(worker, at, method.clone()))
    }

    fn secret(&self) -> Secret {
        self.secret
    }
}

impl CorpusSearch {
    /// Runs `search` on all workers, and joins the results of this process with that of its map stage.
    fn on_workers(
        self,
        mapped: SearchResult,
        search: impl Fn(&CorpusSearch, &mut Worker, &StageTimer) -> Result<SearchResult> + Send + Sync + 'static,
    ) -> Result<SearchResult> {
        let cluster = Arc::clone(&self.cluster);
        let (scratch, progress) = (self.scratch.clone(), Arc::clone(&self.progress));
        let parts =
            cluster.run(move |worker| search(&self, worker, &self.progress.worker(worker.index())))?;
        progress.spilled_bytes.fetch_add(scratch.spilled().bytes, Ordering::Relaxed);
        Ok(SearchResult::join([mapped].into_iter().chain(parts)))
    }
}
