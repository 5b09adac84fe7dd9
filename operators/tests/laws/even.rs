//! The law of even loads: no worker makes many more comparisons than the others, whatever the fingerprints.

use operators::flow::Skew;
use operators::method::SimHashSpec;
use operators::search::PassLoad;
use operators::{Pair, Sides, hash};

use crate::{compared, spill};

/// Returns the pairs that the workers found, sorted, and the number of comparisons of each worker.
fn pairs_and_shares(found: Vec<(Vec<Pair>, Vec<PassLoad>)>) -> (Vec<Pair>, Vec<u64>) {
    let shares = found.iter().map(|(_, loads)| loads.iter().map(|load| load.compared).sum()).collect();
    let mut pairs: Vec<Pair> = found.into_iter().flat_map(|(pairs, _)| pairs).collect();
    pairs.sort_unstable();
    (pairs, shares)
}

fn assert_even(shares: &[u64], what: &str) {
    let most = shares.iter().max().unwrap();
    let sum = shares.iter().sum::<u64>();
    assert!(most * shares.len() as u64 <= 2 * sum, "{what}: {shares:?}");
}

#[test]
fn no_worker_makes_more_than_twice_the_mean_of_comparisons() {
    let random = hash::spread;
    // Each fingerprint comes with one that differs from it in a bit.
    let of_block = move |block: u64, i: u64| random(i) & !(0xFFFF << (16 * block)) | 7 << (16 * block);
    let sharing = |block| move |i: u64| of_block(block, i / 2) ^ (i % 2) << (16 * ((block + 1) % 4));
    let two_blocks = move |i: u64| (random(i / 2) << 32) ^ ((i % 2) << 40) | 7 << 16 | 9;
    // Splitting does not help here: many fingerprints differ in few bits only.
    let crowded = |mask: u64| move |i: u64| random(i) & mask | 5 << 50;
    type Fingerprint = Box<dyn Fn(u64) -> u64>;
    let corpora: [(&str, u64, Fingerprint); 5] = [
        ("the first block", 100_000, Box::new(sharing(0))),
        ("the last block", 100_000, Box::new(sharing(3))),
        ("two blocks", 100_000, Box::new(two_blocks)),
        ("a crowd", 15_000, Box::new(crowded(0xFF_F00F_FF00))),
        ("a crowd in one block", 6_000, Box::new(crowded(0xFFFF))),
    ];
    for (name, count, fingerprint) in corpora {
        let mut fingerprints: Vec<u64> = (0..count).map(fingerprint).chain([random(1 << 40)]).collect();
        fingerprints.sort_unstable();
        fingerprints.dedup();
        let found = |workers| {
            let found = compared(
                &SimHashSpec::default(),
                fingerprints.clone(),
                workers,
                Sides::default(),
                Skew::default(),
                spill(None),
            );
            pairs_and_shares(found)
        };
        let (expected, _) = found(1);
        assert!(expected.len() > 10_000, "{name}: {} pairs", expected.len());
        for workers in [2, 4, 8] {
            let (pairs, shares) = found(workers);
            assert!(pairs == expected, "{name}: {} pairs on {workers} workers", pairs.len());
            assert_even(&shares, name);
        }
    }
}
