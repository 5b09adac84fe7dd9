//! The search by sets of features: candidates come from the exact join by prefixes or from MinHash bands, and
//! the sets themselves decide.

use std::sync::Arc;

use anyhow::Result;
use operators::flow::sum;
use operators::flow::{BandJoin, Compared, Matching, PrefixJoin, Skew};
use operators::method::map_records::{Bands, Identity, records};
use operators::sets::minhash::MinHash;
use operators::sets::{PackedSets, Rule, Sets};
use operators::text::Cleaner;
use operators::{Counting, DocId, FeatureCounts};
use timely::worker::Worker;

use super::verify::TextSource;
use super::{CorpusSearch, SearchResult};
use crate::progress::{Stage, StageTimer};

impl CorpusSearch {
    /// Finds pairs by the exact join. Identical documents are collapsed first. Then the texts in the map
    /// output are read three times: to count the features of the first documents, to join these by their
    /// rarest features, and to verify the candidates.
    pub(super) fn by_prefix(
        &self,
        worker: &mut Worker,
        at: &StageTimer,
        rule: Rule,
        sketch: Arc<FeatureCounts>,
    ) -> Result<SearchResult> {
        let mut found = SearchResult::default();
        at.enter(Stage::Compare);
        let copies = self.collapse_texts(worker, &mut found)?;
        let mut sets = Sets::default();
        let mut counting = Counting::new(Arc::clone(&sketch), &self.scratch);
        self.texts(worker, |text| {
            if is_first(&copies, text.doc) {
                rule.unsorted(text.text, &mut sets);
                counting.add(sets.features());
            }
        })?;
        counting.finish();
        sum(worker, &sketch, self.cluster.workers());

        let mut join = PrefixJoin::new(rule.clone(), &self.scratch);
        self.texts(worker, |text| {
            if is_first(&copies, text.doc) {
                rule.unsorted(text.text, &mut sets);
                join.add(&sketch, text.doc, &sets);
            }
        })?;
        drop(sketch);
        let Compared { pairs, loads } = join.finish(worker, Skew::default())?;
        found.loads = vec![loads];

        at.enter(Stage::Verify);
        found.matches.copies = copies;
        self.verify(worker, TextSource::MapOutput, &mut found, pairs, matching(&rule), |text, packed| {
            rule.sets(text, &mut sets);
            sets.pack(packed);
        })?;
        Ok(found)
    }

    /// Finds pairs by bands of signatures, one band after the other. Then the splits of the input that hold a
    /// candidate are read again to verify them.
    pub(super) fn by_bands(
        &self,
        worker: &mut Worker,
        at: &StageTimer,
        mut cleaner: Cleaner,
        rule: Rule,
        minhash: MinHash,
    ) -> Result<SearchResult> {
        let mut found = SearchResult::default();
        at.enter(Stage::Compare);
        let copies = self.collapse_texts(worker, &mut found)?;
        let mut join = BandJoin::new(Skew::default(), &self.scratch);
        for number in 0..minhash.bands {
            join.band(worker, |worker, each| {
                self.section(worker, Bands::section(number), |worker, frame| {
                    let firsts = records::<(u64, u64)>(frame).filter(|row| is_first(&copies, DocId(row.1)));
                    firsts.for_each(|row| each(worker, row));
                })
            })?;
        }
        let Compared { pairs, loads } = join.finish(worker)?;
        found.loads = vec![loads];

        at.enter(Stage::Verify);
        found.matches.copies = copies;
        let mut sets = Sets::default();
        self.verify(worker, TextSource::Input(at), &mut found, pairs, matching(&rule), |text, packed| {
            rule.sets(cleaner.clean(text), &mut sets);
            sets.pack(packed);
        })?;
        Ok(found)
    }

    /// Collapses documents of equal text. Returns those of this worker that are identical to an earlier one,
    /// each with the first of them, sorted.
    fn collapse_texts(&self, worker: &mut Worker, found: &mut SearchResult) -> Result<Vec<(DocId, DocId)>> {
        self.collapse::<Identity>(worker, found, |_, _| ())
    }
}

fn matching(rule: &Rule) -> Matching {
    let rule = rule.clone();
    Box::new(move |a, b| rule.matches(PackedSets(a), PackedSets(b)))
}

fn is_first(copies: &[(DocId, DocId)], doc: DocId) -> bool {
    copies.binary_search_by_key(&doc, |copy| copy.0).is_err()
}
