//! By sets of features: candidates from the exact join or from MinHash, and the sets themselves decide.

use std::sync::Arc;

use anyhow::Result;
use operators::flow::{Bands, Compared, Identities, Needs, PrefixJoin, Seen, Skew, Verify};
use operators::method::{SetMethod, SetSearch};
use operators::minhash::MinHash;
use operators::sets::{Packed, Rule, Sets};
use operators::{Counting, DocId, Pair, Sketch};
use timely::worker::Worker;

use super::{Found, Named, Search, verified};
use crate::progress::Stage;

impl Search {
    pub(super) fn by_sets(
        &self,
        worker: &mut Worker,
        method: SetMethod,
        sketch: &Arc<Sketch>,
        seen: &Arc<Seen>,
    ) -> Result<Found> {
        match method.search {
            SetSearch::Prefix => self.by_prefix(worker, method, sketch, seen),
            SetSearch::Bands(minhash) => self.by_bands(worker, method, minhash),
        }
    }

    /// Two readings: the first counts the features, the second keeps the documents whose features others have.
    fn by_prefix(
        &self,
        worker: &mut Worker,
        mut method: SetMethod,
        sketch: &Arc<Sketch>,
        seen: &Arc<Seen>,
    ) -> Result<Found> {
        let mut found = Found::default();
        let mut counting = Counting::new(Arc::clone(sketch));
        let identities = Identities::new(worker, Arc::clone(seen));
        let identities = self.identify(worker, &mut found, &mut method, identities, |_, sets| {
            sets.features().for_each(|feature| counting.add(feature));
        })?;
        counting.finish();
        let collapsed = identities.finish(worker);
        found.distinct = collapsed.distinct;
        let SetMethod { mut cleaner, rule, .. } = method;

        let of_copies = Needs::exchange(worker, &[], &collapsed.copies, false);
        let mut join = PrefixJoin::new(rule.clone(), Arc::clone(sketch));
        let mut sets = Sets::default();
        self.read_again(
            worker,
            |_| true,
            |worker, batch| {
                for doc in batch.docs() {
                    let mut named = of_copies.of(doc.doc).is_some();
                    if collapsed.later.binary_search(&doc.doc).is_err() {
                        rule.unsorted(cleaner.clean(doc.text), &mut sets);
                        named |= join.add(doc.doc, &mut sets);
                    }
                    if named {
                        found.named.push(Named::new(&doc));
                    }
                }
                worker.step();
            },
        )?;

        self.progress.enter(Stage::Compare);
        let Compared { pairs, loads } = join.candidates(worker, Skew::default());
        found.loads = vec![loads];
        found.candidates = pairs.len() as u64;

        self.progress.enter(Stage::Verify);
        let needs = Needs::exchange(worker, &pairs, &[], true);
        let mut verify = new_verify(worker, &pairs, rule);
        join.verify(worker, &needs, &mut verify);
        found.matches.pairs = verified(verify.finish(worker));
        found.matches.copies = collapsed.copies;
        let matched = Needs::exchange(worker, &of_matches(&found), &[], false);
        found.named.retain(|named| of_copies.of(named.doc).is_some() || matched.of(named.doc).is_some());
        Ok(found)
    }

    /// One reading for the bands, and one of the splits that hold a candidate.
    fn by_bands(&self, worker: &mut Worker, mut method: SetMethod, minhash: MinHash) -> Result<Found> {
        let mut found = Found::default();
        let mut bands = Bands::new(minhash);
        let add = |doc, sets: &Sets| bands.add(doc, sets);
        // A worker keeps the bands of the first of each text that it reads itself.
        let identities = Identities::new(worker, Arc::default());
        let identities = self.identify(worker, &mut found, &mut method, identities, add)?;
        let collapsed = identities.finish(worker);
        found.distinct = collapsed.distinct;
        let SetMethod { mut cleaner, rule, .. } = method;

        self.progress.enter(Stage::Compare);
        let Compared { pairs, loads } = bands.candidates(worker, &collapsed.later, Skew::default());
        found.loads = vec![loads];
        found.candidates = pairs.len() as u64;

        self.progress.enter(Stage::Verify);
        let needs = Needs::exchange(worker, &pairs, &collapsed.copies, true);
        let mut verify = new_verify(worker, &pairs, rule.clone());
        let mut sets = Sets::default();
        self.read_candidates(worker, &mut found, &needs, Some(&mut verify), |text, packed| {
            rule.sets(cleaner.clean(text), &mut sets);
            sets.pack(packed, |_| true);
        })?;
        found.matches.pairs = verified(verify.finish(worker));
        found.matches.copies = collapsed.copies;
        Ok(found)
    }

    /// The first reading: finds identical texts, and calls `each` with the unsorted sets of each that was not seen.
    fn identify(
        &self,
        worker: &mut Worker,
        found: &mut Found,
        method: &mut SetMethod,
        mut identities: Identities,
        mut each: impl FnMut(DocId, &Sets),
    ) -> Result<Identities> {
        let mut sets = Sets::default();
        self.read_all(worker, found, |worker, batch| {
            for doc in batch.docs() {
                let text = method.cleaner.clean(doc.text);
                if identities.add(doc.doc, text) {
                    method.rule.unsorted(text, &mut sets);
                    each(doc.doc, &sets);
                }
            }
            identities.round(worker);
        })?;
        Ok(identities)
    }
}

fn new_verify(worker: &mut Worker, pairs: &[Pair], rule: Rule) -> Verify {
    Verify::new(worker, pairs, Box::new(move |a, b| rule.matches(Packed(a), Packed(b))))
}

fn of_matches(found: &Found) -> Vec<Pair> {
    found.matches.pairs.iter().map(|(pair, _)| *pair).collect()
}
