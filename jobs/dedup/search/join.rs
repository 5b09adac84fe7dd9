//! The join of a search: finds candidates in the map output, among the first ones of identical documents.

use std::sync::Arc;

use anyhow::{Context, Result};
use operators::flow::{CandidateJoin, Candidates, LookupMarks, PlaceOf, PrefixJoin, RecordSink, Skew, sum};
use operators::method::map_records::records;
use operators::method::{Method, Search};
use operators::search::crowds::Asks;
use operators::search::kept::KeptSearch;
use operators::search::placed::{BucketSearch, PlacedSearch};
use operators::sets::{Rule, Sets};
use operators::{Counting, FeatureCounts};
use parking_lot::Mutex;
use timely::worker::Worker;

use super::asking::AskingTexts;
use super::corpus_search::CorpusSearch;
use super::crowd::Crowd;
use super::earlier_join::EarlierJoin;
use super::map::IdenticalDocs;

/// Part of the memory of a process that counters of features may fill, as a divisor. They are made before
/// anything else is held.
const COUNTERS_SHARE: usize = 2;

/// References to the counters that the workers of this process share, if the search counts any. Each worker takes
/// its own and drops them after their last use, to free the counters.
pub(super) struct FeatureCounters(Mutex<Vec<CountersOfWorker>>);

/// Counters of features, and of the features that are looked up, if the rule needs marks of these.
#[derive(Clone)]
struct CountersOfWorker {
    features: Arc<FeatureCounts>,
    lookups: Option<Arc<FeatureCounts>>,
}

impl CorpusSearch {
    /// Finds candidates by the records in the map output. `earlier`: documents of earlier nights, with which those
    /// of the map output are candidates too. `section`: the section with the records of a pass.
    pub(super) fn join<S: KeptSearch + Clone>(
        &self,
        worker: &mut Worker,
        copies: &IdenticalDocs,
        (search, section): (S, impl Fn(&S::Pass) -> usize),
        mut earlier: Option<&mut EarlierJoin>,
        asks: Asks,
    ) -> Result<Candidates> {
        let kept = search.clone();
        let asking = earlier.as_ref().map(|earlier| earlier.asking);
        let mut join = CandidateJoin::new(search, Skew::default(), &self.spill).asking(asks);
        for (number, pass) in (0..).zip(join.passes()) {
            let mut scan = |worker: &mut Worker, each: RecordSink<S::Record>| {
                asking.map_or(Ok(()), |asking| asking.records(worker, section(&pass), &mut *each))?;
                let mut firsts = copies.walk();
                self.section(worker, section(&pass), |worker, frame| {
                    for record in records(frame) {
                        if firsts.is_first(S::doc(&record)) {
                            each(worker, record);
                        }
                    }
                })
            };
            join.pass(worker, &pass, &mut scan)?;
            if let Some(earlier) = earlier.as_deref_mut() {
                earlier.pass(worker, &kept, (number, &pass), &mut scan)?;
            }
        }
        earlier.map_or(Ok(()), |earlier| earlier.finish(&kept))?;
        Ok(join.finish(worker, |pair| pair.low)?)
    }

    /// Finds candidates by the records of the crowd, each with the place of its document.
    pub(super) fn join_placed<S: BucketSearch>(
        &self,
        worker: &mut Worker,
        method: &Method,
        (search, section): (S, impl Fn(&S::Pass) -> usize),
        asks: Asks,
        (crowd, asking, place): (&Crowd, Option<&AskingTexts>, &PlaceOf),
    ) -> Result<Candidates> {
        let search = PlacedSearch::new(search, &method.rule);
        let mut join = CandidateJoin::new(search, Skew::default(), &self.spill).asking(asks);
        for pass in join.passes() {
            let scan = |worker: &mut Worker, each: RecordSink<S::Record>| {
                asking.map_or(Ok(()), |asking| asking.records(worker, section(&pass), &mut *each))?;
                self.section(worker, section(&pass), |worker, frame| {
                    records(frame).for_each(|record| each(worker, record));
                })
            };
            join.pass(worker, &pass, &mut |worker, each| {
                crowd.records(worker, section(&pass), S::doc, scan, |worker, record| {
                    if let Some(place) = place(S::doc(&record)) {
                        each(worker, (place, record));
                    }
                })
            })?;
        }
        Ok(join.finish_round(worker, place)?)
    }

    /// Makes the counters of features that a search by prefixes needs, and none for others.
    pub(super) fn feature_counters(&self, method: &Method) -> FeatureCounters {
        let workers = match method.search {
            Search::Prefix => self.group.workers(),
            _ => 0,
        };
        let marks = method.rule.needs_lookup_marks();
        let most =
            self.spill.budget().map(|bytes| workers * bytes / COUNTERS_SHARE / (1 + usize::from(marks)));
        let counts = || Arc::new(FeatureCounts::of_corpus(self.plan.text_bytes, most));
        let counters =
            (workers > 0).then(|| CountersOfWorker { features: counts(), lookups: marks.then(counts) });
        FeatureCounters(Mutex::new(counters.map_or(Vec::new(), |counters| vec![counters; workers])))
    }

    /// Collects the prefixes of sets. The texts in the map output are read twice: to count the
    /// features of the first documents, and to find the rarest of each. If the rule needs marks of the
    /// features that are looked up, they are read once more in between.
    pub(super) fn join_prefixes(
        &self,
        worker: &mut Worker,
        copies: &IdenticalDocs,
        rule: &Rule,
        counters: &FeatureCounters,
    ) -> Result<PrefixJoin> {
        let counters = counters.0.lock().pop();
        let CountersOfWorker { features: counts, lookups } =
            counters.context("there are more workers than there should be")?;
        let mut sets = Sets::default();
        let mut counting = Counting::new(Arc::clone(&counts), &self.spill);
        self.first_texts(worker, copies, |text| {
            rule.unsorted(text.text, &mut sets);
            counting.add(sets.features());
        })?;
        counting.finish();
        sum(worker, &counts, self.group.workers());

        let mut join = PrefixJoin::new(rule.clone(), self.sides, &self.spill);
        let marks = match lookups {
            None => None,
            Some(lookups) => {
                let mut counting = Counting::new(Arc::clone(&lookups), &self.spill);
                self.first_texts(worker, copies, |text| {
                    rule.unsorted(text.text, &mut sets);
                    join.lookups(&counts, text.doc, &sets, |mark| counting.add([mark].into_iter()));
                })?;
                counting.finish();
                sum(worker, &lookups, self.group.workers());
                Some(LookupMarks::new(lookups, self.sides))
            }
        };
        self.first_texts(worker, copies, |text| {
            rule.unsorted(text.text, &mut sets);
            join.add(&counts, marks.as_ref(), text.doc, &sets);
        })?;
        Ok(join)
    }
}
