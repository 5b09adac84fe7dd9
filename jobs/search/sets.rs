//! By sets of features: candidates from the exact join or from MinHash, and the sets themselves decide.

use std::sync::Arc;

use anyhow::Result;
use operators::flow::{BandJoin, Compared, Needs, PrefixJoin, Skew, Verify, sum};
use operators::mapped::{Bands, Identity, records};
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
        let mut counting = Counting::new(Arc::clone(sketch), &self.scratch);
        self.texts(worker, None, |text| {
            if is_first(&copies, text.doc) {
                rule.unsorted(text.text, &mut sets);
                sets.features().for_each(|feature| counting.add(feature));
            }
        })?;
        counting.finish();
        sum(worker, sketch, self.cluster.workers());

        let mut join = PrefixJoin::new(rule.clone(), Arc::clone(sketch), &self.scratch);
        self.texts(worker, None, |text| {
            if is_first(&copies, text.doc) {
                rule.unsorted(text.text, &mut sets);
                join.add(text.doc, &mut sets);
            }
        })?;
        let Compared { pairs, loads } = join.candidates(worker, Skew::default())?;
        found.loads = vec![loads];
        let mut portions = join.portions(pairs);

        at.enter(Stage::Verify);
        while let Some(pairs) = portions.next(worker)? {
            found.candidates += pairs.len() as u64;
            let needs = Needs::exchange(worker, &pairs, &[], true);
            let mut verify = self.new_verify(worker, &pairs, &rule);
            join.verify(worker, &needs, &mut verify)?;
            found.matches.pairs.append(&mut verified(verify.finish(worker)));
        }
        drop(join);
        let matched: Vec<Pair> = found.matches.pairs.iter().map(|(pair, _)| *pair).collect();
        let needs = Needs::exchange(worker, &matched, &copies, false);
        self.texts(worker, Some(&needs), |text| {
            if needs.of(text.doc).is_some() {
                found.names.add(text.doc, text.id, text.chars);
            }
        })?;
        found.matches.copies = copies;
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
        text_bytes: usize,
    ) -> Result<Found> {
        let mut found = Found::default();
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
        let verify = |worker: &mut Worker, pairs: &[Pair]| Some(self.new_verify(worker, pairs, &rule));
        let mut sets = Sets::default();
        self.verify_in_portions(worker, at, &mut found, pairs, text_bytes, verify, |text, packed| {
            rule.sets(cleaner.clean(text), &mut sets);
            sets.pack(packed, |_| true);
        })?;
        Ok(found)
    }

    /// The documents of this worker that are identical to an earlier one, and the first of them; sorted.
    fn collapse_texts(&self, worker: &mut Worker, found: &mut Found) -> Result<Vec<(DocId, DocId)>> {
        self.collapse::<Identity>(worker, found, |_| ())
    }

    fn new_verify(&self, worker: &mut Worker, pairs: &[Pair], rule: &Rule) -> Verify {
        let rule = rule.clone();
        let matching = Box::new(move |a: &[u64], b: &[u64]| rule.matches(Packed(a), Packed(b)));
        Verify::new(worker, pairs, matching, &self.scratch)
    }
}

fn is_first(copies: &[(DocId, DocId)], doc: DocId) -> bool {
    copies.binary_search_by_key(&doc, |copy| copy.0).is_err()
}
