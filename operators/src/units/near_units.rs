//! Units that are near an earlier one, which are counted and cut as if they were that one.

use crate::Error;
use crate::hash::Identity;
use crate::record::Record;
use crate::sets::similarity::Similarity;
use crate::spill::{MergeCursor, Sorted};
use crate::units::{UnitOccurrence, UnitPlace};

/// First occurrence of a unit in the corpus. The order is that of the corpus.
///
/// 44 bytes on disk, 40 in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FirstUnit {
    /// Place of the occurrence.
    pub place: UnitPlace,
    /// Its length with the characters that end it, in bytes.
    pub bytes: u32,
    /// Hash of the text of the unit.
    pub identity: Identity,
}

/// A unit that is near an earlier one which stays. The order is that of the units that go.
///
/// 36 bytes on disk, 40 in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NearUnit {
    /// Hash of the text of the unit that goes.
    pub identity: Identity,
    /// Hash of the text of the one that stays.
    pub kept: Identity,
    /// Similarity of the two.
    pub similarity: Similarity,
}

/// Calls `each` with the first occurrence of every identity. `units`: sorted, so one identity is followed by the next.
///
/// `again` is called with every occurrence, in the same order.
///
/// # Errors
/// Those of reading what was spilled.
pub fn each_first(
    units: Sorted<UnitOccurrence>,
    mut again: impl FnMut(UnitOccurrence),
    mut each: impl FnMut(FirstUnit),
) -> Result<(), Error> {
    let mut cursor = MergeCursor::new(units);
    let mut last = None;
    while let Some(unit) = cursor.next_if(|_| true)? {
        let UnitOccurrence { identity, place, bytes, .. } = unit;
        if last != Some(identity) {
            each(FirstUnit { place, bytes, identity });
            last = Some(identity);
        }
        again(unit);
    }
    Ok(())
}

/// Calls `each` with every occurrence. One of a unit that is near another gets the identity of that other one, and its
/// similarity.
///
/// Example, where B is near A, and named by `near`:
///
/// ```text
/// occurrences    A0 A4 B2 B9 C1
/// called with    A0 A4 A2 A9 C1
/// ```
///
/// `units` and `near` have the identities of one sort, and `near` has each at most once.
///
/// # Errors
/// Those of reading what was spilled.
pub fn each_renamed(
    units: Sorted<UnitOccurrence>,
    near: Sorted<NearUnit>,
    mut each: impl FnMut(UnitOccurrence),
) -> Result<(), Error> {
    let (mut units, mut near) = (MergeCursor::new(units), MergeCursor::new(near));
    let mut last = None::<NearUnit>;
    while let Some(unit) = units.next_if(|_| true)? {
        while let Some(next) = near.next_if(|near| near.identity <= unit.identity)? {
            last = Some(next);
        }
        each(match last.filter(|near| near.identity == unit.identity) {
            Some(NearUnit { kept, similarity, .. }) => UnitOccurrence { identity: kept, similarity, ..unit },
            None => unit,
        });
    }
    Ok(())
}

impl Record for FirstUnit {
    const BYTES: usize = UnitOccurrence::BYTES;

    fn write(&self, to: &mut [u8]) {
        let FirstUnit { place, bytes, identity } = *self;
        UnitOccurrence { identity, place, bytes, similarity: Similarity::ONE }.write(to);
    }

    fn read(from: &[u8]) -> Self {
        let UnitOccurrence { identity, place, bytes, .. } = Record::read(from);
        FirstUnit { place, bytes, identity }
    }
}

impl Record for NearUnit {
    const BYTES: usize = 2 * 16 + Similarity::BYTES;

    fn write(&self, to: &mut [u8]) {
        ((self.identity, self.kept), self.similarity).write(to);
    }

    fn read(from: &[u8]) -> Self {
        let ((identity, kept), similarity) = Record::read(from);
        NearUnit { identity, kept, similarity }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;

    use super::*;
    use crate::record::DocId;
    use crate::spill::{ExternalSort, SpillBudget};

    proptest! {
        #[test]
        fn occurrences_get_the_names_of_what_they_are_near(
            units in vec(0_u64..12, 0..60),
            near in btree_map(4_u64..12, 0_u64..4, 0..6),
            budget in prop_oneof![Just(None), Just(Some(400))],
        ) {
            let spill = SpillBudget::new(&std::env::temp_dir(), budget);
            let (mut sort, mut renames) = (ExternalSort::new(&spill), ExternalSort::new(&spill));
            let occurrence = |doc: u64, unit: u64| UnitOccurrence {
                identity: (unit, 7),
                place: UnitPlace { doc: DocId(doc), start: 3, name: doc + 1 },
                bytes: 5,
                similarity: Similarity::ONE,
            };
            let mut sorted: Vec<_> =
                (0..).zip(&units).map(|(doc, &unit)| occurrence(doc, unit)).collect();
            sorted.iter().rev().for_each(|unit| sort.push(*unit));
            sorted.sort();
            let (mut again, mut firsts) = (ExternalSort::new(&spill), ExternalSort::new(&spill));
            each_first(sort.finish().unwrap(), |unit| again.push(unit), |unit| firsts.push(unit)).unwrap();
            let mut found = Vec::new();
            firsts.finish().unwrap().each(|first| found.push(first)).unwrap();
            let first_of = |(doc, unit): (u64, &u64)| {
                let UnitOccurrence { identity, place, bytes, .. } = occurrence(doc, *unit);
                (!units[..doc as usize].contains(unit)).then_some(FirstUnit { place, bytes, identity })
            };
            prop_assert_eq!(found, (0..).zip(&units).filter_map(first_of).collect::<Vec<_>>());

            let similarity = |unit: u64| Similarity::ratio(unit as usize, 20);
            for (&unit, &kept) in &near {
                renames.push(NearUnit { identity: (unit, 7), kept: (kept, 7), similarity: similarity(unit) });
            }
            let mut renamed = Vec::new();
            each_renamed(again.finish().unwrap(), renames.finish().unwrap(), |unit| renamed.push(unit)).unwrap();
            let expected = sorted.into_iter().map(|unit| match near.get(&unit.identity.0) {
                Some(&kept) => UnitOccurrence {
                    identity: (kept, 7),
                    similarity: similarity(unit.identity.0),
                    ..unit
                },
                None => unit,
            });
            prop_assert_eq!(renamed, expected.collect::<Vec<_>>());
        }
    }
}
