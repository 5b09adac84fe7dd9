//! Measures the live view, and the same done by hand: the matches of each document in a list, the clusters that a change touches
//! found by walking, and the greedy rule on those; then fingerprints whose matches the dataflow finds.
//!
//! Arguments: the number of documents, 1,000,000; how many matches there are for a thousand of them, 450. The matches join random
//! documents. Seconds are CPU seconds of this thread; bytes are those that are allocated. `scripts/bench/view` runs it.

#![expect(clippy::expect_used, reason = "a benchmark that cannot run should say so and end")]

mod timing;

use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::time::Instant;

use operators::flow::{KeyRule, LiveView, ViewRank};
use operators::hash::{Secret, spread};
use operators::method::{KeptKeys, Spec};
use operators::text::document_frequencies::Statistics;
use operators::text::features::Lexicon;
use operators::{DocId, Matches, Pair, Removed, Resolve, Sides, Similarity, survivors};
use peak_alloc::PeakAlloc;
use timely::worker::Worker;
use timing::timed;

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

/// A document with those that match it and come before it.
type NewDoc = (DocId, Vec<DocId>);

/// A view that is measured: by the engine, or by hand.
trait MeasuredView {
    fn insert(&mut self, docs: &[NewDoc]);
    fn remove(&mut self, docs: &[DocId]);
    /// Returns the number of documents whose decision has changed.
    fn commit(&mut self) -> usize;
}

fn main() {
    let mut args = std::env::args().skip(1).filter(|arg| !arg.starts_with('-'));
    let mut number = |default: u64| args.next().map_or(default, |number| number.parse().expect("a number"));
    let (documents, per_thousand) = (number(1_000_000), number(450));
    timely::execute_directly(move |worker| {
        for by_hand in [false, true] {
            println!("\n{}", if by_hand { "by hand" } else { "by differential dataflow" });
            measure(worker, by_hand, documents, per_thousand);
        }
        what_if(worker, documents, per_thousand);
        by_keys(worker, documents, per_thousand);
    });
}

fn similarity() -> Similarity {
    Similarity::ratio(9, 10)
}

/// Returns documents from a number on, each of which matches random earlier ones.
fn random_docs(from: u64, count: u64, per_thousand: u64) -> Vec<NewDoc> {
    let matches_of = |doc: u64| {
        let is_one = doc > 0 && spread(doc) % 1000 < per_thousand;
        is_one.then(|| DocId(spread(doc ^ 1 << 40) % doc)).into_iter().collect()
    };
    (from..from + count).map(|doc| (DocId(doc), matches_of(doc))).collect()
}

fn begin(worker: &mut Worker, by_hand: bool) -> Box<dyn MeasuredView> {
    match by_hand {
        true => Box::new(ByHand::default()),
        false => Box::new(ByEngine::new(worker)),
    }
}

fn measure(worker: &mut Worker, by_hand: bool, documents: u64, per_thousand: u64) {
    let mut view = begin(worker, by_hand);
    let docs = random_docs(0, documents, per_thousand);
    let pairs: usize = docs.iter().map(|(_, near)| near.len()).sum();
    let before = ALLOCATED.current_usage();
    let (seconds, changed) = timed(|| {
        view.insert(&docs);
        view.commit()
    });
    let bytes = (ALLOCATED.current_usage() - before) / pairs;
    println!(
        "load {documents} documents, {pairs} matches: {seconds:.2} CPU s, {bytes} bytes a match, {changed} go"
    );
    in_groups(view.as_mut(), documents, per_thousand);
    let gone: Vec<DocId> = (0..1000).map(|at| DocId(at * (documents / 1000))).collect();
    let (seconds, changed) = timed(|| {
        view.remove(&gone);
        view.commit()
    });
    println!("1,000 go: {:.0} CPU ms, {changed} change", seconds * 1e3);
    drop(view);
    chain(begin(worker, by_hand).as_mut());
    hub(begin(worker, by_hand).as_mut());
}

/// Adds documents one by one, and in groups.
fn in_groups(view: &mut dyn MeasuredView, documents: u64, per_thousand: u64) {
    let mut next = documents;
    for size in [1, 100, 10_000] {
        let groups = (20_000 / size).clamp(3, 500);
        let all: Vec<_> = (0..groups).map(|at| random_docs(next + at * size, size, per_thousand)).collect();
        next += groups * size;
        let (mut times, start) = (Vec::new(), Instant::now());
        let (seconds, ()) = timed(|| {
            for docs in &all {
                let start = Instant::now();
                view.insert(docs);
                view.commit();
                times.push(start.elapsed());
            }
        });
        times.sort_unstable();
        println!(
            "groups of {size}: {:.1} CPU µs a document; a group takes {:?}, the slowest of a hundred {:?} ({:.1} s)",
            seconds * 1e6 / (groups * size) as f64,
            times[times.len() / 2],
            times[times.len() * 99 / 100],
            start.elapsed().as_secs_f64()
        );
    }
}

/// Adds a chain of documents in random order, then one more, then one of the middle goes.
fn chain(view: &mut dyn MeasuredView) {
    let length = 20_000;
    let mut places: Vec<u64> = (0..length).collect();
    places.sort_unstable_by_key(|place| spread(*place));
    let mut chain: Vec<NewDoc> = (0..length).map(|doc| (DocId(doc), Vec::new())).collect();
    for link in places.windows(2) {
        chain[link[0].max(link[1]) as usize].1.push(DocId(link[0].min(link[1])));
    }
    let (load, _) = timed(|| {
        view.insert(&chain);
        view.commit()
    });
    let end = DocId(places[places.len() - 1]);
    let (append, _) = timed(|| {
        view.insert(&[(DocId(length), vec![end])]);
        view.commit()
    });
    let (cut, _) = timed(|| {
        view.remove(&[DocId(places[places.len() / 2])]);
        view.commit()
    });
    println!(
        "a chain of {length}: load {:.0}, append {:.1}, cut {:.0} CPU ms",
        load * 1e3,
        append * 1e3,
        cut * 1e3
    );
}

/// Adds a document that very many match, then one of these goes, then it goes itself.
fn hub(view: &mut dyn MeasuredView) {
    let leaves: Vec<NewDoc> = (1..=100_000).map(|doc| (DocId(doc), vec![DocId(0)])).collect();
    let (load, _) = timed(|| {
        view.insert(&leaves);
        view.commit()
    });
    let (leaf, _) = timed(|| {
        view.remove(&[DocId(7)]);
        view.commit()
    });
    let (hub, _) = timed(|| {
        view.remove(&[DocId(0)]);
        view.commit()
    });
    println!(
        "a hub of 100,000: load {:.0}, a leaf goes {:.0}, it goes {:.0} CPU ms",
        load * 1e3,
        leaf * 1e3,
        hub * 1e3
    );
}

fn what_if(worker: &mut Worker, documents: u64, per_thousand: u64) {
    let mut view = ByEngine::new(worker);
    view.insert(&random_docs(0, documents, per_thousand));
    view.commit();
    let before = ALLOCATED.current_usage();
    let newest: ViewRank = Rc::new(|doc| (u64::MAX - doc.0, doc));
    let (seconds, (_, changes)) = timed(|| view.view.what_if(None, newest));
    let bytes = ALLOCATED.current_usage() - before;
    println!(
        "\nwhat if of {documents} documents: {seconds:.2} CPU s, {} MB, {} go",
        bytes / 1_000_000,
        changes.len()
    );
}

/// Measures documents with fingerprints, whose matches the dataflow finds.
fn by_keys(worker: &mut Worker, documents: u64, per_thousand: u64) {
    let spec: Spec = "simhash:features=char:2".parse().expect("a method");
    let method = spec.method(&Lexicon::default(), &Statistics::default(), None).expect("a method");
    let keys = KeptKeys::new(&method, Secret::of_words([1, 2])).expect("keys");
    let rule = KeyRule::of(&keys).expect("fingerprints of 64 bits");
    let mut view = LiveView::by_keys(worker, Rc::new(|doc| (0, doc)), rule);
    // A document that matches an earlier one differs from it in two bits.
    fn fingerprint(doc: u64, per_thousand: u64) -> u64 {
        let matches = doc > 0 && spread(doc) % 1000 < per_thousand;
        let near = || fingerprint(spread(doc ^ 1 << 40) % doc, per_thousand);
        if matches { near() ^ 1 << (doc % 64) ^ 1 << (doc / 64 % 64) } else { spread(doc ^ 1 << 50) }
    }
    let docs = |from: u64, count: u64| -> Vec<(DocId, u64)> {
        (from..from + count).map(|doc| (DocId(doc), fingerprint(doc, per_thousand))).collect()
    };
    let mut insert = |docs: &[(DocId, u64)], worker: &mut Worker| {
        docs.iter().for_each(|&(doc, word)| view.insert_key(doc, (word, word)));
        view.commit(worker).len()
    };
    let all = docs(0, documents);
    let before = ALLOCATED.current_usage();
    let (seconds, changed) = timed(|| insert(&all, worker));
    let bytes = (ALLOCATED.current_usage() - before) as u64 / documents;
    println!(
        "\nby keys: load {documents} fingerprints: {seconds:.2} CPU s, {bytes} bytes a document, {changed} go"
    );
    let mut next = documents;
    for size in [1, 100, 10_000] {
        let groups = (20_000 / size).clamp(3, 500);
        let all: Vec<_> = (0..groups).map(|at| docs(next + at * size, size)).collect();
        next += groups * size;
        let (seconds, _) = timed(|| all.iter().map(|docs| insert(docs, worker)).sum::<usize>());
        println!("groups of {size}: {:.1} CPU µs a document", seconds * 1e6 / (groups * size) as f64);
    }
    // A family whose documents have few different fingerprints, all near each other.
    let family = |from: u64, count: u64| -> Vec<(DocId, u64)> {
        (from..from + count).map(|doc| (DocId(doc), 1 << (spread(doc) % 8))).collect()
    };
    let (seconds, _) = timed(|| insert(&family(next, 100_000), worker));
    println!("a family of 100,000: {seconds:.2} CPU s");
    let (seconds, _) =
        timed(|| (0..1000).map(|at| insert(&family(next + 100_000 + at, 1), worker)).sum::<usize>());
    println!("one more of it: {:.0} CPU µs", seconds * 1e3);
}

struct ByEngine {
    view: LiveView,
    worker: Worker,
}

impl ByEngine {
    fn new(worker: &Worker) -> Self {
        let mut worker = worker.clone();
        ByEngine { view: LiveView::new(&mut worker, Rc::new(|doc| (0, doc))), worker }
    }
}

impl MeasuredView for ByEngine {
    fn insert(&mut self, docs: &[NewDoc]) {
        for (doc, near) in docs {
            self.view.insert(*doc, None, near.iter().map(|near| (*near, Some(similarity()))));
        }
    }

    fn remove(&mut self, docs: &[DocId]) {
        docs.iter().for_each(|doc| self.view.remove(*doc));
    }

    fn commit(&mut self) -> usize {
        self.view.commit(&mut self.worker).len()
    }
}

#[derive(Default)]
struct ByHand {
    near: HashMap<DocId, Vec<DocId>>,
    removed: HashMap<DocId, Removed>,
    touched: HashSet<DocId>,
}

impl MeasuredView for ByHand {
    fn insert(&mut self, docs: &[NewDoc]) {
        for (doc, near) in docs {
            for other in near {
                self.near.entry(*doc).or_default().push(*other);
                self.near.entry(*other).or_default().push(*doc);
                self.touched.insert(*doc);
            }
        }
    }

    fn remove(&mut self, docs: &[DocId]) {
        for doc in docs {
            for other in self.near.remove(doc).unwrap_or_default() {
                let near = self.near.get_mut(&other).expect("a match has two documents");
                near.retain(|near| near != doc);
                self.touched.insert(other);
            }
            self.touched.remove(doc);
            self.removed.remove(doc);
        }
    }

    fn commit(&mut self) -> usize {
        let mut seen = HashSet::new();
        let mut matches = Matches::default();
        let mut changed = 0;
        for start in std::mem::take(&mut self.touched) {
            let mut open = vec![start];
            while let Some(doc) = open.pop() {
                if seen.insert(doc) {
                    let near = self.near.get(&doc).into_iter().flatten();
                    for other in near {
                        if doc < *other {
                            matches.pairs.push((Pair::new(doc, *other, 0), Some(similarity())));
                        }
                        open.push(*other);
                    }
                }
            }
        }
        let decided = survivors(&matches, Resolve::Greedy, Sides::default(), |doc| doc);
        let decided: HashMap<DocId, Removed> =
            decided.into_iter().filter_map(|member| Some((member.doc, member.removed?))).collect();
        for doc in seen {
            let before = self.removed.get(&doc);
            let after = decided.get(&doc);
            changed += usize::from(before != after);
            match after {
                Some(removed) => _ = self.removed.insert(doc, *removed),
                None => _ = self.removed.remove(&doc),
            }
        }
        changed
    }
}
