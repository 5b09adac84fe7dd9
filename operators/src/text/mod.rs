//! Texts: cleaning, by which texts that a reader takes for the same become equal strings, and features.
//!
//! Features are hashes of characters or words of a cleaned text; the document frequency of a feature says how
//! rare it is in a corpus. This room uses `hash` and `record` alone; `sets`, `method` and the jobs use it.

pub mod document_frequencies;
pub mod features;
mod letters;
mod post;
mod weibo;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use memchr::memchr2_iter;
use unicode_normalization::char::canonical_combining_class;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use self::post::Post;

/// Cleaning that a text undergoes before features are taken from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clean {
    /// No cleaning, except that a tab and a newline are read as a space.
    None,
    /// Unicode NFKC (full width becomes half width). Control and invisible characters are dropped, each run
    /// of white space becomes one space, and there is none at the ends.
    #[default]
    Nfkc,
    /// The words of the author in lower case: letters and digits alone, without markup, links, topics, names
    /// and particles. Source: docs/design/0037.
    Post,
    /// URLs, @names, emoji and the `//@name:` tail of a repost are cut out, unless nothing would be left;
    /// then the text is cleaned as by `Nfkc`. Source: Zhou 2017, section 2.
    Weibo,
}

impl Clean {
    /// Parses `none`, `nfkc`, `post` or `weibo`.
    pub fn parse(text: &str) -> Option<Self> {
        [Clean::None, Clean::Nfkc, Clean::Post, Clean::Weibo]
            .into_iter()
            .find(|clean| clean.to_string() == text)
    }
}

impl fmt::Display for Clean {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Clean::None => "none",
            Clean::Nfkc => "nfkc",
            Clean::Post => "post",
            Clean::Weibo => "weibo",
        })
    }
}

/// Cleans texts. Clones share tables of up to 192 KiB.
#[derive(Clone)]
pub struct Cleaner {
    how: How,
    out: String,
}

#[derive(Clone)]
enum How {
    None,
    Nfkc(Arc<[u16]>),
    Post(Box<Post>),
    Weibo(Arc<[u16]>),
}

/// Entry of the table: the character needs its neighbours to be normalised.
const SLOW: u16 = 0;
/// Entry of the table: the character is dropped. (No character stays or becomes U+0001.)
const DROP: u16 = 1;
/// Entry of the table: white space. (No character stays or becomes U+0002.)
const SPACE: u16 = 2;

impl Cleaner {
    /// Makes a cleaner. Cost: some 10 ms for the tables.
    pub fn new(clean: Clean) -> Self {
        let rules = || (0..=u16::MAX).map(rule).collect();
        let how = match clean {
            Clean::None => How::None,
            Clean::Nfkc => How::Nfkc(rules()),
            Clean::Post => How::Post(Box::new(Post::new())),
            Clean::Weibo => How::Weibo(rules()),
        };
        Cleaner { how, out: String::new() }
    }

    /// Returns the cleaned text. Cost: 2 ns a byte; 4 for posts.
    pub fn clean<'a>(&'a mut self, text: &'a str) -> &'a str {
        let (rules, text) = match &mut self.how {
            How::None => return spaced(text, &mut self.out),
            How::Post(post) => return post.clean(text),
            How::Nfkc(rules) => (rules, Cow::Borrowed(text)),
            How::Weibo(rules) => (rules, weibo::strip(text)),
        };
        self.out.clear();
        normalise(rules, &text, &mut self.out, push);
        if self.out.ends_with(' ') {
            self.out.pop();
        }
        &self.out
    }
}

/// Returns the text with a space for each tab and newline.
fn spaced<'a>(text: &'a str, out: &'a mut String) -> &'a str {
    out.clear();
    let mut rest = 0;
    for at in memchr2_iter(b'\t', b'\n', text.as_bytes()) {
        out.push_str(&text[rest..at]);
        out.push(' ');
        rest = at + 1;
    }
    if rest == 0 {
        return text;
    }
    out.push_str(&text[rest..]);
    out
}

/// Appends the normal form of a text to `out`.
///
/// A character whose entry in the table is itself is copied. Any other character is replaced by its entry, or
/// normalised by NFKC together with its neighbours where the entry is [`SLOW`]; the results of both are
/// appended by `push`.
pub(crate) fn normalise(table: &[u16], text: &str, out: &mut String, push: impl Fn(&mut String, char)) {
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
pub(crate) fn begins_with_han(text: &[u8]) -> bool {
    matches!(text, [first, second, _, ..] if matches!(u16::from_be_bytes([*first, *second]), 0xE4B8..=0xE9BF))
}

/// Returns the table of NFKC followed by lower case.
pub(crate) fn lower_rules() -> Arc<[u16]> {
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

/// Appends a normalised character. Invisible characters are dropped; white space becomes one space, and none
/// at the start.
fn push(out: &mut String, c: char) {
    if c.is_whitespace() {
        if !out.is_empty() && !out.ends_with(' ') {
            out.push(' ');
        }
    } else if !invisible(c) {
        out.push(c);
    }
}

/// Whether a character is a control character that is not white space, or a mark of direction, joining or
/// byte order.
fn invisible(c: char) -> bool {
    let mark = matches!(c, '\u{AD}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2064}' | '\u{FEFF}');
    mark || c.is_control() && !c.is_whitespace()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition of `Nfkc`, character after character.
    fn slowly(text: &str) -> String {
        let mut out = String::new();
        text.nfkc().for_each(|c| push(&mut out, c));
        out.trim_end().to_owned()
    }

    #[test]
    fn width_and_white_space_do_not_matter() {
        let mut cleaner = Cleaner::new(Clean::Nfkc);
        assert_eq!(cleaner.clean("\u{FEFF}　Ａｂｃ，１２\t\r\n 中文\u{0}…\u{200B} "), "Abc,12 中文...");
        assert_eq!(cleaner.clean("Ａ\u{300}ｶﾞ"), "Àガ");
        assert_eq!(cleaner.clean(" 　"), "");
    }

    #[test]
    fn no_cleaning_leaves_all_but_tabs_and_newlines() {
        assert_eq!(Cleaner::new(Clean::None).clean(" Ａ\u{0}\t\r\n\n"), " Ａ\u{0} \r  ");
    }

    #[test]
    fn what_is_passed_over_as_chinese_is_three_bytes_that_stay() {
        let han = |c: &char| begins_with_han(c.to_string().as_bytes());
        assert!(('\0'..=char::MAX).filter(han).eq('\u{4E00}'..='\u{9FFF}'));
        let stays = |c: char| rule(c as u16) == c as u16 && c.len_utf8() == 3 && c.to_lowercase().eq([c]);
        assert_eq!(('\u{4E00}'..='\u{9FFF}').find(|&c| !stays(c)), None);
    }

    #[test]
    fn a_tab_and_a_newline_are_a_space_without_cleaning() {
        let mut cleaner = Cleaner::new(Clean::None);
        for (text, read) in [("", ""), ("\t", " "), ("\n\n", "  "), ("a\tb\nc", "a b c"), ("a\rb", "a\rb")] {
            assert_eq!(cleaner.clean(text), read);
        }
    }

    proptest! {
        #[test]
        fn the_table_equals_normalising_by_the_book(
            text in prop::collection::vec(
                prop_oneof![any::<char>(), (0x20u32..0x3100).prop_map(|c| char::from_u32(c).unwrap()),
                    prop::sample::select("中文，Ａｶﾞ각각ᄀ\u{300}\u{327}é\u{0} 　\n…ﬁ㎏\u{200B}".chars().collect::<Vec<_>>())],
                0..40,
            ).prop_map(|chars| chars.into_iter().collect::<String>()),
        ) {
            let mut cleaner = Cleaner::new(Clean::Nfkc);
            prop_assert_eq!(cleaner.clean(&text), slowly(&text));
        }
    }
}
