//! The place of a document in keep order, with all else that a round of a search knows of it.

use super::template_numbers::TemplateNumbers;
use crate::record::{DocId, Record};
use crate::sets::similarity::Similarity;
use crate::sets::{Rule, SetKind, Sets};

/// Place of a document in keep order: the least comes first.
pub type Rank = (u64, DocId);

/// A document that takes part in a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeepPlace {
    /// Similarity to the document that stays in its place, if it goes by the matches that were found so far.
    pub gone: Option<Similarity>,
    /// Whether it was compared in the last round with all before it that stayed then.
    pub settled: bool,
    /// Number of rounds in which it took part and was not settled afterwards, this one included; 0 if it takes no part yet.
    pub tries: u16,
    /// Its place in keep order.
    pub rank: Rank,
    /// Sketch of its set.
    pub sketch: SetSketch,
    /// Its numbers, if others must share them.
    pub numbers: TemplateNumbers,
}

/// Number of documents that a document asks at most in the first round in which it takes part.
const FEW: usize = 4;

impl KeepPlace {
    /// Returns the place of a document that takes no part yet.
    pub fn new(rank: Rank, sets: &Sets, rule: &Rule) -> Self {
        let read = sets.read.as_ref().zip(rule.reader.as_ref());
        let numbers = read.filter(|(text, reader)| reader.decides_by_numbers(text)).map(|(text, _)| {
            let mut numbers: Vec<u64> = text.numbers().collect();
            numbers.sort_unstable();
            TemplateNumbers::new(&numbers)
        });
        let numbers = numbers.unwrap_or_default();
        KeepPlace { rank, sketch: SetSketch::new(sets), numbers, ..KeepPlace::default() }
    }

    /// Whether it stays, by the matches that were found so far.
    pub fn stays(&self) -> bool {
        self.gone.is_none()
    }

    /// Whether it takes part in the rounds by now.
    pub fn takes_part(&self) -> bool {
        self.tries > 0
    }

    /// Returns the largest number of documents that it asks: eight times as many in each round in which it is not settled.
    pub fn most(&self) -> usize {
        self.tries.checked_sub(1).map_or(0, |before| FEW << (3 * before).min(40))
    }

    /// Number of words of a sketch.
    pub(super) const WORDS: usize = WORDS;

    /// Returns in how many bits the sketches of two documents may differ that match by this rule, where a document that goes is as
    /// similar to the other one as to that for which it goes; `None` if they cannot match by their sizes, and any number if
    /// their sketches tell nothing. Cost: 10 ns.
    pub(super) fn largest_distance(&self, other: &KeepPlace, rule: &Rule) -> Option<u32> {
        let (one, other, found) = (self.sketch, other.sketch, self.gone.max(other.gone));
        let (a, b) = (one.size(), other.size());
        if a == 0 || b == 0 || one.kind() != other.kind() || !rule.compares(one.kind(), a, b) {
            return Some(u32::MAX);
        }
        let (overlap, least) = rule.measure(one.kind());
        let enough = found.map_or(least, |found| found.max(least)).least_shared(overlap, a, b);
        (a.min(b) >= enough).then(|| (a + b - 2 * enough) as u32)
    }
}

/// Number of words of the sketch of a set.
const WORDS: usize = 4;

/// Odd sketch of the set that a document is compared by, of 256 bits, whatever the size of the set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SetSketch {
    /// Size of the set, and in the first bit whether it is the long one. It is 0 if the set is not known.
    set: u64,
    bits: [u64; WORDS],
}

impl SetSketch {
    /// Sketches the long set of a text, or if it has none, the short one. Cost: 1 ns a feature.
    fn new(sets: &Sets) -> Self {
        let kind = if sets.long.is_empty() { SetKind::Short } else { SetKind::Long };
        let mut bits = [0; WORDS];
        for feature in sets.of(kind) {
            bits[(feature >> 6) as usize % WORDS] ^= 1 << (feature & 63);
        }
        SetSketch { set: (kind as u64) << 63 | sets.of(kind).len() as u64, bits }
    }

    /// Returns the sketch without the size of the set.
    pub(super) fn bits(&self) -> [u64; WORDS] {
        self.bits
    }

    /// Returns the size of the set and its kind, as one number.
    pub(super) fn size_and_kind(&self) -> u64 {
        self.set
    }

    fn kind(self) -> SetKind {
        if self.set >> 63 == 0 { SetKind::Short } else { SetKind::Long }
    }

    fn size(self) -> usize {
        (self.set << 1 >> 1) as usize
    }
}

/// Similarity of a document that stays, in a record.
const STAYS: u32 = u32::MAX;

impl Record for KeepPlace {
    const BYTES: usize = (4 + WORDS) * u64::BYTES + TemplateNumbers::BYTES;

    fn write(&self, to: &mut [u8]) {
        let KeepPlace { gone, tries, settled, rank, sketch: SetSketch { set, bits }, numbers } = *self;
        let gone = gone.map_or(STAYS, Similarity::as_millionths);
        let decided = u64::from(tries) << 48 | u64::from(settled) << 32 | u64::from(gone);
        ((decided, rank), ((set, bits), numbers)).write(to);
    }

    fn read(from: &[u8]) -> Self {
        let ((decided, rank), ((set, bits), numbers)): ((u64, Rank), _) = Record::read(from);
        let gone = Some(decided as u32).filter(|gone| *gone != STAYS).map(Similarity::millionths);
        let (tries, settled) = ((decided >> 48) as u16, decided >> 32 & 1 > 0);
        KeepPlace { gone, tries, settled, rank, sketch: SetSketch { set, bits }, numbers }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::leaders::Leaders;
    use super::*;
    use crate::sets::PackedSets;
    use crate::sets::similarity::Overlap;
    use crate::text::features::Features;

    proptest! {
        #[test]
        fn sketches_tell_no_match_apart(
            text in prop::collection::vec(0..40_u8, 1..300),
            flips in prop::collection::vec((0..300_usize, 0..40_u8), 0..60),
            least in prop::sample::select(vec!["0.1", "0.5", "0.8", "1"]),
            gone in prop::option::of((0..=1_000_000_u32).prop_map(Similarity::millionths)),
        ) {
            let mut other = text.clone();
            for (at, to) in flips {
                let length = other.len();
                other[at % length] = to;
            }
            let rule = Rule::new(Features::Chars(2), Overlap::Jaccard, least.parse().unwrap());
            let of = |text: &[u8]| text.iter().map(|&c| char::from(b'0' + c)).collect::<String>();
            let (mut sets, texts) = (Sets::default(), [of(&text), of(&other)]);
            let places = texts.each_ref().map(|text| {
                rule.sets(text, &mut sets);
                let place = KeepPlace { gone, tries: 5, settled: true, ..KeepPlace::new((7, DocId(9)), &sets, &rule) };
                let mut bytes = [0; KeepPlace::BYTES];
                place.write(&mut bytes);
                assert_eq!(KeepPlace::read(&bytes), place);
                place
            });
            let packed = texts.each_ref().map(|text| rule.packed(text));
            let similarity = rule.matches(PackedSets(&packed[0]), PackedSets(&packed[1]));
            let mut leaders = Leaders::new(None);
            leaders.push(3, &places[0]);
            let mut near = Vec::new();
            leaders.near(&places[1], &rule, |leader, _| near.push(leader));
            prop_assert!(near.len() < 2);
            if similarity.is_some() && similarity >= gone {
                prop_assert_eq!(near, [3]);
            }
        }
    }
}
