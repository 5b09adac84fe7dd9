//! The laws of every method: the dataflow on any number of workers finds what the dumbest correct code finds.

#![expect(clippy::unwrap_used, reason = "helpers of tests, where a panic is a failure")]

mod dataflow;
mod even;
mod incremental;
mod mapped;
mod rounds;
mod view;
mod zhou;

use std::collections::BTreeMap;

use operators::fingerprint::block_tables::tables;
use operators::flow::{CandidateJoin, Candidates, PlaceOf, RecordSink, Skew, Verify};
use operators::hash;
use operators::hash::Secret;
use operators::method::{Method, SimHashSpec, Spec, ZhouSpec};
use operators::search::bits::BitSearch;
use operators::search::zhou::retrieval::Retrieval;
use operators::search::{CandidateSearch, MappedText, PassLoad, Search, SearchContext, SearchInputs};
use operators::sets::{PackedSets, Rule};
use operators::text::document_frequencies::{Count, Statistics};
use operators::text::features::{Features, Lexicon};
use operators::text::{Clean, Cleaner};
use operators::{
    Bits, DocBatch, DocId, Error, Overlap, Pair, Row, Sides, Similarity, Sorted, SpillBudget, jaccard,
};
use proptest::collection::vec;
use proptest::prelude::*;
use timely::worker::Worker;

use dataflow::Dataflow;
use zhou::{places, retrieve, retrieve_alone};

const SPLITS: u32 = 5;

/// Document `i` is in split `i % SPLITS`.
fn doc(i: usize) -> DocId {
    DocId::new(i as u32 % SPLITS, (i as u32 / SPLITS).into())
}

/// The documents of one split.
fn batch(texts: &[String], split: u32) -> DocBatch {
    let mut batch = DocBatch::new(split, 0);
    texts.iter().skip(split as usize).step_by(SPLITS as usize).for_each(|text| batch.push("", text));
    batch
}

/// Returns the pairs of documents that match, identical ones included, by comparing every pair of these sides. A
/// document that is identical to one of the reference has no other pair with the reference, and one without text has none.
fn brute_force(texts: &[String], mut method: Method, sides: Sides) -> Vec<(DocId, DocId)> {
    if let Search::Zhou(zhou) = method.search {
        return places(retrieve_alone(texts, method.cleaner, zhou).0);
    }
    let mut search = method.text_search();
    let map = |text: &String| {
        let text = method.cleaner.clean(text).to_owned();
        let mapped = MappedText::new(&mut *search, text.as_str().into());
        (mapped, method.rule.packed(&text), text)
    };
    let mapped: Vec<_> = texts.iter().map(map).collect();
    let class = |i: usize| match method.verified {
        true => mapped[i].2.clone(),
        false => format!("{:?}", mapped[i].0),
    };
    let mut firsts = BTreeMap::new();
    for i in 0..texts.len() {
        let first = firsts.entry(class(i)).or_insert(doc(i));
        *first = doc(i).min(*first);
    }
    let mut pairs = Vec::new();
    let has_text = |(_, (_, _, text)): &(usize, &(_, _, String))| !text.trim().is_empty();
    for (i, (mapped_a, a, text_a)) in mapped.iter().enumerate().filter(has_text) {
        for (j, (mapped_b, b, text_b)) in mapped.iter().enumerate().skip(i + 1).filter(has_text) {
            let near = || !method.verified || method.rule.matches(PackedSets(a), PackedSets(b)).is_some();
            let same = text_a == text_b || class(i) == class(j);
            let compared = || sides.compares(&Pair::new(firsts[&class(i)], firsts[&class(j)], 0));
            if sides.compares(&Pair::new(doc(i), doc(j), 0))
                && (same || compared() && search.are_candidates(mapped_a, mapped_b) && near())
            {
                pairs.push((doc(i).min(doc(j)), doc(i).max(doc(j))));
            }
        }
    }
    pairs.sort_unstable();
    pairs
}

/// Result of one worker: the pairs of first documents, and their copies.
type OfWorker = (Vec<Pair>, Vec<(DocId, DocId)>);

/// Returns every pair of documents of these sides that pairs of first documents and their copies stand for.
fn expand(found: &[OfWorker], sides: Sides) -> Vec<(DocId, DocId)> {
    let pairs: Vec<_> =
        found.iter().flat_map(|(pairs, _)| pairs.iter().map(|pair| (pair.low, pair.high))).collect();
    let copies: Vec<_> = found.iter().flat_map(|(_, copies)| copies.iter().copied()).collect();
    let class = |first: DocId| copies.iter().filter(move |c| c.1 == first).map(|c| c.0).chain([first]);
    let mut all: Vec<_> = pairs
        .iter()
        .flat_map(|&(a, b)| class(a).flat_map(move |a| class(b).map(move |b| (a.min(b), a.max(b)))))
        .collect();
    let firsts: std::collections::BTreeSet<_> = copies.iter().map(|copy| copy.1).collect();
    for first in firsts {
        let members: Vec<_> = class(first).collect();
        for (i, &a) in members.iter().enumerate() {
            all.extend(members[i + 1..].iter().map(|&b| (a.min(b), a.max(b))));
        }
    }
    all.retain(|&(a, b)| sides.compares(&Pair::new(a, b, 0)));
    all.sort_unstable();
    all
}

/// Returns the statistics that the spec needs of a corpus.
fn statistics(spec: &Spec, texts: &[String]) -> Statistics {
    let Some((clean, features)) = spec.counted() else { return Statistics::default() };
    let features = Features::new(features, &Lexicon::default()).unwrap();
    let mut count = Count::new(Cleaner::new(clean), features);
    let mut batch = DocBatch::new(0, 0);
    texts.iter().for_each(|text| batch.push("", text));
    count.batch(&batch);
    count.finish()
}

/// Distances of up to 15 bits, and for each the numbers of blocks that make tables enough for a test.
fn designs() -> impl Strategy<Value = (u32, u32)> {
    let blocks = |distance| (distance + 1..=32).filter(move |&blocks| tables(distance, blocks) <= 20);
    let designs = (0..=15).flat_map(|distance| blocks(distance).map(move |blocks| (distance, blocks)));
    prop::sample::select(designs.collect::<Vec<_>>())
}

/// Makes all passes of a search over the records of this worker. `places`: returns the place of a document, if places are known.
fn joined<S: CandidateSearch>(
    worker: &mut Worker,
    mut join: CandidateJoin<S>,
    places: Option<&PlaceOf>,
    records: impl Fn(&S::Pass) -> Vec<S::Record>,
) -> Candidates {
    for pass in join.passes() {
        let records = records(&pass);
        let mut scan = |worker: &mut Worker, each: RecordSink<S::Record>| {
            records.iter().for_each(|record| each(worker, *record));
            Ok::<(), Error>(())
        };
        join.pass(worker, &pass, &mut scan).unwrap();
    }
    match places {
        None => join.finish(worker, |pair| pair.low),
        Some(place) => join.finish_round(worker, place),
    }
    .unwrap()
}

fn listed(mut sorted: Sorted<Pair>) -> Vec<Pair> {
    let mut all = Vec::new();
    sorted.each(|pair| all.push(pair)).unwrap();
    all
}

/// Returns the pairs that each worker gets, and its loads. `spec`: of a SimHash of up to 64 bits if `W` is
/// `u64`, else of 128.
fn compared<W: Bits>(
    spec: &SimHashSpec,
    fingerprints: Vec<W>,
    workers: usize,
    sides: Sides,
    skew: Skew,
    spill: SpillBudget,
) -> Vec<(Vec<Pair>, Vec<PassLoad>)> {
    let rows = fingerprints.into_iter().enumerate();
    let rows: Vec<_> = rows.map(|(i, fingerprint)| Row { fingerprint, doc: doc(i), sketch: 0 }).collect();
    let simhash = spec.simhash(Features::Chars(5), &Statistics::default());
    let rule = Rule::new(Features::Chars(5), Overlap::Jaccard, Similarity::LEAST);
    on_workers(workers, move |worker| {
        let inputs = SearchInputs { sides, ..SearchInputs::of_texts(Secret::random()) };
        let context = SearchContext { rule: &rule, verified: false, inputs };
        let search = BitSearch::new(simhash.clone(), &context);
        let join = CandidateJoin::new(search, skew, &spill);
        let mine: Vec<_> = rows.iter().skip(worker.index()).step_by(worker.peers()).copied().collect();
        let Candidates { pairs, loads, .. } = joined(worker, join, None, |_| mine.clone());
        (listed(pairs), loads)
    })
}

/// Budgets in bytes: unlimited, or enough for a few records.
fn budgets() -> impl Strategy<Value = Option<usize>> {
    prop::sample::select(vec![None, Some(300), Some(20_000)])
}

fn spill(budget: Option<usize>) -> SpillBudget {
    SpillBudget::new(&std::env::temp_dir(), budget)
}

/// No reference, or the first splits, with and without pairs within the input.
fn sides() -> impl Strategy<Value = Sides> {
    let sides = [(0, true), (2, true), (2, false), (1, true), (4, false)];
    prop::sample::select(sides.map(|(splits, within)| Sides::new(splits, within)).to_vec())
}

/// Bounds by which every key that two documents share is too heavy for one worker, some are, or none.
fn skews() -> impl Strategy<Value = Skew> {
    let all = Skew { least_rows: 0, share: u64::MAX };
    prop::sample::select(vec![all, Skew { least_rows: 5, ..all }, Skew::default()])
}

fn on_workers<T: Send + 'static>(
    workers: usize,
    work: impl Fn(&mut Worker) -> T + Send + Sync + 'static,
) -> Vec<T> {
    let guards = timely::execute(timely::Config::process(workers), work).unwrap();
    guards.join().into_iter().map(Result::unwrap).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn dataflow_equals_brute_force(
        texts in vec("[ab中 ]{0,3}(今天天气很好，|大家都去公园散步。|北京上海广州){0,4}[ab]{0,2}", 0..60),
        workers in 1usize..=4,
        verify in prop::sample::select(vec![None, Some("0.5")]),
        sides in sides(),
        skew in skews(),
        budget in budgets(),
    ) {
        for spec in Spec::examples() {
            let sides = if spec.starts_with("zhou2017") { Sides::default() } else { sides };
            let spec: Spec = spec.parse().unwrap();
            let verify = verify.map(|least| least.parse().unwrap());
            let method = spec.method(&Lexicon::default(), &statistics(&spec, &texts), verify).unwrap();
            let dataflow = Dataflow { texts: &texts, workers, sides, skew, spill: spill(budget) };
            prop_assert_eq!(dataflow.run(method.clone()), brute_force(&texts, method, sides), "{}", spec);
        }
    }

    #[test]
    fn dataflow_equals_brute_force_for_long_texts_and_their_parts(
        words in vec(0u32..60, 40..400),
        parts in vec((any::<prop::sample::Index>(), 1usize..300, vec((any::<prop::sample::Index>(), 0u32..60), 0..12)), 2..40),
        workers in 1usize..=4,
        sides in sides(),
        skew in skews(),
        budget in budgets(),
    ) {
        // Every tenth word is of a spaced script.
        let word = |&word: &u32| char::from_u32(if word % 10 == 0 { 0x61 + word / 10 } else { 0x4E00 + 7 * word });
        let texts: Vec<String> = parts
            .iter()
            .map(|(start, length, edits)| {
                let start = start.index(words.len());
                let mut part = words[start..words.len().min(start + length)].to_vec();
                edits.iter().for_each(|(at, word)| *at.get_mut(&mut part) = *word);
                part.iter().filter_map(word).collect()
            })
            .collect();
        for spec in ["auto", "auto:revisions", "auto:search=minhash", "auto:short=0.3,long=0.3", "jaccard:0.4,features=char:2",
            "contained:0.4,features=char:2", "contained:0.9,features=char:5"] {
            let spec: Spec = spec.parse().unwrap();
            let method = spec.method(&Lexicon::default(), &Statistics::default(), None).unwrap();
            let dataflow = Dataflow { texts: &texts, workers, sides, skew, spill: spill(budget) };
            prop_assert_eq!(dataflow.run(method.clone()), brute_force(&texts, method, sides), "{}", spec);
        }
    }

    #[test]
    fn crowded_fingerprints_of_every_design_give_each_pair_once(
        centres in vec(any::<u128>(), 1..4),
        near in vec((any::<prop::sample::Index>(), vec(0u32..128, 0..9)), 0..300),
        workers in 1usize..=4,
        (distance, blocks) in designs(),
        sides in sides(),
        skew in skews(),
        budget in prop::sample::select(vec![None, Some(5_000), Some(50_000)]),
        bits in prop::sample::select(vec![32u32, 64, 128]),
    ) {
        let flip = |(centre, flips): &(prop::sample::Index, Vec<u32>)| {
            flips.iter().fold(*centre.get(&centres), |f, bit| f ^ 1 << bit) & u128::lowest(bits)
        };
        let fingerprints: Vec<u128> = near.iter().map(flip).collect();
        let mut expected = Vec::new();
        for (i, a) in fingerprints.iter().enumerate() {
            let rest = fingerprints.iter().enumerate().skip(i + 1);
            let pairs = rest.map(|(j, b)| Pair::new(doc(i), doc(j), (a ^ b).count_ones()));
            expected.extend(pairs.filter(|pair| pair.distance <= distance && sides.compares(pair)));
        }
        expected.sort_unstable();
        let spec = SimHashSpec { bits, hamming: distance, blocks: Some(blocks), ..SimHashSpec::default() };
        let found = match bits {
            128 => compared(&spec, fingerprints, workers, sides, skew, spill(budget)),
            _ => {
                let fingerprints = fingerprints.iter().map(|&f| f as u64).collect();
                compared(&spec, fingerprints, workers, sides, skew, spill(budget))
            }
        };
        let found: Vec<_> = found.into_iter().map(|(pairs, _)| pairs).collect();
        for (index, pairs) in found.iter().enumerate() {
            prop_assert!(pairs.iter().all(|pair| pair.low.split() as usize % workers == index), "delivered to the owner");
        }
        let mut found = found.concat();
        found.sort_unstable();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn verification_keeps_exactly_the_pairs_that_are_near_enough(
        sets in vec(prop::collection::btree_set(0u64..12, 1..8), 2..40),
        workers in 1usize..=4,
        least in prop::sample::select(vec!["0", "0.5", "0.8", "1"]),
        budget in budgets(),
    ) {
        let least: Similarity = least.parse().unwrap();
        let spill = spill(budget);
        let sets: Vec<Vec<u64>> = sets.into_iter().map(|set| set.into_iter().collect()).collect();
        let mut pairs = Vec::new();
        for i in 0..sets.len() {
            pairs.extend((i + 1..sets.len()).filter(|j| hash::spread((i * 64 + j) as u64) & 3 > 0).map(|j| (i, j)));
        }
        let candidates = pairs.len() as u64;
        let mut expected: Vec<_> = pairs
            .iter()
            .map(|&(i, j)| (Pair::new(doc(i), doc(j), 0), jaccard(&sets[i], &sets[j])))
            .filter(|(_, similarity)| *similarity >= least)
            .collect();
        expected.sort_unstable();
        let found = on_workers(workers, move |worker| {
            let mine = |doc: DocId| doc.split() as usize % worker.peers() == worker.index();
            let pairs: Vec<_> =
                pairs.iter().map(|&(i, j)| Pair::new(doc(i), doc(j), 0)).filter(|pair| mine(pair.low)).collect();
            let mut own: Vec<usize> = (0..sets.len()).filter(|&i| mine(doc(i))).collect();
            own.sort_by_key(|&i| doc(i));
            let pairs = Sorted::InMemory(pairs);
            let matching = move |a: &[u64], b: &[u64]| Some(jaccard(a, b)).filter(|&alike| alike >= least);
            let (mut verify, mut needs) = Verify::new(worker, pairs, [].into_iter(), Box::new(matching), &spill).unwrap();
            for &i in &own {
                for &part in needs.of(doc(i)).unwrap().into_iter().flatten() {
                    verify.send(worker, part, doc(i), &sets[i]);
                }
            }
            let mut near = Vec::new();
            let candidates = verify.finish(worker, |_, pair, similarity| near.push((pair, similarity))).unwrap();
            (near, candidates)
        });
        prop_assert_eq!(found.iter().map(|found| found.1).sum::<u64>(), candidates);
        let mut found: Vec<_> = found.into_iter().flat_map(|found| found.0).collect();
        found.sort_unstable();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn zhou_deletes_the_same_documents_on_any_number_of_workers(
        texts in vec("[ab中 ]{0,3}(今天天气好|都去公园|北京上海){0,3}[ab]{0,2}(//@a:[ab]{1,2})?", 0..80),
        workers in 1usize..=4,
        retrieval in prop::sample::select(vec![Retrieval::Linear, Retrieval::Bucket, Retrieval::Recursive]),
        threshold in 1_000_000u64..4_000_000,
    ) {
        let spec = ZhouSpec { retrieval, threshold: Some(threshold), ..ZhouSpec::default() };
        let cleaner = Cleaner::new(Clean::Weibo);
        let zhou = spec.zhou(Features::Chars(1));
        let expected = retrieve_alone(&texts, cleaner.clone(), zhou.clone());
        let deleted: std::collections::BTreeSet<_> = expected.0.iter().map(|(pair, _)| pair.high).collect();
        prop_assert_eq!(deleted.len(), expected.0.len(), "no document is deleted twice");
        prop_assert_eq!(retrieve(&texts, workers, cleaner, zhou), expected);
    }
}
