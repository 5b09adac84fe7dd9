//! The crowd that a join has found, on the workers that read its documents.

use std::cmp::Reverse;
use std::mem;

use foldhash::HashMap;
use timely::worker::Worker;

use crate::flow::exchange::shuffle::shuffle;
use crate::flow::exchange::sum::total;
use crate::flow::reader_of;
use crate::record::DocId;
use crate::search::crowds::{Crowded, Family};

/// Documents of a worker with crowded buckets, those that they have met and did not ask, and those that did not ask all.
pub(super) struct ReaderCrowd {
    /// In order, each with the first document of its family.
    docs: Vec<(DocId, DocId)>,
    /// Each with one document of its family.
    passed: HashMap<DocId, DocId>,
    cut: Vec<DocId>,
}

impl ReaderCrowd {
    /// Sends what a worker has noted to the workers that read the documents. All workers must call it.
    pub fn new(worker: &mut Worker, mut crowded: Crowded) -> Self {
        let (mut docs, mut passed) = (mem::take(&mut crowded.docs), mem::take(&mut crowded.passed));
        docs.values_mut().for_each(|(_, first)| *first = crowded.first_of(*first));
        passed.values_mut().for_each(|first| *first = crowded.first_of(*first));
        let mut docs = shuffle(worker, "Crowd", docs, |(doc, _): &(DocId, Family)| reader_of(*doc));
        docs.sort_unstable_by_key(|&(doc, family)| (doc, Reverse(family)));
        docs.dedup_by_key(|(doc, _)| *doc);
        ReaderCrowd {
            docs: docs.into_iter().map(|(doc, (_, first))| (doc, first)).collect(),
            passed,
            cut: shuffle(worker, "Cut", crowded.cut, |doc: &DocId| reader_of(*doc)),
        }
    }

    /// Whether a document has a crowded bucket.
    pub fn has(&self, doc: DocId) -> bool {
        self.docs.binary_search_by_key(&doc, |(doc, _)| *doc).is_ok()
    }

    /// Notes that a document did not ask these.
    pub fn cut_short(&mut self, asker: DocId, leaders: impl Iterator<Item = DocId>) {
        self.cut.push(asker);
        for leader in leaders {
            self.passed.entry(leader).or_insert(leader);
        }
    }

    /// Returns each document with the first one of its family, and the documents that did not ask all others, both in order.
    /// Returns no documents if all workers have asked all. All workers must call it.
    pub fn finish(self, worker: &mut Worker) -> (Option<Vec<(DocId, DocId)>>, Vec<DocId>) {
        let ReaderCrowd { mut docs, passed, mut cut } = self;
        cut.sort_unstable();
        cut.dedup();
        if total(worker, cut.len()) == 0 {
            return (None, cut);
        }
        let mut passed = shuffle(worker, "Passed", passed, |(doc, _): &(DocId, DocId)| reader_of(*doc));
        passed.sort_unstable();
        passed.dedup_by_key(|(doc, _)| *doc);
        passed.retain(|(doc, _)| docs.binary_search_by_key(doc, |(doc, _)| *doc).is_err());
        docs.extend(passed);
        docs.sort_unstable();
        (Some(docs), cut)
    }
}
