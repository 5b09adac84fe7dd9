//! The verdict on two texts that share most features: whether what differs decides.

use std::fmt;
use std::ops::Range;

use super::alignment::{Hunk, align};
use super::numbers::NumbersOfPair;
use super::units::{CutSort, PackedText, TextUnit, UnitKind};
use super::words::WordTables;
use crate::Similarity;

/// Reads pairs of texts. Clones are made by sharing it; its tables take some 100 KB.
pub struct PairReader {
    /// The tables; `None` if numbers alone are read.
    words: Option<WordTables>,
}

/// What tells two texts apart that share most of their features.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TellingDifference {
    /// They are of one template, by their numbers.
    Template,
    /// One denies what the other says.
    Denial,
    /// One says the opposite of the other.
    Opposite,
    /// One asks what the other says.
    Question,
    /// They have other numbers at the same place.
    Number,
    /// They have other signs at the same place.
    Sign,
    /// They have another word at the same place.
    Word,
    /// The same words stand in another order.
    Order,
    /// They have other names or words at several places, or a stretch of its own each.
    Stretches,
    /// Their titles name other things, which they are about.
    Subject,
    /// They point to other pages, or answer otherwise, in what was cut.
    Cut,
    /// As code or as a long text of words they share too few stretches.
    Runs(Similarity),
}

/// Lengths are counted in thirds of a word: a Chinese character and a word count three, a letter of a script that is read
/// letter by letter one.
const WORD: usize = 3;
/// Length of a text in which one word decides.
const SHORT: usize = 40 * WORD;
/// Length of a text in which one number, denial or opposite decides.
const LONG: usize = 300 * WORD;
/// Length of a stretch that is one thing that is said.
const PHRASE: usize = 6 * WORD;
/// Number of words from which on a text of words is compared by its stretches.
const MANY_WORDS: usize = 40 * WORD;
/// Number of words of a page, which frames and licences are parts of.
const PAGE: usize = 100 * WORD;
/// Least share of stretches of three units that two pieces of code, or two pages, have in common.
const ALIKE: Similarity = Similarity::millionths(860_000);
/// The same of code of which more than a quarter is numbers.
const TABLES_ALIKE: Similarity = Similarity::millionths(950_000);
/// The same of two texts of words that are shorter than a page.
const SHORT_ALIKE: Similarity = Similarity::millionths(800_000);
/// The same between what two texts begin and end with, where frames of other sites stand, and at the least of the whole.
const FRAMED_ALIKE: [Similarity; 2] = [Similarity::millionths(970_000), Similarity::millionths(650_000)];
/// Share of the stretches of the smaller text that a longer version of it has.
const CONTAINED: Similarity = Similarity::millionths(900_000);
/// Number of Chinese characters of an article, of which two editions share this much, or one has nearly all of the other.
const ARTICLE: usize = 200 * WORD;
const ARTICLE_ALIKE: Similarity = Similarity::millionths(720_000);
const ARTICLE_CONTAINED: Similarity = Similarity::millionths(930_000);
/// Share of its stretches that the smaller of two Chinese texts has in common with the other one, at the least.
const POST_CONTAINED: Similarity = Similarity::millionths(660_000);
/// Number of units that a title has at the most, and number of places at which its subject stands at the least.
const TITLE: usize = 16;
const SUBJECT_PLACES: usize = 3;
/// Similarity from which on texts match that differ in too much to be aligned.
const UNREAD_ALIKE: Similarity = Similarity::millionths(750_000);

/// A place where two texts differ, with what is known of it.
struct Place<'a> {
    a: &'a [TextUnit],
    b: &'a [TextUnit],
    /// Both sides with two units more at either end, since a denial may share its letters with what it denies.
    wide: [&'a [TextUnit]; 2],
    /// Lengths of the shorter and of the longer side.
    lengths: [usize; 2],
    /// Number of units before it in the first text.
    before: usize,
    /// Up to two units that follow it in both texts.
    behind: &'a [TextUnit],
    /// Whether nothing stands before it in either text, or behind it.
    head: bool,
    tail: bool,
}

impl PairReader {
    /// Makes a reader of all that differs.
    pub fn of_everything() -> Self {
        PairReader { words: Some(WordTables::new()) }
    }

    /// Makes a reader of numbers alone, by which texts of one template are told apart.
    pub fn of_numbers() -> Self {
        PairReader { words: None }
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
        let wordy = 2 * ta.iter().filter(|token| token.kind() == UnitKind::Word).count() > ta.len();
        if template.is_some() && !code && !wordy {
            return template;
        }
        let units = (ta.len() + tb.len()) as u64;
        let differing =
            units * u64::from(Similarity::ONE.as_millionths() - similarity.as_millionths()) / 1_000_000;
        let Some(hunks) = align(ta, tb, differing as usize) else {
            let least = if code { ALIKE } else { UNREAD_ALIKE };
            let unlike = || (similarity < least).then_some(TellingDifference::Runs(similarity));
            let titles = || if code { None } else { other_titles(words, ta, tb) };
            return template.or_else(unlike).or_else(titles);
        };
        let common = length(ta) - hunks.iter().map(|hunk| length(&ta[hunk.a.clone()])).sum::<usize>();
        let heads = [a.head, b.head];
        let places: Vec<Place> = hunks.iter().filter_map(|hunk| place(ta, tb, hunk, heads)).collect();
        if code {
            let table = 4 * numbers.counts[0].min(numbers.counts[1]) > ta.len();
            return Runs::new(ta, tb, &hunks).of_code(table);
        }
        if wordy && common >= MANY_WORDS {
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

/// What two texts have in common of their stretches of three units.
struct Runs {
    /// Share that both have, of all.
    alike: Similarity,
    /// The same between what the texts begin and end with.
    framed: Similarity,
    /// Share of the smaller text that the larger one has.
    contained: Similarity,
    /// Numbers of units of the smaller and of the larger text.
    sizes: [usize; 2],
}

impl Runs {
    fn new(a: &[TextUnit], b: &[TextUnit], hunks: &[Hunk]) -> Self {
        let (mut from, mut shared) = (0, 0);
        let ends = hunks.iter().map(|hunk| (hunk.a.start, hunk.a.end)).chain([(a.len(), a.len())]);
        for (start, end) in ends {
            shared += (start - from).saturating_sub(2);
            from = end;
        }
        let share = |of_a: usize, of_b: usize| {
            Similarity::ratio(shared, (of_a + of_b).saturating_sub(shared + 4).max(1))
        };
        // What stands before the first common unit and behind the last one. (Of one hunk that is both, nothing is left.)
        let head = hunks.first().filter(|hunk| hunk.a.start == 0 && hunk.b.start == 0);
        let tail = hunks.last().filter(|hunk| hunk.a.end == a.len() && hunk.b.end == b.len());
        let frame = |side: fn(&Hunk) -> usize| [head, tail].into_iter().flatten().map(side).sum::<usize>();
        let (smaller, larger) = (a.len().min(b.len()), a.len().max(b.len()));
        Runs {
            alike: share(a.len(), b.len()),
            framed: share(
                a.len().saturating_sub(frame(|hunk| hunk.a.len())),
                b.len().saturating_sub(frame(|hunk| hunk.b.len())),
            ),
            contained: Similarity::ratio(shared, smaller.saturating_sub(2).max(1)),
            sizes: [smaller, larger],
        }
    }

    /// Returns that two pieces of code have too little in common. `table`: whether they consist of numbers.
    fn of_code(&self, table: bool) -> Option<TellingDifference> {
        let least = if table { TABLES_ALIKE } else { ALIKE };
        (self.alike < least).then_some(TellingDifference::Runs(self.alike))
    }

    /// Returns that two long texts of words have too little in common.
    fn of_words(&self, common: usize) -> Option<TellingDifference> {
        let [smaller, larger] = self.sizes;
        let alike = self.alike >= if common < PAGE { SHORT_ALIKE } else { ALIKE };
        let framed =
            self.framed >= FRAMED_ALIKE[0] && self.alike >= FRAMED_ALIKE[1] && common >= PAGE * 4 / 5;
        let longer_version = common >= PAGE && 5 * larger >= 6 * smaller && self.contained >= CONTAINED;
        let same = alike || framed || longer_version;
        (!same).then_some(TellingDifference::Runs(self.alike))
    }

    /// Returns that two Chinese texts have too little in common: of two articles one is no edition of the other, or of two
    /// shorter texts neither is a part of the other.
    fn of_characters(&self, common: usize) -> Option<TellingDifference> {
        let same = match common {
            ARTICLE.. => self.alike >= ARTICLE_ALIKE || self.contained >= ARTICLE_CONTAINED,
            SHORT.. => self.contained >= POST_CONTAINED,
            _ => true,
        };
        (!same).then_some(TellingDifference::Runs(self.alike))
    }
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

/// Returns a place as it is judged; `None` if it stands in the head of a repost, where everybody adds a remark.
fn place<'a>(
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
    let (before, behind) = (hunk.a.start, &a[hunk.a.end..a.len().min(hunk.a.end + 2)]);
    let (a, b) = (&a[hunk.a.clone()], &b[hunk.b.clone()]);
    let mut lengths = [length(a), length(b)];
    lengths.sort_unstable();
    Some(Place { a, b, wide, lengths, before, behind, head, tail })
}

impl Place<'_> {
    /// Whether one thing stands where another one stood: both sides have about the same length.
    fn is_replaced(&self) -> bool {
        let [shorter, longer] = self.lengths;
        shorter > 0 && longer <= 2 * shorter
    }

    /// Whether both texts go on before it and behind it.
    fn is_inside(&self) -> bool {
        !self.head && !self.tail
    }
}

/// Returns that the titles of two texts name other things: other bodies of one kind, as by what follows the names, or things
/// that the texts name at further places too, or, if `alone`, whatever stands there.
fn subject(words: &WordTables, places: &[Place], alone: bool) -> Option<TellingDifference> {
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

/// Returns that the titles of two texts name other things, where the texts are too long to be aligned as a whole.
fn other_titles(words: &WordTables, a: &[TextUnit], b: &[TextUnit]) -> Option<TellingDifference> {
    let [a, b] = [a, b].map(|text| &text[..text.len().min(4 * TITLE)]);
    let hunks = align(a, b, a.len() + b.len())?;
    let places: Vec<Place> = hunks.iter().filter_map(|hunk| place(a, b, hunk, [None; 2])).collect();
    subject(words, &places, false)
}

/// Whether the two sides of a place have numbers, and other ones.
fn other_numbers(place: &Place) -> bool {
    let numbers = |side: &[TextUnit]| {
        side.iter().copied().filter(|token| token.kind() == UnitKind::Number).collect::<Vec<_>>()
    };
    let (a, b) = (numbers(place.a), numbers(place.b));
    !a.is_empty() && !b.is_empty() && a != b && place.lengths[1] <= 2 * PHRASE
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

/// Returns the length of some units.
fn length(tokens: &[TextUnit]) -> usize {
    tokens.iter().map(|token| if token.kind() == UnitKind::Letter { 1 } else { WORD }).sum()
}

impl fmt::Display for TellingDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TellingDifference::Template => "they are of one template, with other numbers",
            TellingDifference::Denial => "one of them denies what the other says",
            TellingDifference::Opposite => "one of them says the opposite of the other",
            TellingDifference::Question => "one of them asks what the other says",
            TellingDifference::Number => "they have other numbers at the same place",
            TellingDifference::Sign => "they have other signs at the same place",
            TellingDifference::Word => "they have another word at the same place",
            TellingDifference::Order => "the same words stand in another order",
            TellingDifference::Stretches => "each has stretches of its own at the same places",
            TellingDifference::Subject => "their titles name other things",
            TellingDifference::Cut => "they point to other pages, or answer otherwise",
            TellingDifference::Runs(alike) => {
                return write!(f, "of their stretches of three units only {alike} are in both");
            }
        })
    }
}
