//! Finding the pairs: the map stage, then what every worker does with its output.

mod fingerprints;
mod map;
mod retrieval;
mod sets;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::Result;
use cluster::Cluster;
use datasets::Reading;
use operators::flow::{BlockLoad, Needs, Portions, Verify};
use operators::mapped::{Bands, Fingerprints, Texts, Words};
use operators::method::{Method, MethodJob, SetMethod, SetSearch, Zhou};
use operators::retrieval::Comparisons;
use operators::text::Cleaner;
use operators::{DocBatch, Matches, Pair, Reject, Scratch, Similarity, Sketch, Sorted};
use serde::{Deserialize, Serialize};
use timely::worker::Worker;

use self::map::NoField;
use crate::drive;
use crate::map_output::MapOutputs;
use crate::names::Names;
use crate::plan::Plan;
use crate::progress::{At, Progress};

/// A search of a planned corpus.
pub(crate) struct Search {
    pub plan: Arc<Plan>,
    pub reading: Reading,
    /// The least similarity of features that a pair of matching fingerprints needs; `None`: none.
    pub verify: Option<Similarity>,
    pub cluster: Arc<Cluster>,
    pub progress: Arc<Progress>,
    /// Where the map stage leaves its output.
    pub outputs: MapOutputs,
    /// What each worker has for what it holds.
    pub scratch: Scratch,
}

/// What was found, by this process or by all together.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct Found {
    pub matches: Matches,
    /// Of the documents of the matches, and perhaps of others.
    pub names: Names,
    /// Sorted by place.
    pub rejects: Vec<Reject>,
    /// The first file without the fields that were asked for.
    pub without_field: Option<NoField>,
    /// Documents read, without rejected ones.
    pub docs: u64,
    pub text_bytes: u64,
    /// Documents whose illegal bytes were read as U+FFFD.
    pub replaced: u64,
    /// Documents with a fingerprint, or text, of their own.
    pub distinct: u64,
    /// Pairs before verification.
    pub candidates: u64,
    /// Where the method counts them.
    pub comparisons: Option<Comparisons>,
    /// For each worker, the rows of each block.
    pub loads: Vec<Vec<BlockLoad>>,
}

impl Found {
    fn mean_text_bytes(&self) -> usize {
        (self.text_bytes / self.docs.max(1)) as usize
    }

    /// What several found together.
    pub fn join(parts: impl IntoIterator<Item = Found>) -> Self {
        let mut all = Found::default();
        for mut part in parts {
            append(&mut all.matches.copies, part.matches.copies);
            append(&mut all.matches.pairs, part.matches.pairs);
            all.names.append(part.names);
            all.rejects.append(&mut part.rejects);
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
        all.rejects.sort_by_key(|reject| reject.doc);
        all
    }
}

/// Of a process' memory for what is held, one in so many parts is for counters of features.
const SKETCH_SHARE: usize = 4;
/// Of features, for each byte of text: a feature is 8 bytes, and a character 1 or 3.
const FEATURE_BYTES: usize = 3;

/// Adds all of `part`; the first part is taken as it is.
fn append<T>(all: &mut Vec<T>, part: Vec<T>) {
    if all.is_empty() { *all = part } else { all.extend(part) }
}

impl MethodJob for Search {
    type Output = Result<Found>;

    fn run<M: Method>(self, cleaner: Cleaner, method: M) -> Result<Found> {
        let mapped = self.map(&Fingerprints::new(cleaner.clone(), method.clone(), self.verify.is_some()))?;
        let text_bytes = mapped.mean_text_bytes();
        self.on_workers(mapped, move |search, worker, at| {
            search.by_fingerprints(worker, at, cleaner.clone(), method.clone(), text_bytes)
        })
    }

    fn sets(self, method: SetMethod) -> Result<Found> {
        let SetMethod { cleaner, rule, search } = method;
        match search {
            SetSearch::Prefix => {
                let mapped = self.map(&Texts::new(cleaner))?;
                let most = self.scratch.budget().map(|bytes| self.cluster.workers() * bytes / SKETCH_SHARE);
                let sketch = Arc::new(Sketch::of_corpus(self.plan.bytes(), most));
                self.on_workers(mapped, move |search, worker, at| {
                    search.by_prefix(worker, at, rule.clone(), &sketch)
                })
            }
            SetSearch::Bands(minhash) => {
                let mapped = self.map(&Bands::new(cleaner.clone(), rule.clone(), minhash))?;
                let text_bytes = mapped.mean_text_bytes();
                self.on_workers(mapped, move |search, worker, at| {
                    search.by_bands(worker, at, cleaner.clone(), rule.clone(), minhash, text_bytes)
                })
            }
        }
    }

    fn zhou(self, cleaner: Cleaner, method: Zhou) -> Result<Found> {
        let mapped = self.map(&Words::new(cleaner, method.clone()))?;
        self.on_workers(mapped, move |search, worker, at| search.by_retrieval(worker, at, method.clone()))
    }
}

impl Search {
    /// Searches on all workers, and joins what those of this process found to what its map stage did.
    fn on_workers(
        self,
        mapped: Found,
        search: impl Fn(&Search, &mut Worker, &At) -> Result<Found> + Send + Sync + 'static,
    ) -> Result<Found> {
        let cluster = Arc::clone(&self.cluster);
        let (scratch, progress) = (self.scratch.clone(), Arc::clone(&self.progress));
        let parts =
            cluster.run(move |worker| search(&self, worker, &self.progress.worker(worker.index())))?;
        progress.spilled_bytes.fetch_add(scratch.spilled().bytes, Ordering::Relaxed);
        Ok(Found::join([mapped].into_iter().chain(parts)))
    }

    /// Reads the splits of candidates again, a portion of these at a time, and keeps those that `verify` finds alike;
    /// if it gives nothing, all are kept. `text_bytes`: of a document in the mean.
    #[expect(clippy::too_many_arguments, reason = "two of them are what the methods differ in")]
    fn verify_in_portions(
        &self,
        worker: &mut Worker,
        at: &At,
        found: &mut Found,
        pairs: Sorted<Pair>,
        text_bytes: usize,
        verify: impl Fn(&mut Worker, &[Pair]) -> Option<Verify>,
        mut features: impl FnMut(&str, &mut Vec<u64>),
    ) -> Result<()> {
        // Little else is held by now, and each portion reads the splits again.
        let mut portions = Portions::new(pairs, &self.scratch, FEATURE_BYTES * text_bytes);
        let copies = std::mem::take(&mut found.matches.copies);
        let mut unnamed = &copies[..];
        while let Some(pairs) = portions.next(worker)? {
            found.candidates += pairs.len() as u64;
            let mut verify = verify(worker, &pairs);
            let copies = std::mem::take(&mut unnamed);
            let needs = Needs::exchange(worker, &pairs, copies, verify.is_some());
            let mut names = self.read_candidates(worker, at, &needs, &mut verify, &mut features)?;
            let mut near = match verify {
                Some(verify) => verified(verify.finish(worker)),
                None => pairs.into_iter().map(|pair| (pair, None)).collect(),
            };
            // Of candidates that came to nothing there may be very many.
            let matched: Vec<Pair> = near.iter().map(|(pair, _)| *pair).collect();
            let matched = Needs::exchange(worker, &matched, copies, false);
            names.retain(|doc| matched.of(doc).is_some());
            found.names.append(names);
            // A document of several portions was named several times.
            found.names.sort();
            found.matches.pairs.append(&mut near);
        }
        found.matches.copies = copies;
        Ok(())
    }

    /// Reads the splits of candidates again: names their documents, and sends what they are compared by, which
    /// `features` puts into an empty list, to the pairs that wait for it.
    fn read_candidates(
        &self,
        worker: &mut Worker,
        at: &At,
        needs: &Needs,
        verify: &mut Option<Verify>,
        mut features: impl FnMut(&str, &mut Vec<u64>),
    ) -> Result<Names> {
        let (mut names, mut list) = (Names::default(), Vec::new());
        for (number, split) in drive::splits_of(&self.plan, worker.index(), worker.peers()) {
            if !needs.any_of(number) {
                continue;
            }
            let each = |batch: &mut DocBatch| {
                for doc in batch.docs() {
                    let Some(workers) = needs.of(doc.doc) else { continue };
                    names.add(doc.doc, doc.id, doc.text.chars().count() as u64);
                    list.clear();
                    for to in workers {
                        let Some(verify) = verify.as_mut() else { continue };
                        if list.is_empty() {
                            features(doc.text, &mut list);
                        }
                        verify.send(worker, to, doc.doc, &list);
                    }
                }
                if let Some(verify) = verify.as_mut() {
                    verify.round(worker);
                }
                Ok(())
            };
            at.split(number, split, || drive::read(number, split, &self.reading, at, each))?;
        }
        Ok(names)
    }
}

/// Pairs with the similarity that was measured.
fn verified(near: Vec<(Pair, Similarity)>) -> Vec<(Pair, Option<Similarity>)> {
    near.into_iter().map(|(pair, similarity)| (pair, Some(similarity))).collect()
}
