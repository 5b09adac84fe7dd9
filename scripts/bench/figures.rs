//! Measures the map stage, the block join and sorting. `scripts/bench/run` prints all figures, and
//! `cargo bench --bench figures -- join` those with `join` in their names. Seconds are CPU seconds of one
//! thread.
//!
//! `DEDUP_TEST_DATA` names the folder with `corpora/mixed.parquet`. Without it the figures of real texts and
//! fingerprints are left out, and a line says so.

#![expect(clippy::expect_used, reason = "a benchmark that cannot run should say so and end")]

mod reading;
mod timing;

use std::hint::black_box;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Barrier;

use cluster::{Group, Limits, Membership};
use jieba_rs::Jieba;
use operators::fingerprint::block_join::BlockJoin;
use operators::fingerprint::hamming::Kernel;
use operators::flow::{CandidateJoin, RecordSink, Skew, shuffle};
use operators::hash::Secret;
use operators::method::Spec;
use operators::search::bits::{BitSearch, FingerprintDesign, SimHash, Weights};
use operators::search::{Search, SearchContext, SearchInputs};
use operators::sets::Rule;
use operators::text::Cleaner;
use operators::text::document_frequencies::Statistics;
use operators::text::features::{Features, Lexicon};
use operators::text::segmenter::Segmenter;
use operators::{DocId, ExternalSort, Overlap, Pair, Row, Similarity, SpillBudget, hash};
use rustix::time::{ClockId, clock_gettime};
use timely::worker::Worker;

use reading::read;
use timing::timed;

/// The figures that are asked for.
struct WantedFigures {
    /// Part of their names.
    only: Option<String>,
}

impl WantedFigures {
    /// Measures a figure and prints it, if it is wanted. `measure` returns CPU seconds and a remark.
    fn figure(&self, name: &str, measure: impl FnOnce() -> (f64, String)) {
        if self.only.as_deref().is_none_or(|only| name.contains(only)) {
            let (seconds, remark) = measure();
            println!("{name:<58} {seconds:>7.2} s   {remark}");
        }
    }
}

fn main() {
    let figures = WantedFigures { only: std::env::args().skip(1).find(|arg| !arg.starts_with('-')) };
    joins(&figures);
    sorts(&figures);
    let Some(texts) = mixed() else {
        println!("real texts: left out, DEDUP_TEST_DATA is not set");
        return;
    };
    real_texts(&figures, &texts);
}

/// Joins and exchanges of made records.
fn joins(figures: &WantedFigures) {
    let found = |(seconds, pairs): (f64, usize)| (seconds, format!("{pairs} pairs"));
    for millions in [1, 10, 100] {
        figures.figure(&format!("join as a kernel, {millions} M uniform fingerprints"), || {
            let rows = uniform(millions * 1_000_000);
            found(timed(|| kernel_join(&rows)))
        });
    }
    for workers in [1, 2] {
        let name = format!("join in the dataflow, 10 M uniform fingerprints, workers: {workers}");
        figures.figure(&name, || found(dataflow_join(workers, uniform(10_000_000))));
    }
    figures.figure("join in the dataflow, 2 M that share a block, workers: 4", || {
        found(dataflow_join(4, sharing(2_000_000)))
    });
    for workers in [1, 8, 64] {
        let name = format!("exchange of 16-byte rows through the engine, 10 M, workers: {workers}");
        figures.figure(&name, || {
            let (seconds, rows) = exchange(workers, 10_000_000);
            (seconds, format!("{:.1} M rows/s", rows as f64 / 1e6 / seconds))
        });
    }
    figures.figure("exchange of 16-byte rows between processes, 2 x 10 M", || {
        let (seconds, rows) = exchange_over_loopback(10_000_000);
        (seconds, format!("{:.1} M rows/s, all threads of both", rows as f64 / 1e6 / seconds))
    });
}

/// Sorts made records.
fn sorts(figures: &WantedFigures) {
    for (memory, budget) in [("in memory", None), ("in a tenth of the memory", Some(32_000_000))] {
        figures.figure(&format!("sort of 16-byte records into groups, 20 M, {memory}"), || {
            let spill = SpillBudget::new(&std::env::temp_dir(), budget);
            let (seconds, groups) = timed(|| sorted_groups(&spill));
            (seconds, format!("{groups} groups, {} MB spilled", spill.spilled().bytes / 1_000_000))
        });
    }
}

/// Reads and maps real texts, and joins their fingerprints.
fn real_texts(figures: &WantedFigures, texts: &[String]) {
    let bytes: usize = texts.iter().map(String::len).sum();
    let rate = |seconds: f64| format!("{:.0} MB/s", bytes as f64 / 1e6 / seconds);
    for run in 1..=3 {
        figures.figure(&format!("read, mixed.parquet (zstd), all columns checked, run {run}"), || {
            let (seconds, docs) = timed(|| mixed_docs(|_| {}));
            (seconds, format!("{}, {} documents", rate(seconds), docs.unwrap_or(0)))
        });
    }
    for spec in ["simhash:features=char:5", "simhash:features=char:3,clean=none", "simhash:features=jieba"] {
        figures.figure(&format!("map, mixed.parquet, {spec}"), || {
            let seconds = map(texts, spec);
            (seconds, rate(seconds))
        });
    }
    figures.figure("jieba-rs alone, cutting the same texts", || {
        let jieba = Jieba::new();
        let (seconds, words) = timed(|| texts.iter().map(|text| jieba.cut(text, false).len()).sum::<usize>());
        (seconds, format!("{}, {words} words", rate(seconds)))
    });
    figures.figure("our segmenter instead of jieba-rs, cutting the same texts", || {
        let segmenter = Segmenter::new([]).expect("a dictionary without words of the user");
        let mut words = 0;
        let count =
            || texts.iter().for_each(|text| segmenter.cut(text, |_, end| words += black_box(end).min(1)));
        let (seconds, ()) = timed(count);
        let different = cut_otherwise(&segmenter, texts);
        (seconds, format!("{}, {words} words, {different} texts cut otherwise", rate(seconds)))
    });
    figures.figure("join as a kernel, 10 M real fingerprints", || {
        let mut rows = repeated(texts);
        let (collapse, ()) = timed(|| {
            rows.sort_unstable();
            rows.dedup_by_key(|row| row.fingerprint);
        });
        let (seconds, pairs) = timed(|| kernel_join(&rows));
        let distinct = rows.len();
        (seconds, format!("{distinct} distinct, {pairs} pairs; collapsing identical ones {collapse:.2} s"))
    });
}

/// Counts the texts that jieba-rs and our segmenter cut in different ways.
fn cut_otherwise(segmenter: &Segmenter, texts: &[String]) -> usize {
    let jieba = Jieba::new();
    let mut ends = Vec::new();
    let is_different = |text: &&String| {
        ends.clear();
        segmenter.cut(text, |_, end| ends.push(end));
        !jieba.cut(text, false).iter().map(|token| token.byte_end).eq(ends.iter().copied())
    };
    texts.iter().filter(is_different).count()
}

/// The texts of mixed.parquet.
fn mixed() -> Option<Vec<String>> {
    let mut texts = Vec::new();
    mixed_docs(|text| texts.push(text.to_owned()))?;
    Some(texts)
}

/// Calls `each` with every text of mixed.parquet, and returns the number of its documents.
fn mixed_docs(mut each: impl FnMut(&str)) -> Option<u64> {
    let path = PathBuf::from(std::env::var_os("DEDUP_TEST_DATA")?).join("corpora/mixed.parquet");
    Some(read(path.to_str()?, "parquet", |batch| batch.docs().for_each(|doc| each(doc.text))))
}

/// Cleans and fingerprints all texts. Returns the CPU seconds that it took.
fn map(texts: &[String], spec: &str) -> f64 {
    let (mut cleaner, mut simhash) = simhash(spec);
    let map = || texts.iter().map(|text| black_box(simhash.fingerprint(cleaner.clean(text)))).last();
    timed(map).0
}

/// Returns the cleaner and the fingerprints of a spec of SimHash with 64 bits.
fn simhash(spec: &str) -> (Cleaner, SimHash<u64>) {
    let spec: Spec = spec.parse().expect("a spec");
    let method = spec.method(&Lexicon::default(), &Statistics::default(), None).expect("a dictionary");
    match method.search {
        Search::Bits64(simhash) => (method.cleaner, simhash),
        _ => panic!("{spec} has no fingerprints of 64 bits"),
    }
}

/// Returns 10 M fingerprints: of all texts again and again, each time with one to three characters changed.
fn repeated(texts: &[String]) -> Vec<Row<u64>> {
    let (mut cleaner, mut simhash) = simhash("simhash:features=char:5");
    let texts: Vec<Vec<char>> = texts.iter().map(|text| text.chars().collect()).collect();
    let mut edited = String::new();
    let row = |i: u64| {
        let text = &texts[i as usize % texts.len()];
        let random = random(i);
        let mut chars = text.clone();
        if !text.is_empty() && i >= texts.len() as u64 {
            for edit in 0..=random % 3 {
                let at = (random >> (8 + 16 * edit)) as usize % chars.len();
                chars[at] = char::from_u32(0x4E00 + (random >> (4 * edit)) as u32 % 5000).unwrap_or('一');
            }
        }
        edited.clear();
        edited.extend(&chars);
        Row { fingerprint: simhash.fingerprint(cleaner.clean(&edited)), doc: DocId(i), sketch: 0 }
    };
    (0..10_000_000).map(row).collect()
}

fn kernel_join(rows: &[Row<u64>]) -> usize {
    let mut join = BlockJoin::new(64, 3, 4, Kernel::widest());
    let mut pairs: Vec<Pair> = Vec::new();
    for table in join.tables().to_vec() {
        join.join(&table, rows, &mut |one: &Row<u64>, other: &Row<u64>| {
            pairs.push(Pair::new(one.doc, other.doc, (one.fingerprint ^ other.fingerprint).count_ones()));
        });
    }
    black_box(&pairs).len()
}

/// Exchanges and joins every block on workers of the engine.
fn dataflow_join(workers: usize, rows: Vec<Row<u64>>) -> (f64, usize) {
    let results = Group::alone(workers).run(move |worker| {
        let mine: Vec<_> = rows.iter().skip(worker.index()).step_by(worker.peers()).copied().collect();
        let design = FingerprintDesign { bits: 64, distance: 3, blocks: 4, weights: Weights::Tf };
        let simhash = SimHash::new(design, Features::Chars(5), &Statistics::default());
        let rule = Rule::new(Features::Chars(5), Overlap::Jaccard, Similarity::LEAST);
        let inputs = SearchInputs::of_texts(Secret::random());
        let search = BitSearch::new(simhash, &SearchContext { rule: &rule, verified: false, inputs });
        let found = timed(|| {
            let mut join = CandidateJoin::new(search, Skew::default(), &SpillBudget::unused());
            for table in join.passes() {
                let mut scan = |worker: &mut Worker, each: RecordSink<Row<u64>>| {
                    mine.iter().for_each(|row| each(worker, *row));
                    Ok::<(), operators::Error>(())
                };
                join.pass(worker, &table, &mut scan).expect("no disk is used");
            }
            let mut found = join.finish(worker, |pair| pair.low).expect("no disk is used");
            let mut pairs = 0;
            found.pairs.each(|_| pairs += 1).expect("no disk is used");
            pairs
        });
        Ok::<_, cluster::Error>(found)
    });
    let results = results.expect("workers").into_iter();
    results.fold((0.0, 0), |(seconds, pairs), (more, found)| (seconds + more, pairs + found))
}

/// Sends `count` rows in all from worker to worker of one process.
fn exchange(workers: usize, count: u64) -> (f64, usize) {
    let results = Group::alone(workers).run(move |worker| {
        let mine = (worker.index() as u64..count).step_by(workers);
        let rows = mine.map(|i| Row { fingerprint: i, doc: DocId(i), sketch: 0 });
        let key = |row: &Row<u64>| hash::spread(row.fingerprint);
        Ok::<_, cluster::Error>(timed(|| shuffle(worker, "Rows", rows, key).len()))
    });
    let results = results.expect("workers").into_iter();
    results.fold((0.0, 0), |(seconds, rows), (more, arrived)| (seconds + more, rows + arrived))
}

/// Sends all rows of each of two processes, which are threads here, to the other one. Returns the CPU seconds
/// of all their threads since they have connected.
fn exchange_over_loopback(count: u64) -> (f64, usize) {
    let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port"));
    let addresses = listeners.each_ref().map(|one| one.local_addr().expect("an address").to_string());
    drop(listeners);
    let addresses = &addresses;
    let barrier = &Barrier::new(3);
    let process = move |index: usize| {
        let membership = Membership { index, addresses: addresses.to_vec(), workers: 1 };
        let lost = |reason: &str| panic!("{reason}");
        let group =
            Group::join(membership, [0; 32], b"", Limits::default(), Box::new(lost)).expect("the other");
        // The threads wait once until all have connected, and again until the time is taken.
        barrier.wait();
        barrier.wait();
        let results = group.run(move |worker| {
            let rows = (0..count).map(|i| Row { fingerprint: i, doc: DocId(i), sketch: 0 });
            Ok::<_, cluster::Error>(shuffle(worker, "Rows", rows, move |_| 1 - index as u64).len())
        });
        group.leave().expect("the other to end too");
        results.expect("a worker")[0]
    };
    let (before, rows) = std::thread::scope(|scope| {
        let threads = [0, 1].map(|index| scope.spawn(move || process(index)));
        barrier.wait();
        let before = clock_gettime(ClockId::ProcessCPUTime);
        barrier.wait();
        (before, threads.map(|thread| thread.join().expect("a process")).iter().sum())
    });
    let after = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = (after.tv_sec - before.tv_sec) as f64 + (after.tv_nsec - before.tv_nsec) as f64 / 1e9;
    (seconds, rows)
}

/// Sorts 20 M records, every second of which has the key of the one before, and returns the number of keys.
fn sorted_groups(spill: &SpillBudget) -> usize {
    let mut runs = ExternalSort::new(spill);
    runs.extend((0..20_000_000).map(|i| (random(i / 2), i)));
    let mut sorted = runs.finish().expect("room on the disk");
    let same = |a: &(u64, u64), b: &(u64, u64)| a.0 == b.0;
    let mut groups = 0;
    let count = |records: &mut [(u64, u64)]| groups += records.chunk_by(same).count();
    sorted.each_group(0, same, count).expect("what was spilled");
    groups
}

/// Returns uniform fingerprints, every tenth of which is a copy of an earlier one with 0 to 3 bits flipped.
fn uniform(count: u64) -> Vec<Row<u64>> {
    let mut rows: Vec<Row<u64>> = Vec::with_capacity(count as usize);
    for i in 0..count {
        let random = random(i);
        let fingerprint = if i % 10 == 9 {
            let original = rows[(random % i) as usize].fingerprint;
            (0..random >> 40 & 3).fold(original, |f, bit| f ^ 1 << (random >> (44 + 6 * bit) & 63))
        } else {
            random
        };
        rows.push(Row { fingerprint, doc: DocId(i), sketch: 0 });
    }
    rows
}

/// Returns fingerprints with the same last block, and as many uniform ones.
fn sharing(count: u64) -> Vec<Row<u64>> {
    let shared = |row: Row<u64>| Row { fingerprint: row.fingerprint >> 16 | 7 << 48, ..row };
    uniform(count).into_iter().map(|row| if row.doc.0 % 2 == 0 { shared(row) } else { row }).collect()
}

/// Returns the random number of a counter (SplitMix64).
fn random(i: u64) -> u64 {
    let mut z = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}
