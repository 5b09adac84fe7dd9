//! Numbers of a text, by which two texts of one template are told apart: weather reports of two days, results
//! of two draws.
//!
//! Such texts share nearly all of their words, so no similarity of words tells them from two editions of one
//! text. Editions share nearly all numbers. So a number in which two texts differ counts as several features, and
//! where most numbers differ, the texts are of one template. Source: docs/design/auto.md.

use crate::sets::similarity::shared_with_repetitions;

/// Least count of numbers of each text that the other lacks, in texts of one template.
const LEAST_LACKED: usize = 3;

/// Number of features that a number counts as, if each text has one that the other lacks.
const FEATURES: usize = 3;

/// Returns the least count of numbers that two texts share if they are not of one template. `fewer`: the count of numbers
/// of the text that has fewer.
pub fn least_shared(fewer: usize) -> usize {
    fewer.saturating_sub((LEAST_LACKED - 1).max(fewer / 3))
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
    /// Compares the numbers of two texts, sorted, each as often as it stands there. Cost: one pass over both.
    pub fn new(a: &[u64], b: &[u64]) -> Self {
        NumbersOfPair { counts: [a.len(), b.len()], shared: shared_with_repetitions(a, b) }
    }

    /// Returns how many features the numbers that differ count as: each text has as many that the other lacks.
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

    #[test]
    fn a_number_counts_as_often_as_it_stands_there() {
        for (a, b, shared) in
            [(&[1, 12, 15, 15][..], &[1, 2, 15, 15][..], 3), (&[7, 7, 8, 9], &[7, 7, 9], 3), (&[], &[], 0)]
        {
            assert_eq!(NumbersOfPair::new(a, b), NumbersOfPair { counts: [a.len(), b.len()], shared });
        }
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
            assert_eq!(shared < least_shared(counts[0].min(counts[1])), expected, "{counts:?} {shared}");
        }
    }
}
