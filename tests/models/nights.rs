//! Nights that have bad luck are one batch too.

use super::for_a_while;
use crate::faults::trouble::Trouble;
use crate::nightly::sequence::{Method, Sequence};

/// Methods of which the batch finds each pair that the nights find.
const METHODS: [Method; 4] = [
    Method { nightly: "exact", batch: "exact" },
    Method { nightly: "auto", batch: "auto:search=minhash" },
    Method { nightly: "minhash", batch: "minhash" },
    Method { nightly: "simhash:features=char:2,hamming=6", batch: "simhash:features=char:2,hamming=6" },
];

#[test]
fn nights_that_die_and_fall_asleep_are_one_batch() {
    for_a_while(|seed| {
        let method = METHODS[seed as usize % METHODS.len()];
        Sequence::under(Trouble::new(seed), method, seed).run().unwrap().counts
    });
}
