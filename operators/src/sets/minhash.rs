//! MinHash: signatures of sets, by which similar sets are found with a known probability.

use std::sync::OnceLock;

use crate::hash;

/// MinHash signatures of `bands` times `rows` slots, given as one hash for each band.
///
/// Each feature of a set is hashed. A slot of the signature holds the least hash that fell on it; an empty
/// slot takes the value of another one. Two sets agree on a slot with the probability of their Jaccard
/// similarity `s`. They are candidates if they agree on all slots of at least one band, which has the
/// probability `1 - (1 - s^rows)^bands`.
///
/// Example with 2 bands of 2 rows:
///
/// ```text
///                        band 0    band 1
/// signature of set A     17 42     31 8
/// signature of set B     17 42     96 8     agrees with A on band 0: a candidate
/// signature of set C     55 42     31 77    agrees with A on no band: never compared with A
/// ```
///
/// Sources: Broder, "On the resemblance and containment of documents", SEQUENCES 1997; one permutation for
/// all slots: Li, Owen, Zhang, NIPS 2012; empty slots filled from others: Shrivastava, "Optimal Densification
/// for Fast and Accurate Minwise Hashing", ICML 2017.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinHash {
    /// Number of bands.
    pub bands: u32,
    /// Number of slots of a band.
    pub rows: u32,
    /// Seed that selects the permutation.
    pub seed: u64,
}

/// Value of an empty slot. (One feature in 2^64 has this value, and is then ignored.)
const EMPTY: u64 = u64::MAX;

/// Largest number of slots for which [`first_tries`] are kept: 64 KiB.
const MOST_KEPT: usize = 256;
/// Stands in [`first_tries`] for a try that is not among the first.
const LATE: u8 = u8::MAX;

/// Returns the slot by which an empty slot of `slots` is filled at a try. A hash names four. Every set tries the same slots in
/// the same order, so sets that agree on those agree on the empty one.
fn tried(slots: usize, slot: usize, attempt: usize) -> usize {
    let hash = hash::spread((slot as u64) << 32 | (attempt / 4) as u64);
    (usize::from((hash >> (attempt % 4 * 16)) as u16) * slots) >> 16
}

/// Returns, for each slot and each other one, the first try at which the slot is filled by the other; [`LATE`] if that is
/// not among the first 255. A minimum over the slots that are not empty is found many slots at a time, where going through
/// the tries one by one takes longer than all else.
fn first_tries(slots: usize) -> &'static [u8] {
    static KEPT: [OnceLock<Vec<u8>>; MOST_KEPT + 1] = [const { OnceLock::new() }; MOST_KEPT + 1];
    KEPT[slots].get_or_init(|| {
        let mut first = vec![LATE; slots * slots];
        for (slot, first) in first.chunks_exact_mut(slots).enumerate() {
            (0..LATE).rev().for_each(|attempt| first[tried(slots, slot, attempt.into())] = attempt);
        }
        first
    })
}

impl MinHash {
    /// Makes signatures of `bands` times `rows` slots.
    pub const fn new(bands: u32, rows: u32, seed: u64) -> Self {
        MinHash { bands, rows, seed }
    }

    /// Appends the hash of each band to `keys`. `set` has at least one feature.
    ///
    /// Cost: about 4 ns a feature and 10 ns a slot. With more than 256 slots and fewer features than slots, also 3 ns for
    /// each slot that is tried to fill an empty one, up to slots² / features of them.
    pub fn bands(&self, set: &[u64], keys: &mut Vec<u64>) {
        let slots = (self.bands * self.rows) as usize;
        let seed = hash::spread(self.seed);
        let mut signature = vec![EMPTY; slots];
        for feature in set {
            let value = hash::spread(feature ^ seed);
            let slot = &mut signature[((u128::from(value) * slots as u128) >> 64) as usize];
            *slot = value.min(*slot);
        }
        fill(&mut signature);
        keys.extend(
            signature
                .chunks_exact(self.rows as usize)
                .map(|band| band.iter().fold(0, |key: u64, &value| hash::spread(key.rotate_left(1) ^ value))),
        );
    }

    /// Returns the numbers of the bands on which any set of one text agrees with any set of another, by their keys of
    /// [`MinHash::bands`].
    pub fn agreeing<'a>(&self, a: &'a [u64], b: &'a [u64]) -> impl Iterator<Item = usize> + 'a {
        let bands = self.bands as usize;
        let agree = move |band: &usize| {
            let mut of_a = a.iter().skip(*band).step_by(bands);
            of_a.any(|key| b.iter().skip(*band).step_by(bands).any(|other| key == other))
        };
        (0..bands).filter(agree)
    }

    /// Returns the probability that two sets of this similarity agree on a band.
    pub fn probability(&self, similarity: f64) -> f64 {
        1.0 - (1.0 - similarity.powi(self.rows as i32)).powi(self.bands as i32)
    }
}

/// Fills the empty slots of a signature from others.
fn fill(signature: &mut [u64]) {
    let slots = signature.len();
    if !signature.contains(&EMPTY) {
        return;
    }
    let first_tries = if slots <= MOST_KEPT { first_tries(slots) } else { &[] };
    let empty: Vec<u8> = signature.iter().map(|&value| if value == EMPTY { LATE } else { 0 }).collect();
    let mut filled = signature.to_vec();
    for (slot, value) in filled.iter_mut().enumerate().filter(|(_, value)| **value == EMPTY) {
        let tries = first_tries.chunks_exact(slots).nth(slot).unwrap_or_default();
        let first =
            tries.iter().zip(&empty).fold(LATE, |first, (&attempt, &empty)| first.min(attempt | empty));
        let more = usize::from(if tries.is_empty() { 0 } else { first })..64 * slots;
        let mut values = more.map(|attempt| signature[tried(slots, slot, attempt)]);
        *value = values.find(|&value| value != EMPTY).unwrap_or(EMPTY);
    }
    signature.copy_from_slice(&filled);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the share of `trials` pairs of sets with `shared` of `all` features that agree on a band.
    fn found(minhash: MinHash, shared: u64, all: u64, trials: u64) -> f64 {
        let agree = (0..trials).filter(|&trial| {
            let set = |other: u64| -> Vec<u64> {
                let own = (all - shared) / 2;
                (0..shared + own)
                    .map(|i| hash::spread(trial << 32 | if i < shared { i } else { other + i }))
                    .collect()
            };
            let [a, b] = [0, 1 << 20].map(|other| {
                let mut keys = Vec::new();
                minhash.bands(&set(other), &mut keys);
                keys
            });
            a.iter().zip(&b).any(|(a, b)| a == b)
        });
        agree.count() as f64 / trials as f64
    }

    /// With 4,000 trials, three standard deviations are 0.024.
    #[test]
    fn sets_agree_as_often_as_the_curve_says() {
        let minhash = MinHash::new(5, 4, 0);
        for (shared, all) in [(40, 100), (60, 100), (200, 250), (900, 1000)] {
            let found = found(minhash, shared, all, 4000);
            let expected = minhash.probability(shared as f64 / all as f64);
            assert!((found - expected).abs() < 0.025, "{shared} of {all}: {found}, expected {expected}");
        }
    }

    #[test]
    fn sets_smaller_than_the_signature_are_found_too() {
        let minhash = MinHash::new(25, 5, 0);
        assert_eq!(found(minhash, 8, 8, 200), 1.0);
        assert!(found(minhash, 8, 10, 2000) > 0.998);
        assert!(found(minhash, 0, 10, 2000) < 0.01);
    }
}
