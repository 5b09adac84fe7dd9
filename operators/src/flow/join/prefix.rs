//! The exact join of sets: collects the prefixes of documents, and joins them by their features.

use std::collections::BTreeMap;

use timely::worker::Worker;

use super::candidates::{CandidateJoin, Candidates, PlaceOf};
use crate::flow::skew::heavy::{Skew, add_up};
use crate::flow::verify::Verify;
use crate::record::Sides;
use crate::record::{DocId, Pair};
use crate::search::crowds::Asks;
use crate::search::crowds::placed::PlacedSearch;
use crate::search::prefix::index::{LookupMarks, PrefixIndex, whole_sketches_may_match};
use crate::search::prefix::{FOLDED, Posting, PrefixSearch, SKETCH_WORDS};
use crate::search::{CandidateSearch, PassLoad};
use crate::sets::feature_counts::FeatureCounts;
use crate::sets::similarity::Similarity;
use crate::sets::{Rule, Sets};
use crate::spill::memory_plan;
use crate::{Error, ExternalSort, Sorted, SpillBudget};

/// Join of the sets of the documents of all workers, by a prefix filter.
///
/// A document has a *posting* for each feature of its prefixes, with a sketch of its set. Postings go to the
/// worker of their feature. Documents that meet under a feature are candidates, unless their sketches show
/// that they cannot match. `search/prefix` explains the prefix filter by an example.
///
/// ```text
/// memory                                                       bytes
/// each document that may have a partner                        48
/// each feature in its prefixes                                 8
/// each of its features that another document has too           one or two bits
/// each posting of a pass (a 32nd of those of prefixes)         64, 96 or 160, by the length of the sketches;
///                                                              twice if there are several workers
/// each candidate                                               24
/// ```
///
/// With a budget, documents get an eighth of it, and postings a half. Afterwards the whole sketches that travel get
/// that half.
pub struct PrefixJoin {
    rule: Rule,
    sides: Sides,
    spill: SpillBudget,
    index: PrefixIndex,
}

impl PrefixJoin {
    /// Makes a join without documents.
    pub fn new(rule: Rule, sides: Sides, spill: &SpillBudget) -> Self {
        PrefixJoin {
            rule,
            sides,
            index: PrefixIndex::new(&spill.shared_by(memory_plan::JOIN)),
            spill: spill.clone(),
        }
    }

    /// Calls `each` with the features to be counted for [`LookupMarks`], which the documents of all workers need
    /// before they are added if the rule needs marks. `counts`, `sets`: as in [`PrefixJoin::add`].
    pub fn lookups(&mut self, counts: &FeatureCounts, doc: DocId, sets: &Sets, each: impl FnMut(u64)) {
        self.index.lookups(&self.rule, counts, (self.sides, doc), sets, each);
    }

    /// Adds a document with its unsorted sets. `counts`: counts of the features of the first documents of all
    /// workers. `marks`: if the rule needs them.
    pub fn add(&mut self, counts: &FeatureCounts, marks: Option<&LookupMarks>, doc: DocId, sets: &Sets) {
        self.index.add(&self.rule, counts, marks, doc, sets);
    }

    /// Returns a join of those documents alone that `keep` wants.
    pub fn among(self, keep: impl Fn(DocId) -> bool) -> Result<PrefixJoin, Error> {
        let index = self.index.among(keep, &self.spill.shared_by(memory_plan::JOIN))?;
        Ok(PrefixJoin { index, ..self })
    }

    /// Returns all candidates, and one load for all features together. Features that very many documents
    /// share, by the bounds of `skew`, are spread over the workers. `asks`: the pairs that are asked for. `places`: returns the
    /// place of a document, unless it takes no part; `None` if all do, in the order of the corpus.
    pub fn candidates(
        &self,
        worker: &mut Worker,
        skew: Skew,
        asks: Asks,
        places: Option<&PlaceOf>,
    ) -> Result<Candidates, Error> {
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
            self.join::<{ SKETCH_WORDS[0] }>(worker, skew, asks, places)
        } else if enough(2) {
            self.join::<{ SKETCH_WORDS[1] }>(worker, skew, asks, places)
        } else {
            self.join::<{ SKETCH_WORDS[2] }>(worker, skew, asks, places)
        }
    }

    /// Joins the postings, each with `WORDS` words of the sketch of its set.
    fn join<const WORDS: usize>(
        &self,
        worker: &mut Worker,
        skew: Skew,
        asks: Asks,
        places: Option<&PlaceOf>,
    ) -> Result<Candidates, Error> {
        let PrefixJoin { rule, sides, index, spill } = self;
        let search = PrefixSearch::<WORDS> { rule: rule.clone(), sides: *sides };
        let Candidates { pairs, loads, crowd, cut } = match places {
            None => self.meet(worker, (CandidateJoin::new(search, skew, spill).asking(asks), None), Some)?,
            Some(place) => {
                let join = CandidateJoin::new(PlacedSearch::new(search, rule), skew, spill).asking(asks);
                let placed = |posting| Some((place(PrefixSearch::<WORDS>::doc(&posting))?, posting));
                self.meet(worker, (join, places), placed)?
            }
        };
        let pairs = sift(worker, rule.clone(), index, pairs, spill)?;
        let mut load = PassLoad::default();
        loads.into_iter().for_each(|of_pass| load.add(of_pass));
        Ok(Candidates { pairs, loads: vec![load], crowd, cut })
    }

    /// Makes all passes of a join. `record`: makes a record of a posting, unless its document takes no part.
    fn meet<S: CandidateSearch<Pass = u64>, const WORDS: usize>(
        &self,
        worker: &mut Worker,
        (mut join, places): (CandidateJoin<S>, Option<&PlaceOf>),
        record: impl Fn(Posting<WORDS>) -> Option<S::Record>,
    ) -> Result<Candidates, Error> {
        for pass in join.passes() {
            join.pass(worker, &pass, &mut |worker, each| {
                self.index.postings(pass, |posting| {
                    if let Some(record) = record(posting) {
                        each(worker, record);
                    }
                })
            })?;
        }
        match places {
            None => join.finish(worker, |pair| pair.low),
            Some(place) => join.finish_round(worker, place),
        }
    }
}

/// Compares candidates again by whole sketches, if both sketches of the pair were folded. Returns those that may
/// still match, and all other candidates.
///
/// Folded sketches do not separate large sets, so most candidates with large sets match nothing, and their
/// features would travel in vain. Whole sketches take a fiftieth of the bytes of features.
fn sift(
    worker: &mut Worker,
    rule: Rule,
    index: &PrefixIndex,
    mut pairs: Sorted<Pair>,
    spill: &SpillBudget,
) -> Result<Sorted<Pair>, Error> {
    let of_holder = spill.shared_by(memory_plan::JOIN);
    let (mut sifted, mut folded) = (ExternalSort::new(&of_holder), ExternalSort::new(&of_holder));
    pairs.each(|pair| match pair.distance {
        FOLDED => folded.push(Pair { distance: 0, ..pair }),
        _ => sifted.push(pair),
    })?;
    drop(pairs);
    let may_match =
        move |a: &[u64], b: &[u64]| whole_sketches_may_match(&rule, a, b).then_some(Similarity::ONE);
    let spill = spill.shared_by(2);
    let (mut verify, mut needs) =
        Verify::new(worker, folded.finish()?, [].into_iter(), Box::new(may_match), &spill)?;
    index.sketches(|doc, sketches| {
        for &part in needs.of(doc)?.into_iter().flatten() {
            verify.send(worker, part, doc, sketches);
        }
        verify.read(worker, size_of_val(sketches));
        Ok(())
    })?;
    drop(needs);
    verify.finish(worker, |_, pair, _| sifted.push(pair))?;
    sifted.finish()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::hash::spread;
    use crate::sets::feature_counts::Counting;
    use crate::sets::similarity::Overlap;
    use crate::spill::budget::twins::Twin;
    use crate::text::features::Features;

    /// Returns a set of 4,000 of 16,000 features, all of which other documents have. The last document has
    /// nearly the set of the first one.
    fn set(doc: u64, docs: u64) -> Sets {
        let like = if doc + 1 == docs { 0 } else { doc };
        let mut long: Vec<u64> = (0..4_000).map(|i| spread(spread(4_000 * like + i) % 16_000)).collect();
        if like != doc {
            long.truncate(3_900);
        }
        Sets { long, ..Sets::default() }
    }

    #[test]
    fn sets_that_are_too_large_for_the_sketches_of_postings_are_told_apart_by_whole_ones() {
        const DOCS: u64 = 30;
        for (workers, budget) in [(1, None), (2, None), (1, Some(1 << 20)), (2, Some(1 << 20))] {
            let counts = Arc::new(FeatureCounts::of_corpus(1 << 20, None));
            let mut counting = Counting::new(Arc::clone(&counts), &SpillBudget::unused());
            (0..DOCS).for_each(|doc| counting.add(set(doc, DOCS).features()));
            counting.finish();
            let spill = Twin::default().budget(budget);
            let work = move |worker: &mut Worker| {
                let rule = Rule::new(Features::Chars(5), Overlap::Jaccard, "0.8".parse().unwrap());
                let mut join = PrefixJoin::new(rule, Sides::default(), &spill);
                for doc in (worker.index() as u64..DOCS).step_by(worker.peers()) {
                    join.add(&counts, None, DocId::new(doc as u32, 0), &set(doc, DOCS));
                }
                let found = join.candidates(worker, Skew::default(), Asks::All, None);
                let Candidates { mut pairs, loads, .. } = found.unwrap();
                let mut found = Vec::new();
                pairs.each(|pair| found.push(pair)).unwrap();
                (found, loads[0].compared)
            };
            let guards = timely::execute(timely::Config::process(workers), work).unwrap();
            let found: Vec<_> = guards.join().into_iter().map(Result::unwrap).collect();
            assert!(found.iter().map(|(_, compared)| compared).sum::<u64>() > 100, "most of them meet");
            let pairs: Vec<Pair> = found.into_iter().flat_map(|(pairs, _)| pairs).collect();
            assert_eq!(
                pairs,
                [Pair::new(DocId(0), DocId::new(DOCS as u32 - 1, 0), 0)],
                "{workers} {budget:?}"
            );
        }
    }
}
