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

/// Returns the places where two texts differ, in order; `None` if the texts are long and differ in too much.
///
/// `differing`: an estimate of the number of units in which they differ. Places with at most one equal unit between them
/// are one place. (The algorithm is the one without heuristics: with them, a licence within a longer file shares next to
/// nothing.) Cost: up to some 2 ns for each unit of both and each differing unit.
pub(super) fn align(a: &[TextUnit], b: &[TextUnit], differing: usize) -> Option<Vec<Hunk>> {
    if (a.len() + b.len()).saturating_mul(differing) > MOST_STEPS {
        return None;
    }
    let mut hunks: Vec<Hunk> = Vec::new();
    for op in capture_diff_slices(Algorithm::RawMyers, a, b) {
        if matches!(op, DiffOp::Equal { .. }) {
            continue;
        }
        let (a, b) = (op.old_range(), op.new_range());
        match hunks.last_mut().filter(|last| a.start - last.a.end <= 1 && b.start - last.b.end <= 1) {
            Some(last) => (last.a.end, last.b.end) = (a.end, b.end),
            None => hunks.push(Hunk { a, b }),
        }
    }
    Some(hunks)
}
