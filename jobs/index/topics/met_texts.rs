//! Texts that a query meets by their keys.

use anyhow::Result;

use super::segment::SegmentCursors;
use super::table::IndexTable;

/// Largest number of keys that a query looks at in one pass of one segment.
const MOST_MET: usize = 1 << 17;

/// A text that may match a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct IndexCandidate {
    /// Number of the text.
    pub text: u64,
    /// Number of bits in which the fingerprints differ; 0 without fingerprints.
    pub distance: u32,
    /// Whether it is known to be the text of the query.
    pub is_equal: bool,
}

/// Texts that have keys of a query, or near ones.
pub(crate) struct MetTexts {
    /// Numbers of those that are equal to its text, in order.
    pub equal: Vec<u64>,
    /// Text, distance, and the place of the key that has met it.
    pub met: Vec<(u64, u32, usize)>,
    /// Whether others were left out.
    pub is_cut: bool,
}

impl MetTexts {
    /// Whether there are more than `most` texts, or very many keys of them. `keys`: the number of keys that have met
    /// them.
    ///
    /// Cost: sorting them, unless there are very many.
    pub fn are_more_than(&mut self, most: usize, keys: usize) -> bool {
        if self.met.len() > most * keys.max(1) {
            return true;
        }
        self.met.sort_unstable();
        self.met.chunk_by(|one, other| one.0 == other.0).nth(most).is_some()
    }
}

/// Calls `meet` with the keys of a segment from the first to the last whose distance is one that counts, and their texts.
/// Returns whether there are more keys than are looked at, and how many were.
pub(super) fn meet_segment(
    cursors: &mut SegmentCursors,
    pass: u64,
    (first, last): (u128, u128),
    distance: impl Fn(u128) -> Option<u32>,
    mut meet: impl FnMut(u32, u64),
) -> Result<(bool, u64)> {
    let words = |key: u128| [pass, (key >> 64) as u64, key as u64];
    let Some(cursor) = cursors.at(IndexTable::Keys, &words(first))? else { return Ok((false, 0)) };
    let [pass, high, low] = words(last);
    let mut left = MOST_MET;
    cursor.read_to(&[pass, high, low, u64::MAX], [1, 2, 3], |row| {
        if let Some(distance) = distance(u128::from(row.word(0)) << 64 | u128::from(row.word(1))) {
            meet(distance, row.word(2));
        }
        left -= 1;
        left > 0
    })?;
    Ok((left == 0, (MOST_MET - left) as u64))
}
