//! Measures the text formats. `scripts/bench/text` makes the files, and runs this benchmark and the peers.
//! Seconds are CPU seconds of one thread, the best of three readings; MB/s count bytes of the file.
//!
//! The argument is the folder with the files.

#![expect(clippy::expect_used, reason = "a benchmark that cannot run should say so and end")]

mod reading;
mod timing;

use std::hint::black_box;

use timing::timed;

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
fn read(format: &str, path: &str) -> (f64, usize, u64) {
    let mut docs = 0;
    let (seconds, _) = timed(|| reading::read(path, format, |batch| docs += black_box(batch).docs().len()));
    (seconds, docs, std::fs::metadata(path).expect("a file").len())
}
