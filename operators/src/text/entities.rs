//! Entities of HTML: decimal, hexadecimal and named ones, and the characters that they stand for.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter};
use quick_xml::escape::resolve_html5_entity;

/// Stands for a `<` that was written as an entity, until tags have been recognised. (A noncharacter of Unicode, which
/// no text contains for its reader.)
pub(super) const WRITTEN_LESS: char = '\u{FDD0}';
/// Stands for a `>` that was written as an entity.
pub(super) const WRITTEN_GREATER: char = '\u{FDD1}';

/// Longest name of an entity, in bytes: `CounterClockwiseContourIntegral`.
const LONGEST_NAME: usize = 31;

/// Returns the text with characters in place of its entities. An entity ends with `;`, but for `&nbsp`, which
/// crawlers leave without.
pub(super) fn decoded(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut rest = 0;
    for at in memchr_iter(b'&', text.as_bytes()) {
        if at < rest {
            continue;
        }
        let kept = out.len();
        out.push_str(&text[rest..at]);
        match decode(&text[at..], &mut out) {
            0 => out.truncate(kept),
            bytes => rest = at + bytes,
        }
    }
    if rest == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[rest..]);
    Cow::Owned(out)
}

/// Appends the characters of the entity that the text begins with, and returns its length in bytes; 0 if there is none.
fn decode(text: &str, out: &mut String) -> usize {
    let bytes = text.as_bytes();
    let head = &bytes[1..bytes.len().min(LONGEST_NAME + 2)];
    let Some(end) = memchr(b';', head) else { return decode_space(text, out) };
    let name = &text[1..=end];
    let Some(number) = name.strip_prefix('#') else {
        let Some(characters) = resolve_html5_entity(name) else { return decode_space(text, out) };
        characters.chars().for_each(|c| push(out, c));
        return end + 2;
    };
    let code = match number.strip_prefix(['x', 'X']) {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => number.parse(),
    };
    // Numbers of control characters and halves of pairs stand for nothing that is shown.
    match code.map(char::from_u32) {
        Ok(Some(c)) if !number.starts_with('+') => push(out, c),
        _ => return 0,
    }
    end + 2
}

/// Appends a space for `&nbsp`, which crawlers leave without `;`, and returns its length in bytes, or 0.
fn decode_space(text: &str, out: &mut String) -> usize {
    const SPACE: &str = "&nbsp";
    if text.starts_with(SPACE) {
        out.push(' ');
        return SPACE.len();
    }
    0
}

fn push(out: &mut String, c: char) {
    out.push(match c {
        '<' => WRITTEN_LESS,
        '>' => WRITTEN_GREATER,
        '\u{A0}' => ' ',
        other => other,
    });
}

#[cfg(test)]
mod tests {
    use super::decoded;

    #[test]
    fn all_three_kinds_become_characters() {
        for (text, expected) in [
            ("It&#x27;s &quot;A &amp; B&quot; &#38;", "It's \"A & B\" &"),
            ("&#40644;&#x9EC4;&nbsp;&nbsp&hellip;", "黄黄  …"),
            ("a &lt; b &gt; c", "a \u{FDD0} b \u{FDD1} c"),
            ("&amp;lt;", "&lt;"),
        ] {
            assert_eq!(decoded(text), expected);
        }
    }

    #[test]
    fn what_is_no_entity_stays() {
        for text in
            ["a & b; c", "v&0xff;", "&unknown;", "&#xD800; &#99999999; &#; &#x; &#+65;", "R&D", "&", "x&"]
        {
            assert_eq!(decoded(text), text);
        }
    }
}
