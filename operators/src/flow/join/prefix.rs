//! The exact join of sets: collects the prefixes of documents, and joins them by their features.

use std::collections::BTreeMap;

use timely::worker::Worker;

use super::candidates::{CandidateJoin, Candidates, HOLDERS};
use crate::flow::skew::heavy::{Skew, add_up};
use crate::record::DocId;
use crate::search::PassLoad;
use crate::search::prefix::{PrefixIndex, PrefixSearch, SKETCH_WORDS};
use crate::sets::feature_counts::FeatureCounts;
use crate::sets::{Rule, Sets};
use crate::{Error, SpillBudget};

/// Join of the sets of the documents of all workers, by a prefix filter.
///
/// A document has a *posting* for each feature of its prefixes, with a sketch of its set. Postings go to the
/// worker of their feature. Documents that meet under a feature are candidates, unless their sketches show
/// that they cannot match. `search/prefix.rs` explains the prefix filter by an example.
///
/// ```text
/// memory                                                       bytes
/// each document that may have a partner                        48
/// each feature in its prefixes                                 8
/// each of its features that another document has too           one or two bits
/// each posting of a pass (an eighth of those of prefixes)      64, 96 or 160, by the length of the sketches;
///                                                              twice if there are several workers
/// each candidate                                               24
/// ```
///
/// With a budget, documents get an eighth of it and postings a half.
pub struct PrefixJoin {
    rule: Rule,
    spill: SpillBudget,
    index: PrefixIndex,
}

impl PrefixJoin {
    /// Makes a join without documents.
    pub fn new(rule: Rule, spill: &SpillBudget) -> Self {
        PrefixJoin { rule, index: PrefixIndex::new(&spill.shared_by(HOLDERS)), spill: spill.clone() }
    }

    /// Adds a document with its unsorted sets. `counts`: counts of the features of the first documents of all
    /// workers.
    pub fn add(&mut self, counts: &FeatureCounts, doc: DocId, sets: &Sets) {
        self.index.add(&self.rule, counts, doc, sets);
    }

    /// Returns all candidates, and one load for all features together. Features that very many documents
    /// share, by the bounds of `skew`, are spread over the workers.
    pub fn finish(self, worker: &mut Worker, skew: Skew) -> Result<Candidates, Error> {
        let mut sums = BTreeMap::new();
        add_up(
            worker,
            &mut sums,
            (0..).zip([self.index.in_prefixes].into_iter().chain(self.index.separated)),
        );
        // Takes the shortest sketches with which at most a quarter of the postings lose the separation from
        // random sets that the longest sketches would give them.
        let enough = |words| sums[&3] - sums[&words] <= sums[&0] / 4;
        if enough(1) {
            self.join::<{ SKETCH_WORDS[0] }>(worker, skew)
        } else if enough(2) {
            self.join::<{ SKETCH_WORDS[1] }>(worker, skew)
        } else {
            self.join::<{ SKETCH_WORDS[2] }>(worker, skew)
        }
    }

    /// Joins the postings, each with `WORDS` words of the sketch of its set.
    fn join<const WORDS: usize>(self, worker: &mut Worker, skew: Skew) -> Result<Candidates, Error> {
        let PrefixJoin { rule, index, spill } = self;
        let mut join = CandidateJoin::new(PrefixSearch::<WORDS> { rule }, skew, &spill);
        for pass in join.passes() {
            join.pass(worker, &pass, &mut |worker, each| {
                index.postings(pass, |posting| each(worker, posting))
            })?;
        }
        drop(index);
        let Candidates { pairs, loads } = join.finish(worker, |pair| pair.low)?;
        let mut load = PassLoad::default();
        loads.into_iter().for_each(|of_pass| load.add(of_pass));
        Ok(Candidates { pairs, loads: vec![load] })
    }
}
