//! SimHash: near texts have fingerprints that differ in few bits.
//!
//! Source: Charikar, "Similarity Estimation Techniques from Rounding Algorithms", STOC 2002; as a detector of
//! near-duplicates: Manku, Jain, Das Sarma, WWW 2007. The words' weight is their number in the text (`tf`).

use std::fmt;

use super::{Method, Parameters, Wrong, number, store, store_clean, store_features};
use crate::block_join::BlockJoin;
use crate::features::{FeatureSpec, Features};
use crate::hamming::Kernel;
use crate::record::{Pair, Row};
use crate::text::Clean;

/// The parameters of `simhash`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimHashSpec {
    /// Bits of a fingerprint: 32 or 64.
    pub bits: u32,
    /// The largest distance of a match, in bits: up to 15.
    pub hamming: u32,
    /// What the fingerprint is made from.
    pub features: FeatureSpec,
    /// What is done to the text first.
    pub clean: Clean,
}

impl Default for SimHashSpec {
    fn default() -> Self {
        SimHashSpec { bits: 64, hamming: 3, features: FeatureSpec::Jieba, clean: Clean::default() }
    }
}

impl Parameters for SimHashSpec {
    fn set(&mut self, key: &str, value: &str) -> Result<(), Wrong> {
        match key {
            "bits" => number(&mut self.bits, value, [32, 64].into_iter(), "32 or 64"),
            "hamming" => number(&mut self.hamming, value, 0..=15, "0 to 15"),
            "features" => store_features(&mut self.features, value),
            "weights" => store(&mut (), (value == "tf").then_some(()), "tf"),
            "clean" => store_clean(&mut self.clean, value),
            _ => Err(Wrong::Unknown),
        }
    }
}

impl fmt::Display for SimHashSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SimHashSpec { bits, hamming, features, clean } = self;
        write!(f, "bits={bits},hamming={hamming},features={features},weights=tf,clean={clean}")
    }
}

/// SimHash of 32 or 64 bits; two texts match within a number of bits.
#[derive(Clone)]
pub struct SimHash {
    features: Features,
    mask: u64,
    distance: u32,
    join: BlockJoin,
}

impl SimHash {
    /// Fingerprints of `bits` bits (1 to 64), pairs within `distance` bits.
    pub fn new(bits: u32, distance: u32, features: Features) -> Self {
        let join = BlockJoin::new(bits, distance, Kernel::widest());
        SimHash { features, mask: u64::MAX >> (64 - bits), distance, join }
    }
}

impl Method for SimHash {
    type Fingerprint = u64;

    fn fingerprint(&mut self, text: &str) -> u64 {
        let mut tally = Tally::default();
        self.features.each(text, |feature| tally.add(feature));
        tally.majority() & self.mask
    }

    fn blocks(&self) -> u32 {
        self.join.blocks()
    }

    fn block(&self, block: u32, fingerprint: &u64) -> u64 {
        self.join.value(block, *fingerprint)
    }

    fn compare(&mut self, block: u32, rows: &mut [Row<u64>], emit: &mut impl FnMut(Pair)) {
        self.join.join(block, rows, emit);
    }

    fn distance(&self, a: &u64, b: &u64) -> Option<u32> {
        Some((a ^ b).count_ones()).filter(|&bits| bits <= self.distance)
    }

    fn features(&self, text: &str, set: &mut Vec<u64>) {
        self.features.set(text, set);
    }
}

/// Counts, for each of 64 bits, the words in which it is set; bit `b` of `planes[p]` is bit `p` of the count
/// of bit `b`. Sixteen words at a time go through a tree of full adders: 5 operations a word.
#[derive(Default)]
pub(super) struct Tally {
    planes: [u64; 32],
    waiting: [u64; 16],
    count: u64,
}

impl Tally {
    #[inline]
    pub(super) fn add(&mut self, word: u64) {
        self.waiting[self.count as usize % 16] = word;
        self.count += 1;
        if self.count.is_multiple_of(16) {
            self.add_waiting();
        }
    }

    #[inline]
    fn add_waiting(&mut self) {
        let mut carries = self.waiting;
        for (level, plane) in self.planes[..4].iter_mut().enumerate() {
            let width = 16 >> level;
            for i in 0..width / 2 {
                let (a, b) = (carries[2 * i], carries[2 * i + 1]);
                let odd = a ^ b;
                carries[i] = a & b | odd & *plane;
                *plane ^= odd;
            }
        }
        self.ripple(4, carries[0]);
    }

    /// Adds one to the count of every bit of `carry`, from plane `from` up.
    fn ripple(&mut self, from: usize, mut carry: u64) {
        for plane in &mut self.planes[from..] {
            if carry == 0 {
                return;
            }
            (*plane, carry) = (*plane ^ carry, *plane & carry);
        }
    }

    /// The bits that are set in more than half of the words.
    pub(super) fn majority(mut self) -> u64 {
        for i in 0..self.count as usize % 16 {
            self.ripple(0, self.waiting[i]);
        }
        let half = self.count / 2;
        let (mut more, mut same) = (0, u64::MAX);
        for (p, plane) in self.planes.iter().enumerate().rev() {
            let of_half = if half >> p & 1 == 1 { u64::MAX } else { 0 };
            more |= same & plane & !of_half;
            same &= !(plane ^ of_half);
        }
        more
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_bit_needs_more_than_half_of_the_words() {
        let mut tally = Tally::default();
        [0b111, 0b011, 0b000, 0b001].into_iter().for_each(|word| tally.add(word));
        assert_eq!(tally.majority(), 0b001); // 3, 2 and 1 of 4
    }

    proptest! {
        #[test]
        fn counting_by_planes_equals_counting_bit_by_bit(words in prop::collection::vec(any::<u64>(), 0..200), bias in any::<u64>()) {
            let words: Vec<u64> = words.iter().enumerate().map(|(i, w)| if i % 3 == 0 { w | bias } else { w & !bias }).collect();
            let mut tally = Tally::default();
            words.iter().for_each(|&word| tally.add(word));
            let count = |bit: u32| words.iter().filter(|&&word| word >> bit & 1 == 1).count();
            let expected = (0..64).filter(|&bit| 2 * count(bit) > words.len()).fold(0, |all, bit| all | 1 << bit);
            prop_assert_eq!(tally.majority(), expected);
        }
    }
}
