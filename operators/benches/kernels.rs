//! The kernels' figures, one thread: `cargo bench -p dedup-operators`, or a part of them by name:
//! `cargo bench -p dedup-operators -- join`. Seconds are CPU seconds of the process.

use std::hint::black_box;

use operators::block_join::BlockJoin;
use operators::hamming::Kernel;
use operators::{DocId, Pair, Row};

fn main() {
    let only = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    let wanted = |name: &str| only.as_deref().is_none_or(|only| name.contains(only));
    for millions in [1, 10, 100] {
        let name = format!("join, {millions} M uniform fingerprints");
        if wanted(&name) {
            let rows = uniform(millions * 1_000_000);
            let (seconds, pairs) = timed(|| join(&rows));
            println!("{name}: {seconds:.2} s, {pairs} pairs");
        }
    }
}

fn join(rows: &[Row<u64>]) -> usize {
    let mut join = BlockJoin::new(64, 3, Kernel::widest());
    let mut pairs: Vec<Pair> = Vec::new();
    for block in 0..join.blocks() {
        join.join(block, rows, &mut |pair| pairs.push(pair));
    }
    black_box(&pairs).len()
}

/// Uniform fingerprints, every tenth a copy of an earlier one with 0 to 3 bits flipped.
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
        rows.push(Row { fingerprint, doc: DocId(i) });
    }
    rows
}

/// SplitMix64 of a counter.
fn random(i: u64) -> u64 {
    let mut z = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// What `work` returns, and the CPU seconds it took.
fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let before = cpu_seconds();
    let result = work();
    (cpu_seconds() - before, result)
}

/// User and system time of this process so far, from the kernel's own accounts.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields: Vec<&str> = stat.rsplit(')').next().expect("a name in brackets").split(' ').collect();
    let ticks = |field: usize| fields[field].parse::<f64>().expect("a number");
    (ticks(12) + ticks(13)) / 100.0
}
