//! Every method on the dataflow.

use std::sync::Arc;

use operators::flow::compare;
use operators::flow::sum;
use operators::flow::{BandJoin, PrefixJoin, RowSpool, Skew, Verify, collapse};
use operators::hash::Secret;
use operators::method::map_records::{Bands, Fingerprints, Identity, Texts};
use operators::method::{Method, MethodJob, SetMethod, SetSearch, Zhou};
use operators::sets::{PackedSets, Sets};
use operators::text::Cleaner;
use operators::{Counting, DocId, Error, ExternalSort, FeatureCounts, Row, SpillBudget};
use timely::worker::Worker;

use super::mapped::Mapped;
use super::{expand, listed, on_workers, places, retrieve};

/// The same from the dataflow.
pub struct Dataflow<'a> {
    pub texts: &'a [String],
    pub workers: usize,
    pub by_text: bool,
    pub skew: Skew,
    pub scratch: SpillBudget,
}

impl MethodJob for Dataflow<'_> {
    type Output = Vec<(DocId, DocId)>;

    fn run<M: Method>(self, cleaner: Cleaner, method: M) -> Self::Output {
        let by_text = self.by_text.then(Secret::random);
        let mapped = Mapped::of(self.texts, &Fingerprints::new(cleaner, method.clone(), by_text));
        let (shared, skew, scratch) = (std::sync::Mutex::new(method), self.skew, self.scratch);
        let found = on_workers(self.workers, move |worker| {
            let mut method = shared.lock().unwrap().clone();
            let mut rows = RowSpool::new(&scratch);
            let copies = if by_text.is_some() {
                let mut all = ExternalSort::<((M::Fingerprint, Identity), u64)>::new(&scratch);
                all.extend(mapped.rows(worker, 0));
                let push = |(fingerprint, _), doc| rows.push(Row { fingerprint, doc });
                collapse(worker, all, &scratch, push).unwrap()
            } else {
                let mut all = ExternalSort::new(&scratch);
                all.extend(mapped.rows(worker, 0));
                collapse(worker, all, &scratch, |fingerprint, doc| rows.push(Row { fingerprint, doc }))
                    .unwrap()
            };
            (listed(compare(worker, &mut method, rows, skew).unwrap().pairs), copies)
        });
        expand(&found)
    }

    fn sets(self, method: SetMethod) -> Self::Output {
        let SetMethod { cleaner, rule, search } = method;
        let secret = Secret::random();
        let texts = Mapped::of(self.texts, &Texts::new(cleaner.clone(), secret));
        let bands = match search {
            SetSearch::Bands(minhash) => {
                let mapped = Mapped::of(self.texts, &Bands::new(cleaner, rule.clone(), minhash, secret));
                Some((minhash.bands, mapped))
            }
            SetSearch::Prefix => None,
        };
        let sketch = Arc::new(FeatureCounts::of_corpus(1 << 20, None));
        let (shared, scratch) = (std::sync::Mutex::new(rule), self.scratch);
        let skew = self.skew;
        let found = on_workers(self.workers, move |worker| {
            let rule = shared.lock().unwrap().clone();
            let mut all = ExternalSort::new(&scratch);
            all.extend(texts.rows(worker, 0));
            let copies = collapse::<Identity>(worker, all, &scratch, |_, _| ()).unwrap();
            let first = |doc: DocId| copies.binary_search_by_key(&doc, |copy| copy.0).is_err();
            let mine = texts.sections(worker, Texts::TEXTS);
            let mine = || mine.iter().flat_map(|section| Texts::of(section)).filter(|text| first(text.doc));
            let mut sets = Sets::default();
            let pairs = if let Some((bands, mapped)) = &bands {
                let mut join = BandJoin::new(skew, &scratch);
                for number in 0..*bands {
                    let rows = mapped.rows::<(u64, u64)>(worker, Bands::section(number)).into_iter();
                    let firsts: Vec<_> = rows.filter(|row| first(DocId(row.1))).collect();
                    let scan = |worker: &mut Worker, each: &mut dyn FnMut(&mut Worker, (u64, u64))| {
                        firsts.iter().for_each(|row| each(worker, *row));
                        Ok::<(), Error>(())
                    };
                    join.band(worker, scan).unwrap();
                }
                join.finish(worker).unwrap().pairs
            } else {
                let mut counting = Counting::new(Arc::clone(&sketch), &scratch);
                for text in mine() {
                    rule.unsorted(text.text, &mut sets);
                    counting.add(sets.features());
                }
                counting.finish();
                sum(worker, &sketch, worker.peers());
                let mut join = PrefixJoin::new(rule.clone(), &scratch);
                for text in mine() {
                    rule.unsorted(text.text, &mut sets);
                    join.add(&sketch, text.doc, &sets);
                }
                join.finish(worker, skew).unwrap().pairs
            };
            let matching = rule.clone();
            let matching =
                Box::new(move |a: &[u64], b: &[u64]| matching.matches(PackedSets(a), PackedSets(b)));
            let (mut verify, mut needs) = Verify::new(worker, pairs, &copies, matching, &scratch).unwrap();
            for text in mine() {
                rule.sets(text.text, &mut sets);
                let mut packed = Vec::new();
                sets.pack(&mut packed);
                for &part in needs.of(text.doc).unwrap().into_iter().flatten() {
                    verify.send(worker, part, text.doc, &packed);
                }
                verify.read(worker, text.text.len());
            }
            let mut near = Vec::new();
            verify.finish(worker, |pair, _| near.push(pair)).unwrap();
            (near, copies)
        });
        expand(&found)
    }

    fn zhou(self, cleaner: Cleaner, method: Zhou) -> Self::Output {
        places(retrieve(self.texts, self.workers, cleaner, method).0)
    }
}
