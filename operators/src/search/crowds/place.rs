//! The place of a document in keep order, with all else that a round of a search knows of it.

use std::array;

use super::template_numbers::TemplateNumbers;
use crate::record::{DocId, Record};
use crate::sets::reading::least_in_common;
use crate::sets::similarity::Similarity;
use crate::sets::{Rule, SetKind, Sets};

/// Place of a document in keep order: the least comes first.
pub type Rank = (u64, DocId);

/// The documents that a document was compared with in the last round in which it took part. Documents are asked in
/// this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// With all before it that stayed.
    Settled,
    /// Not with all before it that stayed. Those after it may have been compared with it.
    Asking,
    /// With nobody: it did not take part, or went by the matches that were found then.
    #[default]
    New,
}

impl Standing {
    /// All standings, each at its own position.
    pub(super) const ALL: [Standing; 3] = [Standing::Settled, Standing::Asking, Standing::New];
}

/// A document that takes part in a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeepPlace {
    /// If it goes by the matches that were found so far: the similarity to the document that stays in its place, and the place of
    /// that one.
    pub gone: Option<(Similarity, Rank)>,
    /// Whom it has been compared with.
    pub standing: Standing,
    /// Whether it stayed before the change that is searched for. No two such documents match.
    pub stayed: bool,
    /// Number of rounds in which it took part and was not settled afterwards, this one included; 0 if it takes no part yet.
    pub tries: u16,
    /// Its place in keep order.
    pub rank: Rank,
    /// Sketch of its set.
    pub sketch: SetSketch,
    /// Its numbers, if others must share them.
    pub numbers: TemplateNumbers,
}

/// Number of rounds in which a document asks only settled ones in a crowded bucket.
pub(super) const SETTLED_FIRST: u16 = 2;
/// Largest numbers of documents that a document asks in the first rounds in which it takes part and is not settled. In later ones
/// it asks all.
const MOST: [usize; 3] = [4, 32, 1024];

impl KeepPlace {
    /// Returns the place of a document that takes no part yet.
    pub fn new(rank: Rank, sets: &Sets, rule: &Rule) -> Self {
        let read = sets.read.as_ref().zip(rule.reader.as_deref());
        let numbers = read.filter(|(text, reader)| reader.decides_by_numbers(text)).map(|(text, _)| {
            let mut numbers: Vec<u64> = text.numbers().collect();
            numbers.sort_unstable();
            TemplateNumbers::new(&numbers)
        });
        let numbers = numbers.unwrap_or_default();
        let sketch = SetSketch::new(sets, read.and_then(|(text, reader)| reader.stretches(text)));
        KeepPlace { rank, sketch, numbers, ..KeepPlace::default() }
    }

    /// Whether it stays, by the matches that were found so far.
    pub fn stays(&self) -> bool {
        self.gone.is_none()
    }

    /// Whether it takes part in the rounds by now.
    pub fn takes_part(&self) -> bool {
        self.tries > 0
    }

    /// Takes part in the next round for the first time.
    pub fn join(&mut self) {
        self.tries = 1;
    }

    /// Notes that it took part in a round. `all`: whether it was compared with all before it that stayed. `in_vain`: whether hardly
    /// any document found a match, so that it is no use to ask settled ones first.
    pub fn took_part(&mut self, all: bool, in_vain: bool) {
        self.standing = if all { Standing::Settled } else { Standing::Asking };
        let tries = if in_vain { self.tries.max(SETTLED_FIRST) } else { self.tries };
        self.tries = tries.saturating_add(u16::from(!all || self.tries == 1));
    }

    /// Notes that it goes: how similar it is to the one that stays in its place, and the place of that one.
    pub fn goes(&mut self, similarity: Similarity, leader: Rank) {
        self.gone = Some((similarity, leader));
        self.standing = Standing::New;
    }

    /// Returns the largest number of documents that it asks.
    pub fn most(&self) -> usize {
        let before = usize::from(self.tries).checked_sub(1);
        before.map_or(0, |before| MOST.get(before).copied().unwrap_or(usize::MAX))
    }

    /// Number of words of a folded sketch.
    pub(super) const FOLDED_WORDS: usize = WORDS / 2;

    /// Returns in how many bits the sketches of this and another document may differ, if the two match by this rule and are at least as
    /// similar as this one and the document for which it goes. For `None` see `largest_distance`.
    pub(super) fn distance_to_match(&self, other: &KeepPlace, rule: &Rule) -> Option<u32> {
        self.largest_distance(other, rule, self.gone.map(|(found, _)| found))
    }

    /// Whether this document, which goes, may do so for another one that stays, by the distance of their sketches. A document goes for
    /// the most similar one, and of equal ones for the first in keep order.
    pub(super) fn may_go_for(&self, other: &KeepPlace, apart: u32, rule: &Rule) -> bool {
        let Some((found, known)) = self.gone.filter(|(_, known)| *known <= other.rank) else { return true };
        if known == other.rank {
            return false;
        }
        let more = Similarity::millionths(found.as_millionths() + 1);
        self.largest_distance(other, rule, Some(more)).is_some_and(|most| apart <= most)
    }

    /// Returns in how many bits the sketches of two documents may differ if the documents match by this rule with at least this
    /// similarity. Returns `None` if their sizes rule a match out, and `u32::MAX` if their sketches tell nothing. Cost: 10 ns.
    fn largest_distance(&self, other: &KeepPlace, rule: &Rule, found: Option<Similarity>) -> Option<u32> {
        let (one, other) = (self.sketch, other.sketch);
        let (a, b) = (one.size(), other.size());
        let enough = match one.sketched() {
            _ if a == 0 || b == 0 || one.sketched() != other.sketched() => return Some(u32::MAX),
            SketchSort::Stretches => least_in_common([a, b]),
            SketchSort::Set(kind) if rule.compares(kind, a, b) => {
                let (overlap, least) = rule.measure(kind);
                found.map_or(least, |found| found.max(least)).least_shared(overlap, a, b)
            }
            SketchSort::Set(_) => return Some(u32::MAX),
        };
        (a.min(b) >= enough).then(|| (a + b - 2 * enough) as u32)
    }
}

/// Number of words of the sketch of a set.
const WORDS: usize = 8;
/// Position of the bits that say what is sketched.
const KIND_SHIFT: u32 = 62;

/// Odd sketch of the set that a document is compared by, of 512 bits, whatever the size of the set. Its two halves, one on the other, are
/// the sketch of 256 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SetSketch {
    /// Size of what is sketched, and in the first two bits what that is. It is 0 if the set is not known.
    set: u64,
    bits: [u64; WORDS],
}

/// Part of a text that is sketched.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SketchSort {
    Set(SetKind),
    /// Its stretches of three units, each as often as it stands there.
    Stretches,
}

impl SetSketch {
    /// Sketches the stretches of a text, if they decide; or its long set, or if it has none, the short one. Cost: 1 ns a feature.
    fn new(sets: &Sets, stretches: Option<impl Iterator<Item = u64>>) -> Self {
        let mut bits = [0; WORDS];
        let mut size = 0;
        let mut add = |feature: u64| {
            bits[(feature >> 6) as usize % WORDS] ^= 1 << (feature & 63);
            size += 1;
        };
        let sketched = match stretches {
            Some(stretches) => {
                stretches.for_each(&mut add);
                2
            }
            None => {
                let kind = if sets.long.is_empty() { SetKind::Short } else { SetKind::Long };
                sets.of(kind).iter().copied().for_each(&mut add);
                kind as u64
            }
        };
        SetSketch { set: sketched << KIND_SHIFT | size, bits }
    }

    /// Returns the sketch of half as many bits, without the size of the set.
    pub(super) fn folded(&self) -> [u64; WORDS / 2] {
        array::from_fn(|word| self.bits[word] ^ self.bits[word + WORDS / 2])
    }

    /// Returns in how many bits two sketches differ, which is at least what their folded ones differ in.
    pub(super) fn apart(&self, other: &SetSketch) -> u32 {
        self.bits.iter().zip(&other.bits).map(|(one, other)| (one ^ other).count_ones()).sum()
    }

    /// Returns the size of the set and its kind, as one number.
    pub(super) fn size_and_kind(&self) -> u64 {
        self.set
    }

    fn sketched(self) -> SketchSort {
        match self.set >> KIND_SHIFT {
            0 => SketchSort::Set(SetKind::Short),
            1 => SketchSort::Set(SetKind::Long),
            _ => SketchSort::Stretches,
        }
    }

    fn size(self) -> usize {
        (self.set & ((1 << KIND_SHIFT) - 1)) as usize
    }
}

/// Similarity of a document that stays, in a record.
const STAYS: u32 = u32::MAX;

impl Record for KeepPlace {
    const BYTES: usize = (6 + WORDS) * u64::BYTES + TemplateNumbers::BYTES;

    fn write(&self, to: &mut [u8]) {
        let KeepPlace { gone, tries, standing, stayed, rank, sketch: SetSketch { set, bits }, numbers } =
            *self;
        let (gone, known_place) =
            gone.map_or((STAYS, Rank::default()), |(gone, place)| (gone.as_millionths(), place));
        let known = u64::from(stayed) << 34 | (standing as u64) << 32;
        let decided = u64::from(tries) << 48 | known | u64::from(gone);
        ((decided, (rank, known_place)), ((set, bits), numbers)).write(to);
    }

    fn read(from: &[u8]) -> Self {
        let ((decided, (rank, known_place)), ((set, bits), numbers)): ((u64, (Rank, Rank)), _) =
            Record::read(from);
        let gone = Some(decided as u32).filter(|gone| *gone != STAYS);
        let gone = gone.map(|gone| (Similarity::millionths(gone), known_place));
        let standing = Standing::ALL.get((decided >> 32 & 3) as usize).copied().unwrap_or_default();
        let tries = (decided >> 48) as u16;
        let stayed = decided >> 34 & 1 > 0;
        KeepPlace { gone, tries, standing, stayed, rank, sketch: SetSketch { set, bits }, numbers }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::super::leaders::Leaders;
    use super::super::met_before::Before;
    use super::*;
    use crate::sets::PackedSets;
    use crate::sets::reading::PairReader;
    use crate::sets::similarity::Overlap;
    use crate::text::features::Features;

    /// Spells a number in letters.
    fn spelled(number: u16) -> String {
        [100, 10, 1].map(|of| char::from(b'a' + (number / of % 10) as u8)).iter().collect()
    }

    /// Whether the second of two texts would ask the first.
    fn asks(places: &[KeepPlace; 2], rule: &Rule) -> bool {
        let mut leaders = Leaders::new(None);
        leaders.push(3, &places[0], Before::default());
        let mut near = Vec::new();
        leaders.near((&places[1], Before::default()), rule, |leader, _| near.push(leader));
        assert!(near.is_empty() || near == [3]);
        !near.is_empty()
    }

    proptest! {
        #[test]
        fn sketches_rule_out_no_match(
            text in prop::collection::vec(0..40_u8, 1..300),
            flips in prop::collection::vec((0..300_usize, 0..40_u8), 0..60),
            least in prop::sample::select(vec!["0.1", "0.5", "0.8", "1"]),
            gone in prop::option::of(((0..=1_000_000_u32).prop_map(Similarity::millionths), (0..3_u64, (0..20_u64).prop_map(DocId)))),
            standing in prop::sample::select(Standing::ALL.to_vec()),
        ) {
            let mut other = text.clone();
            for (at, to) in flips {
                let length = other.len();
                other[at % length] = to;
            }
            let rule = Rule::new(Features::Chars(2), Overlap::Jaccard, least.parse().unwrap());
            let of = |text: &[u8]| text.iter().map(|&c| char::from(b'0' + c)).collect::<String>();
            let mut sets = Sets::default();
            let texts = [of(&text), of(&other)];
            let places = texts.each_ref().map(|text| {
                rule.sets(text, &mut sets);
                let place = KeepPlace { gone, standing, tries: 5, ..KeepPlace::new((1, DocId(9)), &sets, &rule) };
                let mut bytes = [0; KeepPlace::BYTES];
                place.write(&mut bytes);
                assert_eq!(KeepPlace::read(&bytes), place);
                place
            });
            let packed = texts.each_ref().map(|text| rule.packed(text));
            let similarity = rule.matches(PackedSets(&packed[0]), PackedSets(&packed[1]));
            let known = gone.map(|(found, _)| found);
            prop_assert!(asks(&places, &rule) || similarity.is_none() || similarity < known);

            // Of equally similar ones the first in keep order is named.
            let apart = places[0].sketch.apart(&places[1].sketch);
            let is_known = gone.is_some_and(|(_, leader)| leader == places[0].rank);
            let is_named = !is_known && gone.is_none_or(|(found, leader)| {
                similarity.is_some_and(|similarity| similarity > found || similarity == found && places[0].rank < leader)
            });
            prop_assert!(!is_named || places[1].may_go_for(&places[0], apart, &rule));
        }

        #[test]
        fn no_equally_similar_one_that_comes_later_is_asked(at in 0..60_usize, other in 0..60_usize) {
            prop_assume!(at.abs_diff(other) > 1);
            let rule = Rule::new(Features::Chars(2), Overlap::Jaccard, "0.5".parse().unwrap());
            let mut sets = Sets::default();
            let text = (0..60).map(|number| char::from_u32(0x4e00 + number).unwrap());
            let [one, two] = [at, other].map(|at| {
                let changed = text.clone().enumerate().map(|(place, c)| if place == at { '新' } else { c });
                changed.collect::<String>()
            });
            let similarity = rule.matches(PackedSets(&rule.packed(&one)), PackedSets(&rule.packed(&two))).unwrap();
            let mut place = |text: &str, rank| {
                rule.sets(text, &mut sets);
                KeepPlace::new((rank, DocId(9)), &sets, &rule)
            };
            let (first, leader, mut asker) = (place(&one, 1), place(&one, 3), place(&two, 9));
            asker.goes(similarity, (2, DocId(0)));
            let apart = leader.sketch.apart(&asker.sketch);
            prop_assume!(apart == 8 || at % 59 == 0 || other % 59 == 0);
            prop_assert!(asker.may_go_for(&first, apart, &rule));
            prop_assert!(apart < 6 || !asker.may_go_for(&leader, apart, &rule));
        }

        #[test]
        fn stretches_rule_out_no_match(
            text in prop::collection::vec(0..400_u16, 60..200),
            edits in prop::collection::vec((0..200_usize, 0..400_u16, 0..3_u8), 0..30),
            swap in prop::option::of((0..200_usize, 0..200_usize)),
        ) {
            let mut other = text.clone();
            for (at, to, edit) in edits {
                let at = at % other.len();
                match edit {
                    0 => other[at] = to,
                    1 => other.insert(at, to),
                    _ => drop(other.remove(at)),
                }
            }
            if let Some((one, two)) = swap {
                let length = other.len();
                other.rotate_left(one % length);
                other[..length / 2].rotate_left(two % (length / 2));
            }
            let reader = Some(Arc::new(PairReader::of_everything()));
            let rule = Rule { reader, ..Rule::new(Features::Chars(5), Overlap::Corrected, "0.01".parse().unwrap()) };
            let of = |text: &[u16]| text.iter().map(|word| format!("w{} ", spelled(*word))).collect::<String>();
            let mut sets = Sets::default();
            let texts = [of(&text), of(&other)];
            let places = texts.each_ref().map(|text| {
                rule.sets(text, &mut sets);
                KeepPlace::new((7, DocId(9)), &sets, &rule)
            });
            let packed = texts.each_ref().map(|text| rule.packed(text));
            let matches = rule.matches(PackedSets(&packed[0]), PackedSets(&packed[1])).is_some();
            prop_assert!(asks(&places, &rule) || !matches);
        }
    }
}
