//! The exact join of sets, exchanged by the features of their prefixes.

use std::collections::BTreeMap;

use timely::worker::Worker;

use super::fingerprints::{BlockLoad, Compared};
use crate::flow::skew::heavy::{Skew, add_up};
use crate::flow::skew::keyed_join::KeyedJoin;
use crate::record::DocId;
use crate::sets::feature_counts::FeatureCounts;
use crate::sets::prefix::{Posting, PrefixIndex, SKETCH_WORDS, candidates};
use crate::sets::{Rule, Sets};
use crate::{Error, ExternalSort, SpillBudget};

/// Postings are exchanged in rounds, by the leading bits of their features, so that only an eighth of them is in memory or on
/// disk at once.
const ROUND_BITS: u32 = 3;
/// Of a budget: documents, postings in four and what of them is on its way in one, and candidates in two.
const HOLDERS: usize = 8;
const POSTING_HOLDERS: usize = 4;

/// Joins the sets of the documents of all workers.
///
/// Memory: 48 bytes for a document that may have a partner, 8 for each feature in its prefixes, and one or two bits for each of its
/// features that another document has too; for an eighth of those in prefixes 64, 96 or 160 bytes, by how
/// much of a sketch tells sets apart, twice if there are several workers; 24 bytes a candidate. With a budget an eighth of it for
/// documents, a half for postings.
pub struct PrefixJoin {
    rule: Rule,
    scratch: SpillBudget,
    held: PrefixIndex,
}

impl PrefixJoin {
    /// Of no document yet.
    pub fn new(rule: Rule, scratch: &SpillBudget) -> Self {
        PrefixJoin { rule, held: PrefixIndex::new(&scratch.shared_by(HOLDERS)), scratch: scratch.clone() }
    }

    /// Adds a document with its unsorted sets. `counts`: all workers have counted all features of their first documents
    /// in it.
    pub fn add(&mut self, counts: &FeatureCounts, doc: DocId, sets: &Sets) {
        self.held.add(&self.rule, counts, doc, sets);
    }

    /// All candidates; the load is of all features together. Features of very many documents, as `skew` says, are
    /// spread.
    pub fn finish(self, worker: &mut Worker, skew: Skew) -> Result<Compared, Error> {
        let mut sums = BTreeMap::new();
        add_up(worker, &mut sums, (0..).zip([self.held.in_prefixes].into_iter().chain(self.held.told)));
        // The fewest numbers by which no more than a quarter of the postings lose what tells their sets from others.
        let enough = |told| sums[&3] - sums[&told] <= sums[&0] / 4;
        if enough(1) {
            self.meet::<{ SKETCH_WORDS[0] }>(worker, skew)
        } else if enough(2) {
            self.meet::<{ SKETCH_WORDS[1] }>(worker, skew)
        } else {
            self.meet::<{ SKETCH_WORDS[2] }>(worker, skew)
        }
    }

    /// With so many numbers of a sketch in each posting.
    fn meet<const WORDS: usize>(self, worker: &mut Worker, skew: Skew) -> Result<Compared, Error> {
        let PrefixJoin { rule, held, scratch } = self;
        let mut meeting = KeyedJoin::new(skew, &scratch.shared_by(HOLDERS / POSTING_HOLDERS));
        let scratch = scratch.shared_by(HOLDERS);
        let mut pairs = ExternalSort::new(&scratch).once();
        let mut load = BlockLoad::default();
        let (key, doc) =
            (|posting: &Posting<WORDS>| posting.feature, |posting: &Posting<WORDS>| DocId(posting.doc));
        for round in 0..1 << ROUND_BITS {
            let scan = |worker: &mut Worker, each: &mut dyn FnMut(&mut Worker, Posting<WORDS>)| {
                held.postings(round, ROUND_BITS, |posting| each(worker, posting))
            };
            let spread = meeting.meet(worker, scan, (key, doc), |postings, place| {
                load.rows += postings.len() as u64;
                let same = postings.chunk_by(|a, b| a.feature == b.feature).map(|same| same.len() as u64);
                load.largest_bucket = load.largest_bucket.max(same.max().unwrap_or(0));
                let emit = |pair| pairs.extend(Some(pair).filter(|pair| place.holds(pair)));
                load.compared += candidates(&rule, postings, emit);
            })?;
            load.largest_bucket = load.largest_bucket.max(spread);
            pairs.check()?;
        }
        drop((meeting, held));
        Compared::new(worker, pairs, vec![load], &scratch)
    }
}
