//! Measures the text formats. `scripts/bench/text` makes the files, and runs this benchmark and the peers.
//! Seconds are CPU seconds of one thread, the best of three readings; MB/s count bytes of the file.
//!
//! The argument is the folder with the files.

#![expect(clippy::expect_used, reason = "a benchmark that cannot run should say so and end")]

use std::hint::black_box;

use cluster::Stores;
use datasets::{FORMATS, Piece, Reading};
use operators::DocBatch;

fn main() {
    let folder = std::env::args().skip(1).find(|arg| !arg.starts_with('-')).expect("a folder");
    for (format, file) in [
        ("jsonl", "all.jsonl"),
        ("jsonl", "short.jsonl"),
        ("jsonl", "all.gb18030.jsonl"),
        ("csv", "all.csv"),
        ("csv", "short.csv"),
        ("lines", "lines.gb18030.txt"),
        ("lines", "lines.utf8.txt"),
        ("sogoucs", "all.gb18030.dat"),
    ] {
        let path = format!("{folder}/{file}");
        let (seconds, docs, bytes) =
            (0..3).map(|_| read(format, &path)).min_by(|a, b| a.0.total_cmp(&b.0)).expect("three runs");
        let rate = bytes as f64 / 1e6 / seconds;
        println!("{:<44} {seconds:>6.3} s {rate:>6.0} MB/s   {docs} documents", format!("{format} {file}"));
    }
    let path = format!("{folder}/lines.gb18030.txt");
    let bytes = std::fs::read(path).expect("a file");
    let (seconds, text) = (0..3)
        .map(|_| timed(|| encoding_rs::GB18030.decode_without_bom_handling(&bytes).0.len()))
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .expect("three runs");
    let rate = bytes.len() as f64 / 1e6 / seconds;
    println!(
        "{:<44} {seconds:>6.3} s {rate:>6.0} MB/s   {text} bytes of UTF-8",
        "encoding_rs alone, lines.gb18030.txt"
    );
}

/// Reads every document of a file. Returns the seconds, the number of documents and the length of the file.
fn read(format: &str, path: &str) -> (f64, u64, u64) {
    let found = Stores::new().expand(&[path]).expect("a file").remove(0);
    let blob = found.store.open(&found.path).expect("a file");
    let piece = Piece { blob, name: found.name.to_string(), start: 0, end: found.bytes };
    let format = FORMATS.iter().find(|known| known.name() == format).expect("a format");
    let (seconds, docs) = timed(|| {
        let mut reader = format.open(&piece, &Reading::default()).expect("a reader");
        let (mut docs, mut more) = (0, true);
        while more {
            let mut batch = DocBatch::new(0, 0);
            more = reader.fill(&mut batch).expect("documents");
            docs += black_box(&batch).docs().len() as u64;
        }
        docs
    });
    (seconds, docs, found.bytes)
}

fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let before = cpu_seconds();
    let result = work();
    (cpu_seconds() - before, result)
}

fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let nanoseconds: f64 = stat.split(' ').next().and_then(|field| field.parse().ok()).expect("a number");
    nanoseconds / 1e9
}
