//! The titles of two texts: whether they name other things.

use super::alignment::align;
use super::difference::TellingDifference;
use super::place::{PHRASE, Place, WORD, place};
use super::units::{TextUnit, UnitKind};
use super::words::WordTables;

/// Number of units that a title has at the most, and number of places at which its subject stands at the least.
const TITLE: usize = 16;
const SUBJECT_PLACES: usize = 3;

/// Returns the difference if the titles of two texts name different things. The names are of bodies of one kind, as the
/// words behind them say, or the texts repeat them at further places. If `alone`, any two names count.
pub(super) fn subject(words: &WordTables, places: &[Place], alone: bool) -> Option<TellingDifference> {
    let title = places.first().filter(|title| title.before < TITLE && title.lengths[1] <= PHRASE)?;
    let is_name = |side: &[TextUnit]| {
        let letter =
            |unit: &TextUnit| matches!(unit.kind(), UnitKind::Han | UnitKind::Word | UnitKind::Letter);
        !side.is_empty() && side.iter().all(letter)
    };
    let has = |side: &[TextUnit], name: &[TextUnit]| side.windows(name.len()).any(|units| units == name);
    let again = || places.iter().filter(|place| has(place.a, title.a) && has(place.b, title.b)).count();
    let other =
        (alone || words.is_kind_of_name(title.behind)) && title.is_replaced() && title.lengths[0] >= 2 * WORD;
    let names = is_name(title.a) && is_name(title.b);
    (names && (other || again() >= SUBJECT_PLACES)).then_some(TellingDifference::Subject)
}

/// Returns the difference if the titles of two texts name different things, for texts that are too long to be
/// aligned as a whole.
pub(super) fn other_titles(words: &WordTables, a: &[TextUnit], b: &[TextUnit]) -> Option<TellingDifference> {
    let [a, b] = [a, b].map(|text| &text[..text.len().min(4 * TITLE)]);
    let hunks = align(a, b)?;
    let places: Vec<Place> = hunks.iter().filter_map(|hunk| place(a, b, hunk, [None; 2])).collect();
    subject(words, &places, false)
}
