//! The exact join of sets, exchanged by the features of their prefixes.

use std::sync::Arc;

use timely::worker::Worker;

use super::compare::{BlockLoad, Compared};
use super::meet::Meeting;
use super::skew::Skew;
use super::{Needs, Portions, Verify};
use crate::prefix::{Held, Posting, candidates};
use crate::record::{DocId, Pair};
use crate::sets::{Rule, Sets};
use crate::sketch::Sketch;
use crate::{Error, Runs, Scratch, Sorted};

/// Without a budget postings are exchanged in rounds, by the leading bits of their features, so that only an eighth of
/// them is in memory at once.
const ROUND_BITS: u32 = 3;
/// After so many documents the engine gets to work.
const ROUND_DOCS: usize = 1 << 10;
/// Of a budget: documents, postings, what candidates are found with, candidates, the features of some, and two parts
/// that stand for the sketch.
const HOLDERS: usize = 7;

/// Joins the sets of the documents of all workers.
///
/// Memory: 8 bytes for each feature of a document that may have a partner and that another document has too;
/// 76 bytes for an eighth of those in prefixes; 24 bytes a candidate. With a budget a seventh of it for each of these.
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

    /// All candidates; the load is of all features together. Features of very many documents, as `skew` says, are
    /// spread.
    pub fn candidates(&self, worker: &mut Worker, skew: Skew) -> Result<Compared, Error> {
        // What is sorted on disk needs no rounds, each of which reads all documents.
        let bits = if self.scratch.budget().is_none() { ROUND_BITS } else { 0 };
        let mut meeting = Meeting::new(skew, &self.scratch);
        let mut pairs = Runs::new(&self.scratch).once();
        let mut load = BlockLoad::default();
        let (key, doc) = (|posting: &Posting| posting.0.0, |posting: &Posting| DocId(posting.1));
        for round in 0..1 << bits {
            let scan = |worker: &mut Worker, each: &mut dyn FnMut(&mut Worker, Posting)| {
                self.held.postings(&self.sketch, round, bits, |posting| each(worker, posting))
            };
            meeting.meet(worker, scan, (key, doc), |postings, place| {
                load.rows += postings.len() as u64;
                let emit = |pair| pairs.extend(Some(pair).filter(|pair| place.holds(pair)));
                load.compared += candidates(&self.rule, postings, emit);
            })?;
        }
        drop(meeting);
        Compared::new(worker, pairs, vec![load], &self.scratch)
    }

    /// Candidates, to be verified a portion at a time.
    pub fn portions(&self, pairs: Sorted<Pair>) -> Portions {
        Portions::new(pairs, &self.scratch, self.held.doc_bytes())
    }

    /// Sends the sets of candidates to the workers that wait for them.
    pub fn verify(&self, worker: &mut Worker, needs: &Needs, verify: &mut Verify) -> Result<(), Error> {
        let mut docs = 0;
        self.held.scan(|doc, packed| {
            for to in needs.of(doc).into_iter().flatten() {
                verify.send(worker, to, doc, packed.0);
            }
            docs += 1;
            if docs % ROUND_DOCS == 0 {
                verify.round(worker);
            }
        })
    }
}
