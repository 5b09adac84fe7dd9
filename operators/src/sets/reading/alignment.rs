//! The alignment of two texts: what they differ in, and where.

use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::units::TextUnit;

/// A place where two texts differ: units of the first that stand against units of the second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hunk {
    pub a: Range<usize>,
    pub b: Range<usize>,
}

/// Largest number of differing units, times units of both texts, for which two texts are aligned. Beyond it they differ
/// so much that no single word decides.
const MOST_STEPS: usize = 40_000_000;
/// Largest number of differing units for which all steps of the alignment are kept: half a megabyte.
const MOST_EDITS: usize = 512;

/// Returns the places where two texts differ, in order; `None` if the texts are long and differ in too much.
///
/// `differing`: an estimate of the number of units in which they differ. Places with at most one equal unit between them
/// are one place. (The algorithm is the one without heuristics: with them, a licence within a longer file shares next to
/// nothing.) Cost: 0.3 ns for each equal unit and some 2 ns for each pair of differing ones; where there are more than 512
/// of these, up to some 2 ns for each unit of both and each differing unit.
pub(super) fn align(a: &[TextUnit], b: &[TextUnit], differing: usize) -> Option<Vec<Hunk>> {
    if (a.len() + b.len()).saturating_mul(differing) > MOST_STEPS {
        return None;
    }
    let start = common_prefix(a, b);
    let behind = a[start..].iter().rev().zip(b[start..].iter().rev()).take_while(|(a, b)| a == b).count();
    let (middle_a, middle_b) = (&a[start..a.len() - behind], &b[start..b.len() - behind]);
    let mut hunks: Vec<Hunk> = Vec::new();
    let found = match middle_a.len().min(middle_b.len()) {
        0 => Some(vec![Hunk { a: 0..middle_a.len(), b: 0..middle_b.len() }]),
        _ if differing > MOST_EDITS || middle_a.len().abs_diff(middle_b.len()) > MOST_EDITS => None,
        _ => shortest_edits(middle_a, middle_b),
    };
    for Hunk { a, b } in found.unwrap_or_else(|| long_edits(middle_a, middle_b)) {
        let (a, b) = (a.start + start..a.end + start, b.start + start..b.end + start);
        match hunks.last_mut().filter(|last| a.start - last.a.end <= 1 && b.start - last.b.end <= 1) {
            Some(last) => (last.a.end, last.b.end) = (a.end, b.end),
            None => hunks.push(Hunk { a, b }),
        }
    }
    Some(hunks)
}

/// Returns the number of equal units that two texts begin with.
fn common_prefix(a: &[TextUnit], b: &[TextUnit]) -> usize {
    const AT_ONCE: usize = 8;
    let (a, b): (&[u32], &[u32]) = (bytemuck::cast_slice(a), bytemuck::cast_slice(b));
    if a.first() != b.first() {
        return 0;
    }
    let same = a.chunks_exact(AT_ONCE).zip(b.chunks_exact(AT_ONCE)).take_while(|(a, b)| a == b).count();
    let at = same * AT_ONCE;
    at + a[at..].iter().zip(&b[at..]).take_while(|(a, b)| a == b).count()
}

/// Returns the places of a shortest list of units that are left out of `a` and added of `b`; `None` if there are more than
/// [`MOST_EDITS`].
///
/// After `d` such edits, `reached[d]` says for each difference between the places in `a` and in `b`, from -d to d in steps
/// of two, how far in `a` one can get. The places are found on the way back. Source: Myers, "An O(ND) Difference Algorithm
/// and Its Variations", Algorithmica 1986.
fn shortest_edits(a: &[TextUnit], b: &[TextUnit]) -> Option<Vec<Hunk>> {
    let mut reached: Vec<u32> = Vec::with_capacity(1 << 10);
    let row = |edits: usize| edits * (edits + 1) / 2;
    // The furthest place in `a` by one more edit than a row has: by a unit of `b`, or by one of `a`.
    let furthest = |before: &[u32], at: usize| {
        let added = before.get(at).copied();
        let left_out = at.checked_sub(1).map(|at| before[at] + 1);
        (added.max(left_out).unwrap_or(0) as usize, left_out > added)
    };
    let edits = 'found: {
        for edits in 0..=MOST_EDITS.min(a.len() + b.len()) {
            for at in 0..=edits {
                let before = &reached[row(edits.saturating_sub(1))..row(edits)];
                let of_a = furthest(before, at).0;
                let of_b = of_a + edits - 2 * at;
                let rests = a.get(of_a..).zip(b.get(of_b..));
                let of_a = of_a + rests.map_or(0, |(a, b)| common_prefix(a, b));
                reached.push(of_a as u32);
                if of_a >= a.len() && of_a + edits - 2 * at >= b.len() {
                    break 'found edits;
                }
            }
        }
        return None;
    };
    let (mut of_a, mut of_b) = (a.len(), b.len());
    let mut hunks: Vec<Hunk> = Vec::new();
    for edits in (1..=edits).rev() {
        let before = &reached[row(edits - 1)..row(edits)];
        let (start, left_out) = furthest(before, (of_a + edits - of_b) / 2);
        let of_b_start = of_b - (of_a - start);
        let apart = start < of_a || hunks.is_empty();
        (of_a, of_b) = if left_out { (start - 1, of_b_start) } else { (start, of_b_start - 1) };
        match hunks.last_mut().filter(|_| !apart) {
            Some(last) => (last.a.start, last.b.start) = (of_a, of_b),
            None => hunks.push(Hunk { a: of_a..start, b: of_b..of_b_start }),
        }
    }
    hunks.reverse();
    Some(hunks)
}

/// Returns the places where long texts differ that differ in much, in memory that grows with their length alone.
fn long_edits(a: &[TextUnit], b: &[TextUnit]) -> Vec<Hunk> {
    let edits = capture_diff_slices(Algorithm::RawMyers, a, b);
    let differing = edits.into_iter().filter(|op| !matches!(op, DiffOp::Equal { .. }));
    differing.map(|op| Hunk { a: op.old_range(), b: op.new_range() }).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn edits_are_as_few_as_those_of_a_table(
            a in prop::collection::vec(0..5_u32, 0..40),
            b in prop::collection::vec(0..5_u32, 0..40),
        ) {
            let [a, b] = [a, b].map(|text| text.into_iter().map(TextUnit).collect::<Vec<_>>());
            let hunks = shortest_edits(&a, &b).unwrap();
            let (mut at_a, mut at_b, mut edits) = (0, 0, 0);
            for Hunk { a: of_a, b: of_b } in &hunks {
                prop_assert!(!of_a.is_empty() || !of_b.is_empty());
                prop_assert_eq!(&a[at_a..of_a.start], &b[at_b..of_b.start]);
                edits += of_a.len() + of_b.len();
                (at_a, at_b) = (of_a.end, of_b.end);
            }
            prop_assert_eq!(&a[at_a..], &b[at_b..]);
            // The longest common subsequence, by its definition.
            let mut longest = vec![vec![0; b.len() + 1]; a.len() + 1];
            for i in 0..a.len() {
                for j in 0..b.len() {
                    longest[i + 1][j + 1] = match a[i] == b[j] {
                        true => longest[i][j] + 1,
                        false => longest[i][j + 1].max(longest[i + 1][j]),
                    };
                }
            }
            prop_assert_eq!(edits, a.len() + b.len() - 2 * longest[a.len()][b.len()]);
        }

        #[test]
        fn long_texts_are_aligned_in_as_few_edits(
            edits in prop::collection::vec((0..3000_usize, any::<bool>()), 300..900),
        ) {
            let a: Vec<TextUnit> = (0..3000).map(|i| TextUnit(i % 700)).collect();
            let mut b = a.clone();
            for (at, add) in edits {
                if add { b.insert(at.min(b.len()), TextUnit(9999)); } else { b.remove(at.min(b.len() - 1)); }
            }
            let count = |hunks: Vec<Hunk>| hunks.iter().map(|hunk| hunk.a.len() + hunk.b.len()).sum::<usize>();
            let library = count(long_edits(&a, &b));
            let found = align(&a, &b, 1).map(|hunks| hunks.last().unwrap().a.end <= a.len());
            prop_assert_eq!(found, Some(true));
            prop_assert!(shortest_edits(&a, &b).is_none_or(|hunks| count(hunks) == library));
        }
    }
}
