//! Sets of features that texts are compared by, and the rule by which two texts match.
//!
//! A rule may also read two texts side by side (`reading`). Here is also what searches need of sets: counts of features,
//! MinHash signatures, and odd sketches (`odd_sketch.rs`, `small_sketch.rs`), which drop most candidates that cannot
//! match. This room uses `text`, `hash`, `record` and `spill`; `search`, `method`, `evaluate`, `flow` and the jobs use it.

pub(crate) mod feature_counts;
pub mod minhash;
pub(crate) mod odd_sketch;
pub(crate) mod packed_match;
pub mod reading;
pub(crate) mod similarity;
pub mod small_sketch;

use std::sync::Arc;

use self::reading::{NumbersOfPair, PackedText, PairReader, ReadText, TellingDifference};
use self::similarity::{Overlap, Similarity, shared, shared_at_least};
use crate::text::features::Features;

/// Number of bytes of a text that are examined first, to find out whether it is short. If they do not decide
/// it, twice as many are examined.
const HEAD_BYTES: usize = 256;

/// Rule by which two texts match: by their features, where short texts may be compared by other features than
/// long ones.
#[derive(Clone)]
pub struct Rule {
    /// Comparison of short texts; `None` if they are compared as long ones.
    pub short: Option<Short>,
    /// Features of long texts.
    pub features: Features,
    /// Measure by which long texts are compared.
    pub overlap: Overlap,
    /// Least similarity of a match of long texts.
    pub least: Similarity,
    /// Reads what differs. Numbers count more than words. Two texts of one template do not match, however similar they
    /// are, and neither do two texts of which one says something that the other does not. `None` if features alone
    /// decide.
    pub reader: Option<Arc<PairReader>>,
}

/// Comparison of two texts of which at least one is short: by these features.
#[derive(Clone)]
pub struct Short {
    /// Features of short texts, of the same part of a text as those of long ones.
    pub features: Features,
    /// Measure by which they are compared.
    pub overlap: Overlap,
    /// Size of the set of features below which a text is short.
    pub below: usize,
    /// Least similarity of a match.
    pub least: Similarity,
}

/// Features that a text is compared by. Each set of features is sorted, and is empty if the text is not compared by it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sets {
    /// Features of [`Rule::short`].
    pub short: Vec<u64>,
    /// Features of [`Rule::features`].
    pub long: Vec<u64>,
    /// The text as it is read, if the rule has a reader.
    pub read: Option<ReadText>,
}

/// Names one of the [`Sets`] of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SetKind {
    /// The set [`Sets::short`].
    Short,
    /// The set [`Sets::long`].
    Long,
}

/// Sets on their way to be compared, in one list: how many short features there are, how many numbers, how many words the
/// text takes as it is read, then the short features, the numbers, the text, the long features.
#[derive(Clone, Copy, Debug)]
pub struct PackedSets<'a>(pub &'a [u64]);

impl Rule {
    /// Makes a rule with one kind of features for all texts.
    pub fn new(features: Features, overlap: Overlap, least: Similarity) -> Self {
        Rule { short: None, features, overlap, least, reader: None }
    }

    /// Replaces `sets` by the sets of a cleaned text, of which at least one is not empty.
    ///
    /// A text that is not short has a short set too, if a short text could match it.
    pub fn sets(&self, text: &str, sets: &mut Sets) {
        self.unsorted(text, sets);
        sets.sort();
        match &self.reader {
            Some(_) => sets.read.get_or_insert_default().read(text),
            None => sets.read = None,
        }
    }

    /// Replaces `sets` by the sets of a cleaned text like [`Rule::sets`], but until [`Sets::sort`] the
    /// features of a long text are in the order of the text and with repetitions.
    pub fn unsorted(&self, text: &str, sets: &mut Sets) {
        sets.short.clear();
        sets.long.clear();
        let Some(short) = &self.short else { return self.features.all(text, &mut sets.long) };
        let no_short_one_matches =
            |size: usize| short.least.least_shared_of_larger(short.overlap, size) >= short.below;
        let part = self.features.part(text);
        let mut bytes = HEAD_BYTES;
        let far_too_long = loop {
            let head = &part[..part.floor_char_boundary(bytes)];
            let whole = head.len() == part.len();
            short.features.all_of_part(head, if whole { text } else { "" }, &mut sets.short);
            // Except for the feature at its end, the text has all features of its head.
            let cut = if whole { 0 } else { 1 };
            let mut far_too_long = no_short_one_matches(distinct_at_least(&sets.short).saturating_sub(cut));
            if !far_too_long {
                sort_once(&mut sets.short);
                far_too_long = no_short_one_matches(sets.short.len().saturating_sub(cut));
            }
            if far_too_long || whole {
                break far_too_long;
            }
            bytes *= 2;
        };
        if sets.short.len() >= short.below {
            self.features.all_of_part(&part, text, &mut sets.long);
        }
        if far_too_long {
            sets.short.clear();
        }
    }

    /// Returns the sets of a cleaned text, packed as [`PackedSets`] reads them.
    pub fn packed(&self, text: &str) -> Vec<u64> {
        let (mut sets, mut packed) = (Sets::default(), Vec::new());
        self.sets(text, &mut sets);
        sets.pack(&mut packed);
        packed
    }

    /// Returns the measure by which sets of a kind are compared, and the least similarity of a match.
    pub fn measure(&self, kind: SetKind) -> (Overlap, Similarity) {
        match (kind, &self.short) {
            (SetKind::Short, Some(short)) => (short.overlap, short.least),
            _ => (self.overlap, self.least),
        }
    }

    /// Whether texts whose sets of this kind have these sizes are compared by them.
    pub fn compares(&self, kind: SetKind, a: usize, b: usize) -> bool {
        match (kind, &self.short) {
            (SetKind::Short, Some(short)) => a.min(b) < short.below,
            _ => true,
        }
    }

    /// Whether no measure of the rule bounds what the larger one of two sets must share, so that the exact join
    /// needs [`LookupMarks`](crate::flow::LookupMarks).
    pub fn needs_lookup_marks(&self) -> bool {
        !self.overlap.bounds_larger()
    }

    /// Returns the same rule with thresholds that every pair reaches, so that [`Rule::sets`] leaves out no
    /// set.
    pub fn without_threshold(&self) -> Self {
        let mut rule = self.clone();
        rule.least = Similarity::millionths(0);
        if let Some(short) = &mut rule.short {
            short.least = rule.least;
        }
        rule
    }

    /// Returns the similarity of two texts, if they match: they are similar enough, and nothing tells them apart.
    pub fn matches(&self, a: PackedSets, b: PackedSets) -> Option<Similarity> {
        let kind = compared_by(|kind| a.features(kind).len().min(b.features(kind).len()))?;
        let (overlap, least) = self.measure(kind);
        let more = self.numbers(a, b).map_or(0, NumbersOfPair::differing_features);
        let sizes = [a, b].map(|sets| sets.features(kind).len() + more);
        let needed = least.least_shared(overlap, sizes[0], sizes[1]);
        let shared = shared_at_least(a.features(kind), b.features(kind), needed)?;
        let similarity = self.weighed(a, b, overlap.similarity(shared, sizes[0], sizes[1]));
        (similarity >= least && self.apart(a, b, similarity).is_none()).then_some(similarity)
    }

    /// Returns the numbers of two texts, if the rule reads them.
    pub fn numbers(&self, a: PackedSets, b: PackedSets) -> Option<NumbersOfPair> {
        self.reader.as_ref().map(|_| NumbersOfPair::new(a.numbers(), b.numbers()))
    }

    /// Returns the similarity of two texts and the kind of sets it was measured on; `None` if one text is
    /// short and the other far too long to match it.
    pub fn similarity(&self, a: PackedSets, b: PackedSets) -> Option<(SetKind, Similarity)> {
        let kind = compared_by(|kind| a.features(kind).len().min(b.features(kind).len()))?;
        let more = self.numbers(a, b).map_or(0, NumbersOfPair::differing_features);
        let (of_a, of_b) = (a.features(kind), b.features(kind));
        let similarity =
            self.measure(kind).0.similarity(shared(of_a, of_b), of_a.len() + more, of_b.len() + more);
        Some((kind, self.weighed(a, b, similarity)))
    }

    /// Returns a similarity of features, reduced for the stretches that were cut from only one of the two texts. Each of
    /// them counts as a sixteenth of a unit, and all together count as at most a sixteenth of the text.
    fn weighed(&self, a: PackedSets, b: PackedSets, similarity: Similarity) -> Similarity {
        if self.reader.is_none() {
            return similarity;
        }
        let [of_one, units] = a.read().cuts_of_one(b.read());
        if of_one == 0 {
            return similarity;
        }
        let whole = 16 * units.max(1);
        let part = whole + of_one.min(units.max(1));
        Similarity::millionths((u64::from(similarity.as_millionths()) * whole as u64 / part as u64) as u32)
    }

    /// Returns why two texts of this similarity are no match although they share enough features.
    pub fn apart(&self, a: PackedSets, b: PackedSets, similarity: Similarity) -> Option<TellingDifference> {
        let reader = self.reader.as_ref()?;
        reader.difference(a.read(), b.read(), NumbersOfPair::new(a.numbers(), b.numbers()), similarity)
    }
}

/// Sorts features and drops repetitions.
fn sort_once(features: &mut Vec<u64>) {
    features.sort_unstable();
    features.dedup();
}

/// Returns a lower bound of the number of distinct hashes in a list. For 100 distinct hashes it is on average one too low,
/// for 500 thirty. Cost: 1 ns a hash, where sorting them takes 10.
fn distinct_at_least(hashes: &[u64]) -> usize {
    let mut seen = [0_u64; 64];
    hashes.iter().for_each(|hash| seen[(hash >> 6) as usize & 63] |= 1 << (hash & 63));
    seen.iter().map(|bits| bits.count_ones() as usize).sum()
}

/// Returns the kind of sets that two texts are compared by: the long sets if both texts have one. `smaller`:
/// the size of the smaller of the two sets of a kind.
pub(crate) fn compared_by(smaller: impl Fn(SetKind) -> usize) -> Option<SetKind> {
    [SetKind::Long, SetKind::Short].into_iter().find(|&kind| smaller(kind) > 0)
}

impl Sets {
    /// Returns the set of a kind.
    pub fn of(&self, kind: SetKind) -> &[u64] {
        match kind {
            SetKind::Short => &self.short,
            SetKind::Long => &self.long,
        }
    }

    /// Sorts the features and drops repetitions.
    pub fn sort(&mut self) {
        sort_once(&mut self.long);
    }

    /// Returns the sets that are not empty, with their kinds.
    pub fn present(&self) -> impl Iterator<Item = (SetKind, &[u64])> {
        let both = [SetKind::Short, SetKind::Long].map(|kind| (kind, self.of(kind)));
        both.into_iter().filter(|(_, set)| !set.is_empty())
    }

    /// Returns the features of both sets.
    pub fn features(&self) -> impl Iterator<Item = u64> + Clone {
        self.short.iter().chain(&self.long).copied()
    }

    /// Appends the sets to `packed`, in the layout of [`PackedSets`].
    pub fn pack(&self, packed: &mut Vec<u64>) {
        let start = packed.len();
        packed.extend([self.short.len() as u64, 0, 0]);
        packed.extend(&self.short);
        if let Some(read) = &self.read {
            let before = packed.len();
            packed.extend(read.numbers());
            packed[before..].sort_unstable();
            packed[start + 1] = (packed.len() - before) as u64;
            let before = packed.len();
            read.pack(packed);
            packed[start + 2] = (packed.len() - before) as u64;
        }
        packed.extend(&self.long);
    }
}

impl<'a> PackedSets<'a> {
    /// Returns the features of a kind, sorted.
    pub fn features(self, kind: SetKind) -> &'a [u64] {
        match kind {
            SetKind::Short => self.parts()[0],
            SetKind::Long => self.parts()[3],
        }
    }

    fn numbers(self) -> &'a [u64] {
        self.parts()[1]
    }

    /// Returns the text as it is read.
    fn read(self) -> PackedText<'a> {
        PackedText::new(self.parts()[2])
    }

    fn parts(self) -> [&'a [u64]; 4] {
        let (lengths, rest) = self.0.split_at(3);
        let (short, rest) = rest.split_at(lengths[0] as usize);
        let (numbers, rest) = rest.split_at(lengths[1] as usize);
        let (read, long) = rest.split_at(lengths[2] as usize);
        [short, numbers, read, long]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule() -> Rule {
        let short = Short {
            features: Features::Chars(2),
            overlap: Overlap::Jaccard,
            below: 4,
            least: "0.7".parse().unwrap(),
        };
        Rule { short: Some(short), ..Rule::new(Features::Chars(3), Overlap::Jaccard, "0.8".parse().unwrap()) }
    }

    fn matches(rule: &Rule, a: &str, b: &str) -> Option<Similarity> {
        let packed = [a, b].map(|text| rule.packed(text));
        rule.matches(PackedSets(&packed[0]), PackedSets(&packed[1]))
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
