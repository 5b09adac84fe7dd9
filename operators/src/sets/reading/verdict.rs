//! The verdict on two texts that share most features: whether what differs decides.

use super::alignment::{align, common_units};
use super::difference::TellingDifference;
use super::numbers::NumbersOfPair;
use super::place::{LONG, PHRASE, Place, SHORT, WORD, length, other_numbers, place};
use super::runs::{ALIKE, Runs, stretches};
use super::titles::{other_titles, subject};
use super::units::{CutSort, PackedText, ReadText, TextUnit, UnitKind};
use super::words::WordTables;
use crate::Similarity;

/// Reads pairs of texts. Clones are made by sharing it; its tables take some 100 KB.
pub struct PairReader {
    /// The tables; `None` if numbers alone are read.
    words: Option<WordTables>,
}

/// Length of the common part from which on two texts of words are compared by their stretches; and length of both texts from which on
/// they are, whatever they have in common.
const MANY_WORDS: usize = 40 * WORD;
const MOST_WORDS: usize = 2 * MANY_WORDS;
/// Largest number of units of a text whose stretches are looked at before it is read: of larger ones sketches tell little. Two such
/// texts can always be aligned.
const FEW_STRETCHES: usize = 200;
/// Similarity from which on texts match that differ in too much to be aligned.
const UNREAD_ALIKE: Similarity = Similarity::millionths(750_000);

impl PairReader {
    /// Makes a reader of all that differs.
    pub fn of_everything() -> Self {
        PairReader { words: Some(WordTables::new()) }
    }

    /// Makes a reader of numbers alone, by which texts of one template are told apart.
    pub fn of_numbers() -> Self {
        PairReader { words: None }
    }

    /// Whether the numbers of a text decide: it matches no text of its template for which this is true too, whatever the two have
    /// in common.
    pub fn decides_by_numbers(&self, text: &ReadText) -> bool {
        let long = || length(&text.tokens) >= MANY_WORDS;
        self.words.is_none() || !(text.code || is_wordy(&text.tokens) && long())
    }

    /// Returns the stretches of three units of a text, as hashes. Two texts that have them match only if
    /// they share as many as [`least_in_common`](super::least_in_common) says. `None` for texts that are compared in other ways, too.
    pub fn stretches(&self, text: &ReadText) -> Option<impl Iterator<Item = u64>> {
        let units = &text.tokens;
        let of_words =
            || self.words.is_some() && !text.code && is_wordy(units) && length(units) >= MOST_WORDS;
        (units.len() <= FEW_STRETCHES && of_words()).then(|| stretches(units))
    }

    /// Returns what tells two texts apart, or `None` if nothing does.
    ///
    /// `numbers`: what their numbers have in common. `similarity`: that of their features, which decides where long texts
    /// differ in too much to be aligned. Cost: an alignment, some microseconds for a post and up to 100 milliseconds for the
    /// longest texts.
    pub fn difference(
        &self,
        a: PackedText,
        b: PackedText,
        numbers: NumbersOfPair,
        similarity: Similarity,
    ) -> Option<TellingDifference> {
        let template = numbers.of_template().then_some(TellingDifference::Template);
        let Some(words) = &self.words else { return template };
        // An alignment prefers one side where several are as short, so the two come in one order, whoever asks.
        let (a, b) = if a.tokens <= b.tokens { (a, b) } else { (b, a) };
        let code = a.code || b.code;
        let (ta, tb) = (a.tokens, b.tokens);
        if ta == tb {
            return cuts(a, b, length(ta));
        }
        let wordy = is_wordy(ta);
        if template.is_some() && !code && !wordy {
            return template;
        }
        let Some(hunks) = align(ta, tb) else {
            let least = if code { ALIKE } else { UNREAD_ALIKE };
            // Texts with few distinct features, such as gene sequences, share nearly all of them, whatever they
            // say.
            let common = common_units(ta, tb);
            let alike = similarity.min(Similarity::ratio(common, ta.len() + tb.len() - common));
            let unlike = || (alike < least).then_some(TellingDifference::Runs(alike));
            let titles = || if code { None } else { other_titles(words, ta, tb) };
            return template.or_else(unlike).or_else(titles);
        };
        let common = length(ta) - hunks.iter().map(|hunk| length(&ta[hunk.a.clone()])).sum::<usize>();
        let heads = [a.head, b.head];
        let places: Vec<Place> = hunks.iter().filter_map(|hunk| place(ta, tb, hunk, heads)).collect();
        if code {
            let table = 6 * numbers.counts[0].min(numbers.counts[1]) > ta.len();
            let constant = common < LONG && places.iter().any(other_numbers);
            let constant = constant.then_some(TellingDifference::Number);
            return constant.or_else(|| Runs::new(ta, tb, &hunks).of_code(table));
        }
        if wordy && (common >= MANY_WORDS || length(ta).min(length(tb)) >= MOST_WORDS) {
            let runs = Runs::new(ta, tb, &hunks);
            return runs.of_words(common).or_else(|| subject(words, &places, runs.alike < ALIKE));
        }
        let han = 2 * ta.iter().filter(|token| token.kind() == UnitKind::Han).count() > ta.len();
        let runs = || Runs::new(ta, tb, &hunks).of_characters(common);
        template
            .or_else(|| one_place(words, &places, common, han))
            .or_else(|| if han { subject(words, &places, false).or_else(runs) } else { None })
            .or_else(|| swapped(&places, common))
            .or_else(|| several_places(&places, common, wordy))
            .or_else(|| cuts(a, b, common))
    }
}

/// Whether most units of a text are words of scripts with spaces.
fn is_wordy(tokens: &[TextUnit]) -> bool {
    2 * tokens.iter().filter(|token| token.kind() == UnitKind::Word).count() > tokens.len()
}

/// Returns what decides at one place alone.
fn one_place(words: &WordTables, places: &[Place], common: usize, han: bool) -> Option<TellingDifference> {
    for place in places {
        let &Place { a, b, lengths: [shorter, longer], head, .. } = place;
        if words.are_particles(a) && words.are_particles(b) || words.is_slip(a, b) {
            continue;
        }
        let remark = head && longer > 3 * WORD && han;
        // An own question in front of news is what its author says.
        if remark && longer <= SHORT && words.contains_question(a) != words.contains_question(b) {
            return Some(TellingDifference::Question);
        }
        let [wide_a, wide_b] = place.wide;
        let phrase = longer <= PHRASE && common < LONG;
        let denies =
            || words.denials(wide_a) != words.denials(wide_b) || words.is_denial(a) != words.is_denial(b);
        if phrase && !remark && denies() {
            return Some(TellingDifference::Denial);
        }
        if phrase && words.are_opposite(a, b) {
            return Some(TellingDifference::Opposite);
        }
        if common < 60 * WORD && (a.is_empty() && words.ask(b) || b.is_empty() && words.ask(a)) {
            return Some(TellingDifference::Question);
        }
        if other_numbers(place) {
            if common < 60 * WORD {
                return Some(TellingDifference::Number);
            }
            continue;
        }
        let all = |kind: UnitKind| a.iter().chain(b).all(|token| token.kind() == kind);
        if common < 60 * WORD && all(UnitKind::Sign) {
            return Some(TellingDifference::Sign);
        }
        if common >= SHORT {
            continue;
        }
        let inside = place.is_inside();
        // One or two letters more make another word, a particle at the end does not.
        if all(UnitKind::Letter) && longer <= 2 * WORD && (shorter > 0 || longer <= 2 && inside) {
            return Some(TellingDifference::Word);
        }
        if head && shorter > 0 && longer <= PHRASE && words.is_kind_of_name(place.behind) {
            return Some(TellingDifference::Word);
        }
        let small = if head && han { 2 * WORD } else { 3 * WORD };
        if place.is_replaced() && (inside || longer <= small) {
            return Some(TellingDifference::Word);
        }
    }
    None
}

/// Returns what differs in the stretches that were cut, if it decides.
fn cuts(a: PackedText, b: PackedText, common: usize) -> Option<TellingDifference> {
    let only = |of: PackedText, other: PackedText, sort: CutSort| {
        of.cuts.iter().any(|&cut| CutSort::of(cut) == sort && other.cuts.binary_search(&cut).is_err())
    };
    let sorts = [CutSort::Pointer, CutSort::Answer];
    let decides = common < SHORT && sorts.into_iter().any(|sort| only(a, b, sort) && only(b, a, sort));
    decides.then_some(TellingDifference::Cut)
}

/// Whether the units of a short text stand in another order: red beats blue, blue beats red. A phrase that moves from the
/// beginning to the end says the same there.
fn swapped(places: &[Place], common: usize) -> Option<TellingDifference> {
    if common >= SHORT || !places.iter().any(|place| place.lengths[0] > 0 || place.is_inside()) {
        return None;
    }
    let all = |side: fn(&Place) -> Vec<TextUnit>| {
        let mut tokens: Vec<TextUnit> = places.iter().flat_map(side).collect();
        tokens.sort_unstable();
        tokens
    };
    (all(|place| place.a.to_vec()) == all(|place| place.b.to_vec())).then_some(TellingDifference::Order)
}

/// Returns what the places decide together, in a text that is not short.
fn several_places(places: &[Place], common: usize, wordy: bool) -> Option<TellingDifference> {
    if common < SHORT {
        return None;
    }
    let numbers = places.iter().filter(|place| other_numbers(place)).count();
    if numbers > 0 && common < 250 * WORD {
        return Some(TellingDifference::Number);
    }
    let replaced = places.iter().filter(|place| place.is_replaced());
    if wordy
        && replaced
            .clone()
            .any(|place| place.tail && 7 * place.lengths[0] > common && place.lengths[0] >= 8 * WORD)
    {
        return Some(TellingDifference::Stretches);
    }
    let inside: Vec<usize> =
        replaced.filter(|place| place.is_inside()).map(|place| place.lengths[0]).collect();
    let share: usize = inside.iter().sum();
    let names = inside.len() >= 3 && 100 * share > 3 * common;
    let block = common >= 100 * WORD && 8 * share > common;
    (names || block).then_some(TellingDifference::Stretches)
}
