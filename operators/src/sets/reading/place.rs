//! Places where two texts differ, with what is known of each.

use std::ops::Range;

use super::alignment::Hunk;
use super::units::{TextUnit, UnitKind};

/// Lengths are counted in thirds of a word: a Chinese character and a word count three, a letter of a script that is read
/// letter by letter one.
pub(super) const WORD: usize = 3;
/// Length of a text in which one word decides.
pub(super) const SHORT: usize = 40 * WORD;
/// Length of a text in which one number, denial or opposite decides.
pub(super) const LONG: usize = 300 * WORD;
/// Length of a stretch that states a single thing.
pub(super) const PHRASE: usize = 6 * WORD;

/// A place where two texts differ, with what is known of it.
pub(super) struct Place<'a> {
    pub a: &'a [TextUnit],
    pub b: &'a [TextUnit],
    /// Both sides with two units more at either end, since a denial may share its letters with what it denies.
    pub wide: [&'a [TextUnit]; 2],
    /// Lengths of the shorter and of the longer side.
    pub lengths: [usize; 2],
    /// Number of units before it in the first text.
    pub before: usize,
    /// Up to two units that follow it in both texts.
    pub behind: &'a [TextUnit],
    /// Whether nothing stands before it in either text, or behind it.
    pub head: bool,
    pub tail: bool,
}

impl Place<'_> {
    /// Whether one thing stands where another one stood: both sides have about the same length.
    pub fn is_replaced(&self) -> bool {
        let [shorter, longer] = self.lengths;
        shorter > 0 && longer <= 2 * shorter
    }

    /// Whether both texts go on before it and behind it.
    pub fn is_inside(&self) -> bool {
        !self.head && !self.tail
    }
}

/// Returns a place as it is judged; `None` if it stands in the head of a repost, where everybody adds a remark.
pub(super) fn place<'a>(
    a: &'a [TextUnit],
    b: &'a [TextUnit],
    hunk: &Hunk,
    heads: [Option<usize>; 2],
) -> Option<Place<'a>> {
    let head = hunk.a.start == 0 && hunk.b.start == 0;
    let in_head = |end: usize, head: Option<usize>| head.is_some_and(|head| end <= head);
    if in_head(hunk.a.end, heads[0]) || in_head(hunk.b.end, heads[1]) || head && heads != [None; 2] {
        return None;
    }
    let tail = hunk.a.end == a.len() && hunk.b.end == b.len();
    let wide = |side: &'a [TextUnit], at: &Range<usize>| {
        &side[at.start.saturating_sub(2)..side.len().min(at.end + 2)]
    };
    let wide = [wide(a, &hunk.a), wide(b, &hunk.b)];
    let before = hunk.a.start;
    let behind = &a[hunk.a.end..a.len().min(hunk.a.end + 2)];
    let (a, b) = (&a[hunk.a.clone()], &b[hunk.b.clone()]);
    let mut lengths = [length(a), length(b)];
    lengths.sort_unstable();
    Some(Place { a, b, wide, lengths, before, behind, head, tail })
}

/// Whether the two sides of a place have numbers, and other ones.
pub(super) fn other_numbers(place: &Place) -> bool {
    let numbers = |side: &[TextUnit]| {
        side.iter().copied().filter(|token| token.kind() == UnitKind::Number).collect::<Vec<_>>()
    };
    let (a, b) = (numbers(place.a), numbers(place.b));
    !a.is_empty() && !b.is_empty() && a != b && place.lengths[1] <= 2 * PHRASE
}

/// Returns the length of some units.
pub(super) fn length(tokens: &[TextUnit]) -> usize {
    tokens.iter().map(|token| if token.kind() == UnitKind::Letter { 1 } else { WORD }).sum()
}
