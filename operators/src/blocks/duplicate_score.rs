//! Precision and recall of what a block store finds in texts whose duplicates are known.

use std::ops::Range;

use super::store::FoundBlocks;

/// Counts of bytes that are duplicates, and of bytes that a store takes for them.
///
/// ```text
/// copy of a text           今天甲乙天气很好。       甲乙 was inserted: 21 of 27 bytes are duplicates
/// taken for similar        all 27 bytes             precision 21 / 27
/// left out                 天气很好。               recall 15 / 21
/// ```
///
/// The paper's accuracy is "correct duplicates found by the system / duplicates found by the system" by its formula, which
/// is precision. Its text describes recall (Peng 2017, section 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DuplicateScore {
    /// Bytes of blocks that the store takes for equal or similar to an earlier block.
    pub taken: u64,
    /// Those of them that are duplicates.
    pub taken_right: u64,
    /// Bytes that are duplicates.
    pub duplicates: u64,
    /// Those of them that are left out.
    pub left_out: u64,
}

impl DuplicateScore {
    /// Adds what was found in a text. `duplicates`: the ranges of the text that are known to repeat earlier text. Left-out
    /// bytes are duplicates wherever they are, since an earlier block has the same ones. Cost and memory: one byte for each
    /// byte of the text.
    pub fn add(&mut self, text_bytes: usize, found: &FoundBlocks, duplicates: &[Range<usize>]) {
        let mut marks = vec![0u8; text_bytes];
        for (mark, ranges) in [(KNOWN, duplicates), (LEFT_OUT, &found.left_out), (TAKEN, &found.taken)] {
            for range in ranges {
                marks[range.clone()].iter_mut().for_each(|byte| *byte |= mark);
            }
        }
        let count = |is: fn(u8) -> bool| marks.iter().filter(|&&mark| is(mark)).count() as u64;
        self.taken += count(|mark| mark & TAKEN > 0);
        self.taken_right += count(|mark| mark & TAKEN > 0 && mark & (KNOWN | LEFT_OUT) > 0);
        self.duplicates += count(|mark| mark & KNOWN > 0);
        self.left_out += count(|mark| mark & KNOWN > 0 && mark & LEFT_OUT > 0);
    }

    /// Returns the share of true duplicates among the bytes that were taken for duplicates; `None` if there
    /// are no such bytes.
    pub fn precision(&self) -> Option<f64> {
        (self.taken > 0).then(|| self.taken_right as f64 / self.taken as f64)
    }

    /// Returns the share of the duplicate bytes that are left out; `None` if there are none.
    pub fn recall(&self) -> Option<f64> {
        (self.duplicates > 0).then(|| self.left_out as f64 / self.duplicates as f64)
    }
}

const KNOWN: u8 = 1;
const LEFT_OUT: u8 = 2;
const TAKEN: u8 = 4;

#[cfg(test)]
mod tests {
    #![allow(clippy::single_range_in_vec_init, reason = "these are lists of ranges")]

    use super::*;

    #[test]
    fn the_example_has_the_shares_that_it_says() {
        let mut score = DuplicateScore::default();
        assert_eq!((score.precision(), score.recall()), (None, None));
        let found = FoundBlocks { left_out: vec![12..27], taken: vec![0..27] };
        score.add(27, &found, &[0..6, 12..27]);
        assert_eq!(score, DuplicateScore { taken: 27, taken_right: 21, duplicates: 21, left_out: 15 });
        assert_eq!((score.precision(), score.recall()), (Some(21.0 / 27.0), Some(15.0 / 21.0)));
    }

    #[test]
    fn what_is_left_out_is_right_and_unlike_blocks_are_not() {
        let mut score = DuplicateScore::default();
        score.add(10, &FoundBlocks { left_out: vec![0..4], taken: vec![0..4, 6..10] }, &[]);
        assert_eq!((score.precision(), score.recall()), (Some(0.5), None));
    }
}
