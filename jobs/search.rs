//! Finding the pairs: what every worker does between reading the corpus and writing it.

use std::sync::Arc;

use anyhow::Result;
use datasets::{Error, Reading};
use operators::flow::{BlockLoad, Compared, Map, Needs, Verify, compare};
use operators::method::{Method, MethodJob};
use operators::text::Cleaner;
use operators::{DocId, Matches, Reject, Similarity};
use timely::worker::Worker;

use crate::drive;
use crate::plan::Plan;
use crate::progress::{Progress, Stage};

/// A search of a planned corpus.
pub(crate) struct Search {
    pub plan: Arc<Plan>,
    pub reading: Reading,
    /// The least similarity of features that a pair needs; `None`: matching fingerprints are enough.
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
        let workers = self.workers;
        let parts =
            cluster::run(workers, move |worker| self.on_worker(worker, cleaner.clone(), method.clone()))?;
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
            all.loads.append(&mut part.loads);
        }
        all.matches.copies.sort_unstable();
        all.matches.pairs.sort_unstable();
        all.named.sort_unstable();
        all.rejects.sort_by_key(|reject| reject.doc);
        Ok(all)
    }
}

impl Search {
    fn on_worker<M: Method>(
        &self,
        worker: &mut Worker,
        mut cleaner: Cleaner,
        mut method: M,
    ) -> Result<Found> {
        let mut found = Found::default();
        let (index, peers) = (worker.index(), worker.peers());

        self.progress.enter(Stage::Map);
        let mut map = Map::new(worker, cleaner.clone(), method.clone(), self.verify.is_some());
        for (number, split) in drive::splits_of(&self.plan, index, peers) {
            let without = drive::read(number, split, &self.reading, &self.progress, |batch| {
                found.docs += batch.docs().len() as u64;
                found.text_bytes += batch.text_bytes() as u64;
                found.replaced += batch.replaced();
                found.rejects.append(&mut batch.take_rejects());
                map.batch(worker, batch);
            })?;
            found.without_field = found.without_field.or(without.map(|error| (number, error)));
        }
        let mapped = map.finish(worker);
        found.distinct = mapped.rows.len() as u64;

        self.progress.enter(Stage::Compare);
        let Compared { pairs, loads } = compare(worker, &mut method, mapped.rows);
        found.loads = vec![loads];
        found.candidates = pairs.len() as u64;

        self.progress.enter(Stage::Verify);
        let needs = Needs::exchange(worker, &pairs, &mapped.copies, self.verify.is_some());
        let mut verify = self.verify.map(|least| Verify::new(worker, &pairs, least));
        let mut features = Vec::new();
        for (number, split) in drive::splits_of(&self.plan, index, peers) {
            if !needs.any_of(number) {
                continue;
            }
            drive::read(number, split, &self.reading, &self.progress, |batch| {
                for doc in batch.docs() {
                    let Some(workers) = needs.of(doc.doc) else { continue };
                    let chars = doc.text.chars().count() as u64;
                    found.named.push(Named { doc: doc.doc, id: doc.id.to_owned(), chars });
                    features.clear();
                    for to in workers {
                        let Some(verify) = &mut verify else { continue };
                        if features.is_empty() {
                            method.features(cleaner.clean(doc.text), &mut features);
                        }
                        verify.send(to, doc.doc, &features);
                    }
                }
                if let Some(verify) = &mut verify {
                    verify.round(worker);
                }
            })?;
        }
        found.matches.copies = mapped.copies;
        found.matches.pairs = match verify {
            Some(verify) => {
                let near = verify.finish(worker);
                near.into_iter().map(|(pair, similarity)| (pair, Some(similarity))).collect()
            }
            None => pairs.into_iter().map(|pair| (pair, None)).collect(),
        };
        Ok(found)
    }
}
