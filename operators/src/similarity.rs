//! How alike two sets of features are.

use std::fmt;
use std::str::FromStr;

/// Between 0 and 1 in millionths, rounded down: records carry no floating point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Similarity(u32);

impl Similarity {
    /// The same set.
    pub const ONE: Similarity = Similarity(1_000_000);

    /// `part / whole`; an empty whole is all of it.
    pub fn ratio(part: usize, whole: usize) -> Self {
        let millionths = (part as u64 * 1_000_000).checked_div(whole as u64);
        millionths.map_or(Self::ONE, |millionths| Similarity(millionths as u32))
    }

    /// As a number between 0 and 1.
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

impl fmt::Display for Similarity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_f64().fmt(f)
    }
}

/// The Jaccard similarity of two sets, each sorted, without repeats: what they share of what they have.
///
/// Cost: one pass over both.
pub fn jaccard(a: &[u64], b: &[u64]) -> Similarity {
    let shared = shared(a, b);
    Similarity::ratio(shared, a.len() + b.len() - shared)
}

/// How many members two sets share, each sorted, without repeats.
pub(crate) fn shared(a: &[u64], b: &[u64]) -> usize {
    let (mut i, mut j, mut shared) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        let (x, y) = (a[i], b[j]);
        shared += usize::from(x == y);
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    shared
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jaccard_is_shared_over_all() {
        assert_eq!(jaccard(&[1, 2, 3, 4], &[2, 3, 4, 5]), Similarity::ratio(3, 5));
        assert_eq!(jaccard(&[1], &[2]), Similarity::ratio(0, 1));
        assert_eq!(jaccard(&[1, 9], &[1, 9]), Similarity::ONE);
    }

    #[test]
    fn a_threshold_is_met_by_exactly_its_ratio() {
        let least: Similarity = "0.8".parse().unwrap();
        assert!(Similarity::ratio(4, 5) >= least && Similarity::ratio(8, 10) >= least);
        assert!(Similarity::ratio(799_999, 1_000_000) < least);
        assert!("1.1".parse::<Similarity>().is_err() && "x".parse::<Similarity>().is_err());
    }
}
