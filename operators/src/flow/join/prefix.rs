//! The exact join of sets: finds candidate pairs by postings, which are exchanged by features of prefixes.

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

/// Number of leading bits of a feature that choose the round in which its postings are exchanged. With 3 bits
/// there are 8 rounds, so only an eighth of the postings is in memory or on disk at once.
const ROUND_BITS: u32 = 3;
/// Number of equal parts of a budget: one for documents, four for postings, one for postings on their way,
/// and two for candidates.
const HOLDERS: usize = 8;
/// Number of those parts that hold postings.
const POSTING_HOLDERS: usize = 4;

/// Join of the sets of the documents of all workers, by a prefix filter.
///
/// A document has a *posting* for each feature of its prefixes, with a sketch of its set. Postings go to the
/// worker of their feature. Documents that meet under a feature are candidates, unless their sketches show
/// that they cannot match. `sets/prefix.rs` explains the prefix filter by an example.
///
/// ```text
/// memory                                                       bytes
/// each document that may have a partner                        48
/// each feature in its prefixes                                 8
/// each of its features that another document has too           one or two bits
/// each posting of a round (an eighth of those of prefixes)     64, 96 or 160, by the length of the sketches;
///                                                              twice if there are several workers
/// each candidate                                               24
/// ```
///
/// With a budget, documents get an eighth of it and postings a half.
pub struct PrefixJoin {
    rule: Rule,
    scratch: SpillBudget,
    held: PrefixIndex,
}

impl PrefixJoin {
    /// Makes a join without documents.
    pub fn new(rule: Rule, scratch: &SpillBudget) -> Self {
        PrefixJoin { rule, held: PrefixIndex::new(&scratch.shared_by(HOLDERS)), scratch: scratch.clone() }
    }

    /// Adds a document with its unsorted sets. `counts`: counts of the features of the first documents of all
    /// workers.
    pub fn add(&mut self, counts: &FeatureCounts, doc: DocId, sets: &Sets) {
        self.held.add(&self.rule, counts, doc, sets);
    }

    /// Returns all candidates, and one load for all features together. Features that very many documents
    /// share, by the bounds of `skew`, are spread over the workers.
    pub fn finish(self, worker: &mut Worker, skew: Skew) -> Result<Compared, Error> {
        let mut sums = BTreeMap::new();
        add_up(worker, &mut sums, (0..).zip([self.held.in_prefixes].into_iter().chain(self.held.told)));
        // Takes the shortest sketches with which at most a quarter of the postings lose the separation from
        // random sets that the longest sketches would give them.
        let enough = |told| sums[&3] - sums[&told] <= sums[&0] / 4;
        if enough(1) {
            self.meet::<{ SKETCH_WORDS[0] }>(worker, skew)
        } else if enough(2) {
            self.meet::<{ SKETCH_WORDS[1] }>(worker, skew)
        } else {
            self.meet::<{ SKETCH_WORDS[2] }>(worker, skew)
        }
    }

    /// Joins the postings, each with `WORDS` words of the sketch of its set.
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
