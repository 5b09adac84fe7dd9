//! Unicode NFKC by a table, which is fast because nearly all characters of a text are normal already.

use std::sync::Arc;

use unicode_normalization::char::canonical_combining_class;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// Entry of the table: the character needs its neighbours to be normalised.
const SLOW: u16 = 0;
/// Entry of the table: the character is dropped. (No character stays or becomes U+0001.)
const DROP: u16 = 1;
/// Entry of the table: white space. (No character stays or becomes U+0002.)
const SPACE: u16 = 2;

/// Appends the normal form of a text to `out`.
///
/// A character whose entry in the table is itself is copied. Any other character is replaced by its entry, or
/// normalised by NFKC together with its neighbours where the entry is [`SLOW`]; the results of both are
/// appended by `push`.
pub(super) fn normalise(table: &[u16], text: &str, out: &mut String, push: impl Fn(&mut String, char)) {
    let rule = |c: char| table.get(c as usize).copied().unwrap_or(SLOW);
    let mut rest = text;
    loop {
        // Nearly all characters stay as they are. Pass over them, and copy them at once.
        let (mut at, mut last) = (0, None);
        let stop = loop {
            if begins_with_han(&rest.as_bytes()[at..]) {
                last = Some(at);
                at += 3;
                continue;
            }
            let Some(c) = rest[at..].chars().next() else { break None };
            let rule = rule(c);
            if u32::from(rule) != c as u32 {
                break Some((at, c, rule));
            }
            last = Some(at);
            at += c.len_utf8();
        };
        let Some((at, c, replacement)) = stop else { break };
        let after = at + c.len_utf8();
        // A character that needs its neighbours is normalised with the one before it and with all such
        // characters after it.
        let slow_next = rest[after..].chars().next().is_some_and(|c| rule(c) == SLOW);
        let start = if replacement == SLOW { last.unwrap_or(at) } else { at };
        out.push_str(&rest[..start]);
        if replacement != SLOW && !slow_next {
            let c = if replacement == SPACE { Some(' ') } else { char::from_u32(replacement.into()) };
            c.into_iter().for_each(|c| push(out, c));
            rest = &rest[after..];
        } else {
            let end = rest[after..].find(|c| rule(c) != SLOW).map_or(rest.len(), |length| after + length);
            rest[start..end].nfkc().for_each(|c| push(out, c));
            rest = &rest[end..];
        }
    }
    out.push_str(rest);
}

/// Whether the text begins with one of U+4E00 to U+9FFF. These are nearly all Chinese characters; each has
/// three bytes in UTF-8 and is changed neither by NFKC nor by lower case.
#[inline]
fn begins_with_han(text: &[u8]) -> bool {
    matches!(text, [first, second, _, ..] if matches!(u16::from_be_bytes([*first, *second]), 0xE4B8..=0xE9BF))
}

/// Returns the table of NFKC for [`normalise`]: an entry for each character of the basic plane.
pub(super) fn rules() -> Arc<[u16]> {
    (0..=u16::MAX).map(rule).collect()
}

/// Returns the table of NFKC followed by lower case.
pub(super) fn lower_rules() -> Arc<[u16]> {
    let lower = |code: u16| {
        let Some(only) = alone(code) else { return SLOW };
        let mut lower = only.to_lowercase();
        match (lower.next().and_then(|c| u16::try_from(c as u32).ok()), lower.next()) {
            (Some(lower), None) => lower,
            _ => SLOW,
        }
    };
    (0..=u16::MAX).map(lower).collect()
}

/// Returns the entry of a character of the basic plane in the table of NFKC.
fn rule(code: u16) -> u16 {
    match alone(code) {
        None => SLOW,
        Some(only) if invisible(only) => DROP,
        Some(only) if only.is_whitespace() => SPACE,
        Some(only) => u16::try_from(only as u32).unwrap_or(SLOW),
    }
}

/// Returns the NFKC form of a character of the basic plane, if that is one character whatever its neighbours
/// are.
fn alone(code: u16) -> Option<char> {
    let c = char::from_u32(code.into())?;
    let mut normal = std::iter::once(c).nfkc();
    let (Some(only), None) = (normal.next(), normal.next()) else { return None };
    let alone = canonical_combining_class(only) == 0
        && canonical_combining_class(c) == 0
        && is_nfc_quick(std::iter::once(only)) == IsNormalized::Yes;
    alone.then_some(only)
}

/// Whether a character is a control character that is not white space, or a mark of direction, joining or
/// byte order.
pub(super) fn invisible(c: char) -> bool {
    let mark = matches!(c, '\u{AD}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2064}' | '\u{FEFF}');
    mark || c.is_control() && !c.is_whitespace()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_passed_over_as_chinese_is_three_bytes_that_stay() {
        let han = |c: &char| begins_with_han(c.to_string().as_bytes());
        assert!(('\0'..=char::MAX).filter(han).eq('\u{4E00}'..='\u{9FFF}'));
        let stays = |c: char| rule(c as u16) == c as u16 && c.len_utf8() == 3 && c.to_lowercase().eq([c]);
        assert_eq!(('\u{4E00}'..='\u{9FFF}').find(|&c| !stays(c)), None);
    }
}
