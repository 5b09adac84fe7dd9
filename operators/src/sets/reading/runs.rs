//! The stretches of three units that two texts have in common, by which code and longer texts are compared.

use super::alignment::Hunk;
use super::difference::TellingDifference;
use super::place::{SHORT, WORD};
use super::units::TextUnit;
use crate::Similarity;
use crate::hash::spread;
use crate::sets::similarity::Overlap;

/// Number of words of a page, which frames and licences are parts of.
const PAGE: usize = 100 * WORD;
/// Least share of stretches of three units that two pieces of code, or two pages, have in common.
pub(super) const ALIKE: Similarity = Similarity::millionths(860_000);
/// The same share for code of which more than a sixth is numbers.
const TABLES_ALIKE: Similarity = Similarity::millionths(950_000);
/// The same share for two texts of words that are shorter than a page.
const SHORT_ALIKE: Similarity = Similarity::millionths(800_000);
/// The same share for the part between the beginnings and the ends, where frames of other sites stand, and the least
/// share of the whole texts then.
const FRAMED_ALIKE: [Similarity; 2] = [Similarity::millionths(970_000), Similarity::millionths(650_000)];
/// Share of the stretches of the smaller text that a longer version of it has.
const CONTAINED: Similarity = Similarity::millionths(900_000);
/// Number of Chinese characters of an article, and the least shares of two editions: of both, or of the smaller one in
/// the larger.
const ARTICLE: usize = 200 * WORD;
const ARTICLE_ALIKE: Similarity = Similarity::millionths(720_000);
const ARTICLE_CONTAINED: Similarity = Similarity::millionths(930_000);
/// Least share of the stretches of the smaller of two Chinese texts that the other one has too.
const POST_CONTAINED: Similarity = Similarity::millionths(660_000);

/// Returns the stretches of three units of a text, as hashes, in its order.
pub(super) fn stretches(text: &[TextUnit]) -> impl Iterator<Item = u64> {
    text.windows(3).map(|units| {
        let [a, b, c] = [0, 1, 2].map(|at| u64::from(units[at].0));
        spread(spread(a << 32 | b) ^ c)
    })
}

/// Returns the least number of common stretches of three units with which two texts of words are not told apart by
/// them. `counts`: the numbers of stretches of both texts.
pub fn least_in_common(counts: [usize; 2]) -> usize {
    let [a, b] = counts;
    let framed = FRAMED_ALIKE[1].least_shared(Overlap::Jaccard, a, b);
    match 5 * (a.max(b) + 2) >= 6 * (a.min(b) + 2) {
        true => framed.min(CONTAINED.least_shared(Overlap::Contained, a, b)),
        false => framed,
    }
}

/// Shares of their stretches of three units that two texts have in common.
pub(super) struct Runs {
    /// Share that both have, of all.
    pub alike: Similarity,
    /// The same between what the texts begin and end with.
    framed: Similarity,
    /// Share of the smaller text that the larger one has.
    contained: Similarity,
    /// Numbers of units of the smaller and of the larger text.
    sizes: [usize; 2],
}

impl Runs {
    pub fn new(a: &[TextUnit], b: &[TextUnit], hunks: &[Hunk]) -> Self {
        let (mut from, mut shared) = (0, 0);
        let ends = hunks.iter().map(|hunk| (hunk.a.start, hunk.a.end)).chain([(a.len(), a.len())]);
        for (start, end) in ends {
            shared += (start - from).saturating_sub(2);
            from = end;
        }
        let share = |of_a: usize, of_b: usize| {
            Similarity::ratio(shared, (of_a + of_b).saturating_sub(shared + 4).max(1))
        };
        // The frame stands before the first common unit and behind the last one. Nothing is left of one hunk that is both.
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

    /// Returns the difference if two pieces of code have too little in common. `table`: whether they consist
    /// of numbers.
    pub fn of_code(&self, table: bool) -> Option<TellingDifference> {
        let least = if table { TABLES_ALIKE } else { ALIKE };
        (self.alike < least).then_some(TellingDifference::Runs(self.alike))
    }

    /// Returns the difference if two long texts of words have too little in common.
    pub fn of_words(&self, common: usize) -> Option<TellingDifference> {
        let [smaller, larger] = self.sizes;
        let alike = self.alike >= if common < PAGE { SHORT_ALIKE } else { ALIKE };
        let framed =
            self.framed >= FRAMED_ALIKE[0] && self.alike >= FRAMED_ALIKE[1] && common >= PAGE * 4 / 5;
        let longer_version = common >= PAGE && 5 * larger >= 6 * smaller && self.contained >= CONTAINED;
        let same = alike || framed || longer_version;
        (!same).then_some(TellingDifference::Runs(self.alike))
    }

    /// Returns the difference if two Chinese texts have too little in common: two articles are not editions of each other,
    /// or the smaller of two shorter texts is no part of the other.
    pub fn of_characters(&self, common: usize) -> Option<TellingDifference> {
        let same = match common {
            ARTICLE.. => self.alike >= ARTICLE_ALIKE || self.contained >= ARTICLE_CONTAINED,
            SHORT.. => self.contained >= POST_CONTAINED,
            _ => true,
        };
        (!same).then_some(TellingDifference::Runs(self.alike))
    }
}
