//! The law of `nightly`: after each step of a random sequence, the documents that the outputs of the nights have
//! removed are those that one `dedup` over the documents not withdrawn removes, and the state says the same.

use std::env;

use super::sequence::{Method, Sequence};

/// Number of sequences of each method.
const SEQUENCES: u64 = 12;

/// Takes sequences of a method. `DEDUP_SEED` gives others than usual.
fn nights_are_one_batch(nightly: &'static str, batch: &'static str) {
    let first = env::var("DEDUP_SEED").map_or(0, |seed| seed.parse().unwrap());
    for seed in first..first + SEQUENCES {
        Sequence::new(Method { nightly, batch }, seed).run();
    }
}

#[test]
fn nights_over_families_are_one_batch() {
    let first = env::var("DEDUP_SEED").map_or(0, |seed| seed.parse().unwrap());
    let simhash = "simhash:features=char:2,hamming=6";
    let methods = [("auto", "auto:search=minhash"), ("minhash", "minhash"), (simhash, simhash)];
    for (seed, (nightly, batch)) in (first..).zip(methods.into_iter().cycle().take(2 * methods.len())) {
        Sequence::of_family(Method { nightly, batch }, seed).run();
    }
}

#[test]
fn nights_by_auto_are_one_batch() {
    nights_are_one_batch("auto", "auto:search=minhash");
}

#[test]
fn nights_by_minhash_are_one_batch() {
    nights_are_one_batch("minhash", "minhash");
}

#[test]
fn nights_by_exact_are_one_batch() {
    nights_are_one_batch("exact", "exact");
}

#[test]
fn nights_by_simhash_are_one_batch() {
    let method = "simhash:features=char:2,hamming=6";
    nights_are_one_batch(method, method);
}

#[test]
fn nights_by_long_fingerprints_that_nothing_verifies_are_one_batch() {
    let method = "simhash:bits=128,features=char:2,hamming=9 --verify none";
    nights_are_one_batch(method, method);
}
