//! Tells the characters of a text that count (letters, digits, marks and signs, in one form whatever their case, script and
//! width) from those that do not (white space and punctuation). The tables of docs/design/identity.md stand here; `numerals.rs` has
//! Chinese numerals, `simplified.rs` traditional characters, and `char_set.rs` sets of characters as tables of bits.

pub(crate) mod char_set;
mod numerals;
pub(crate) mod simplified;

use std::sync::Arc;

use unicode_normalization::char::is_combining_mark;

use self::simplified::simplified;
use super::entities::{WRITTEN_GREATER, WRITTEN_LESS};

/// How a character is treated.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum CharClass {
    /// Punctuation and white space: it separates words, and is the same as any other.
    Gap,
    /// A letter or digit of a script that puts spaces between words.
    Spaced,
    /// A letter, digit or mark of any other script, or a sign that always counts.
    Letter,
    /// A Chinese numeral, which may be a number.
    Numeral,
    /// A sign that counts only between, before or behind certain characters.
    Sign,
    /// A pictograph or a question mark: it is set apart, since it colours a text and is added at will.
    Aside,
    /// A mark that readers add or omit at will: it is dropped, and separates nothing.
    Optional,
}

/// Extracts what counts of texts. Clones share tables of 264 KiB.
#[derive(Clone)]
pub(crate) struct Letters {
    table: Arc<[(u16, CharClass)]>,
    /// A bit for each character of the basic plane: whether it is a letter that stays as it is. It is so small that it stays
    /// in the cache.
    stays: Arc<[u64]>,
}

/// State between two characters.
#[derive(Default)]
struct LastWritten {
    /// Whether the last character that was written belongs to a word of a spaced script.
    spaced: bool,
    /// Whether something was left out behind it.
    gap: bool,
}

impl Letters {
    pub fn new() -> Self {
        let mut folded: Vec<u16> = (0..=u16::MAX).map(fold).collect();
        for (traditional, simple) in simplified() {
            folded[usize::from(traditional)] = simple;
        }
        let class = |code: u16| char::from_u32(code.into()).map_or(CharClass::Gap, class_of);
        let table: Arc<[_]> = folded.into_iter().map(|code| (code, class(code))).collect();
        let mut stays = vec![0; table.len() / 64];
        for (code, &entry) in (0..=u16::MAX).zip(table.iter()) {
            stays[usize::from(code) / 64] |= u64::from(entry == (code, CharClass::Letter)) << (code % 64);
        }
        Letters { table, stays: stays.into() }
    }

    /// Returns the folded form of a character, and how it is treated.
    fn look_up(&self, c: char) -> (char, CharClass) {
        match self.table.get(c as usize) {
            Some(&(code, class)) => (char::from_u32(code.into()).unwrap_or(c), class),
            None => (digit_value(c).or_else(|| c.to_lowercase().next()).unwrap_or(c), class_of(c)),
        }
    }

    /// Appends what counts of a text to `out`. Between two words of a spaced script stands one space where something was
    /// left out, also between `out` and what is appended. `aside`: is called with each pictograph and question mark, to append
    /// it. `stretch`: is called with each place of the text but those of letters that stay as they are and those within words
    /// of ASCII; if it appends a stretch that begins there in its own way, it returns the length of that in bytes, and
    /// otherwise 0.
    ///
    /// Cost: about 2 ns a byte.
    pub fn take(
        &self,
        mut text: &str,
        out: &mut String,
        mut aside: impl FnMut(&mut String, char),
        mut stretch: impl FnMut(&mut String, usize) -> usize,
    ) {
        let last = |out: &str| LastWritten { spaced: out.ends_with(is_of_spaced_script), gap: true };
        let mut written = last(out);
        // What stands before a stretch says nothing about the signs behind it.
        let (mut behind, mut at) = (0, 0);
        loop {
            // Nearly all characters stay as they are. Pass over them, and copy them at once.
            let from = at;
            at = self.pass_letters(text, at);
            if at > from {
                out.push_str(&text[from..at]);
                written = LastWritten::default();
            }
            let Some(c) = text[at..].chars().next() else { break };
            let bytes = stretch(out, behind + at);
            if bytes > 0 {
                written = last(out);
                behind += at + bytes;
                text = &text[at + bytes..];
                at = 0;
                continue;
            }
            let after = at + c.len_utf8();
            let (folded, class) = self.look_up(c);
            match class {
                CharClass::Letter => {
                    out.push(folded);
                    written = LastWritten::default();
                }
                CharClass::Spaced => {
                    if c == 'M' && is_mega(text, at) {
                        out.push(MEGA);
                        written = LastWritten { spaced: false, gap: true };
                        at = after;
                        continue;
                    }
                    if written.gap && written.spaced {
                        out.push(' ');
                    }
                    out.push(folded);
                    written = LastWritten { spaced: true, gap: false };
                    at = if c.is_ascii() { take_word(text, after, out) } else { after };
                    continue;
                }
                CharClass::Gap => written.gap = true,
                CharClass::Optional => {}
                CharClass::Numeral => match self.number(text, at) {
                    Some((value, bytes)) => {
                        if written.spaced {
                            out.push(' ');
                        }
                        out.push_str(&value.to_string());
                        written = LastWritten { spaced: true, gap: false };
                        at += bytes;
                        continue;
                    }
                    None => {
                        out.push(folded);
                        written = LastWritten::default();
                    }
                },
                CharClass::Sign => match sign(text, at, folded) {
                    Sign::Counts => {
                        out.push(folded);
                        written = LastWritten { spaced: false, gap: true };
                    }
                    Sign::Separates => written.gap = true,
                    Sign::Joins => {}
                },
                CharClass::Aside => {
                    // Several question marks ask no more than one.
                    if folded != '?' || !text[..at].ends_with(c) {
                        aside(out, folded);
                    }
                    written.gap = true;
                }
            }
            at = after;
        }
    }

    /// Returns the end of the letters of three bytes that begin at a place of a text and stay as they are.
    fn pass_letters(&self, text: &str, mut at: usize) -> usize {
        while let [first @ 0xE3..=0xE9, second, third, ..] = text.as_bytes()[at..] {
            let bits = self.stays[usize::from(first & 0xF) << 6 | usize::from(second & 0x3F)];
            if bits >> (third & 0x3F) & 1 == 0 {
                break;
            }
            at += 3;
        }
        at
    }

    /// Returns the number that Chinese numerals at a place of a text write, and their length in bytes.
    fn number(&self, text: &str, at: usize) -> Option<(u64, usize)> {
        let before = text[..at].chars().next_back();
        let inside = before.is_some_and(|c| numerals::is_numeral(self.look_up(c).0));
        if inside {
            return None;
        }
        numerals::number(&text[at..], |c| self.look_up(c).0, before == Some('第'))
    }
}

/// Appends the rest of a word of ASCII letters and digits that goes on at a place, and returns its end. No stretch begins
/// within such a word. It ends before an `M`, which may stand for mega.
fn take_word(text: &str, at: usize, out: &mut String) -> usize {
    let goes_on = |byte: &&u8| byte.is_ascii_alphanumeric() && **byte != b'M';
    let bytes = text.as_bytes()[at..].iter().take_while(goes_on);
    let start = out.len();
    out.extend(bytes.map(|&byte| char::from(byte.to_ascii_lowercase())));
    at + (out.len() - start)
}

/// Returns the form in which a character of the basic plane is compared, but for traditional characters: lower case,
/// European digits, one form of a letter where two are used for the same.
fn fold(code: u16) -> u16 {
    let Some(c) = char::from_u32(code.into()) else { return code };
    let folded = match c {
        'ς' => 'σ',
        'ё' | 'Ё' => 'е',
        '؟' => '?',
        '−' | '‐' | '‑' | '‒' | '–' => '-',
        '~' | '〜' => '-',
        '٪' => '%',
        WRITTEN_LESS => '<',
        WRITTEN_GREATER => '>',
        _ => digit_value(c).or_else(|| c.to_lowercase().next()).unwrap_or(c),
    };
    u16::try_from(folded as u32).unwrap_or(code)
}

/// Returns the European digit of the same value as a digit of another script.
fn digit_value(c: char) -> Option<char> {
    // The zeros of Unicode's decimal digits: ten characters that follow each other in order.
    const ZEROS: [u32; 43] = [
        0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66, 0xDE6, 0xE50,
        0xED0, 0xF20, 0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0x1A80, 0x1A90, 0x1B50, 0x1BB0, 0x1C40,
        0x1C50, 0xA620, 0xA8D0, 0xA900, 0xA9D0, 0xA9F0, 0xAA50, 0xABF0, 0x104A0, 0x11066, 0x110F0, 0x11136,
        0x111D0, 0x112F0, 0x11450, 0x1E950,
    ];
    let code = c as u32;
    if matches!(code, 0..0x660 | 0x2000..0xA620) {
        return None;
    }
    let value = ZEROS.iter().find_map(|zero| code.checked_sub(*zero).filter(|&value| value < 10))?;
    char::from_digit(value, 10)
}

fn class_of(c: char) -> CharClass {
    match c {
        '一' | '二' | '三' | '四' | '五' | '六' | '七' | '八' | '九' | '十' | '百' | '千' | '零' | '两'
        | '〇' | '兩' => CharClass::Numeral,
        '壹' | '贰' | '叁' | '肆' | '伍' | '陆' | '柒' | '捌' | '玖' | '拾' | '佰' | '仟' | '貳' | '參'
        | '陸' => CharClass::Numeral,
        // Arabic and Hebrew vowel marks, and the bar that stretches an Arabic word.
        '\u{64B}'..='\u{652}'
        | '\u{670}'
        | '\u{640}'
        | '\u{591}'..='\u{5BD}'
        | '\u{5BF}'
        | '\u{5C1}'..='\u{5C7}' => CharClass::Optional,
        '.' | ',' | ':' | '-' | '−' | '‐' | '‑' | '‒' | '–' | '~' | '〜' | '+' | '<' | '>' | '=' | '*'
        | '/' | '|' | '&' | '^' | '!' | '%' | '٪' | '#' | '$' | WRITTEN_LESS | WRITTEN_GREATER => {
            CharClass::Sign
        }
        // Operators and other signs of mathematics, currencies, degrees, and what stands for an illegal byte.
        '±'
        | '×'
        | '÷'
        | '¬'
        | '°'
        | '‰'
        | '‱'
        | '¢'..='¥'
        | '\u{20A0}'..='\u{20CF}'
        | '\u{2200}'..='\u{22FF}'
        | 'µ'
        | '\u{FFFD}'
        | '№' => CharClass::Letter,
        '?'
        | '؟'
        | '\u{1F000}'..='\u{1FAFF}'
        | '\u{2600}'..='\u{27BF}'
        | '\u{2B50}'
        | '\u{2B55}'
        | '\u{231A}'
        | '\u{231B}' => CharClass::Aside,
        _ if is_of_spaced_script(c) => CharClass::Spaced,
        _ if is_letter(c) || is_combining_mark(c) => CharClass::Letter,
        _ => CharClass::Gap,
    }
}

/// Stands for the prefix mega of a unit behind a number: 5 MW are not 5 mW.
const MEGA: char = 'ᴍ';

/// Whether an `M` stands behind a number and before a unit that is used with milli too.
fn is_mega(text: &str, at: usize) -> bool {
    let behind = ["W", "V", "A", "J", "Pa", "Hz", "Ω", "g"].iter().any(|unit| {
        text[at + 1..]
            .strip_prefix(unit)
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphabetic() && c != 'h'))
    });
    behind && text[..at].trim_end_matches(' ').ends_with(|c: char| c.is_ascii_digit())
}

/// Effect of a sign at its place.
enum Sign {
    Counts,
    Separates,
    /// It is not there, and what stands around it is one word.
    Joins,
}

/// Returns the effect of a sign at a place of a text.
fn sign(text: &str, at: usize, sign: char) -> Sign {
    let length = text[at..].chars().next().map_or(1, char::len_utf8);
    let before = text[..at].chars().next_back();
    let after = text[at + length..].chars().next();
    let digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit() || digit_value(c).is_some());
    let word = |c: Option<char>| c.is_some_and(is_letter);
    let latin = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphabetic());
    let counts = match sign {
        ',' if digit(before) && digit(after) => {
            // Three digits behind a comma are thousands.
            let digits = text[at + length..].chars().take(4).take_while(|&c| digit(Some(c))).count();
            if digits == 3 {
                return Sign::Joins;
            }
            true
        }
        '.' | ':' => digit(before) && digit(after),
        // A range, a result, or a minus, but no hyphen.
        '-' => digit(after) && !latin(before) && before != Some('-'),
        '+' => word(before) || digit(after),
        '%' => digit(before) || before == Some(' ') && digit(text[..at].trim_end().chars().next_back()),
        '#' => latin(before) && !after.is_some_and(|c| c.is_ascii_alphanumeric()),
        '$' => digit(after) || digit(before),
        // A negation of code, but no exclamation.
        '!' => {
            after == Some('=')
                || before.is_none_or(|c| matches!(c, ' ' | '(')) && (latin(after) || after == Some('('))
        }
        '*' | '|' | '&' | '^' => operates(text, at, |c| c.is_ascii_alphanumeric()),
        '/' => (digit(before) || latin(before)) && (digit(after) || latin(after)),
        _ => operates(text, at, is_letter),
    };
    if counts { Sign::Counts } else { Sign::Separates }
}

/// Whether the sign at a place is part of an operator: at most three signs, with an operand on both sides, and with white
/// space on both sides or on none. `letter`: whether an operand may end or begin with a character.
fn operates(text: &str, at: usize, letter: fn(char) -> bool) -> bool {
    // Nothing stands on one side, as at the brackets of a tag that was set apart.
    if at == 0 || text[at..].chars().nth(1).is_none() {
        return false;
    }
    let part = |c: char| {
        matches!(
            c,
            '+' | '<' | '>' | '=' | '*' | '|' | '&' | '^' | '!' | '-' | WRITTEN_LESS | WRITTEN_GREATER
        )
    };
    // A longer run of signs is not read to its ends, or a text of signs alone would cost its square.
    let most = 3 * WRITTEN_LESS.len_utf8();
    let left = &text[..at];
    let near = text.floor_char_boundary(at.saturating_sub(most + 3));
    let left = &left[..near + left[near..].trim_end_matches(part).len()];
    let far = &text[at..text.floor_char_boundary(at + most + 4)];
    let right = &text[at + far.len() - far.trim_start_matches(part).len()..];
    if text.len() - left.len() - right.len() > most {
        return false;
    }
    let operand = |c: char| letter(c) || matches!(c, '(' | ')' | '[' | ']' | '\'' | '"' | '$' | '_');
    match (left.strip_suffix(' '), right.strip_prefix(' ')) {
        (Some(left), Some(right)) => left.ends_with(operand) && right.starts_with(operand),
        (None, None) => left.ends_with(operand) && right.starts_with(operand),
        _ => false,
    }
}

/// Whether a character is a letter or digit. Common Chinese characters and punctuation need no search in
/// Unicode's tables.
pub(crate) fn is_letter(c: char) -> bool {
    match c {
        '\u{4E00}'..='\u{9FFF}' => true,
        '\u{2000}'..='\u{206F}' | '\u{3000}'..='\u{3004}' | '\u{3008}'..='\u{3020}' => false,
        _ => c.is_alphanumeric(),
    }
}

/// Whether a character is a letter or digit of a script that puts spaces between words: Latin, Greek,
/// Cyrillic, Armenian, and European digits.
pub(crate) fn is_of_spaced_script(c: char) -> bool {
    matches!(c, '\0'..'\u{590}' | '\u{1E00}'..'\u{2000}')
        && (c.is_alphanumeric() && !matches!(c, '²' | '³' | '¹' | '¼'..='¾')
            || matches!(c, '\u{300}'..'\u{370}'))
}

/// Whether a cleaned text has at least two units. A unit is a word of a spaced script, or any other character
/// but the space.
pub(crate) fn two_units(text: &str) -> bool {
    let mut chars = text.chars();
    match chars.next() {
        None => false,
        Some(first) if !is_of_spaced_script(first) => chars.next().is_some(),
        Some(_) => chars.any(|c| !is_of_spaced_script(c)),
    }
}
