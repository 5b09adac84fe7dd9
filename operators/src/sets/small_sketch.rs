//! Sketches of small sets in 64 bits, by which the searches by bands and by fingerprints drop most pairs of short
//! texts that cannot match before anything is read of them.
//!
//! Two short texts agree on a band as soon as they share the few features that its slots are filled with, so
//! without sketches the candidates of short texts grow nearly with the square of their number.

use crate::hash;
use crate::record::Record;
use crate::sets::{Rule, SetKind};

/// Number of bits in which features are sketched.
const BITS: u32 = 56;
/// Largest size of a set that is sketched. The sketch of a larger one would separate nothing.
const LARGEST: usize = 63;
/// Largest number of features, with repetitions, that are looked through for a set of that size.
pub(crate) const LARGEST_LIST: usize = 2 * LARGEST;

/// Sketch of a set of at most 63 features, or of no set.
///
/// The low 56 bits are an odd sketch (`odd_sketch.rs`): each feature flips the bit that its hash selects.
/// Sets that share `s` of `a` and `b` features differ in `a + b - 2 * s` of them, so their sketches differ in
/// at most as many bits. Above are the size of the set (6 bits) and its kind (2 bits). No match is
/// lost. Example with a least Jaccard similarity of 0.7:
///
/// ```text
/// sizes 10 and 11    they must share 9 features, so they may differ in 10 + 11 - 2 * 9 = 3
/// sketches differ in 2 bits     the pair may match
/// sketches differ in 5 bits     the pair is dropped
/// ```
///
/// Source: as of odd sketches. A set that is too large has the sketch 0, which never drops a pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SmallSketch(u64);

/// Names the set of a text that was sketched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SketchedSet {
    /// The short set of a text that has no other.
    ShortAlone = 1,
    /// The short set of a text with a long set too.
    ShortOfBoth = 2,
    /// The long set.
    Long = 3,
}

impl SmallSketch {
    /// Sketches a set of features, given as hashes in any order, perhaps with repetitions. `both`: whether the
    /// text has a set of the other kind too.
    ///
    /// Cost: some 2 ns a feature, and twice that where they must be sorted to find repetitions.
    pub fn new(kind: SetKind, features: &[u64], both: bool) -> Self {
        if features.is_empty() || features.len() > LARGEST_LIST {
            return SmallSketch::default();
        }
        let mut list = [0; LARGEST_LIST];
        let list = &mut list[..features.len()];
        list.copy_from_slice(features);
        list.sort_unstable();
        let (mut bits, mut size, mut last) = (0, 0, None);
        for &feature in list.iter() {
            if last != Some(feature) {
                bits ^= 1 << ((u128::from(hash::spread(feature)) * u128::from(BITS)) >> 64);
                (size, last) = (size + 1, Some(feature));
            }
        }
        if size > LARGEST {
            return SmallSketch::default();
        }
        let set = match (kind, both) {
            (SetKind::Long, _) => SketchedSet::Long,
            (SetKind::Short, true) => SketchedSet::ShortOfBoth,
            (SetKind::Short, false) => SketchedSet::ShortAlone,
        };
        SmallSketch((set as u64) << 62 | (size as u64) << BITS | bits)
    }

    /// Restores a sketch from what [`SmallSketch::bits`] has returned.
    pub fn of_bits(bits: u64) -> Self {
        SmallSketch(bits)
    }

    /// Returns the sketch as a number.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// Adds this sketch to those of a text, which are that of the short set and that of the long set; 0 for
    /// none.
    pub fn put_among(self, sketches: &mut [u64; 2]) {
        sketches[usize::from(self.set() == SketchedSet::Long as u64)] = self.0;
    }

    /// Returns of the sketches of a text, as [`SmallSketch::put_among`] has put them, the one whose set would be
    /// compared with the set of this sketch.
    pub fn of_the_same_kind(self, sketches: [u64; 2]) -> SmallSketch {
        SmallSketch(sketches[usize::from(self.set() == SketchedSet::Long as u64)])
    }

    fn size(self) -> usize {
        (self.0 >> BITS) as usize & LARGEST
    }

    fn set(self) -> u64 {
        self.0 >> 62
    }
}

impl Record for SmallSketch {
    const BYTES: usize = u64::BYTES;

    fn write(&self, to: &mut [u8]) {
        self.0.write(to);
    }

    fn read(from: &[u8]) -> Self {
        SmallSketch(u64::read(from))
    }
}

/// Largest number of bits in which the sketches of two sets that match may differ, by the sizes of the sets.
#[derive(Clone)]
pub struct SketchSieve {
    /// For short and for long sets; negative where sets of these sizes cannot match.
    most: [Box<[i8]>; 2],
}

impl SketchSieve {
    /// Makes the sieve of a rule. Memory: 8 KB.
    pub fn new(rule: &Rule) -> Self {
        SketchSieve {
            most: [SetKind::Short, SetKind::Long].map(|kind| {
                let (overlap, least) = rule.measure(kind);
                let sizes = (0..=LARGEST).flat_map(|a| (0..=LARGEST).map(move |b| (a, b)));
                let most = sizes.map(|(a, b)| {
                    let enough = least.least_shared(overlap, a, b);
                    if a.min(b) < enough { -1 } else { (a + b - 2 * enough) as i8 }
                });
                most.collect()
            }),
        }
    }

    /// Whether two texts may match that agree on a band of the sketched sets.
    #[inline]
    pub fn may_match(&self, a: SmallSketch, b: SmallSketch) -> bool {
        let (one, other) = (a.set(), b.set());
        let most = if one == SketchedSet::Long as u64 && other == one {
            &self.most[1]
        } else if one.min(other) == SketchedSet::ShortAlone as u64
            && one.max(other) < SketchedSet::Long as u64
        {
            &self.most[0]
        } else {
            // One has no sketch; or both texts have long sets, by which they will be compared.
            return true;
        };
        let most = most[a.size() << 6 | b.size()];
        let differing = ((a.0 ^ b.0) << (u64::BITS - BITS)).count_ones();
        differing as i32 <= i32::from(most)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{PackedSets, Sets, Short};
    use super::*;
    use crate::sets::similarity::Overlap;
    use crate::text::features::Features;

    fn rule(short: &str, long: &str) -> Rule {
        let short = Short {
            features: Features::Chars(2),
            overlap: Overlap::Corrected,
            below: 12,
            least: short.parse().unwrap(),
        };
        Rule { short: Some(short), ..Rule::new(Features::Chars(3), Overlap::Jaccard, long.parse().unwrap()) }
    }

    /// Returns the sketches of the sets of a text, short and long, if it has them.
    fn sketches(rule: &Rule, text: &str) -> [Option<SmallSketch>; 2] {
        let mut sets = Sets::default();
        rule.unsorted(text, &mut sets);
        let both = sets.present().count() == 2;
        [SetKind::Short, SetKind::Long].map(|kind| {
            let set = sets.of(kind);
            (!set.is_empty()).then(|| SmallSketch::new(kind, set, both))
        })
    }

    proptest! {
        #[test]
        fn no_match_is_dropped(
            a in "[a-e]{1,90}",
            edits in proptest::collection::vec((0..90usize, "[a-e]{0,2}"), 0..6),
            short in prop::sample::select(vec!["0.3", "0.7", "0.9"]),
            long in prop::sample::select(vec!["0.3", "0.6", "0.9"]),
        ) {
            let mut b = a.clone();
            for (at, text) in edits {
                let at = at % (b.len() + 1);
                b.replace_range(at..(at + 1).min(b.len()), &text);
            }
            prop_assume!(!b.is_empty());
            let rule = rule(short, long);
            let (packed_a, packed_b) = (rule.packed(&a), rule.packed(&b));
            if rule.matches(PackedSets(&packed_a), PackedSets(&packed_b)).is_some() {
                let sieve = SketchSieve::new(&rule);
                for (a, b) in sketches(&rule, &a).into_iter().zip(sketches(&rule, &b)) {
                    prop_assert!(a.zip(b).is_none_or(|(a, b)| sieve.may_match(a, b) && sieve.may_match(b, a)));
                }
            }
        }
    }

    #[test]
    fn short_texts_that_share_little_are_dropped() {
        let rule = Rule::new(Features::Chars(2), Overlap::Jaccard, "0.7".parse().unwrap());
        let sieve = SketchSieve::new(&rule);
        let sketch = |first: u64, size: u64| {
            let set: Vec<u64> = (first..first + size).map(hash::spread).collect();
            SmallSketch::new(SetKind::Long, &set, false)
        };
        for size in [5, 10, 20, 40] {
            let pairs = (0..1000).filter(|&i| sieve.may_match(sketch(i, size), sketch(i + size / 2, size)));
            let kept = pairs.count();
            assert!(kept < 80, "{kept} of 1000 pairs of similarity 0.33 of sets of {size}");
        }
        assert!(!sieve.may_match(sketch(0, 10), sketch(0, 20)), "sizes too different");
        assert!(sieve.may_match(sketch(0, 64), sketch(1000, 64)), "too large to be sketched");
    }
}
