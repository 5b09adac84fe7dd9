//! By sets of features: candidates from the exact join or from MinHash, and the sets themselves decide.

use std::sync::Arc;

use anyhow::Result;
use operators::flow::{BandJoin, Collapsed, Compared, Needs, PrefixJoin, Skew, Verify, collapse, sum};
use operators::mapped::{Bands, Identity};
use operators::minhash::MinHash;
use operators::sets::{Packed, Rule, Sets};
use operators::text::Cleaner;
use operators::{Counting, DocId, Pair, Sketch};
use timely::worker::Worker;

use super::{Found, Search, verified};
use crate::progress::{At, Stage};

impl Search {
    /// The features of first documents are counted, then those documents kept whose features others have.
    pub(super) fn by_prefix(
        &self,
        worker: &mut Worker,
        at: &At,
        rule: Rule,
        sketch: &Arc<Sketch>,
    ) -> Result<Found> {
        let mut found = Found::default();
        at.enter(Stage::Compare);
        let copies = self.collapse_texts(worker, &mut found)?;
        let mut sets = Sets::default();
        let mut counting = Counting::new(Arc::clone(sketch));
        self.texts(worker, |text| {
            if is_first(&copies, text.doc) {
                rule.unsorted(text.text, &mut sets);
                sets.features().for_each(|feature| counting.add(feature));
            }
        })?;
        counting.finish();
        sum(worker, sketch, self.cluster.workers());

        let of_copies = Needs::exchange(worker, &[], &copies, false);
        let mut join = PrefixJoin::new(rule.clone(), Arc::clone(sketch));
        self.texts(worker, |text| {
            let mut named = of_copies.of(text.doc).is_some();
            if is_first(&copies, text.doc) {
                rule.unsorted(text.text, &mut sets);
                named |= join.add(text.doc, &mut sets);
            }
            if named {
                found.names.add(text.doc, text.id, text.chars);
            }
        })?;
        let Compared { pairs, loads } = join.candidates(worker, Skew::default());
        found.loads = vec![loads];
        found.candidates = pairs.len() as u64;

        at.enter(Stage::Verify);
        let needs = Needs::exchange(worker, &pairs, &[], true);
        let mut verify = new_verify(worker, &pairs, rule);
        join.verify(worker, &needs, &mut verify);
        found.matches.pairs = verified(verify.finish(worker));
        found.matches.copies = copies;
        let matched = Needs::exchange(worker, &of_matches(&found), &[], false);
        found.names.retain(|doc| of_copies.of(doc).is_some() || matched.of(doc).is_some());
        Ok(found)
    }

    /// Bands meet, and the splits that hold a candidate are read again.
    pub(super) fn by_bands(
        &self,
        worker: &mut Worker,
        at: &At,
        mut cleaner: Cleaner,
        rule: Rule,
        minhash: MinHash,
    ) -> Result<Found> {
        let mut found = Found::default();
        at.enter(Stage::Compare);
        let copies = self.collapse_texts(worker, &mut found)?;
        let mut join = BandJoin::new(Skew::default());
        for band in 0..minhash.bands {
            let rows: Vec<(u64, u64)> = self.rows(worker, Bands::section(band))?;
            let firsts = rows.into_iter().filter(|&(_, doc)| is_first(&copies, DocId(doc)));
            join.band(worker, &firsts.collect::<Vec<_>>());
        }
        let Compared { pairs, loads } = join.finish(worker);
        found.loads = vec![loads];
        found.candidates = pairs.len() as u64;

        at.enter(Stage::Verify);
        let needs = Needs::exchange(worker, &pairs, &copies, true);
        let mut verify = new_verify(worker, &pairs, rule.clone());
        let mut sets = Sets::default();
        self.read_candidates(worker, at, &mut found, &needs, Some(&mut verify), |text, packed| {
            rule.sets(cleaner.clean(text), &mut sets);
            sets.pack(packed, |_| true);
        })?;
        found.matches.pairs = verified(verify.finish(worker));
        found.matches.copies = copies;
        Ok(found)
    }

    /// The documents of this worker that are identical to an earlier one, and the first of them; sorted.
    fn collapse_texts(&self, worker: &mut Worker, found: &mut Found) -> Result<Vec<(DocId, DocId)>> {
        let mapped = self.rows(worker, 0)?;
        let Collapsed { rows, copies } = collapse::<Identity>(worker, mapped);
        found.distinct = rows.len() as u64;
        Ok(copies)
    }
}

fn is_first(copies: &[(DocId, DocId)], doc: DocId) -> bool {
    copies.binary_search_by_key(&doc, |copy| copy.0).is_err()
}

fn new_verify(worker: &mut Worker, pairs: &[Pair], rule: Rule) -> Verify {
    Verify::new(worker, pairs, Box::new(move |a, b| rule.matches(Packed(a), Packed(b))))
}

fn of_matches(found: &Found) -> Vec<Pair> {
    found.matches.pairs.iter().map(|(pair, _)| *pair).collect()
}
