//! Key-value stores as an online index of evenly spread fingerprints: `stores fjall|rocksdb FOLDER DOCUMENTS`.
//!
//! Each document has four keys: the number of a table, the fingerprint with another of its four blocks in front, and the
//! number of the document as its id. A query reads the keys of four blocks of 16 bits, and takes those within three bits.
//! Documents become durable in groups of a thousand. Seconds are CPU seconds of all threads.

use std::fs;
use std::path::Path;
use std::time::Instant;

use fjall::{Database, KeyspaceCreateOptions, PersistMode};
use rocksdb::{DB, IteratorMode, Options, ReadOptions, WriteBatch, WriteOptions};

const GROUP: u64 = 1_000;
const QUERIES: u64 = 2_000;
const SINGLE: u64 = 200;
const DISTANCE: u32 = 3;

type Key = [u8; 17];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [store, folder, documents] = &arguments[..] else { panic!("stores fjall|rocksdb FOLDER DOCUMENTS") };
    let documents = documents.parse().expect("a number of documents");
    match store.as_str() {
        "fjall" => fjall(folder, documents),
        "rocksdb" => rocksdb(folder, documents),
        _ => panic!("fjall or rocksdb"),
    }
}

fn fjall(folder: &str, documents: u64) {
    let db = Database::builder(folder).open().expect("a database");
    let keys = db.keyspace("keys", KeyspaceCreateOptions::default).expect("a keyspace");
    let add = |numbers: std::ops::Range<u64>| {
        let mut batch = db.batch().durability(Some(PersistMode::SyncData));
        numbers.flat_map(keys_of).for_each(|key| batch.insert(&keys, key, []));
        batch.commit().expect("a commit");
    };
    let scan = |prefix: [u8; 3], each: &mut dyn FnMut(&[u8])| {
        keys.prefix(prefix).for_each(|entry| each(&entry.key().expect("a key")));
    };
    measure(documents, add, || keys.major_compact().expect("a compaction"), scan);
    line("bytes a document", format!("{:.1}", bytes_below(Path::new(folder)) as f64 / documents as f64));
}

fn rocksdb(folder: &str, documents: u64) {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.increase_parallelism(2);
    let db = DB::open(&options, folder).expect("a database");
    let mut durable = WriteOptions::default();
    durable.set_sync(true);
    let add = |numbers: std::ops::Range<u64>| {
        let mut batch = WriteBatch::default();
        numbers.flat_map(keys_of).for_each(|key| batch.put(key, []));
        db.write_opt(batch, &durable).expect("a write");
    };
    let scan = |prefix: [u8; 3], each: &mut dyn FnMut(&[u8])| {
        let mut options = ReadOptions::default();
        options.set_iterate_range(rocksdb::PrefixRange(&prefix[..]));
        db.iterator_opt(IteratorMode::Start, options).for_each(|entry| each(&entry.expect("a key").0));
    };
    measure(documents, add, || db.compact_range::<&[u8], &[u8]>(None, None), scan);
    line("bytes a document", format!("{:.1}", bytes_below(Path::new(folder)) as f64 / documents as f64));
}

fn measure(
    documents: u64,
    add: impl Fn(std::ops::Range<u64>),
    compact: impl Fn(),
    scan: impl Fn([u8; 3], &mut dyn FnMut(&[u8])),
) {
    let start = Instant::now();
    let begin = cpu_seconds();
    (0..documents / GROUP).for_each(|group| add(group * GROUP..(group + 1) * GROUP));
    let cpu = cpu_seconds() - begin;
    let rate = documents as f64 / start.elapsed().as_secs_f64();
    line("insert in durable groups of 1,000", format!("{:.2} CPU µs a document, {rate:.0}/s", cpu * 1e6 / documents as f64));
    let mut single: Vec<f64> =
        (documents..documents + SINGLE).map(|number| seconds(|| add(number..number + 1))).collect();
    line("insert one durable document", format!("p50 {:.1} µs", median(&mut single) * 1e6));
    query("query as inserted", documents, &scan);
    let begin = cpu_seconds();
    compact();
    line("compact", format!("{:.1} CPU s", cpu_seconds() - begin));
    query("query after compaction", documents, &scan);
}

fn query(name: &str, documents: u64, scan: impl Fn([u8; 3], &mut dyn FnMut(&[u8]))) {
    for (kind, is_there) in [("near", true), ("absent", false)] {
        let mut found = 0;
        let mut times: Vec<f64> = (0..QUERIES)
            .map(|at| {
                let number = spread(at ^ 0x5555) % documents + if is_there { 0 } else { 1 << 40 };
                let word = spread(number) ^ 0x1000_0000_0100;
                seconds(|| {
                    for key in keys_of_word(word, 0) {
                        let front: [u8; 8] = key[1..9].try_into().expect("eight bytes");
                        scan([key[0], key[1], key[2]], &mut |other| {
                            let other: [u8; 8] = other[1..9].try_into().expect("eight bytes");
                            let distance = (u64::from_be_bytes(front) ^ u64::from_be_bytes(other)).count_ones();
                            found += u64::from(distance <= DISTANCE);
                        });
                    }
                })
            })
            .collect();
        line(&format!("{name}, {kind}"), format!("p50 {:.1} µs, {found} keys found", median(&mut times) * 1e6));
    }
}

fn keys_of(number: u64) -> [Key; 4] {
    keys_of_word(spread(number), number)
}

fn keys_of_word(word: u64, number: u64) -> [Key; 4] {
    std::array::from_fn(|table| {
        let mut key = [table as u8; 17];
        key[1..9].copy_from_slice(&word.rotate_left(16 * table as u32).to_be_bytes());
        key[9..].copy_from_slice(&number.to_be_bytes());
        key
    })
}

/// The finalizer of splitmix64.
fn spread(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ number >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ number >> 31
}

fn seconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// CPU seconds of all threads so far, to a hundredth.
fn cpu_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").expect("/proc");
    // The name of the program, which ends with a bracket, is the second field; times are the 14th and the 15th.
    let fields = stat.rsplit(')').next().expect("fields").split_whitespace().skip(11).take(2);
    fields.map(|ticks| ticks.parse::<f64>().expect("ticks") / 100.0).sum()
}

fn bytes_below(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    entries
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => bytes_below(&entry.path()),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        })
        .sum()
}

fn line(name: &str, value: String) {
    println!("{name:<44} {value}");
}
