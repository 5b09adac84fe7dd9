//! Writes and reads 200 MB in a store that already runs: `cargo bench -p dedup-cluster --bench stores --
//! URI`. `scripts/bench/objects` runs this benchmark. The CPU time is that of this process alone.
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot run should end")]

use std::fs;
use std::time::Instant;

use cluster::{Blob, Stores};

const MEGABYTES: usize = 200;

fn main() {
    // Cargo adds an option of its own.
    let uri = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let uri = uri.unwrap_or_else(|| panic!("name a file that may be written, such as s3://bucket/large"));
    let stores = Stores::new();
    let (store, path) = stores.locate(&uri).unwrap();
    // The bytes differ from place to place.
    let mix = |i: u64| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8;
    let bytes: Vec<u8> = (0..MEGABYTES as u64 * 1_000_000).map(mix).collect();
    for _ in 0..3 {
        measured("wrote", || {
            let mut output = store.create(&path).unwrap();
            output.write_all(&bytes).unwrap();
            output.finish().unwrap();
        });
        let blob = store.open(&path).unwrap();
        measured("read", || read(blob.as_ref(), &bytes));
        // Reads as a job reads its input, with checksums; the second reading compares all bytes.
        let found = stores.expand(&[&uri]).unwrap().remove(0);
        measured("read with sums", || read(found.open(None).unwrap().as_ref(), &bytes));
        measured("read with sums again", || read(found.open(None).unwrap().as_ref(), &bytes));
    }
}

fn read(blob: &dyn Blob, bytes: &[u8]) {
    let mut buffer = vec![0; blob.read_ahead_bytes()];
    let mut at = 0;
    while at < bytes.len() {
        let read = blob.read_at(at as u64, &mut buffer).unwrap();
        assert!(read > 0 && buffer[..read] == bytes[at..at + read]);
        at += read;
    }
}

fn measured(what: &str, work: impl FnOnce()) {
    let start = Instant::now();
    let cpu = cpu_seconds();
    work();
    let seconds = start.elapsed().as_secs_f64();
    let cpu = cpu_seconds() - cpu;
    let gigabytes = MEGABYTES as f64 / 1000.0;
    println!("ours: {what} {:.0} MB/s, {:.2} CPU s/GB", 1000.0 * gigabytes / seconds, cpu / gigabytes);
}

/// Returns the CPU time of all threads of this process, from the system's ticks of 1/100 second (proc(5),
/// fields 14 and 15 of stat).
fn cpu_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    (fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()) as f64 / 100.0
}
