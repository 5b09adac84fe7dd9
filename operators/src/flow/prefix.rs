//! The exact join of sets, exchanged by the features of their prefixes.

use std::collections::BTreeMap;

use timely::worker::Worker;

use super::compare::{BlockLoad, Compared};
use super::meet::Meeting;
use super::skew::{Skew, add_up};
use crate::odd_sketch;
use crate::prefix::{Held, Posting, candidates};
use crate::record::DocId;
use crate::sets::{Rule, Sets};
use crate::sketch::Sketch;
use crate::{Error, Runs, Scratch};

/// Postings are exchanged in rounds, by the leading bits of their features, so that only an eighth of them is in memory or on
/// disk at once.
const ROUND_BITS: u32 = 3;
/// Of a budget: documents, postings in four and what of them is on its way in one, and candidates in two.
const HOLDERS: usize = 8;
const POSTING_HOLDERS: usize = 4;

/// Joins the sets of the documents of all workers.
///
/// Memory: 16 bytes for each feature in a prefix of a document that may have a partner, and one or two bits for each of its
/// features that another document has too; for an eighth of those in prefixes 64, 96 or 160 bytes, where sets are small, of
/// some 500 features, or larger, twice if there are several workers; 24 bytes a candidate. With a budget an eighth of it for
/// documents, a half for postings.
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
    pub fn add(&mut self, counts: &Sketch, doc: DocId, sets: &Sets) {
        self.held.add(&self.rule, counts, doc, sets);
    }

    /// All candidates; the load is of all features together. Features of very many documents, as `skew` says, are
    /// spread.
    pub fn finish(self, worker: &mut Worker, skew: Skew) -> Result<Compared, Error> {
        let mut sums = BTreeMap::new();
        add_up(worker, &mut sums, (0..).zip([self.held.in_prefixes, self.held.sketched]));
        // Where most postings come from, sets have so many features on the average.
        let features = sums[&1] / sums[&0].max(1);
        match odd_sketch::length(features as usize) {
            0..=4 => self.meet::<4>(worker, skew),
            5..=8 => self.meet::<8>(worker, skew),
            _ => self.meet::<16>(worker, skew),
        }
    }

    /// With so many numbers of a sketch in each posting.
    fn meet<const WORDS: usize>(self, worker: &mut Worker, skew: Skew) -> Result<Compared, Error> {
        let PrefixJoin { rule, held, scratch } = self;
        let mut meeting = Meeting::new(skew, &scratch.shared_by(HOLDERS / POSTING_HOLDERS));
        let scratch = scratch.shared_by(HOLDERS);
        let mut pairs = Runs::new(&scratch).once();
        let mut load = BlockLoad::default();
        let (key, doc) =
            (|posting: &Posting<WORDS>| posting.feature, |posting: &Posting<WORDS>| DocId(posting.doc));
        for round in 0..1 << ROUND_BITS {
            let scan = |worker: &mut Worker, each: &mut dyn FnMut(&mut Worker, Posting<WORDS>)| {
                held.postings(round, ROUND_BITS, |posting| each(worker, posting))
            };
            meeting.meet(worker, scan, (key, doc), |postings, place| {
                load.rows += postings.len() as u64;
                let emit = |pair| pairs.extend(Some(pair).filter(|pair| place.holds(pair)));
                load.compared += candidates(&rule, postings, emit);
            })?;
        }
        drop((meeting, held));
        Compared::new(worker, pairs, vec![load], &scratch)
    }
}
