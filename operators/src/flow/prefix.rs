//! The exact join of sets, exchanged by the features of their prefixes.

use timely::worker::Worker;

use super::Verify;
use super::compare::{BlockLoad, Compared};
use super::meet::Meeting;
use super::skew::Skew;
use crate::odd_sketch::OddSketches;
use crate::prefix::{Held, Posting, candidates};
use crate::record::{DocId, Pair};
use crate::sets::{Rule, Sets};
use crate::similarity::Similarity;
use crate::sketch::Sketch;
use crate::{Error, Runs, Scratch, Sorted};

/// Without a budget postings are exchanged in rounds, by the leading bits of their features, so that only an eighth of
/// them is in memory at once.
const ROUND_BITS: u32 = 3;
/// Of a budget: documents, postings, what candidates are found with, candidates twice, and two parts that stand for what
/// features were counted with. Once candidates are found, half of it is for the sieve.
const HOLDERS: usize = 7;

/// Joins the sets of the documents of all workers.
///
/// Memory: 16 bytes for each feature in a prefix of a document that may have a partner, and one or two bits for each of its
/// features that another document has too; 76 bytes for an eighth of those in prefixes; 24 bytes a candidate. With a budget
/// a seventh of it for each of these.
pub struct PrefixJoin {
    rule: Rule,
    scratch: Scratch,
    held: Held,
}

impl PrefixJoin {
    /// Of no document yet.
    pub fn new(rule: Rule, scratch: &Scratch) -> Self {
        PrefixJoin { rule, held: Held::new(&scratch.shared_by(HOLDERS)), scratch: scratch.clone() }
    }

    /// Adds a document with its unsorted sets. `counts`: all workers have counted all features of their first documents
    /// in it.
    pub fn add(&mut self, counts: &Sketch, doc: DocId, sets: &mut Sets) {
        self.held.add(&self.rule, counts, doc, sets);
    }

    /// All candidates; the load is of all features together. Features of very many documents, as `skew` says, are
    /// spread.
    pub fn finish(self, worker: &mut Worker, skew: Skew) -> Result<Compared, Error> {
        // What is sorted on disk needs no rounds, each of which reads all documents.
        let bits = if self.scratch.budget().is_none() { ROUND_BITS } else { 0 };
        let scratch = self.scratch.shared_by(HOLDERS);
        let mut meeting = Meeting::new(skew, &scratch);
        let mut pairs = Runs::new(&scratch).once();
        let mut load = BlockLoad::default();
        let (key, doc) = (|posting: &Posting| posting.0.0, |posting: &Posting| DocId(posting.1));
        for round in 0..1 << bits {
            let scan = |worker: &mut Worker, each: &mut dyn FnMut(&mut Worker, Posting)| {
                self.held.postings(round, bits, |posting| each(worker, posting))
            };
            meeting.meet(worker, scan, (key, doc), |postings, place| {
                load.rows += postings.len() as u64;
                let emit = |pair| pairs.extend(Some(pair).filter(|pair| place.holds(pair)));
                load.compared += candidates(&self.rule, postings, emit);
            })?;
        }
        drop(meeting);
        let Compared { pairs, loads } = Compared::new(worker, pairs, vec![load], &scratch)?;
        Ok(Compared { pairs: self.sieve(worker, pairs)?, loads })
    }

    /// Drops the pairs that cannot match by the sketches of their sets: most have a rare feature in common, and little else.
    fn sieve(self, worker: &mut Worker, pairs: Sorted<Pair>) -> Result<Sorted<Pair>, Error> {
        let PrefixJoin { rule, held, scratch } = self;
        let may_match = move |a: &[u64], b: &[u64]| {
            rule.may_match(OddSketches(a), OddSketches(b)).then_some(Similarity::ONE)
        };
        let (mut verify, mut needs) =
            Verify::new(worker, pairs, &[], Box::new(may_match), &scratch.shared_by(2))?;
        held.scan(|doc, sketches| {
            for &part in needs.of(doc)?.into_iter().flatten() {
                verify.send(worker, part, doc, sketches.0);
            }
            verify.read(worker, size_of_val(sketches.0));
            Ok(())
        })?;
        drop((held, needs));
        let mut may_match = Runs::new(&scratch.shared_by(HOLDERS));
        verify.finish(worker, |pair, _| may_match.push(pair))?;
        may_match.finish()
    }
}
