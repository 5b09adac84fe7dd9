//! Tells the characters of a text that count (letters, digits, marks and signs, in one form whatever their case, script and
//! width) from those that do not (white space and punctuation). `char_class.rs` has the table of classes of docs/design/identity.md, `signs.rs` the
//! signs whose places decide, `numerals.rs` Chinese numerals, `simplified.rs` traditional characters, and `char_set.rs` sets of characters as
//! tables of bits.

pub(crate) mod char_class;
pub(crate) mod char_set;
mod numerals;
mod signs;
pub(crate) mod simplified;

use std::sync::Arc;

use self::char_class::{CharClass, class_of, digit_value, is_of_spaced_script};
use self::signs::{MEGA, SignEffect, effect_of, is_mega};
use self::simplified::simplified;
use super::entities::{WRITTEN_GREATER, WRITTEN_LESS};

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
            let mut end = at + c.len_utf8();
            let (folded, class) = self.look_up(c);
            match class {
                CharClass::Letter => {
                    out.push(folded);
                    written = LastWritten::default();
                }
                CharClass::Spaced => end = take_spaced(text, (at, c, folded), out, &mut written),
                CharClass::Gap => written.gap = true,
                CharClass::Optional => {}
                CharClass::Numeral => end = self.take_numerals(text, (at, c, folded), out, &mut written),
                CharClass::Sign => match effect_of(text, at, folded) {
                    SignEffect::Counts => {
                        out.push(folded);
                        written = LastWritten { spaced: false, gap: true };
                    }
                    SignEffect::Separates => written.gap = true,
                    SignEffect::Joins => {}
                },
                CharClass::Aside => {
                    // Several question marks ask no more than one.
                    if folded != '?' || !text[..at].ends_with(c) {
                        aside(out, folded);
                    }
                    written.gap = true;
                }
            }
            at = end;
        }
    }

    /// Appends the number that the Chinese numerals at a place write, or the one numeral there if they write none. Returns the end of what was
    /// taken. `at`, `c` and `folded`: the place, the numeral there, and its folded form.
    fn take_numerals(
        &self,
        text: &str,
        (at, c, folded): (usize, char, char),
        out: &mut String,
        written: &mut LastWritten,
    ) -> usize {
        let Some((value, bytes)) = self.number(text, at) else {
            out.push(folded);
            *written = LastWritten::default();
            return at + c.len_utf8();
        };
        if written.spaced {
            out.push(' ');
        }
        out.push_str(&value.to_string());
        *written = LastWritten { spaced: true, gap: false };
        at + bytes
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

/// Appends a character of a spaced script, behind a space where something was left out since the last one, and if it is ASCII the rest of its
/// word. Returns the end of what was taken. `at`, `c` and `folded`: the place, the character there, and its folded form.
fn take_spaced(
    text: &str,
    (at, c, folded): (usize, char, char),
    out: &mut String,
    written: &mut LastWritten,
) -> usize {
    let after = at + c.len_utf8();
    if c == 'M' && is_mega(text, at) {
        out.push(MEGA);
        *written = LastWritten { spaced: false, gap: true };
        return after;
    }
    if written.gap && written.spaced {
        out.push(' ');
    }
    out.push(folded);
    *written = LastWritten { spaced: true, gap: false };
    if c.is_ascii() { take_word(text, after, out) } else { after }
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
