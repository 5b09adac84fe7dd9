//! Measures the online index on fingerprints that are spread evenly, without the cost of mapping texts.
//!
//! Arguments: a folder, and the number of documents. An index that this benchmark has left there is asked alone. Ids have
//! 8 bytes. Seconds are CPU seconds of this thread, and times of single calls are those of a clock. `scripts/bench/index`
//! runs it.

#![expect(clippy::expect_used, reason = "a benchmark that cannot run should say so and end")]

mod timing;

use std::time::{Duration, Instant};

use index::{IndexFolder, PreparedDoc, QueryLimits};
use operators::hash::spread;
use operators::text::features::Lexicon;
use timing::timed;

const TOPIC: &str = "default";
const LIMITS: QueryLimits = QueryLimits { matches: 10, within: None };
/// Number of queries of each kind, and of changes that are made durable one by one.
const QUERIES: u64 = 20_000;
const SINGLE: u64 = 2_000;
const COLD_QUERIES: u64 = 200;
/// Number of documents that are made durable together.
const GROUP: u64 = 1_000;

fn main() {
    let mut args = std::env::args().skip(1).filter(|arg| !arg.starts_with('-'));
    let path = args.next().expect("a folder");
    let documents: u64 = args.next().and_then(|number| number.parse().ok()).expect("a number of documents");

    if std::path::Path::new(&path).exists() {
        let index = IndexFolder::open_to_read(&path, &Lexicon::default()).expect("an index");
        return query(&index, documents, "query");
    }
    let mut index =
        IndexFolder::create(&path, &"simhash".parse().expect("a method"), false).expect("an index");
    let start = Instant::now();
    let (seconds, ()) = timed(|| insert(&mut index, 0..documents, GROUP));
    let wall = start.elapsed().as_secs_f64();
    line(
        "insert in durable groups of 1,000",
        format!(
            "{:.2} CPU µs a document, {:.0}/s",
            seconds * 1e6 / documents as f64,
            documents as f64 / wall
        ),
    );
    query(&index, documents, "query as inserted");
    let (seconds, compacted) = timed(|| index.compact());
    compacted.expect("segments that can be merged");
    line("compact", format!("{seconds:.1} CPU s"));
    query(&index, documents, "query of one segment");
    for is_there in [true, false] {
        query_cold(&index, documents, is_there);
    }

    let mut times: Vec<Duration> = (documents..documents + SINGLE)
        .map(|number| time(|| insert(&mut index, number..number + 1, 1)))
        .collect();
    line("insert one durable document", percentiles(&mut times));
    insert(&mut index, documents + SINGLE..documents + SINGLE + documents.min(500_000), GROUP);
    drop(index);
    let (seconds, index) = timed(|| IndexFolder::open(&path, &Lexicon::default(), Duration::ZERO));
    let index = index.expect("the index");
    line("open with documents in the log", format!("{seconds:.2} CPU s"));
    query(&index, documents, "query with documents in the log");
}

/// Adds the documents of some numbers. All of a group become durable together.
fn insert(index: &mut IndexFolder, numbers: std::ops::Range<u64>, group: u64) {
    for number in numbers {
        let doc = doc(index, number, spread(number));
        index.insert(TOPIC, &doc, 1_700_000_000 + number / 1000).expect("a log that can be written");
        if (number + 1) % group == 0 {
            index.commit().expect("a log that can be synced");
        }
    }
    index.commit().expect("a log that can be synced");
}

/// Asks about documents that are there but for two bits, and about others that are not, and prints how long it takes.
fn query(index: &IndexFolder, documents: u64, name: &str) {
    for (kind, is_there) in [("near", true), ("absent", false)] {
        let mut times = Vec::new();
        let mut found = 0;
        let (seconds, ()) = timed(|| {
            for at in 0..QUERIES {
                let number = spread(at ^ 0x5555) % documents;
                let doc = doc(index, number, asked(number, is_there));
                times.push(time(|| {
                    let answer = index.query(TOPIC, &doc, LIMITS, 1_800_000_000).expect("an answer");
                    found += answer.matches.len();
                }));
            }
        });
        let each = seconds * 1e6 / QUERIES as f64;
        line(
            &format!("{name}, {kind}"),
            format!("{}, {each:.1} CPU µs, {found} found", percentiles(&mut times)),
        );
    }
}

/// Does what [`query`] does for one kind of document, each after the operating system has dropped its cache of files.
fn query_cold(index: &IndexFolder, documents: u64, is_there: bool) {
    let mut times = Vec::new();
    for at in 0..COLD_QUERIES {
        let number = spread(at ^ 0xAAAA) % documents;
        let doc = doc(index, number, asked(number, is_there));
        if std::fs::write("/proc/sys/vm/drop_caches", "1").is_err() {
            return line("query of one segment, cold", "only root can measure it".to_owned());
        }
        times.push(time(|| _ = index.query(TOPIC, &doc, LIMITS, 1_800_000_000).expect("an answer")));
    }
    let kind = if is_there { "near" } else { "absent" };
    line(&format!("query of one segment, {kind}, cold"), percentiles(&mut times));
}

/// Returns a fingerprint near that of a document, or near none.
fn asked(number: u64, is_there: bool) -> u64 {
    spread(number + if is_there { 0 } else { 1 << 40 }) ^ 0x1000_0000_0100
}

fn doc(index: &IndexFolder, number: u64, fingerprint: u64) -> PreparedDoc {
    PreparedDoc::of_fingerprint(index, &format!("{number:08}"), fingerprint)
        .expect("a method with fingerprints")
}

fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn percentiles(times: &mut [Duration]) -> String {
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100].as_secs_f64() * 1e6;
    format!("p50 {:.1} µs, p99 {:.1} µs", at(50), at(99))
}

fn line(name: &str, value: String) {
    println!("{name:<44} {value}");
}
