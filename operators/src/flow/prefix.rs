//! The exact join of sets, exchanged by the features of their prefixes.

use std::sync::Arc;

use timely::worker::Worker;

use super::compare::{BlockLoad, Compared};
use super::shuffle::shuffle;
use super::skew::{Skew, meet};
use super::{Needs, Verify, owner, sort_once};
use crate::prefix::{Held, Posting, candidates};
use crate::record::{DocId, Pair};
use crate::sets::{Rule, Sets};
use crate::sketch::Sketch;

/// Postings are exchanged in rounds, by the leading bits of their features, so that only an eighth of them is
/// in memory at once.
const ROUND_BITS: u32 = 3;
/// So many pairs are found before repeated ones are dropped.
const MIN_PAIRS: usize = 1 << 20;
/// After so many documents the engine gets to work.
const ROUND_DOCS: usize = 1 << 10;

/// Joins the sets of the documents of all workers.
///
/// Memory: 8 bytes for each feature of a document that may have a partner and that another document has too;
/// 48 bytes for an eighth of those in prefixes; 24 bytes a candidate.
pub struct PrefixJoin {
    rule: Rule,
    sketch: Arc<Sketch>,
    held: Held,
}

impl PrefixJoin {
    /// `sketch`: all workers have counted all features of their first documents in it.
    pub fn new(rule: Rule, sketch: Arc<Sketch>) -> Self {
        PrefixJoin { rule, sketch, held: Held::default() }
    }

    /// Adds a document with its unsorted sets; says whether it may have a partner.
    pub fn add(&mut self, doc: DocId, sets: &mut Sets) -> bool {
        self.held.add(&self.rule, &self.sketch, doc, sets)
    }

    /// All candidates, each once, on the worker that reads its earlier document; the load is of all features together.
    /// Features of very many documents, as `skew` says, are spread.
    pub fn candidates(&self, worker: &mut Worker, skew: Skew) -> Compared {
        let mut arrived = Vec::new();
        let mut pairs = Vec::new();
        let mut most = MIN_PAIRS;
        let mut load = BlockLoad::default();
        for round in 0..1 << ROUND_BITS {
            let mut postings: Vec<Posting> = Vec::new();
            self.held.postings(&self.sketch, round, ROUND_BITS, |posting| postings.push(posting));
            let (key, doc) = (|posting: &Posting| posting.0.0, |posting: &Posting| DocId(posting.1));
            meet(worker, skew, postings.iter().copied(), (key, doc), &mut arrived, |postings, place| {
                load.rows += postings.len() as u64;
                let emit = |pair: Pair| {
                    pairs.extend(Some(pair).filter(|pair| place.holds(pair)));
                    if pairs.len() >= most {
                        sort_once(&mut pairs);
                        most = MIN_PAIRS.max(2 * pairs.len());
                    }
                };
                load.compared += candidates(&self.rule, postings, emit);
            });
        }
        sort_once(&mut pairs);
        let mut pairs = shuffle(worker, "Pair", pairs, |pair: &Pair| owner(pair.low));
        sort_once(&mut pairs);
        Compared { pairs, loads: vec![load] }
    }

    /// Sends the sets of candidates to the workers that wait for them.
    pub fn verify(&self, worker: &mut Worker, needs: &Needs, verify: &mut Verify) {
        for (i, (doc, packed)) in self.held.docs().enumerate() {
            for to in needs.of(doc).into_iter().flatten() {
                verify.send(to, doc, packed.0);
            }
            if i % ROUND_DOCS == 0 {
                verify.round(worker);
            }
        }
    }
}
