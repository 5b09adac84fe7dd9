//! Models: random operations on a state, an index, a store and outputs, by runs that have bad luck, are compared with what the
//! simplest program makes of the same operations.
//!
//! | file | what is random | what it is compared with |
//! |---|---|---|
//! | `nights` | nights, withdrawals, compactions, rollbacks, repeats | one `dedup` of what is left |
//! | `index` | inserts, queries, deletions and expiry of a served index | a list of documents |
//! | `store` | puts, forgets and prunes of a store of chunks | copies of what was put |
//! | `outputs` | `chunk clean` and `dedup --against` | counting units, and comparing every two texts |
//!
//! `DEDUP_SECONDS` says how long each of them goes on, and `DEDUP_SEED` where it begins; a failure names its seed.
//! `scripts/soak models` runs them for ten minutes.

mod index;
mod nights;
mod outputs;
mod store;

use std::env;
use std::time::{Duration, Instant};

/// Calls `of_seed` with one seed after the other until the time is over. It returns how many runs died and how many slept.
fn for_a_while(mut of_seed: impl FnMut(u64) -> [usize; 2]) {
    let number = |name: &str, usual| env::var(name).map_or(usual, |number| number.parse().unwrap());
    let end = Instant::now() + Duration::from_secs(number("DEDUP_SECONDS", 12));
    let first = number("DEDUP_SEED", 1);
    let mut seed = first;
    let mut counts = [0; 2];
    while Instant::now() < end {
        // A failure shows the output of its test, and so the last seed.
        println!("seed {seed}");
        let more = of_seed(seed);
        counts = [counts[0] + more[0], counts[1] + more[1]];
        seed += 1;
    }
    println!(
        "seeds {first} to {}: {} deaths, {} sleeps, and all is as it must be",
        seed - 1,
        counts[0],
        counts[1]
    );
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
}
