//! The alignment of two texts: what they differ in, and where.

use std::ops::Range;

use super::units::TextUnit;
use crate::sets::similarity::shared_with_repetitions;

/// A place where two texts differ: units of the first that stand against units of the second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hunk {
    pub a: Range<usize>,
    pub b: Range<usize>,
}

/// Largest number of differing units, times units of both texts, up to which two texts are aligned.
const MOST_STEPS: usize = 40_000_000;
/// Largest number of differing units up to which two texts are aligned, for which 8 MiB are held. Beyond it they differ so
/// much that no single word decides.
const MOST_EDITS: usize = 2048;

/// Returns the places where two texts differ, in order; `None` if they differ in too much.
///
/// Places with at most one equal unit between them are one place. Cost: 0.3 ns for each equal unit and some 2 ns for each
/// pair of differing ones, up to 100 ms.
pub(super) fn align(a: &[TextUnit], b: &[TextUnit]) -> Option<Vec<Hunk>> {
    let start = common_prefix(a, b);
    let behind = a[start..].iter().rev().zip(b[start..].iter().rev()).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[start..a.len() - behind], &b[start..b.len() - behind]);
    if a.is_empty() && b.is_empty() {
        return Some(Vec::new());
    }
    let found = match a.len().min(b.len()) {
        0 => vec![Hunk { a: 0..a.len(), b: 0..b.len() }],
        _ => shortest_edits(a, b, MOST_EDITS.min(MOST_STEPS / (a.len() + b.len())))?,
    };
    let mut hunks: Vec<Hunk> = Vec::new();
    for Hunk { a, b } in found {
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

/// Returns the places of a shortest list of units that are left out of `a` and added of `b`; `None` if it has more than `most`
/// units.
///
/// After `d` such edits, `reached[d]` says for each difference between the places in `a` and in `b`, from -d to d in steps
/// of two, how far in `a` one can get. The places are found on the way back. Source: Myers, "An O(ND) Difference Algorithm
/// and Its Variations", Algorithmica 1986.
fn shortest_edits(a: &[TextUnit], b: &[TextUnit], most: usize) -> Option<Vec<Hunk>> {
    if a.len().abs_diff(b.len()) > most {
        return None;
    }
    let mut reached: Vec<u32> = Vec::with_capacity(1 << 11);
    let row = |edits: usize| edits * (edits + 1) / 2;
    // Returns the furthest place in `a` that one more edit than a row has reaches, and whether this edit leaves out a unit of
    // `a` and adds none of `b`.
    let furthest = |before: &[u32], at: usize| {
        let added = before.get(at).copied();
        let left_out = at.checked_sub(1).map(|at| before[at] + 1);
        (added.max(left_out).unwrap_or(0) as usize, left_out > added)
    };
    let edits = 'found: {
        for edits in 0..=most.min(a.len() + b.len()) {
            reached.resize(row(edits + 1), 0);
            let (before, now) = reached.split_at_mut(row(edits));
            let before = &before[row(edits.saturating_sub(1))..];
            for (at, reached) in now.iter_mut().enumerate() {
                let mut of_a = furthest(before, at).0;
                let of_b = of_a + edits - 2 * at;
                // Most often the next units differ.
                if a.get(of_a).is_some_and(|unit| b.get(of_b) == Some(unit)) {
                    of_a += common_prefix(&a[of_a..], &b[of_b..]);
                }
                *reached = of_a as u32;
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

/// Returns how many units two texts have in common in any order, each as often as both have it. Cost: that of sorting both.
pub(super) fn common_units(a: &[TextUnit], b: &[TextUnit]) -> usize {
    let [a, b] = [a, b].map(|units| {
        let mut units = units.to_vec();
        units.sort_unstable();
        units
    });
    shared_with_repetitions(&a, &b)
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
            let hunks = shortest_edits(&a, &b, 80).unwrap();
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
        fn places_lie_between_equal_units(
            head in 0..20_usize,
            tail in 0..20_usize,
            edits in prop::collection::vec((0..60_usize, any::<bool>()), 0..20),
        ) {
            let a: Vec<TextUnit> = (0..100).map(|i| TextUnit(i % 7)).collect();
            let mut b = a[head..a.len() - tail].to_vec();
            for (at, add) in edits {
                if add { b.insert(at.min(b.len()), TextUnit(9)); } else { b.remove(at.min(b.len() - 1)); }
            }
            let (mut at_a, mut at_b) = (0, 0);
            for Hunk { a: of_a, b: of_b } in align(&a, &b).unwrap() {
                prop_assert_eq!(&a[at_a..of_a.start], &b[at_b..of_b.start]);
                (at_a, at_b) = (of_a.end, of_b.end);
            }
            prop_assert_eq!(&a[at_a..], &b[at_b..]);
        }
    }

    #[test]
    fn common_units_are_counted_as_often_as_both_have_them() {
        for (a, b, common) in [(&[3, 1, 1, 2][..], &[1, 1, 1, 3][..], 3), (&[1, 2], &[3], 0), (&[], &[1], 0)]
        {
            let [a, b] = [a, b].map(|text| text.iter().map(|&unit| TextUnit(unit)).collect::<Vec<_>>());
            assert_eq!([common_units(&a, &b), common_units(&b, &a)], [common; 2]);
        }
    }

    #[test]
    fn texts_that_differ_in_very_much_are_not_aligned() {
        let digits = |seed: u64| -> Vec<TextUnit> {
            (0..300_000).map(|i| TextUnit((crate::hash::spread(seed << 32 | i) & 1) as u32)).collect()
        };
        assert_eq!(align(&digits(1), &digits(2)), None);
        let [long, short] = [5000, 100].map(|length| (0..length).map(TextUnit).collect::<Vec<_>>());
        assert_eq!(align(&long[1..], &short[..99]), None);
    }
}
