//! Odd sketches: a bit or two for each feature of a set, by which most pairs of sets that cannot match are
//! dropped.
//!
//! Each feature flips the bit of the sketch that its hash selects. Features that two sets share flip the same
//! bits in both, so the sketches differ in at most as many bits as there are features in only one of the
//! sets. The number of differing bits is therefore a lower bound of that number of features, and a pair is
//! dropped when the bound leaves too few features to share. No match is lost.
//!
//! Example with 8 bits, where feature `f` flips bit `f % 8`:
//!
//! ```text
//! set A = {1, 2, 3}    sketch 00001110
//! set B = {2, 3, 4}    sketch 00011100
//! they differ in              00010010    2 bits, so at least 2 features are in one set only
//! to share all 3 features, A and B may differ in 3 + 3 - 2 * 3 = 0 features: the pair is dropped
//! ```
//!
//! Source: Mitzenmacher, Pagh, Pham, "Efficient Estimation for High Similarities using Odd Sketches", WWW
//! 2014. There the sketches estimate how many elements are in only one of two sets; here they bound it.

use super::{Rule, SetKind};

/// Sketch of a set, with the sizes that the comparison needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sketched<'a> {
    /// Number of features of the set.
    pub size: usize,
    /// Number of its features that were sketched.
    pub features: usize,
    /// Sketch, as a power of two of 64-bit words.
    pub sketch: &'a [u64],
}

/// Returns the length, in words, of a sketch of `features` features. The sketch has at least a bit for each
/// feature, and its length is a power of two, so that a longer sketch folds to a shorter one.
pub(crate) fn length(features: usize) -> usize {
    features.div_ceil(u64::BITS as usize).next_power_of_two()
}

/// Whether a sketch of `words` words separates nearly all random sets of `features` features from sets that
/// share `enough` of them.
pub(crate) fn separates(features: usize, enough: usize, words: usize) -> bool {
    let bits = (words.min(length(features)) * u64::BITS as usize) as f64;
    // Number of bits in which random sets differ, less three standard deviations.
    let random = bits / 2.0 * (1.0 - (-4.0 * features as f64 / bits).exp()) - 1.5 * bits.sqrt();
    random > (2 * features.saturating_sub(enough)) as f64
}

/// Appends the sketch of features, which are given as hashes, to `to`. Cost: 1 ns a feature.
pub(crate) fn append(features: impl ExactSizeIterator<Item = u64>, to: &mut Vec<u64>) {
    let start = to.len();
    to.resize(start + length(features.len()), 0);
    let sketch = &mut to[start..];
    let last = sketch.len() - 1;
    for feature in features {
        // The low 6 bits of a hash select the bit, those above them the word.
        sketch[(feature >> 6) as usize & last] ^= 1 << (feature & 63);
    }
}

/// Folds a sketch to the length of the shorter sketch `to` and adds it to that one.
pub(crate) fn fold(sketch: &[u64], to: &mut [u64]) {
    for part in sketch.chunks_exact(to.len()) {
        to.iter_mut().zip(part).for_each(|(to, number)| *to ^= number);
    }
}

impl Rule {
    /// Whether two sets of this kind may match by their sketches. Only features that another document has
    /// were sketched.
    ///
    /// Cost: some 5 ns for sketches of 512 bits that are not alike.
    pub(crate) fn may_match(&self, kind: SetKind, a: Sketched, b: Sketched) -> bool {
        let (overlap, least) = self.measure(kind);
        let enough = least.least_shared(overlap, a.size, b.size);
        let fewer = a.features.min(b.features);
        fewer >= enough && !differ_in_more(a.sketch, b.sketch, a.features + b.features - 2 * enough)
    }
}

/// Whether two sketches differ in more than `most` bits, when the longer one is folded to the length of the
/// other.
fn differ_in_more(a: &[u64], b: &[u64], most: usize) -> bool {
    let (short, long) = if a.len() < b.len() { (a, b) } else { (b, a) };
    let mut bits = 0;
    short.iter().enumerate().any(|(at, &number)| {
        let folded = long[at..].chunks(short.len()).fold(number, |folded, part| folded ^ part[0]);
        bits += folded.count_ones() as usize;
        bits > most
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::similarity::Overlap;
    use super::super::{PackedSets, Sets};
    use super::*;
    use crate::hash::spread;
    use crate::text::features::Features;

    /// Makes a set of these features. Returns the packed set, the number of its features that are not a
    /// document's `own`, and the sketch of those.
    fn set(
        features: impl IntoIterator<Item = u64>,
        own: impl Fn(u64) -> bool,
    ) -> (Vec<u64>, usize, Vec<u64>) {
        let (mut long, mut others) = (Vec::new(), Vec::new());
        for feature in features {
            long.push(spread(feature));
            others.extend(Some(spread(feature)).filter(|_| !own(feature)));
        }
        let mut sets = Sets { long, ..Sets::default() };
        sets.sort();
        let (mut packed, mut sketch) = (Vec::new(), Vec::new());
        sets.pack(&mut packed);
        append(others.iter().copied(), &mut sketch);
        (packed, others.len(), sketch)
    }

    /// Whether the two may match by sketches of at most `words` words.
    fn may_match(
        rule: &Rule,
        a: &(Vec<u64>, usize, Vec<u64>),
        b: &(Vec<u64>, usize, Vec<u64>),
        words: usize,
    ) -> bool {
        let folded = [a, b].map(|(_, _, sketch)| {
            let mut folded = vec![0; sketch.len().min(words)];
            fold(sketch, &mut folded);
            folded
        });
        let sketched = |(packed, features, _): &(Vec<u64>, usize, Vec<u64>), sketch| Sketched {
            size: PackedSets(packed).features(SetKind::Long).len(),
            features: *features,
            sketch,
        };
        rule.may_match(SetKind::Long, sketched(a, &folded[0]), sketched(b, &folded[1]))
    }

    proptest! {
        #[test]
        fn documents_that_match_may_match(
            a in prop::collection::btree_set(0_u64..400, 1..300),
            flips in prop::collection::btree_set(0_u64..400, 0..200),
            words in prop::sample::select(vec![1_usize, 2, 16]),
            overlap in prop::sample::select(vec![Overlap::Jaccard, Overlap::Corrected, Overlap::Revision, Overlap::Contained]),
            least in prop::sample::select(vec!["0.1", "0.5", "0.8", "1"]),
        ) {
            let b = &a ^ &flips;
            // Some of the features that only one of the two has are in no other document.
            let own = |feature: u64| feature.is_multiple_of(2) && flips.contains(&feature);
            let rule = Rule::new(Features::Chars(2), overlap, least.parse().unwrap());
            let (a, b) = (set(a.iter().copied(), own), set(b.iter().copied(), own));
            let matches = rule.matches(PackedSets(&a.0), PackedSets(&b.0)).is_some();
            prop_assert!(!matches || may_match(&rule, &a, &b, words));
        }
    }

    #[test]
    fn it_is_known_which_sketches_tell_random_sets_apart() {
        for (least, features, words) in [
            ("0.8", 700, 4),
            ("0.8", 700, 8),
            ("0.8", 3000, 16),
            ("0.8", 2000, 16),
            ("0.3", 900, 16),
            ("0.5", 900, 16),
        ] {
            let rule = Rule::new(Features::Chars(2), Overlap::Jaccard, least.parse().unwrap());
            let enough = rule.measure(SetKind::Long).1.least_shared(
                Overlap::Jaccard,
                features as usize,
                features as usize,
            );
            let sets: Vec<_> = (0..40).map(|at| set(at * features..(at + 1) * features, |_| false)).collect();
            let alike = sets[1..].iter().filter(|other| may_match(&rule, &sets[0], other, words)).count();
            let case = format!("{features} {least} {words}: {alike}");
            assert_eq!(alike == 0, separates(features as usize, enough, words), "{case}");
        }
    }

    #[test]
    fn documents_that_share_half_are_told_apart() {
        let rule = Rule::new(Features::Chars(2), Overlap::Jaccard, "0.8".parse().unwrap());
        for (features, words) in [(40, 1), (300, 8), (1000, 16), (5000, 128)] {
            let [a, b] = [0, features / 2].map(|from| set(from..from + features, |_| false));
            assert!(may_match(&rule, &a, &a, words));
            assert!(!may_match(&rule, &a, &b, words), "{features}");
        }
    }
}
