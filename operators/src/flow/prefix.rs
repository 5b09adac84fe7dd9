//! The exact join of sets, exchanged by the features of their prefixes.

use std::sync::Arc;

use timely::worker::Worker;

use super::bands::{each_group, to_owners};
use super::shuffle::SortingShuffle;
use super::{Needs, Portions, Verify};
use crate::prefix::{Held, Posting, candidates};
use crate::record::DocId;
use crate::sets::{Rule, Sets};
use crate::sketch::Sketch;
use crate::{Error, Runs, Scratch};

/// Without a budget postings are exchanged in rounds, by the leading bits of their features, so that only an eighth of
/// them is in memory at once.
const ROUND_BITS: u32 = 3;
/// Of a budget: documents, postings, what candidates are found with, candidates, the features of some, and two parts
/// that stand for the sketch.
const HOLDERS: usize = 7;

/// Joins the sets of the documents of all workers.
///
/// Memory: 8 bytes for each feature of a document that may have a partner and that another document has too;
/// 52 bytes for an eighth of those in prefixes; 24 bytes a candidate. With a budget a seventh of it for each of these, and
/// the postings of one feature.
pub struct PrefixJoin {
    rule: Rule,
    sketch: Arc<Sketch>,
    /// For each holder.
    scratch: Scratch,
    held: Held,
}

impl PrefixJoin {
    /// `sketch`: all workers have counted all features of their first documents in it.
    pub fn new(rule: Rule, sketch: Arc<Sketch>, scratch: &Scratch) -> Self {
        let scratch = scratch.shared_by(HOLDERS);
        PrefixJoin { rule, sketch, held: Held::new(&scratch), scratch }
    }

    /// Adds a document with its unsorted sets; says whether it may have a partner.
    pub fn add(&mut self, doc: DocId, sets: &mut Sets) -> bool {
        self.held.add(&self.rule, &self.sketch, doc, sets)
    }

    /// All candidates, each once, on the worker that reads its earlier document.
    pub fn candidates(&self, worker: &mut Worker) -> Result<Portions, Error> {
        // What is sorted on disk needs no rounds, each of which reads all documents.
        let budget = self.scratch.budget();
        let bits = if budget.is_none() { ROUND_BITS } else { 0 };
        let at_once = budget.map_or(0, |bytes| bytes / 8 / size_of::<Posting>());
        let mut memory = Vec::new();
        let mut pairs = Runs::new(&self.scratch).once();
        for round in 0..1 << bits {
            let arrived = Runs::new(&self.scratch).reusing(memory);
            let mut shuffle =
                SortingShuffle::new(worker, "Posting", |posting: &Posting| posting.0.0, arrived);
            self.held.postings(&self.sketch, round, bits, |posting| shuffle.send(worker, posting))?;
            let mut arrived = shuffle.finish(worker)?;
            let same = |a: &Posting, b: &Posting| a.0.0 == b.0.0;
            each_group(&mut arrived, same, at_once, |postings| {
                candidates(&self.rule, postings, |pair| pairs.push(pair));
            })?;
            memory = arrived.into_memory();
        }
        drop(memory);
        let pairs = to_owners(worker, pairs, &self.scratch)?;
        Ok(Portions::new(pairs, &self.scratch, self.held.doc_bytes()))
    }

    /// Sends the sets of candidates to the workers that wait for them.
    pub fn verify(&self, worker: &mut Worker, needs: &Needs, verify: &mut Verify) -> Result<(), Error> {
        self.held.scan(|doc, packed| {
            for to in needs.of(doc).into_iter().flatten() {
                verify.send(worker, to, doc, packed.0);
            }
        })
    }
}
