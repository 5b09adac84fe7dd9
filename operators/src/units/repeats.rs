//! Repeated units: lines, sentences or paragraphs that occur more than once in a corpus, and which of them go.

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::hash::Identity;
use crate::record::{DocId, Record};
use crate::sets::similarity::Similarity;
use crate::spill::{MergeCursor, Sorted};

/// Occurrence of a unit in a document. The order is that of the identities, and within one of them that of the corpus.
///
/// 44 bytes on disk, 48 in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnitOccurrence {
    /// Hash of the text of the unit.
    pub identity: Identity,
    /// Place of the unit.
    pub place: UnitPlace,
    /// Length of the unit with the characters that end it, in bytes.
    pub bytes: u32,
    /// Similarity to the first occurrence of the identity. It is less than one only where a near unit has taken the identity of another.
    pub similarity: Similarity,
}

/// Place of a unit in the corpus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnitPlace {
    /// Document that has the unit.
    pub doc: DocId,
    /// Offset of the unit in the text of the document, in bytes.
    pub start: u32,
    /// Number by which the caller finds the name of the document again. It is the same for all units of a document.
    pub name: u64,
}

/// A unit that goes, and the occurrence that stays. The order is that of the corpus.
///
/// 48 bytes on disk, 64 in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RepeatedUnit {
    /// Place of the unit that goes.
    pub place: UnitPlace,
    /// Its length, in bytes.
    pub bytes: u32,
    /// Place of the occurrence that stays, if one does.
    pub kept: Option<UnitPlace>,
    /// Similarity to the first occurrence, which is known even if no occurrence stays.
    pub similarity: Similarity,
}

/// The occurrence of a repeated unit that stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum KeptUnit {
    /// The first of the corpus.
    #[default]
    First,
    /// None of them.
    None,
}

/// Calls `each` with every unit that goes: those of an identity that occurs at least `least` times. Less than two times
/// counts as two.
///
/// Example, with units named by their identities and `least` of 2:
///
/// ```text
/// document 0    A B A C
/// document 1    B D
/// sorted        A0 A0 B0 B1 C0 D1
/// first stays   A0 (second), B1 go
/// none stays    A0, A0, B0, B1 go
/// ```
///
/// Memory: `least` occurrences, and a frame of each run of the sort.
///
/// # Errors
/// Those of reading what was spilled.
pub fn each_repeat(
    units: Sorted<UnitOccurrence>,
    least: u64,
    kept: KeptUnit,
    mut each: impl FnMut(RepeatedUnit),
) -> Result<(), Error> {
    let mut cursor = MergeCursor::new(units);
    let mut first = None::<UnitOccurrence>;
    let mut count = 0;
    // Occurrences before the one that is enough.
    let mut waiting = Vec::new();
    while let Some(unit) = cursor.next_if(|_| true)? {
        let first = match first.filter(|first| first.identity == unit.identity) {
            Some(first) => first,
            None => {
                count = 0;
                waiting.clear();
                *first.insert(unit)
            }
        };
        count += 1;
        waiting.push(unit);
        if count < least.max(2) {
            continue;
        }
        for UnitOccurrence { place, bytes, similarity, .. } in waiting.drain(..) {
            match kept {
                KeptUnit::None => each(RepeatedUnit { place, bytes, kept: None, similarity }),
                KeptUnit::First if place == first.place => {}
                KeptUnit::First => each(RepeatedUnit { place, bytes, kept: Some(first.place), similarity }),
            }
        }
    }
    Ok(())
}

impl Record for UnitPlace {
    const BYTES: usize = 20;

    fn write(&self, to: &mut [u8]) {
        let (start, rest) = to.split_at_mut(4);
        start.copy_from_slice(&self.start.to_le_bytes());
        (self.doc, self.name).write(rest);
    }

    fn read(from: &[u8]) -> Self {
        let (start, rest) = from.split_at(4);
        let (doc, name) = Record::read(rest);
        UnitPlace { doc, start: word(start), name }
    }
}

impl Record for UnitOccurrence {
    const BYTES: usize = 16 + UnitPlace::BYTES + 4 + Similarity::BYTES;

    fn write(&self, to: &mut [u8]) {
        let (bytes, rest) = to.split_at_mut(4);
        bytes.copy_from_slice(&self.bytes.to_le_bytes());
        ((self.identity, self.place), self.similarity).write(rest);
    }

    fn read(from: &[u8]) -> Self {
        let (bytes, rest) = from.split_at(4);
        let ((identity, place), similarity) = Record::read(rest);
        UnitOccurrence { identity, place, bytes: word(bytes), similarity }
    }
}

/// Offset that says that no occurrence stays. A text is shorter.
const NOWHERE: u32 = u32::MAX;

impl Record for RepeatedUnit {
    const BYTES: usize = 4 + 2 * UnitPlace::BYTES + Similarity::BYTES;

    fn write(&self, to: &mut [u8]) {
        let (bytes, rest) = to.split_at_mut(4);
        bytes.copy_from_slice(&self.bytes.to_le_bytes());
        let kept = self.kept.unwrap_or(UnitPlace { start: NOWHERE, ..UnitPlace::default() });
        ((self.place, kept), self.similarity).write(rest);
    }

    fn read(from: &[u8]) -> Self {
        let (bytes, rest) = from.split_at(4);
        let ((place, kept), similarity) = <((UnitPlace, UnitPlace), Similarity)>::read(rest);
        let kept = Some(kept).filter(|kept| kept.start != NOWHERE);
        RepeatedUnit { place, bytes: word(bytes), kept, similarity }
    }
}

fn word(bytes: &[u8]) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(bytes);
    u32::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::spill::{ExternalSort, SpillBudget};

    fn found(texts: &[Vec<u8>], least: u64, kept: KeptUnit, budget: Option<usize>) -> Vec<RepeatedUnit> {
        let spill = SpillBudget::new(&std::env::temp_dir(), budget);
        let (mut units, mut repeats) = (ExternalSort::new(&spill), ExternalSort::new(&spill));
        for (doc, text) in (0..).zip(texts) {
            for (start, &unit) in (0..).zip(text) {
                let place = UnitPlace { doc: DocId(doc), start, name: doc + 7 };
                units.push(UnitOccurrence {
                    identity: (u64::from(unit), 3),
                    place,
                    bytes: 1,
                    similarity: Similarity::ONE,
                });
            }
        }
        each_repeat(units.finish().unwrap(), least, kept, |repeat| repeats.push(repeat)).unwrap();
        let mut found = Vec::new();
        repeats.finish().unwrap().each(|repeat| found.push(repeat)).unwrap();
        found
    }

    proptest! {
        #[test]
        fn units_go_as_counting_them_says(
            texts in vec(vec(0_u8..12, 0..8), 0..12),
            least in 2_u64..5,
            keeps in any::<bool>(),
            budget in prop_oneof![Just(None), Just(Some(300))],
        ) {
            let kept = if keeps { KeptUnit::First } else { KeptUnit::None };
            let mut places = BTreeMap::<u8, Vec<UnitPlace>>::new();
            for (doc, text) in (0..).zip(&texts) {
                for (start, &unit) in (0..).zip(text) {
                    places.entry(unit).or_default().push(UnitPlace { doc: DocId(doc), start, name: doc + 7 });
                }
            }
            places.retain(|_, places| places.len() as u64 >= least);
            let mut expected: Vec<RepeatedUnit> = places
                .values()
                .flat_map(|places| {
                    let stays = keeps.then_some(places[0]);
                    let goes = places[usize::from(keeps)..].iter();
                    goes.map(move |&place| RepeatedUnit { place, bytes: 1, kept: stays, similarity: Similarity::ONE })
                })
                .collect();
            expected.sort();
            prop_assert_eq!(found(&texts, least, kept, budget), expected);
        }
    }
}
