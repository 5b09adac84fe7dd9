//! A bit or two for each feature of a set: enough to tell most pairs that cannot match.
//!
//! Source: Mitzenmacher, Pagh, Pham, "Efficient Estimation for High Similarities using Odd Sketches", WWW 2014. There the
//! sketches of two sets estimate how many elements only one of them has; here they bound it, so that no match is lost.
//!
//! Each feature flips the bit that its hash says. What two sets share flips the same bits, so the sketches differ in at
//! most as many bits as there are features that only one set has.

use crate::sets::{Kind, Rule, compared_by};

/// The sketches of a document's sets, in one list of numbers: for each kind the size of the set, and how many features were
/// sketched, then the sketches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OddSketches<'a>(pub &'a [u64]);

/// In numbers: at least a bit for each feature, and a power of two, so that a longer sketch folds to a shorter one.
fn length(features: usize) -> usize {
    features.div_ceil(u64::BITS as usize).next_power_of_two()
}

impl<'a> OddSketches<'a> {
    const HEADER: usize = 4;

    /// Appends the sketches of the sets, [`Kind::Short`] first: of each its size, and the hashes of those features that
    /// another document may have. Cost: 1 ns a feature.
    pub fn append<I: ExactSizeIterator<Item = u64>>(sets: [(usize, I); 2], to: &mut Vec<u64>) {
        to.extend(sets.iter().map(|(size, _)| *size as u64));
        to.extend(sets.iter().map(|(_, features)| features.len() as u64));
        for (_, features) in sets {
            let start = to.len();
            to.resize(start + length(features.len()), 0);
            let sketch = &mut to[start..];
            let last = sketch.len() - 1;
            for feature in features {
                // The low bits of a hash name the bit, those above them the number.
                sketch[(feature >> 6) as usize & last] ^= 1 << (feature & 63);
            }
        }
    }

    /// The sketches that a list begins with, and what comes after them.
    pub fn split(list: &'a [u64]) -> (Self, &'a [u64]) {
        let features = [Kind::Short, Kind::Long].map(|kind| OddSketches(list).features(kind));
        let (sketches, rest) = list.split_at(Self::HEADER + length(features[0]) + length(features[1]));
        (OddSketches(sketches), rest)
    }

    pub fn size(self, kind: Kind) -> usize {
        self.0[kind as usize] as usize
    }

    fn features(self, kind: Kind) -> usize {
        self.0[2 + kind as usize] as usize
    }

    fn of(self, kind: Kind) -> &'a [u64] {
        let (short, long) = self.0[Self::HEADER..].split_at(length(self.features(Kind::Short)));
        match kind {
            Kind::Short => short,
            Kind::Long => long,
        }
    }
}

impl Rule {
    /// Whether two documents with these sketches may match.
    ///
    /// Cost: a few ns for each 64 features.
    pub(crate) fn may_match(&self, a: OddSketches, b: OddSketches) -> bool {
        let Some(kind) = compared_by(|kind| a.size(kind).min(b.size(kind))) else { return false };
        let (overlap, least) = self.measure(kind);
        let enough = least.least_shared(overlap, a.size(kind), b.size(kind));
        let (features_a, features_b) = (a.features(kind), b.features(kind));
        let most = (features_a + features_b - differing(a.of(kind), b.of(kind))) / 2;
        most.min(features_a).min(features_b) >= enough
    }
}

/// In how many bits two sketches differ, when the longer one is folded to the length of the other.
fn differing(a: &[u64], b: &[u64]) -> usize {
    let (short, long) = if a.len() < b.len() { (a, b) } else { (b, a) };
    let bits = short.iter().enumerate().map(|(at, number)| {
        let folded = long[at..].iter().step_by(short.len()).fold(0, |folded, number| folded ^ number);
        (folded ^ number).count_ones() as usize
    });
    bits.sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::features::Features;
    use crate::hash::spread;
    use crate::sets::{Packed, Sets, Short};
    use crate::similarity::Overlap;

    /// Packed sets of these features, and the sketches of those that are not a document's `own`.
    fn lists(short: &[u64], long: &[u64], own: impl Fn(&u64) -> bool) -> (Vec<u64>, Vec<u64>) {
        let hashes = |features: &[u64]| {
            let mut hashes: Vec<u64> = features.iter().map(|&feature| spread(feature)).collect();
            hashes.sort_unstable();
            hashes.dedup();
            hashes
        };
        let sets = Sets { short: hashes(short), long: hashes(long) };
        let (mut packed, mut sketches) = (Vec::new(), Vec::new());
        sets.pack(&mut packed);
        let others = |features: &[u64]| {
            features
                .iter()
                .filter(|feature| !own(feature))
                .map(|&feature| spread(feature))
                .collect::<Vec<_>>()
        };
        let sized = [(sets.short.len(), others(short)), (sets.long.len(), others(long))];
        OddSketches::append(sized.map(|(size, features)| (size, features.into_iter())), &mut sketches);
        (packed, sketches)
    }

    fn flip(set: &mut Vec<u64>, features: Vec<u64>) {
        for flip in features {
            match set.iter().position(|&feature| feature == flip) {
                Some(at) => drop(set.remove(at)),
                None => set.push(flip),
            }
        }
    }

    fn rule(overlap: Overlap, least: &str) -> Rule {
        let least = least.parse().unwrap();
        let short = Short { features: Features::Chars(1), below: 3, least };
        Rule { short: Some(short), ..Rule::new(Features::Chars(2), overlap, least) }
    }

    proptest! {
        #[test]
        fn documents_that_match_may_match(
            short in prop::collection::btree_set(0_u64..40, 0..20),
            long in prop::collection::btree_set(0_u64..400, 0..300),
            short_flips in prop::collection::vec(0_u64..40, 0..8),
            long_flips in prop::collection::vec(0_u64..400, 0..200),
            overlap in prop::sample::select(vec![Overlap::Jaccard, Overlap::Revision]),
            least in prop::sample::select(vec!["0.1", "0.5", "0.8", "1"]),
        ) {
            let a: (Vec<u64>, Vec<u64>) = (short.into_iter().collect(), long.into_iter().collect());
            let mut b = a.clone();
            flip(&mut b.0, short_flips);
            flip(&mut b.1, long_flips);
            // Some of those that only one of them has, nobody else has.
            let in_both = |f: &u64| (a.0.contains(f) || a.1.contains(f)) && (b.0.contains(f) || b.1.contains(f));
            let sets = |set: &(Vec<u64>, Vec<u64>)| lists(&set.0, &set.1, |f| f % 2 == 0 && !in_both(f));
            let (rule, (a, of_a), (b, of_b)) = (rule(overlap, least), sets(&a), sets(&b));
            let may = rule.may_match(OddSketches(&of_a), OddSketches(&of_b));
            prop_assert!(may || rule.matches(Packed(&a), Packed(&b)).is_none());
        }
    }

    #[test]
    fn documents_that_share_half_are_told_apart() {
        let rule = rule(Overlap::Jaccard, "0.8");
        for features in [40, 300, 5000] {
            let [(_, a), (_, b)] = [0, features / 2].map(|from| {
                let features: Vec<u64> = (from..from + features).collect();
                lists(&[], &features, |_| false)
            });
            assert!(rule.may_match(OddSketches(&a), OddSketches(&a)));
            assert!(!rule.may_match(OddSketches(&a), OddSketches(&b)), "{features}");
        }
    }
}
