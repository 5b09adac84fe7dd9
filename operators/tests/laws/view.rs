//! The laws of the live view: after any changes it has decided what the greedy rule decides about the documents that are there, and
//! its changes, replayed, give the same; so it does where the dataflow finds the matches by keys.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use operators::flow::{KeyRule, LiveView, ViewChange, ViewRank, WhatIf};
use operators::hash::Secret;
use operators::method::{KeptKeys, Spec};
use operators::text::document_frequencies::Statistics;
use operators::text::features::Lexicon;
use operators::{DocId, Matches, Pair, Removed, Resolve, Sides, Similarity, survivors};
use proptest::collection::vec;
use proptest::prelude::*;
use timely::worker::Worker;

/// Documents with texts, some of which match.
#[derive(Clone, Debug)]
struct Corpus {
    /// Similarity of two texts, the first of which has the lower number.
    similar: BTreeMap<(u8, u8), Option<Similarity>>,
    /// Groups of changes: texts of documents that come, and documents that go, by their places among those that are there.
    groups: Vec<(Vec<u8>, Vec<usize>)>,
}

/// Texts of a corpus.
const TEXTS: u8 = 40;

fn corpora() -> impl Strategy<Value = Corpus> {
    let similarity =
        prop_oneof![Just(None), (50_u32..100).prop_map(|n| Some(Similarity::millionths(n * 10_000)))];
    let random = vec(((0..TEXTS, 0..TEXTS), similarity.clone()), 0..60);
    let chain = vec(similarity.clone(), TEXTS as usize - 1)
        .prop_map(|all| all.into_iter().zip(0..).map(|(of, text)| ((text, text + 1), of)).collect());
    let star = (0..TEXTS, vec(similarity.clone(), TEXTS as usize))
        .prop_map(|(hub, all)| all.into_iter().zip(0..).map(|(of, text)| ((hub, text), of)).collect());
    let clique = similarity
        .prop_map(|of| (0..12).flat_map(|one| (0..12).map(move |other| ((one, other), of))).collect());
    let graph = prop_oneof![4 => random, 1 => chain, 1 => star, 1 => clique];
    let groups = vec((vec(0..TEXTS, 0..30), vec(any::<usize>(), 0..20)), 1..8);
    (graph, groups).prop_map(|(pairs, groups)| {
        let pairs = pairs.into_iter().filter(|((one, other), _)| one != other);
        let similar = pairs.map(|((one, other), of)| ((one.min(other), one.max(other)), of)).collect();
        Corpus { similar, groups }
    })
}

/// Documents that are there, with their texts.
type Living = BTreeMap<DocId, u8>;

impl Corpus {
    fn similarity(&self, one: u8, other: u8) -> Option<Option<Similarity>> {
        self.similar.get(&(one.min(other), one.max(other))).copied()
    }

    /// Returns what the greedy rule decides about documents, for each of those that go.
    fn decided(
        &self,
        living: &Living,
        least: Option<Similarity>,
        rank: &ViewRank,
    ) -> BTreeMap<DocId, Removed> {
        let mut firsts: BTreeMap<u8, DocId> = BTreeMap::new();
        living.iter().for_each(|(&doc, &text)| _ = firsts.entry(text).or_insert(doc));
        let copies =
            living.iter().map(|(&doc, text)| (doc, firsts[text])).filter(|(doc, first)| doc != first);
        let pairs = firsts.iter().flat_map(|one| firsts.iter().map(move |other| (one, other)));
        let pairs =
            pairs.filter(|((one, _), (other, _))| one < other).filter_map(|((one, a), (other, b))| {
                let similarity = self.similarity(*one, *other)?;
                let counts = similarity.is_none() || similarity >= least;
                counts.then_some((Pair::new(*a, *b, 0), similarity))
            });
        let matches = Matches { copies: copies.collect(), pairs: pairs.collect() };
        let members = survivors(&matches, Resolve::Greedy, Sides::default(), |doc| rank(doc));
        members.into_iter().filter_map(|member| Some((member.doc, member.removed?))).collect()
    }

    /// Makes a group of changes in a view. A document that comes is told of one that is identical, or of those that match.
    fn make(
        &self,
        (come, go): &(Vec<u8>, Vec<usize>),
        next: &mut u64,
        living: &mut Living,
        view: &mut LiveView,
    ) {
        for (at, &text) in come.iter().enumerate() {
            let doc = DocId(*next);
            *next += 1;
            let mut of_text = living.iter().filter(|(_, of)| **of == text);
            let identical = if at % 2 == 0 { of_text.next() } else { of_text.next_back() };
            let near = living.iter().filter_map(|(&near, &of)| Some((near, self.similarity(text, of)?)));
            view.insert(doc, identical.map(|(doc, _)| *doc), near);
            living.insert(doc, text);
        }
        for at in go {
            let Some((&doc, _)) = living.iter().nth(at % living.len().max(1)) else { continue };
            living.remove(&doc);
            view.remove(doc);
            // A second removal, and that of a document that never was there, change nothing.
            view.remove(doc);
        }
    }
}

/// Replays changes, and checks that each begins with what was there before.
fn replay(changes: Vec<ViewChange>, decided: &mut BTreeMap<DocId, Removed>) {
    let docs: BTreeSet<DocId> = changes.iter().map(|change| change.doc).collect();
    assert_eq!(docs.len(), changes.len(), "a document has one change in a version");
    for ViewChange { doc, before, after } in changes {
        assert_ne!(before, after);
        let known = match after {
            Some(removed) => decided.insert(doc, removed),
            None => decided.remove(&doc),
        };
        assert_eq!(known, before);
    }
}

fn first() -> ViewRank {
    Rc::new(|doc| (0, doc))
}

fn newest() -> ViewRank {
    Rc::new(|doc| (u64::MAX - doc.0, doc))
}

/// The order of lengths or priorities, which documents share.
fn longest() -> ViewRank {
    Rc::new(|doc| (operators::hash::spread(doc.0) % 4, doc))
}

/// A view, what was decided in it, and how documents are judged in it.
struct Seen {
    what_if: Option<WhatIf>,
    decided: BTreeMap<DocId, Removed>,
    least: Option<Similarity>,
    rank: ViewRank,
}

fn check(worker: &mut Worker, corpus: &Corpus, rank: ViewRank, mut view: LiveView) {
    let mut seen = vec![Seen { what_if: None, decided: BTreeMap::new(), least: None, rank }];
    let mut next = 0;
    let mut living = Living::new();
    for (at, group) in corpus.groups.iter().enumerate() {
        corpus.make(group, &mut next, &mut living, &mut view);
        let changes = view.commit(worker);
        replay(changes, &mut seen[0].decided);
        for seen in &mut seen {
            if let Some(what_if) = &mut seen.what_if {
                replay(what_if.commit(&view), &mut seen.decided);
            }
            assert_eq!(seen.decided, corpus.decided(&living, seen.least, &seen.rank));
        }
        // Others begin in the middle, one of them with another order.
        let (least, rank) = match at {
            1 => (Some(Similarity::ratio(4, 5)), Rc::clone(&seen[0].rank)),
            2 => (Some(Similarity::ratio(7, 10)), newest()),
            _ => continue,
        };
        let (what_if, changes) = view.what_if(least, Rc::clone(&rank));
        let mut decided = BTreeMap::new();
        replay(changes, &mut decided);
        assert_eq!(decided, corpus.decided(&living, least, &rank));
        seen.push(Seen { what_if: Some(what_if), decided, least, rank });
    }
    view.end(worker);
}

/// Runs a check at the first of some workers, and lets the others help. `make`: makes the view.
fn on_workers<C: Sync + Send + 'static>(
    workers: usize,
    corpus: C,
    make: fn(&mut Worker, ViewRank) -> LiveView,
    check: fn(&mut Worker, &C, ViewRank, LiveView),
) {
    let ranks: [fn() -> ViewRank; 3] = [first, newest, longest];
    let work = move |worker: &mut Worker| {
        for rank in ranks {
            let view = make(worker, rank());
            match worker.index() {
                0 => check(worker, &corpus, rank(), view),
                _ => view.end(worker),
            }
        }
        assert!(worker.installed_dataflows().is_empty());
    };
    let ends = timely::execute(timely::Config::process(workers), work).unwrap().join();
    ends.into_iter().for_each(|end| end.unwrap());
}

proptest! {
    #[test]
    fn a_view_decides_as_the_greedy_rule_after_any_changes(corpus in corpora(), workers in 1_usize..3) {
        on_workers(workers, corpus, LiveView::new, check);
    }
}

/// Groups of changes of documents that have keys: identities of documents that come, and documents that go, by their places.
type KeyGroups = Vec<(Vec<(u64, u64)>, Vec<usize>)>;

/// Fingerprints near a few centres, so that families are large, and some in between.
fn key_groups() -> impl Strategy<Value = KeyGroups> {
    let centre = prop_oneof![3 => 0_u64..3, 1 => 3_u64..40];
    let fingerprint = (centre, vec(0_u32..64, 0..4));
    let fingerprint = fingerprint.prop_map(|(centre, flipped)| {
        let centre = operators::hash::spread(centre);
        flipped.iter().fold(centre, |word, bit| word ^ 1 << bit)
    });
    let come = vec(fingerprint.prop_map(|word| (word, word)), 0..60);
    vec((come, vec(any::<usize>(), 0..30)), 1..6)
}

/// Makes the keys of a method whose texts are not compared.
fn keys_of(method: &str) -> KeptKeys {
    let spec: Spec = method.parse().unwrap();
    let method = spec.method(&Lexicon::default(), &Statistics::default(), None).unwrap();
    KeptKeys::new(&method, Secret::of_words([1, 2])).unwrap()
}

fn by_fingerprints(worker: &mut Worker, rank: ViewRank) -> LiveView {
    LiveView::by_keys(worker, rank, KeyRule::of(&keys_of("simhash:features=char:2")).unwrap())
}

fn by_tables(worker: &mut Worker, rank: ViewRank) -> LiveView {
    let keys = keys_of("simhash:features=char:2,hamming=2,blocks=5");
    LiveView::by_keys(worker, rank, KeyRule::of(&keys).unwrap())
}

fn by_equal_texts(worker: &mut Worker, rank: ViewRank) -> LiveView {
    LiveView::by_keys(worker, rank, KeyRule::of(&keys_of("exact")).unwrap())
}

fn check_keys<const DISTANCE: u32>(
    worker: &mut Worker,
    groups: &KeyGroups,
    rank: ViewRank,
    mut view: LiveView,
) {
    let similarity = (DISTANCE == 0).then_some(Similarity::ONE);
    let mut living = BTreeMap::new();
    let mut next = 0;
    let mut decided = BTreeMap::new();
    for (come, go) in groups {
        for &identity in come {
            view.insert_key(DocId(next), identity);
            living.insert(DocId(next), identity);
            next += 1;
        }
        for at in go {
            let Some((&doc, _)) = living.iter().nth(at % living.len().max(1)) else { continue };
            living.remove(&doc);
            view.remove(doc);
            view.remove(doc);
        }
        replay(view.commit(worker), &mut decided);
        let pairs = living.iter().flat_map(|one| living.range(..one.0).map(move |other| (one, other)));
        let pairs = pairs.filter(|((_, one), (_, other))| (one.1 ^ other.1).count_ones() <= DISTANCE);
        let pairs = pairs.map(|((one, _), (other, _))| (Pair::new(*one, *other, 0), similarity)).collect();
        let matches = Matches { copies: Vec::new(), pairs };
        let members = survivors(&matches, Resolve::Greedy, Sides::default(), |doc| rank(doc));
        let expected: BTreeMap<DocId, Removed> =
            members.into_iter().filter_map(|member| Some((member.doc, member.removed?))).collect();
        assert_eq!(decided, expected);
    }
    view.end(worker);
}

proptest! {
    #[test]
    fn a_view_finds_the_matches_of_documents_with_keys(groups in key_groups(), workers in 1_usize..3) {
        on_workers(workers, groups.clone(), by_fingerprints, check_keys::<3>);
        on_workers(workers, groups.clone(), by_tables, check_keys::<2>);
        on_workers(workers, groups, by_equal_texts, check_keys::<0>);
    }
}
