//! The map output of a search, as the later stages read it, and the counters that they share.

use std::sync::Arc;

use anyhow::{Result, bail};
use operators::hash::Identity;
use operators::search::Search;
use operators::search::map_records::StoredText;
use operators::{FeatureCounts, memory_plan};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use timely::worker::Worker;

use super::corpus_search::{CorpusSearch, SideCounts};
use super::links::IdenticalDocs;
use runtime::corpus::split::Split;
use runtime::corpus::splits;
use runtime::output::rejects::Rejects;

/// Facts about a mapped split, which are kept in the head of its map output.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(super) struct Head {
    /// Identity of the empty text, by which the secret of the identities is recognised.
    pub secret: Identity,
    /// Checksums of the bytes that were read of each piece.
    pub sums: Vec<Vec<(u64, u64)>>,
    pub counts: SideCounts,
    pub rejects: Rejects,
}

/// References to the counters that the workers of this process share, if the search counts any. Each worker takes
/// its own and drops them after their last use, to free the counters.
pub(super) struct FeatureCounters(Mutex<Vec<CountersOfWorker>>);

/// Counters of features, and of the features that are looked up, if the rule needs marks of these.
#[derive(Clone)]
pub(super) struct CountersOfWorker {
    pub features: Arc<FeatureCounts>,
    pub lookups: Option<Arc<FeatureCounts>>,
}

impl FeatureCounters {
    /// Makes the counters that a search by prefixes needs, and none for others.
    fn new(search: &CorpusSearch) -> Self {
        let method = &search.method;
        let workers = match method.search {
            Search::Prefix => search.run.group.workers(),
            _ => 0,
        };
        let marks = method.rule.needs_lookup_marks();
        let most = search
            .spill
            .budget()
            .map(|bytes| workers * bytes / memory_plan::COUNTERS / (1 + usize::from(marks)));
        let counts = || Arc::new(FeatureCounts::of_corpus(search.run.plan.text_bytes, most));
        let counters =
            (workers > 0).then(|| CountersOfWorker { features: counts(), lookups: marks.then(counts) });
        FeatureCounters(Mutex::new(counters.map_or(Vec::new(), |counters| vec![counters; workers])))
    }

    /// Returns the counters of the next worker.
    pub fn of_worker(&self) -> Option<CountersOfWorker> {
        self.0.lock().pop()
    }
}

/// A search of which every split is mapped.
pub struct Mapped {
    /// The search, whose `outputs` hold the map output.
    pub search: CorpusSearch,
    /// Whether the map output has what is compared of each text.
    pub stores_texts: bool,
    /// Counters that the workers of this process share.
    pub(super) counters: FeatureCounters,
}

impl Mapped {
    /// Takes a search whose splits are mapped.
    pub fn new(search: CorpusSearch) -> Self {
        let stores_texts = search.method.text_search().stores_texts();
        Mapped { counters: FeatureCounters::new(&search), stores_texts, search }
    }

    /// Returns the splits that a worker reads.
    pub fn splits<'a>(&'a self, worker: &Worker) -> impl Iterator<Item = (u32, &'a Split)> + use<'a> {
        splits::splits_of(&self.search.run.plan, worker.index(), worker.peers())
    }

    /// Reads a section of the map output of this worker's splits, frame by frame.
    pub fn section(
        &self,
        worker: &mut Worker,
        section: usize,
        mut each: impl FnMut(&mut Worker, &[u8]),
    ) -> Result<()> {
        for (number, _) in self.splits(worker) {
            let (_, output) = self.search.outputs.open::<Head>(number)?;
            output.read(section, |frame| {
                each(worker, frame);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Returns the number of documents of this worker's splits.
    pub fn docs_of(&self, worker: &Worker) -> Result<u64> {
        self.splits(worker)
            .map(|(number, _)| Ok(self.search.outputs.open::<Head>(number)?.0.counts.docs))
            .sum()
    }

    /// Calls `each` with the documents of this worker's splits that are the first of their text, from the map output. Documents
    /// without text are left out, since they are nobody's duplicates.
    pub fn first_texts(
        &self,
        worker: &mut Worker,
        copies: &IdenticalDocs,
        mut each: impl FnMut(StoredText),
    ) -> Result<()> {
        let mut firsts = copies.walk();
        for (number, _) in self.splits(worker) {
            self.texts_of(worker, number, |_, text| {
                if !text.text.is_empty() && firsts.is_first(text.doc) {
                    each(text);
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Calls `each` with every document of a split and its text, from the map output. Lets the engine work
    /// after each frame.
    ///
    /// # Errors
    /// When the map output has another number of texts than its head says; those of reading and of `each`.
    pub fn texts_of<T>(
        &self,
        worker: &mut Worker,
        number: u32,
        each: impl FnMut(&mut Worker, StoredText) -> Result<T>,
    ) -> Result<()> {
        self.stored_texts(worker, number, StoredText::SECTION, each)
    }

    /// Does the same as [`Mapped::texts_of`] with the section of that number.
    pub fn stored_texts<T>(
        &self,
        worker: &mut Worker,
        number: u32,
        section: usize,
        mut each: impl FnMut(&mut Worker, StoredText) -> Result<T>,
    ) -> Result<()> {
        let (head, output) = self.search.outputs.open::<Head>(number)?;
        let mut docs = 0;
        output.read(section, |frame| {
            for text in StoredText::all(frame) {
                docs += 1;
                each(worker, text)?;
            }
            worker.step();
            Ok(())
        })?;
        if docs != head.counts.docs {
            bail!("the map output of split {number} has {docs} of {} texts", head.counts.docs);
        }
        Ok(())
    }
}
