//! The sets of features that texts are compared by, and when two texts match.

pub(crate) mod feature_counts;
pub mod minhash;
pub(crate) mod odd_sketch;
pub(crate) mod prefix;
pub(crate) mod similarity;

use self::similarity::{Overlap, Similarity, shared, shared_at_least};
use crate::text::features::Features;

/// So much of a text is looked at first, to tell whether it is short; if that does not tell, twice as much.
const HEAD_BYTES: usize = 192;

/// When two texts match: by their features, short texts perhaps by other features than long ones.
#[derive(Clone)]
pub struct Rule {
    /// How short texts are compared; `None`: as long ones are.
    pub short: Option<Short>,
    /// The features of long texts.
    pub features: Features,
    /// How those are compared.
    pub overlap: Overlap,
    /// The least similarity of a match.
    pub least: Similarity,
}

/// How two texts are compared if one of them is short: by the Jaccard similarity of these features.
#[derive(Clone)]
pub struct Short {
    /// The features.
    pub features: Features,
    /// A text with fewer of these features is short.
    pub below: usize,
    /// The least similarity of a match.
    pub least: Similarity,
}

/// What a text is compared by; each set is sorted, and empty where the text is not compared by it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sets {
    /// By [`Rule::short`].
    pub short: Vec<u64>,
    /// By [`Rule::features`].
    pub long: Vec<u64>,
}

/// Which of the [`Sets`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// [`Sets::short`].
    Short,
    /// [`Sets::long`].
    Long,
}

/// Sets on their way to be compared, in one list of numbers: how many short ones there are, the short and the long ones.
#[derive(Clone, Copy, Debug)]
pub struct Packed<'a>(pub &'a [u64]);

impl Rule {
    /// A rule of one kind of features for all texts.
    pub fn new(features: Features, overlap: Overlap, least: Similarity) -> Self {
        Rule { short: None, features, overlap, least }
    }

    /// Replaces `sets` by those of a cleaned text; at least one is not empty.
    ///
    /// A text that is not short has a short set nevertheless if a short text could match it.
    pub fn sets(&self, text: &str, sets: &mut Sets) {
        self.unsorted(text, sets);
        sets.sort();
    }

    /// The same, but the features of a long text are in its order, repeated ones repeatedly, until
    /// [`Sets::sort`].
    pub fn unsorted(&self, text: &str, sets: &mut Sets) {
        sets.short.clear();
        sets.long.clear();
        let Some(short) = &self.short else { return self.features.all(text, &mut sets.long) };
        let no_short_one_matches = |size: usize| short.least.least_shared_of_smaller(size) >= short.below;
        let mut bytes = HEAD_BYTES;
        let far_too_long = loop {
            let head = &text[..text.floor_char_boundary(bytes)];
            short.features.set(head, &mut sets.short);
            // But for the feature at its end, what the head has the text has.
            let cut = usize::from(head.len() < text.len());
            let far_too_long = no_short_one_matches(sets.short.len() - cut);
            if far_too_long || cut == 0 {
                break far_too_long;
            }
            bytes *= 2;
        };
        if sets.short.len() >= short.below {
            self.features.all(text, &mut sets.long);
        }
        if far_too_long {
            sets.short.clear();
        }
    }

    /// How sets of a kind are compared, and the least similarity of a match.
    pub fn measure(&self, kind: Kind) -> (Overlap, Similarity) {
        match (kind, &self.short) {
            (Kind::Short, Some(short)) => (Overlap::Jaccard, short.least),
            _ => (self.overlap, self.least),
        }
    }

    /// Whether texts with sets of these sizes are compared by this kind of sets.
    pub fn compares(&self, kind: Kind, a: usize, b: usize) -> bool {
        match (kind, &self.short) {
            (Kind::Short, Some(short)) => a.min(b) < short.below,
            _ => true,
        }
    }

    /// The same rule with thresholds that every pair meets, so that [`Rule::sets`] leaves out no set.
    pub fn without_threshold(&self) -> Self {
        let mut rule = self.clone();
        rule.least = Similarity::millionths(0);
        if let Some(short) = &mut rule.short {
            short.least = rule.least;
        }
        rule
    }

    /// How alike two texts are if they match.
    pub fn matches(&self, a: Packed, b: Packed) -> Option<Similarity> {
        let kind = compared_by(|kind| a.features(kind).len().min(b.features(kind).len()))?;
        let (overlap, least) = self.measure(kind);
        let (a, b) = (a.features(kind), b.features(kind));
        let enough = least.least_shared(overlap, a.len(), b.len());
        let shared = shared_at_least(a, b, enough)?;
        let similarity = overlap.similarity(shared, a.len(), b.len());
        (similarity >= least).then_some(similarity)
    }

    /// How alike two texts are, and by which sets; `None` if one is short and the other far too long to match it.
    pub fn similarity(&self, a: Packed, b: Packed) -> Option<(Kind, Similarity)> {
        let kind = compared_by(|kind| a.features(kind).len().min(b.features(kind).len()))?;
        let (a, b) = (a.features(kind), b.features(kind));
        Some((kind, self.measure(kind).0.similarity(shared(a, b), a.len(), b.len())))
    }
}

/// The sets that two texts are compared by, of which the smaller one has so many features: those of long ones if both
/// have them.
pub(crate) fn compared_by(smaller: impl Fn(Kind) -> usize) -> Option<Kind> {
    [Kind::Long, Kind::Short].into_iter().find(|&kind| smaller(kind) > 0)
}

impl Sets {
    /// The set of a kind.
    pub fn of(&self, kind: Kind) -> &[u64] {
        match kind {
            Kind::Short => &self.short,
            Kind::Long => &self.long,
        }
    }

    /// Sorts the features, and drops repeated ones.
    pub fn sort(&mut self) {
        self.long.sort_unstable();
        self.long.dedup();
    }

    /// The features of both sets.
    pub fn features(&self) -> impl Iterator<Item = u64> + Clone {
        self.short.iter().chain(&self.long).copied()
    }

    /// Appends the sets to `packed`.
    pub fn pack(&self, packed: &mut Vec<u64>) {
        packed.push(self.short.len() as u64);
        packed.extend(&self.short);
        packed.extend(&self.long);
    }
}

impl<'a> Packed<'a> {
    /// The features of a kind, sorted.
    pub fn features(self, kind: Kind) -> &'a [u64] {
        let (short, long) = self.0[1..].split_at(self.0[0] as usize);
        match kind {
            Kind::Short => short,
            Kind::Long => long,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule() -> Rule {
        let short = Short { features: Features::Chars(2), below: 4, least: "0.7".parse().unwrap() };
        Rule { short: Some(short), ..Rule::new(Features::Chars(3), Overlap::Jaccard, "0.8".parse().unwrap()) }
    }

    fn matches(rule: &Rule, a: &str, b: &str) -> Option<Similarity> {
        let packed = [a, b].map(|text| {
            let (mut sets, mut packed) = (Sets::default(), Vec::new());
            rule.sets(text, &mut sets);
            sets.pack(&mut packed);
            packed
        });
        rule.matches(Packed(&packed[0]), Packed(&packed[1]))
    }

    #[test]
    fn a_text_that_is_not_short_has_a_short_set_only_if_a_short_one_could_match_it() {
        let mut sets = Sets::default();
        for (text, short, long) in [("a", 1, 0), ("abcd", 3, 0), ("abcde", 4, 3), ("abcdef", 0, 4)] {
            rule().sets(text, &mut sets);
            assert_eq!((sets.short.len(), sets.long.len()), (short, long), "{text}");
        }
    }

    #[test]
    fn a_pair_is_compared_as_short_when_one_of_it_is() {
        assert_eq!(matches(&rule(), "abcd", "abcde"), Some(Similarity::ratio(3, 4)));
        assert_eq!(matches(&rule(), "abcde", "bcdef"), None);
        assert_eq!(matches(&rule(), "abcdefg", "abcdefg"), Some(Similarity::ONE));
        assert_eq!(matches(&rule(), "abc", "abcdefghi"), None);
    }
}
