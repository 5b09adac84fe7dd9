//! Every method on the dataflow, with the map output in memory.

use std::sync::{Arc, Mutex};

use operators::flow::{CandidateJoin, Candidates, LookupMarks, PrefixJoin, Skew, Verify, collapse, sum};
use operators::hash::Secret;
use operators::method::Method;
use operators::search::crowds::Asks;
use operators::search::map_records::StoredText;
use operators::search::prefix::PrefixTexts;
use operators::search::{KeyedSearch, Search, SearchInputs, SearchVisitor, TextSearch};
use operators::sets::{PackedSets, Rule, Sets};
use operators::text::Cleaner;
use operators::{Counting, DocId, Error, ExternalSort, FeatureCounts, Pair, Sides, Sorted, SpillBudget};
use timely::worker::Worker;

use super::mapped::Mapped;
use super::zhou::{places, retrieve};
use super::{expand, joined, listed, on_workers};

pub struct Dataflow<'a> {
    pub texts: &'a [String],
    pub workers: usize,
    pub sides: Sides,
    pub skew: Skew,
    pub spill: SpillBudget,
}

impl Dataflow<'_> {
    /// Returns the pairs of documents that match, identical ones included.
    pub fn run(self, method: Method) -> Vec<(DocId, DocId)> {
        let cleaner = method.cleaner.clone();
        if let Search::Zhou(zhou) = method.search {
            return places(retrieve(self.texts, self.workers, cleaner, zhou).0);
        }
        let secret = Secret::random();
        let inputs = SearchInputs { sides: self.sides, ..SearchInputs::of_texts(secret) };
        // Verification reads the texts again.
        let texts = Mapped::of(self.texts, &cleaner, &PrefixTexts::new(secret));
        let mapped = method.search.visit(&method.context(inputs), MapTexts { texts: self.texts, cleaner });
        let counts = [(); 2].map(|()| Arc::new(FeatureCounts::of_corpus(1 << 20, None)));
        let method = Mutex::new(method);
        let sides = self.sides;
        let skew = self.skew;
        let spill = self.spill;
        let found = on_workers(self.workers, move |worker| {
            let method = method.lock().unwrap().clone();
            let mut identities = ExternalSort::new(&spill);
            identities.extend(mapped.records(worker.index(), worker.peers(), 0));
            let copies = collapse(worker, identities, &spill, |_| Ok::<_, Error>(None)).unwrap();
            let search = SearchOfWorker {
                mapped: &mapped,
                texts: &texts,
                copies: &copies,
                sides,
                skew,
                spill: &spill,
            };
            let pairs = match method.search {
                Search::Prefix => search.join_prefixes(worker, &method.rule, &counts),
                _ => method.search.visit(&method.context(inputs), JoinKeys { of: &search, worker }),
            }
            .pairs;
            let near = match method.verified {
                true => search.verify(worker, &method.rule, pairs),
                false => listed(pairs),
            };
            (near, copies)
        });
        expand(&found, sides)
    }
}

/// Maps texts for a search.
struct MapTexts<'a> {
    texts: &'a [String],
    cleaner: Cleaner,
}

impl SearchVisitor for MapTexts<'_> {
    type Output = Mapped;

    fn visit<S: TextSearch + Clone>(self, search: S) -> Mapped {
        Mapped::of(self.texts, &self.cleaner, &search)
    }
}

/// Joins the records of a search that has keys. Others have no candidates here.
struct JoinKeys<'a> {
    of: &'a SearchOfWorker<'a>,
    worker: &'a mut Worker,
}

impl SearchVisitor for JoinKeys<'_> {
    type Output = Candidates;

    fn visit<S: TextSearch + Clone>(self, _: S) -> Candidates {
        Candidates::none()
    }

    fn visit_keyed<S: KeyedSearch>(self, search: S) -> Candidates {
        self.of.join(self.worker, search)
    }
}

struct SearchOfWorker<'a> {
    mapped: &'a Mapped,
    texts: &'a Mapped,
    copies: &'a [(DocId, DocId)],
    sides: Sides,
    skew: Skew,
    spill: &'a SpillBudget,
}

impl SearchOfWorker<'_> {
    fn is_first(&self, doc: DocId) -> bool {
        self.copies.binary_search_by_key(&doc, |copy| copy.0).is_err()
    }

    fn join<S: KeyedSearch>(&self, worker: &mut Worker, search: S) -> Candidates {
        let join = CandidateJoin::new(search, self.skew, self.spill);
        let (index, peers) = (worker.index(), worker.peers());
        joined(worker, join, None, |pass| {
            let records = self.mapped.records(index, peers, S::section(pass));
            records.into_iter().filter(|record| self.is_first(S::doc(record))).collect()
        })
    }

    fn join_prefixes(
        &self,
        worker: &mut Worker,
        rule: &Rule,
        [counts, marks]: &[Arc<FeatureCounts>; 2],
    ) -> Candidates {
        let mut sets = Sets::default();
        let mut counting = Counting::new(Arc::clone(counts), self.spill);
        self.each_first(worker, |_, text| {
            rule.unsorted(text, &mut sets);
            counting.add(sets.features());
        });
        counting.finish();
        sum(worker, counts, worker.peers());
        let mut join = PrefixJoin::new(rule.clone(), self.sides, self.spill);
        let marks = rule.needs_lookup_marks().then(|| {
            let mut counting = Counting::new(Arc::clone(marks), self.spill);
            self.each_first(worker, |doc, text| {
                rule.unsorted(text, &mut sets);
                join.lookups(counts, doc, &sets, |mark| counting.add([mark].into_iter()));
            });
            counting.finish();
            sum(worker, marks, worker.peers());
            LookupMarks::new(Arc::clone(marks), self.sides)
        });
        self.each_first(worker, |doc, text| {
            rule.unsorted(text, &mut sets);
            join.add(counts, marks.as_ref(), doc, &sets);
        });
        join.candidates(worker, self.skew, Asks::All, None).unwrap()
    }

    fn verify(&self, worker: &mut Worker, rule: &Rule, pairs: Sorted<Pair>) -> Vec<Pair> {
        let matching = rule.clone();
        let matching = Box::new(move |a: &[u64], b: &[u64]| matching.matches(PackedSets(a), PackedSets(b)));
        let (mut verify, mut needs) =
            Verify::new(worker, pairs, [].into_iter(), matching, self.spill).unwrap();
        let mut firsts = Vec::new();
        self.each_first(worker, |doc, text| firsts.push((doc, text.to_owned())));
        for (doc, text) in firsts {
            let packed = rule.packed(&text);
            for &part in needs.of(doc).unwrap().into_iter().flatten() {
                verify.send(worker, part, doc, &packed);
            }
            verify.read(worker, text.len());
        }
        let mut near = Vec::new();
        verify.finish(worker, |_, pair, _| near.push(pair)).unwrap();
        near
    }

    /// Calls `each` with this worker's documents that are the first of their text, but not with those without text.
    fn each_first(&self, worker: &Worker, mut each: impl FnMut(DocId, &str)) {
        let sections = self.texts.sections(worker.index(), worker.peers(), StoredText::SECTION);
        let texts = sections.into_iter().flat_map(StoredText::all);
        let wanted = texts.filter(|text| !text.text.is_empty() && self.is_first(text.doc));
        wanted.for_each(|text| each(text.doc, text.text));
    }
}
