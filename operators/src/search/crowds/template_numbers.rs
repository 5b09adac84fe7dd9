//! Numbers of texts, by which those of one template are found apart without comparing every two of them.
//!
//! Texts of one template with other numbers share nearly all keys and never match, so by sketches a bucket of them would cost its
//! square. But two of them can match only if they share most of their numbers ([`least_shared`]). So they meet like sets
//! by prefixes (`prefix.rs`): the rarest numbers of the one with fewer must contain one of the other.

use foldhash::HashMap;

use crate::hash::spread;
use crate::record::Record;
use crate::sets::reading::least_shared;

/// Largest count of numbers of a text that are kept. Longer texts are rarely of a template.
const MOST: usize = 8;
/// Count of numbers below which nothing needs to be shared.
const LEAST: usize = 3;

/// Numbers of a text, as hashes in any order, each as often as it stands there; 0 where there is none. There is none of a text that
/// can match others whatever its numbers are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TemplateNumbers([u32; MOST]);

impl TemplateNumbers {
    /// Takes sorted numbers, most of which another text must share to match. Keeps none if there are too few or too many of them to
    /// decide anything.
    pub fn new(numbers: &[u64]) -> Self {
        let mut hashes = [0; MOST];
        if (LEAST..=MOST).contains(&numbers.len()) {
            for same in numbers.chunk_by(|a, b| a == b) {
                let before = hashes.iter().take_while(|hash| **hash != 0).count();
                for (again, hash) in hashes[before..].iter_mut().take(same.len()).enumerate() {
                    *hash = spread(same[0] ^ (again as u64) << 40) as u32 | 1;
                }
            }
        }
        TemplateNumbers(hashes)
    }

    /// Returns the hashes.
    pub(super) fn hashes(&self) -> &[u32] {
        let count = self.0.iter().position(|hash| *hash == 0).unwrap_or(MOST);
        &self.0[..count]
    }
}

impl Record for TemplateNumbers {
    const BYTES: usize = <[u64; MOST / 2]>::BYTES;

    fn write(&self, to: &mut [u8]) {
        let pairs: [u64; MOST / 2] =
            std::array::from_fn(|at| u64::from(self.0[2 * at]) << 32 | u64::from(self.0[2 * at + 1]));
        pairs.write(to);
    }

    fn read(from: &[u8]) -> Self {
        let pairs = <[u64; MOST / 2]>::read(from);
        TemplateNumbers(std::array::from_fn(|at| (pairs[at / 2] >> (32 * (1 - at % 2))) as u32))
    }
}

/// Counts of the texts of a bucket that have a number.
#[derive(Default)]
pub(super) struct NumberCounts(HashMap<u32, u32>);

impl NumberCounts {
    /// Counts the numbers of texts.
    pub fn new<'a>(texts: impl Iterator<Item = &'a TemplateNumbers>) -> Self {
        let mut counts = NumberCounts::default();
        for hash in texts.flat_map(TemplateNumbers::hashes) {
            *counts.0.entry(*hash).or_default() += 1;
        }
        counts
    }

    /// Sorts the numbers of a text, the rarest first. Returns them and how many are in its prefix.
    fn sorted(&self, numbers: &TemplateNumbers) -> (Vec<u32>, usize) {
        let mut hashes = numbers.hashes().to_vec();
        hashes.sort_unstable_by_key(|hash| (self.0.get(hash), *hash));
        let prefix = hashes.len() + 1 - least_shared(hashes.len()).max(1);
        (hashes, prefix)
    }
}

/// Texts by their numbers. Memory: some 150 bytes each.
#[derive(Default)]
pub(super) struct NumberIndex {
    by_prefix: HashMap<u32, Vec<u32>>,
    by_any: HashMap<u32, Vec<u32>>,
}

impl NumberIndex {
    /// Adds a text.
    pub fn push(&mut self, counts: &NumberCounts, numbers: &TemplateNumbers, text: u32) {
        let (hashes, prefix) = counts.sorted(numbers);
        for (at, hash) in hashes.into_iter().enumerate() {
            self.by_any.entry(hash).or_default().push(text);
            if at < prefix {
                self.by_prefix.entry(hash).or_default().push(text);
            }
        }
    }

    /// Replaces `found` by the texts that share enough numbers with one to match it, and some others, in order.
    pub fn near(&self, counts: &NumberCounts, numbers: &TemplateNumbers, found: &mut Vec<u32>) {
        found.clear();
        let (hashes, prefix) = counts.sorted(numbers);
        for (at, hash) in hashes.iter().enumerate() {
            // Those that have a number in their prefix are among those that have it anywhere.
            let texts = if at < prefix { &self.by_any } else { &self.by_prefix };
            found.extend(texts.get(hash).into_iter().flatten());
        }
        // Each list is in order, and this sort merges runs. Where a number is in all texts, the lists are as long as the bucket.
        found.sort();
        found.dedup();
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::sets::reading::NumbersOfPair;

    proptest! {
        #[test]
        fn texts_that_are_of_no_template_meet(texts in vec(vec(0..12_u64, 3..=8), 2..40)) {
            let texts: Vec<Vec<u64>> = texts.into_iter().map(|mut numbers| { numbers.sort_unstable(); numbers }).collect();
            let numbers: Vec<TemplateNumbers> = texts.iter().map(|text| TemplateNumbers::new(text)).collect();
            let counts = NumberCounts::new(numbers.iter());
            let (mut index, mut found) = (NumberIndex::default(), Vec::new());
            for (at, of_text) in numbers.iter().enumerate() {
                let mut bytes = [0; TemplateNumbers::BYTES];
                of_text.write(&mut bytes);
                prop_assert_eq!(&TemplateNumbers::read(&bytes), of_text);
                index.near(&counts, of_text, &mut found);
                for before in 0..at {
                    let pair = NumbersOfPair::new(&texts[before], &texts[at]);
                    prop_assert!(pair.of_template() || found.contains(&(before as u32)), "{pair:?}");
                }
                index.push(&counts, of_text, at as u32);
            }
        }
    }
}
