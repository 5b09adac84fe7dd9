//! Signs that count only at some places of a text, such as a minus, and the `M` of mega, which in lower case would be milli.

use super::char_class::{digit_value, is_letter};
use crate::text::entities::{WRITTEN_GREATER, WRITTEN_LESS};

/// Stands for the prefix mega of a unit behind a number: 5 MW are not 5 mW.
pub(super) const MEGA: char = 'ᴍ';

/// Whether an `M` stands behind a number and before a unit that is used with milli too.
pub(super) fn is_mega(text: &str, at: usize) -> bool {
    let behind = ["W", "V", "A", "J", "Pa", "Hz", "Ω", "g"].iter().any(|unit| {
        text[at + 1..]
            .strip_prefix(unit)
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphabetic() && c != 'h'))
    });
    behind && text[..at].trim_end_matches(' ').ends_with(|c: char| c.is_ascii_digit())
}

/// Effect of a sign at its place.
pub(super) enum SignEffect {
    Counts,
    Separates,
    /// It is not there, and what stands around it is one word.
    Joins,
}

/// Returns the effect of a sign at a place of a text.
pub(super) fn effect_of(text: &str, at: usize, sign: char) -> SignEffect {
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
                return SignEffect::Joins;
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
    if counts { SignEffect::Counts } else { SignEffect::Separates }
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
