//! Finding the pairs: what every worker does between reading the corpus and writing it.

mod fingerprints;
mod retrieval;
mod sets;

use std::sync::Arc;

use anyhow::Result;
use datasets::{Error, Reading};
use operators::flow::{BlockLoad, Needs, Verify};
use operators::method::{Method, MethodJob, SetMethod, SetSearch, Zhou};
use operators::retrieval::Comparisons;
use operators::text::Cleaner;
use operators::{Doc, DocBatch, DocId, Matches, Pair, Reject, Similarity, Sketch};
use timely::worker::Worker;

use crate::drive;
use crate::plan::Plan;
use crate::progress::{At, Progress, Stage};

/// A search of a planned corpus.
pub(crate) struct Search {
    pub plan: Arc<Plan>,
    pub reading: Reading,
    /// The least similarity of features that a pair of matching fingerprints needs; `None`: none.
    pub verify: Option<Similarity>,
    pub workers: usize,
    pub progress: Arc<Progress>,
}

/// What all workers found together.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub matches: Matches,
    /// The documents of the matches, and of candidates that came to nothing; sorted.
    pub named: Vec<Named>,
    /// Sorted by place.
    pub rejects: Vec<Reject>,
    /// The first file without the fields that were asked for, and its split.
    pub without_field: Option<(u32, Error)>,
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

/// A document that matters after the map stage.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Named {
    pub doc: DocId,
    pub id: String,
    /// Of its text, in characters.
    pub chars: u64,
}

impl MethodJob for Search {
    type Output = Result<Found>;

    fn run<M: Method>(self, cleaner: Cleaner, method: M) -> Result<Found> {
        self.on_workers(move |search, worker, at| {
            search.by_fingerprints(worker, at, cleaner.clone(), method.clone())
        })
    }

    fn sets(self, method: SetMethod) -> Result<Found> {
        let counted = if method.search == SetSearch::Prefix { self.plan.bytes() } else { 0 };
        let sketch = Arc::new(Sketch::of_corpus(counted));
        let seen = Arc::default();
        self.on_workers(move |search, worker, at| search.by_sets(worker, at, method.clone(), &sketch, &seen))
    }

    fn zhou(self, cleaner: Cleaner, method: Zhou) -> Result<Found> {
        self.on_workers(move |search, worker, at| {
            search.by_retrieval(worker, at, cleaner.clone(), method.clone())
        })
    }
}

impl Search {
    /// Searches on all workers, and joins what they found.
    fn on_workers(
        self,
        search: impl Fn(&Search, &mut Worker, &At) -> Result<Found> + Send + Sync + 'static,
    ) -> Result<Found> {
        let parts = cluster::run(self.workers, move |worker| {
            search(&self, worker, &self.progress.worker(worker.index()))
        })?;
        let mut all = Found::default();
        for mut part in parts {
            all.matches.copies.append(&mut part.matches.copies);
            all.matches.pairs.append(&mut part.matches.pairs);
            all.named.append(&mut part.named);
            all.rejects.append(&mut part.rejects);
            let both = all.without_field.into_iter().chain(part.without_field.take());
            all.without_field = both.min_by_key(|(split, _)| *split);
            all.docs += part.docs;
            all.text_bytes += part.text_bytes;
            all.replaced += part.replaced;
            all.distinct += part.distinct;
            all.candidates += part.candidates;
            all.comparisons = all.comparisons.into_iter().chain(part.comparisons).reduce(|a, b| a + b);
            all.loads.append(&mut part.loads);
        }
        all.matches.copies.sort_unstable();
        all.matches.pairs.sort_unstable();
        all.named.sort_unstable();
        all.rejects.sort_by_key(|reject| reject.doc);
        Ok(all)
    }

    /// The first reading of this worker's splits: counts, and calls `each` with every batch.
    fn read_all(
        &self,
        worker: &mut Worker,
        at: &At,
        found: &mut Found,
        mut each: impl FnMut(&mut Worker, &DocBatch),
    ) -> Result<()> {
        at.enter(Stage::Map);
        for (number, split) in drive::splits_of(&self.plan, worker.index(), worker.peers()) {
            let without = at.split(number, split, || {
                drive::read(number, split, &self.reading, at, |batch| {
                    found.docs += batch.docs().len() as u64;
                    found.text_bytes += batch.text_bytes() as u64;
                    found.replaced += batch.replaced();
                    found.rejects.append(&mut batch.take_rejects());
                    each(worker, batch);
                })
            })?;
            found.without_field = found.without_field.take().or(without.map(|error| (number, error)));
        }
        Ok(())
    }

    /// A later reading of this worker's splits, without those that `wanted` leaves out.
    fn read_again(
        &self,
        worker: &mut Worker,
        at: &At,
        wanted: impl Fn(u32) -> bool,
        mut each: impl FnMut(&mut Worker, &DocBatch),
    ) -> Result<()> {
        for (number, split) in drive::splits_of(&self.plan, worker.index(), worker.peers()) {
            if wanted(number) {
                let read = || drive::read(number, split, &self.reading, at, |batch| each(worker, batch));
                at.split(number, split, read)?;
            }
        }
        Ok(())
    }

    /// Reads the splits of candidates again: names their documents, and sends what they are compared by, which
    /// `features` puts into an empty list, to the pairs that wait for it.
    fn read_candidates(
        &self,
        worker: &mut Worker,
        at: &At,
        found: &mut Found,
        needs: &Needs,
        mut verify: Option<&mut Verify>,
        mut features: impl FnMut(&str, &mut Vec<u64>),
    ) -> Result<()> {
        let mut list = Vec::new();
        self.read_again(
            worker,
            at,
            |split| needs.any_of(split),
            |worker, batch| {
                for doc in batch.docs() {
                    let Some(workers) = needs.of(doc.doc) else { continue };
                    found.named.push(Named::new(&doc));
                    list.clear();
                    for to in workers {
                        let Some(verify) = &mut verify else { continue };
                        if list.is_empty() {
                            features(doc.text, &mut list);
                        }
                        verify.send(to, doc.doc, &list);
                    }
                }
                if let Some(verify) = &mut verify {
                    verify.round(worker);
                }
            },
        )
    }
}

impl Named {
    fn new(doc: &Doc) -> Self {
        Named { doc: doc.doc, id: doc.id.to_owned(), chars: doc.text.chars().count() as u64 }
    }
}

/// Pairs with the similarity that was measured.
fn verified(near: Vec<(Pair, Similarity)>) -> Vec<(Pair, Option<Similarity>)> {
    near.into_iter().map(|(pair, similarity)| (pair, Some(similarity))).collect()
}
