//! A bit or two for each feature of a set: enough to tell most pairs that cannot match.
//!
//! Source: Mitzenmacher, Pagh, Pham, "Efficient Estimation for High Similarities using Odd Sketches", WWW 2014. There the
//! sketches of two sets estimate how many elements only one of them has; here they bound it, so that no match is lost.
//!
//! Each feature flips the bit that its hash says. What two sets share flips the same bits, so the sketches differ in at
//! most as many bits as there are features that only one set has.

use super::{Kind, Rule};

/// A set that is known by its sketch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sketched<'a> {
    /// Of the set.
    pub size: usize,
    /// How many of its features were sketched.
    pub features: usize,
    /// A power of two of numbers.
    pub sketch: &'a [u64],
}

/// How many numbers the sketch of so many features has: at least a bit for each feature, and a power of two, so that a longer
/// sketch folds to a shorter one.
pub(crate) fn length(features: usize) -> usize {
    features.div_ceil(u64::BITS as usize).next_power_of_two()
}

/// Whether so many numbers of a sketch tell nearly every random set of so many features from one that shares `enough` of them.
pub(crate) fn tells(features: usize, enough: usize, words: usize) -> bool {
    let bits = (words.min(length(features)) * u64::BITS as usize) as f64;
    // What random sets differ in, and three deviations less.
    let random = bits / 2.0 * (1.0 - (-4.0 * features as f64 / bits).exp()) - 1.5 * bits.sqrt();
    random > (2 * features.saturating_sub(enough)) as f64
}

/// Appends the sketch of features, by their hashes. Cost: 1 ns a feature.
pub(crate) fn append(features: impl ExactSizeIterator<Item = u64>, to: &mut Vec<u64>) {
    let start = to.len();
    to.resize(start + length(features.len()), 0);
    let sketch = &mut to[start..];
    let last = sketch.len() - 1;
    for feature in features {
        // The low bits of a hash name the bit, those above them the number.
        sketch[(feature >> 6) as usize & last] ^= 1 << (feature & 63);
    }
}

/// Adds a sketch to a shorter one.
pub(crate) fn fold(sketch: &[u64], to: &mut [u64]) {
    for part in sketch.chunks_exact(to.len()) {
        to.iter_mut().zip(part).for_each(|(to, number)| *to ^= number);
    }
}

impl Rule {
    /// Whether two sets of this kind may match. Of their features those were sketched that another document has.
    ///
    /// Cost: some 5 ns for sketches of 512 bits that are not alike.
    pub(crate) fn may_match(&self, kind: Kind, a: Sketched, b: Sketched) -> bool {
        let (overlap, least) = self.measure(kind);
        let enough = least.least_shared(overlap, a.size, b.size);
        let fewer = a.features.min(b.features);
        fewer >= enough && !differ_in_more(a.sketch, b.sketch, a.features + b.features - 2 * enough)
    }
}

/// Whether two sketches differ in more than so many bits, when the longer one is folded to the length of the other.
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
    use super::super::{Packed, Sets};
    use super::*;
    use crate::hash::spread;
    use crate::text::features::Features;

    /// A packed set of these features, and how many of them are not a document's `own`, and the sketch of those.
    fn set(
        features: impl IntoIterator<Item = u64>,
        own: impl Fn(u64) -> bool,
    ) -> (Vec<u64>, usize, Vec<u64>) {
        let (mut long, mut others) = (Vec::new(), Vec::new());
        for feature in features {
            long.push(spread(feature));
            others.extend(Some(spread(feature)).filter(|_| !own(feature)));
        }
        let mut sets = Sets { short: Vec::new(), long };
        sets.sort();
        let (mut packed, mut sketch) = (Vec::new(), Vec::new());
        sets.pack(&mut packed);
        append(others.iter().copied(), &mut sketch);
        (packed, others.len(), sketch)
    }

    /// Whether they may match by sketches of so many numbers at the most.
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
            size: Packed(packed).features(Kind::Long).len(),
            features: *features,
            sketch,
        };
        rule.may_match(Kind::Long, sketched(a, &folded[0]), sketched(b, &folded[1]))
    }

    proptest! {
        #[test]
        fn documents_that_match_may_match(
            a in prop::collection::btree_set(0_u64..400, 1..300),
            flips in prop::collection::btree_set(0_u64..400, 0..200),
            words in prop::sample::select(vec![1_usize, 2, 16]),
            overlap in prop::sample::select(vec![Overlap::Jaccard, Overlap::Revision]),
            least in prop::sample::select(vec!["0.1", "0.5", "0.8", "1"]),
        ) {
            let b = &a ^ &flips;
            // Some of those that only one of them has, nobody else has.
            let own = |feature: u64| feature.is_multiple_of(2) && flips.contains(&feature);
            let rule = Rule::new(Features::Chars(2), overlap, least.parse().unwrap());
            let (a, b) = (set(a.iter().copied(), own), set(b.iter().copied(), own));
            let matches = rule.matches(Packed(&a.0), Packed(&b.0)).is_some();
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
            let enough = rule.measure(Kind::Long).1.least_shared(
                Overlap::Jaccard,
                features as usize,
                features as usize,
            );
            let sets: Vec<_> = (0..40).map(|at| set(at * features..(at + 1) * features, |_| false)).collect();
            let alike = sets[1..].iter().filter(|other| may_match(&rule, &sets[0], other, words)).count();
            let case = format!("{features} {least} {words}: {alike}");
            assert_eq!(alike == 0, tells(features as usize, enough, words), "{case}");
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
