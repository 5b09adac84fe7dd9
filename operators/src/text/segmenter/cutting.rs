//! Cuts texts into words: see the room's comment for what is done, and an example.

use super::entry::{
    CARRIAGE_RETURN, FIRST_ALPHANUMERIC, FIRST_OTHER, Prefix, SEPARATOR, Stored, UNKNOWN, joins,
};
use super::table::{Table, prefix};

/// Texts are cut in windows of this many characters, or somewhat more: a window ends with a separator. What is
/// known of a window stays in the processor's nearest cache.
const WINDOW: usize = 1024;

/// Sentinels behind the characters of a window, so that a character always has two behind it.
const BEHIND: usize = 2;

/// A dictionary, ready to cut. Takes about 0.5 MB beside its table.
pub struct Cutter {
    table: Table,
    /// Codes by character. Characters beyond the end are in no word of the dictionary.
    codes: Vec<u16>,
    /// Facts about a first character, by code.
    firsts: Vec<First>,
    /// Logarithms of probabilities by the number of the frequency. That of no word is not a number, which
    /// wins no comparison.
    weights: Vec<f64>,
    /// Weight of a character that begins no word.
    unknown: f64,
}

#[derive(Clone, Copy)]
struct First {
    prefix: Prefix,
    /// Weight of the character as a word of its own. Infinite for a separator; for a character that begins
    /// words but is none, less than any weight.
    alone: f64,
}

/// A character of the window.
struct Position {
    /// Where it starts, in bytes from the start of the window.
    at: u32,
    code: u16,
    /// Weight of the best words from here to the next separator; before that is known, of this character as a
    /// word of its own.
    weight: f64,
    /// The first of the best words from here, as a number of characters; before that is known, the prefix of
    /// this and the next character.
    step: u64,
}

impl Cutter {
    pub fn new(table: Table) -> Self {
        let total = (table.total() as f64).ln();
        let mut weights: Vec<f64> =
            table.frequencies().map(|frequency| (frequency as f64).ln() - total).collect();
        weights[0] = f64::NAN;
        let unknown = 0.0 - total;
        let alone = |code: usize, root: Prefix| match root {
            _ if code == usize::from(SEPARATOR) || code == usize::from(CARRIAGE_RETURN) => f64::INFINITY,
            _ if root.frequency() != 0 => weights[usize::from(root.frequency())],
            _ if root.base() != 0 => f64::NEG_INFINITY,
            _ => unknown,
        };
        let firsts =
            table.roots().enumerate().map(|(code, prefix)| First { prefix, alone: alone(code, prefix) });
        Cutter { firsts: firsts.collect(), codes: codes(&table), weights, unknown, table }
    }

    /// Calls `emit` with the start and the end of each word, in bytes. The words are all of the text.
    pub fn cut(&self, text: &str, mut emit: impl FnMut(usize, usize)) {
        let mut window = Vec::with_capacity(text.len().min(WINDOW + WINDOW / 8) + BEHIND);
        let mut start = 0;
        while start < text.len() {
            let end = self.read(text, start, &mut window);
            self.look_up(&mut window);
            self.choose(&mut window);
            give(&text[start..end], &window, |from, to| emit(start + from, start + to));
            start = end;
        }
    }

    /// Fills the window with characters from `start` on, and returns its end.
    fn read(&self, text: &str, start: usize, window: &mut Vec<Position>) -> usize {
        window.clear();
        let rest = &text[start..];
        let mut end = rest.len();
        for (at, c) in rest.char_indices() {
            let code = match self.codes.get(c as usize) {
                Some(&code) => code,
                None if joins(c) => UNKNOWN,
                None => SEPARATOR,
            };
            window.push(Position { at: at as u32, code, weight: 0.0, step: 0 });
            if window.len() >= WINDOW && code == SEPARATOR {
                end = at + c.len_utf8();
                break;
            }
        }
        for _ in 0..BEHIND {
            window.push(Position { at: end as u32, code: SEPARATOR, weight: 0.0, step: 1 });
        }
        start + end
    }

    /// Finds the prefix of every two neighbours. Nothing here is decided, so that the memory is asked for many
    /// prefixes at once.
    fn look_up(&self, window: &mut [Position]) {
        let prefixes = self.table.prefixes();
        let mut next = SEPARATOR;
        let inner = window.len() - BEHIND;
        for position in window[..inner].iter_mut().rev() {
            let first = self.firsts[usize::from(position.code)];
            position.weight = first.alone;
            let found = prefix(&prefixes[first.prefix.base() + usize::from(next)]);
            position.step = if found.code() == next { found.0 } else { 0 };
            next = position.code;
        }
    }

    /// Finds the best words, from right to left.
    fn choose(&self, window: &mut [Position]) {
        let prefixes = self.table.prefixes();
        for start in (0..window.len() - BEHIND).rev() {
            let [here, next, third, ..] = &mut window[start..] else { break };
            let two = Prefix(here.step);
            let alone = here.weight + next.weight;
            let weight = self.weights[usize::from(two.frequency())] + third.weight;
            // Which of the two it is cannot be predicted, so there is no branch on it.
            let mut step = 1 + u64::from(weight >= alone);
            let mut best = if weight > alone { weight } else { alone };
            if two.may_be_followed(third.code) {
                (best, step) = self.longer(prefixes, two, &window[start..], (best, step));
            }
            if best == f64::NEG_INFINITY && step == 1 {
                best = self.unlikely(&window[start..]);
            }
            let here = &mut window[start];
            // The weight of a separator is infinite, and what is before it starts anew.
            here.weight = if best < 0.0 { best } else { 0.0 };
            here.step = step;
        }
    }

    /// Returns the best of `best`, a weight and a number of characters, and the words that are longer than two
    /// characters. `two` is the prefix of the first two.
    fn longer(&self, prefixes: &[Stored], two: Prefix, window: &[Position], best: (f64, u64)) -> (f64, u64) {
        let (mut best, mut before) = (best, two);
        for (position, step) in window[2..].windows(2).zip(3..) {
            let [last, behind] = position else { break };
            if !before.may_be_followed(last.code) {
                break;
            }
            let found = prefix(&prefixes[before.base() + usize::from(last.code)]);
            if found.code() != last.code {
                break;
            }
            let weight = self.weights[usize::from(found.frequency())] + behind.weight;
            if weight >= best.0 {
                best = (weight, step);
            }
            before = found;
        }
        best
    }

    /// Returns the weight of a character alone that begins words, but none of these is here.
    #[cold]
    fn unlikely(&self, window: &[Position]) -> f64 {
        match self.firsts[usize::from(window[0].code)].prefix.frequency() {
            0 => self.unknown + window[1].weight,
            _ => f64::NEG_INFINITY,
        }
    }
}

/// Returns the codes by character.
fn codes(table: &Table) -> Vec<u16> {
    let most = table.chars().map(|c| c as usize).max().unwrap_or(0).max(0xFFFF);
    let code = |c| if char::from_u32(c).is_some_and(joins) { UNKNOWN } else { SEPARATOR };
    let mut codes: Vec<u16> = (0..=most as u32).map(code).collect();
    // A word with a separator is never found, since no text has the code that the word has for it.
    table.chars().zip(0..).filter(|&(c, _)| joins(c)).for_each(|(c, code)| codes[c as usize] = code);
    codes[usize::from(b'\r')] = CARRIAGE_RETURN;
    codes
}

/// Calls `emit` with the words of a window. Neighbouring ASCII letters and digits that are in no longer word
/// are one word, and so are a carriage return and a line feed.
fn give(text: &str, window: &[Position], mut emit: impl FnMut(usize, usize)) {
    let is_single = |position: &Position| {
        (FIRST_ALPHANUMERIC..FIRST_OTHER).contains(&position.code) && position.step == 1
    };
    let mut start = 0;
    while start + BEHIND < window.len() {
        let first = &window[start];
        let mut end = start + first.step as usize;
        if first.code < FIRST_OTHER {
            if is_single(first) {
                end += window[end..].iter().take_while(|position| is_single(position)).count();
            } else if first.code == CARRIAGE_RETURN
                && text.as_bytes().get(first.at as usize + 1) == Some(&b'\n')
            {
                end += 1;
            }
        }
        emit(first.at as usize, window[end].at as usize);
        start = end;
    }
}
