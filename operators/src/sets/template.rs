//! Numbers of a text, by which two texts of one template are told apart: weather reports of two days, results
//! of two draws.
//!
//! Such texts share nearly all of their words, so no similarity of words tells them from two editions of one
//! text. Editions share nearly all numbers. So a number in which two texts differ counts as several features, and
//! where most numbers differ, the texts are of one template. Source: docs/design/0013.

use crate::hash;

/// Least count of numbers of each text that the other lacks, in texts of one template.
const LEAST_LACKED: usize = 3;

/// Number of features that a number counts as, if each text has one that the other lacks.
const FEATURES: usize = 3;

/// Replaces `numbers` by the hashes of the numbers of a text, sorted, each as often as it stands there. A number
/// is a run of the digits 0 to 9. Cost: one pass over the text.
pub(super) fn numbers(text: &str, numbers: &mut Vec<u64>) {
    numbers.clear();
    let bytes = text.as_bytes();
    let mut from = 0;
    while let Some(start) = bytes[from..].iter().position(u8::is_ascii_digit).map(|at| from + at) {
        let digits = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        from = start + digits;
        numbers.push(hash::word(bytes, start, from));
    }
    numbers.sort_unstable();
}

/// Numbers of two texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumbersOfPair {
    /// Count of numbers of each text.
    pub counts: [usize; 2],
    /// Count of numbers that both have.
    pub shared: usize,
}

impl NumbersOfPair {
    /// Compares the [`numbers`] of two texts. Cost: one pass over both.
    pub(super) fn new(a: &[u64], b: &[u64]) -> Self {
        // Unlike a set, a list may hold a number more than once.
        let (mut i, mut j, mut shared) = (0, 0, 0);
        while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
            shared += usize::from(x == y);
            i += usize::from(x <= y);
            j += usize::from(y <= x);
        }
        NumbersOfPair { counts: [a.len(), b.len()], shared }
    }

    /// Returns how many features each text has more that the other lacks, for the numbers in which they differ.
    pub fn differing_features(self) -> usize {
        FEATURES * self.lacked()
    }

    /// Returns how many numbers each text has, at the least, that the other lacks.
    fn lacked(self) -> usize {
        self.counts[0].min(self.counts[1]) - self.shared
    }

    /// Whether the texts are of one template: each has at least three numbers that the other lacks, and the one
    /// with fewer numbers shares less than two thirds of them.
    pub fn of_template(self) -> bool {
        let lacked = self.lacked();
        lacked >= LEAST_LACKED && 3 * lacked > lacked + self.shared
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(a: &str, b: &str) -> NumbersOfPair {
        let [a, b] = [a, b].map(|text| {
            let mut list = vec![7];
            numbers(text, &mut list);
            list
        });
        NumbersOfPair::new(&a, &b)
    }

    #[test]
    fn numbers_are_runs_of_digits_as_often_as_they_stand_there() {
        let expected = NumbersOfPair { counts: [4, 3], shared: 2 };
        assert_eq!(pair("1月15日新增15例12", "15例15 1日2"), NumbersOfPair { counts: [4, 4], shared: 3 });
        assert_eq!(pair("7 7 8a9", "7 9 007"), expected);
        assert_eq!(pair("", "没有"), NumbersOfPair { counts: [0, 0], shared: 0 });
    }

    #[test]
    fn a_template_has_three_other_numbers_and_shares_less_than_two_thirds() {
        for (counts, shared, expected) in [
            ([3, 3], 0, true),
            ([2, 9], 0, false),
            ([9, 9], 6, false),
            ([9, 9], 5, true),
            ([8, 30], 5, true),
            ([9, 30], 6, false),
            ([0, 0], 0, false),
        ] {
            assert_eq!(NumbersOfPair { counts, shared }.of_template(), expected, "{counts:?} {shared}");
        }
    }
}
