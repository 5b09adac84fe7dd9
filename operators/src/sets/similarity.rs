//! Similarity of two sets of features, and the bounds that a threshold sets on what two sets share.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

use crate::record::Record;

/// Similarity between 0 and 1 in millionths, rounded down, because records carry no floating-point numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
pub struct Similarity(u32);

impl Similarity {
    /// Similarity of equal sets.
    pub const ONE: Similarity = Similarity(1_000_000);

    /// Least threshold that a method accepts. A pair that shares nothing is never a match.
    pub const LEAST: Similarity = Similarity(10_000);

    /// Makes a similarity of `millionths` millionths, at most a million.
    pub const fn millionths(millionths: u32) -> Self {
        Similarity(millionths)
    }

    /// Returns the similarity in millionths.
    pub const fn as_millionths(self) -> u32 {
        self.0
    }

    /// Returns `part / whole`, or one if `whole` is 0.
    pub fn ratio(part: usize, whole: usize) -> Self {
        let millionths = (part as u64 * 1_000_000).checked_div(whole as u64);
        millionths.map_or(Self::ONE, |millionths| Similarity(millionths as u32))
    }

    /// Returns how many elements two sets of sizes `a` and `b` must share to reach this similarity.
    pub fn least_shared(self, overlap: Overlap, a: usize, b: usize) -> usize {
        let least = u64::from(self.0);
        let a = a as u64;
        let b = b as u64;
        let shared = match overlap {
            Overlap::Jaccard => (least * (a + b)).div_ceil(1_000_000 + least),
            Overlap::Corrected => {
                let smaller = a.min(b).min(LARGEST_CORRECTED as u64);
                let part = 1_000_000 + smaller * least;
                ((a + b) * part).div_ceil(1_000_000 + 1_000_000 * smaller + part)
            }
            Overlap::Revision => (least * (4 * a.min(b)).max(a.max(b))).div_ceil(4_000_000),
            Overlap::Contained => (least * a.min(b)).div_ceil(1_000_000),
        };
        shared.max(1) as usize
    }

    /// Returns a lower bound of how many of its `size` elements a set must share with any set that is not
    /// smaller, to reach this similarity.
    pub fn least_shared_of_smaller(self, overlap: Overlap, size: usize) -> usize {
        self.least_shared(overlap, size, size)
    }

    /// Returns a lower bound of how many of its `size` elements a set must share with any set that is not
    /// larger, to reach this similarity. The other set has at least that many elements.
    pub fn least_shared_of_larger(self, overlap: Overlap, size: usize) -> usize {
        match overlap {
            Overlap::Jaccard | Overlap::Corrected => self.least_shared(Overlap::Revision, size, size),
            Overlap::Revision => self.least_shared(Overlap::Revision, size, 0),
            Overlap::Contained => 1,
        }
    }

    /// Returns the size of the largest set that can reach this similarity to a set of `size` elements.
    pub fn largest_partner(self, overlap: Overlap, size: usize) -> usize {
        let times = match overlap {
            Overlap::Jaccard | Overlap::Corrected => 1,
            Overlap::Revision => 4,
            Overlap::Contained => return usize::MAX,
        };
        (times * size as u64 * 1_000_000).checked_div(self.0.into()).unwrap_or(u64::MAX) as usize
    }

    /// Returns the similarity as a number between 0 and 1.
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / 1e6
    }
}

impl FromStr for Similarity {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.parse().ok().filter(|number| (0.0..=1.0).contains(number));
        let number: f64 = number.ok_or_else(|| format!("expected a number from 0 to 1, not \"{text}\""))?;
        Ok(Similarity((number * 1e6).round() as u32))
    }
}

impl Record for Similarity {
    const BYTES: usize = 4;

    fn write(&self, to: &mut [u8]) {
        to.copy_from_slice(&self.0.to_le_bytes());
    }

    fn read(from: &[u8]) -> Self {
        Similarity(from.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes)))
    }
}

impl fmt::Display for Similarity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_f64().fmt(f)
    }
}

/// Largest size for which [`Overlap::Corrected`] differs. With larger ones its numbers could overflow.
const LARGEST_CORRECTED: usize = 1 << 10;

/// Denominator of a similarity, whose numerator is the number of elements that two sets share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlap {
    /// Number of elements of the union.
    Jaccard,
    /// As of Jaccard, but each difference counts `1 + 1 / n` times, where `n` is the size of the smaller set, or
    /// 1,024 if that is less: one word more or less says most in the shortest texts. Source: docs/design/auto.md.
    Corrected,
    /// Number of elements of the smaller set, or a quarter of the larger one if that is more, so that a title
    /// page is no revision of the book. Source: docs/design/auto.md.
    Revision,
    /// Number of elements of the smaller set, however much larger the other one is. Source: docs/design/nightly.md.
    Contained,
}

impl Overlap {
    /// Whether the larger one of two similar sets must share the more elements the more it has.
    pub fn bounds_larger(self) -> bool {
        self != Overlap::Contained
    }

    /// Returns the similarity of two sets of sizes `a` and `b` that share `shared` elements.
    pub fn similarity(self, shared: usize, a: usize, b: usize) -> Similarity {
        match self {
            Overlap::Jaccard => Similarity::ratio(shared, a + b - shared),
            Overlap::Corrected => {
                let smaller = a.min(b).min(LARGEST_CORRECTED);
                let whole = (a + b - shared) * smaller;
                Similarity::ratio(whole.saturating_sub((a + b - 2 * shared) * (smaller + 1)), whole)
            }
            Overlap::Revision => Similarity::ratio(4 * shared, (4 * a.min(b)).max(a.max(b))),
            Overlap::Contained => Similarity::ratio(shared, a.min(b)),
        }
    }
}

/// Returns the Jaccard similarity of two sets: the size of their intersection divided by that of their union.
/// Both are sorted and without repetitions.
///
/// Cost: one pass over both.
pub fn jaccard(a: &[u64], b: &[u64]) -> Similarity {
    Overlap::Jaccard.similarity(shared(a, b), a.len(), b.len())
}

/// Returns how many elements two sets share. Both are sorted and without repetitions.
///
/// Cost: one pass over both.
pub fn shared(a: &[u64], b: &[u64]) -> usize {
    shared_at_least(a, b, 0).unwrap_or(0)
}

/// Returns how many elements two sets share, or `None` if they share fewer than `least`. Stops as soon as too
/// few are left.
pub fn shared_at_least(a: &[u64], b: &[u64], least: usize) -> Option<usize> {
    let (mut i, mut j, mut shared) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        if shared + (a.len() - i).min(b.len() - j) < least {
            return None;
        }
        let ends = (a.len().min(i + BETWEEN_LOOKS), b.len().min(j + BETWEEN_LOOKS));
        while i < ends.0 && j < ends.1 {
            let (x, y) = (a[i], b[j]);
            shared += usize::from(x == y);
            i += usize::from(x <= y);
            j += usize::from(y <= x);
        }
    }
    (shared >= least).then_some(shared)
}

/// Returns how many elements two sorted lists share, each as often as both hold it. Cost: one pass over both.
pub(crate) fn shared_with_repetitions<T: Ord>(a: &[T], b: &[T]) -> usize {
    let (mut i, mut j, mut shared) = (0, 0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        shared += usize::from(x == y);
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    shared
}

/// Number of elements of a set that are passed between two checks whether enough are left.
const BETWEEN_LOOKS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    const OVERLAPS: [Overlap; 4] =
        [Overlap::Jaccard, Overlap::Corrected, Overlap::Revision, Overlap::Contained];

    #[test]
    fn jaccard_is_shared_over_all() {
        assert_eq!(jaccard(&[1, 2, 3, 4], &[2, 3, 4, 5]), Similarity::ratio(3, 5));
        assert_eq!(jaccard(&[1], &[2]), Similarity::ratio(0, 1));
        assert_eq!(jaccard(&[1, 9], &[1, 9]), Similarity::ONE);
    }

    #[test]
    fn sets_that_share_less_than_asked_for_are_given_up() {
        let set = |from: u64| (from..from + 300).collect::<Vec<_>>();
        for from in [0, 1, 100, 299, 300, 400] {
            let both = shared(&set(0), &set(from));
            assert_eq!(both as u64, 300_u64.saturating_sub(from));
            for least in [0, 1, both, both + 1, 300, 301] {
                let found = shared_at_least(&set(0), &set(from), least);
                assert_eq!(found, (both >= least).then_some(both), "{from} {least}");
            }
        }
    }

    #[test]
    fn the_least_that_must_be_shared_is_enough_and_one_less_is_not() {
        for least in ["0.000001", "0.1", "0.333333", "0.45", "0.7", "0.8", "1"] {
            let least: Similarity = least.parse().unwrap();
            for (overlap, a, b) in (1..40)
                .flat_map(|a| (a..60).map(move |b| (a, b)))
                .flat_map(|(a, b)| OVERLAPS.map(|overlap| (overlap, a, b)))
            {
                let shared = least.least_shared(overlap, a, b);
                assert!(shared == 1 || shared - 1 > a || overlap.similarity(shared - 1, a, b) < least);
                assert_eq!(
                    b <= least.largest_partner(overlap, a),
                    least.least_shared_of_larger(overlap, b) <= a
                );
                if shared <= a {
                    assert!(overlap.similarity(shared, a, b) >= least, "{least} {overlap:?} {a} {b}");
                    assert!(
                        shared >= least.least_shared_of_smaller(overlap, a),
                        "{least} {overlap:?} {a} {b}"
                    );
                    assert!(
                        shared >= least.least_shared_of_larger(overlap, b),
                        "{least} {overlap:?} {a} {b}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_threshold_is_met_by_exactly_its_ratio() {
        let least: Similarity = "0.8".parse().unwrap();
        assert!(Similarity::ratio(4, 5) >= least && Similarity::ratio(8, 10) >= least);
        assert!(Similarity::ratio(799_999, 1_000_000) < least);
        assert!("1.1".parse::<Similarity>().is_err() && "x".parse::<Similarity>().is_err());
    }
}
