//! The form of a cleaned text: what the author wrote, and between two marks each stretch that was cut.
//!
//! ```text
//! 看这里 http://t.cn/A [泪] //@小明:好     cleaned     看这里 (Cut http tcn a) (Cut 泪) (Repost 小明) 好
//! ```
//!
//! So texts are identical only if what was cut of them is equal too, and what was cut can be weighed and shown. The marks
//! are control characters, which no text has in normal form.

use std::borrow::Cow;

use memchr::{memchr, memchr3};

use super::letters::char_class::is_of_spaced_script;
use super::letters::char_set::{CHAR_BYTES, CharSet};

/// Begins the topic of a post.
pub(super) const TOPIC: char = '\u{1}';
/// Begins another stretch that was cut.
pub(super) const CUT: char = '\u{2}';
/// Ends a stretch that was cut.
pub(super) const END: char = '\u{3}';
/// Begins the name of a user whose post is repeated behind it.
pub(super) const REPOST: char = '\u{5}';

/// Stands before a text that is code.
pub(super) const SOURCE_MARK: char = '\u{4}';

/// A stretch of a cleaned text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextStretch<'a> {
    /// Words of the author.
    Own(&'a str),
    /// A topic.
    Topic(&'a str),
    /// The name of a user whose post is repeated behind it.
    Repost(&'a str),
    /// Any other stretch that was cut.
    Cut(&'a str),
}

/// Returns the stretches of a cleaned text, in order.
pub(crate) fn stretches(cleaned: &str) -> impl Iterator<Item = TextStretch<'_>> {
    let mut rest = cleaned.strip_prefix(SOURCE_MARK).unwrap_or(cleaned);
    std::iter::from_fn(move || {
        let first = char::from(*rest.as_bytes().first()?);
        if !matches!(first, TOPIC | CUT | REPOST) {
            let (own, behind) = rest.split_at(next_mark(rest).unwrap_or(rest.len()));
            rest = behind;
            return Some(TextStretch::Own(own));
        }
        // The head of a text may end within a stretch.
        let end = memchr(END as u8, rest.as_bytes()).unwrap_or(rest.len());
        let inside = &rest[1..end];
        rest = rest.get(end + 1..).unwrap_or_default();
        Some(match first {
            TOPIC => TextStretch::Topic(inside),
            REPOST => TextStretch::Repost(inside),
            _ => TextStretch::Cut(inside),
        })
    })
}

/// Returns the place of the first mark that begins a stretch.
fn next_mark(text: &str) -> Option<usize> {
    memchr3(TOPIC as u8, CUT as u8, REPOST as u8, text.as_bytes())
}

/// Returns the topics of a cleaned text.
pub(super) fn topics(cleaned: &str) -> impl Iterator<Item = &str> {
    let some = memchr(TOPIC as u8, cleaned.as_bytes()).map(|_| stretches(cleaned));
    some.into_iter().flatten().filter_map(|stretch| match stretch {
        TextStretch::Topic(topic) => Some(topic),
        _ => None,
    })
}

/// Returns what the author wrote of a cleaned text. Where something was cut between two words of a spaced script, a
/// space stands. Cost: nothing if nothing was cut.
pub(super) fn own(cleaned: &str) -> Cow<'_, str> {
    let cleaned = cleaned.strip_prefix(SOURCE_MARK).unwrap_or(cleaned);
    if next_mark(cleaned).is_none() {
        return Cow::Borrowed(cleaned);
    }
    let mut out = String::with_capacity(cleaned.len());
    for stretch in stretches(cleaned) {
        if let TextStretch::Own(own) = stretch {
            join(&mut out, own);
        }
    }
    Cow::Owned(out)
}

/// Appends a stretch, behind a space if it would make one word of two.
fn join(out: &mut String, stretch: &str) {
    if out.ends_with(is_of_spaced_script) && stretch.starts_with(is_of_spaced_script) {
        out.push(' ');
    }
    out.push_str(stretch);
}

/// Returns what features are taken from: what the author wrote, without the particles 的了啊呀啦哦哇咯, which are added and
/// omitted at will, unless fewer than two units would be left. Cost: 0.5 ns a byte.
pub(super) fn compared(cleaned: &str) -> Cow<'_, str> {
    let own = own(cleaned);
    let Some(mut at) = particle(&own, 0) else { return own };
    let mut bare = String::with_capacity(own.len());
    let mut from = 0;
    loop {
        join(&mut bare, &own[from..at]);
        from = at + CHAR_BYTES;
        match particle(&own, from) {
            Some(next) => at = next,
            None => break,
        }
    }
    join(&mut bare, &own[from..]);
    if has_two_units(&bare) { Cow::Owned(bare) } else { own }
}

/// Particles that colour a sentence.
static PARTICLES: CharSet = CharSet::new("的了啊呀啦哦哇咯");

/// Returns the place of the first particle at a place of a text or behind it.
fn particle(text: &str, from: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = from;
    while let [first, second, third, ..] = bytes[at..] {
        // All characters that begin with these bytes have three; nearly all of a Chinese text do.
        if first & 0xF0 != 0xE0 {
            at += 1;
            continue;
        }
        if PARTICLES.contains_encoded([first, second, third]) {
            return Some(at);
        }
        at += CHAR_BYTES;
    }
    None
}

/// Whether a cleaned text has anything but white space. A document without text is nobody's duplicate.
pub fn has_text(cleaned: &str) -> bool {
    !cleaned.trim().is_empty()
}

/// Whether a text that was cleaned as a post or folded is code.
pub fn is_code(cleaned: &str) -> bool {
    cleaned.starts_with(SOURCE_MARK)
}

/// Returns a cleaned text as people read it: each stretch that was cut in angle brackets.
pub fn shown(cleaned: &str) -> String {
    let mut out = String::with_capacity(cleaned.len());
    for stretch in stretches(cleaned) {
        match stretch {
            TextStretch::Own(own) => out.push_str(own),
            TextStretch::Topic(cut) | TextStretch::Repost(cut) | TextStretch::Cut(cut) => {
                out.extend(["⟨", cut, "⟩"]);
            }
        }
    }
    out
}

/// Whether a cleaned text has at least two units. A unit is a word of a spaced script, or any other character
/// but the space.
pub(crate) fn has_two_units(text: &str) -> bool {
    let mut chars = text.chars();
    match chars.next() {
        None => false,
        Some(first) if !is_of_spaced_script(first) => chars.next().is_some(),
        Some(_) => chars.any(|c| !is_of_spaced_script(c)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_words_and_what_was_cut_are_told_apart() {
        let cleaned = "看这里\u{2}http\u{3}word\u{5}小明\u{3}word\u{1}春天\u{3}";
        assert_eq!(own(cleaned), "看这里word word");
        assert_eq!(shown(cleaned), "看这里⟨http⟩word⟨小明⟩word⟨春天⟩");
        assert_eq!(stretches(cleaned).last(), Some(TextStretch::Topic("春天")));
    }

    #[test]
    fn particles_go_unless_too_little_is_left() {
        for (text, expected) in [
            ("好的吧了", "好吧"),
            ("中文的了啊呀啦哦哇咯", "中文"),
            ("好的", "好的"),
            ("one的two", "one two"),
            ("吗呢", "吗呢"),
        ] {
            assert_eq!(compared(text), expected);
        }
    }

    #[test]
    fn a_head_may_end_within_a_stretch() {
        assert_eq!(own("看\u{2}htt"), "看");
        assert_eq!(own("看"), "看");
    }
}
