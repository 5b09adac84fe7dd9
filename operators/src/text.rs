//! Cleaning: what is the same text to a reader becomes the same text here.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use unicode_normalization::char::canonical_combining_class;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use crate::post::Post;
use crate::weibo;

/// What is done to a text before features are taken from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clean {
    /// Nothing, but that a tab and a newline are read as a space.
    None,
    /// Unicode NFKC (full width becomes half width), control and invisible characters dropped, white space
    /// made one space, none at the ends.
    #[default]
    Nfkc,
    /// What the author wrote, in lower case: letters and digits alone, without markup, links, topics, names and
    /// particles. Source: docs/design/0013.
    Post,
    /// First URLs, @names, emoji and the `//@name:` tail of a repost are cut out, unless nothing would be
    /// left; then as `Nfkc`. Source: Zhou 2017, section 2.
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

/// Cleans texts. Its clones share one table of 128 KiB.
#[derive(Clone)]
pub struct Cleaner {
    clean: Clean,
    table: Arc<[u16]>,
    post: Option<Post>,
    out: String,
}

/// In the table: the character needs its neighbours to be normalised.
const SLOW: u16 = 0;
/// In the table: the character is dropped. (No character stays or becomes U+0001.)
const DROP: u16 = 1;
const SPACE: u16 = b' ' as u16;

impl Cleaner {
    /// Cost: some 10 ms for the table.
    pub fn new(clean: Clean) -> Self {
        let table = match clean {
            Clean::None | Clean::Post => Arc::from([]),
            Clean::Nfkc | Clean::Weibo => (0..=u16::MAX).map(rule).collect(),
        };
        Cleaner { clean, table, post: (clean == Clean::Post).then(Post::new), out: String::new() }
    }

    /// The cleaned text. Cost: about 1 ns a byte.
    pub fn clean<'a>(&'a mut self, text: &'a str) -> &'a str {
        if let Some(post) = &mut self.post {
            return post.clean(text);
        }
        let text = match self.clean {
            Clean::None if !text.bytes().any(is_break) => return text,
            Clean::None => {
                self.out.clear();
                self.out
                    .extend(text.chars().map(|c| if c.is_ascii() && is_break(c as u8) { ' ' } else { c }));
                return &self.out;
            }
            Clean::Nfkc | Clean::Post => Cow::Borrowed(text),
            Clean::Weibo => weibo::strip(text),
        };
        self.out.clear();
        normalise(&self.table, &text, &mut self.out, push);
        if self.out.ends_with(' ') {
            self.out.pop();
        }
        &self.out
    }
}

/// Appends the normal form of a text to `out`: of each character what the table of rules has, and of those that need
/// their neighbours NFKC, all but what stays as it is by `push`.
pub(crate) fn normalise(table: &[u16], text: &str, out: &mut String, push: impl Fn(&mut String, char)) {
    let rule = |c: char| table.get(c as usize).copied().unwrap_or(SLOW);
    let mut rest = text;
    loop {
        // Nearly all characters stay as they are: pass over them, and copy them at once.
        let (mut at, mut last) = (0, None);
        let stop = loop {
            // U+5000 to U+9FFF, most of Chinese, is known by its first byte and never changes.
            if let Some(0xE5..=0xE9) = rest.as_bytes().get(at) {
                last = Some(at);
                at += 3;
                continue;
            }
            let Some(c) = rest[at..].chars().next() else { break None };
            let rule = rule(c);
            if u32::from(rule) != c as u32 || rule == SPACE {
                break Some((at, c, rule));
            }
            last = Some(at);
            at += c.len_utf8();
        };
        let Some((at, c, replacement)) = stop else { break };
        let after = at + c.len_utf8();
        // A character that needs its neighbours takes the one before it along, and all such after it.
        let slow_next = rest[after..].chars().next().is_some_and(|c| rule(c) == SLOW);
        let start = if replacement == SLOW { last.unwrap_or(at) } else { at };
        out.push_str(&rest[..start]);
        if replacement != SLOW && !slow_next {
            char::from_u32(replacement.into()).into_iter().for_each(|c| push(out, c));
            rest = &rest[after..];
        } else {
            let end = rest[after..].find(|c| rule(c) != SLOW).map_or(rest.len(), |length| after + length);
            rest[start..end].nfkc().for_each(|c| push(out, c));
            rest = &rest[end..];
        }
    }
    out.push_str(rest);
}

/// The rules of NFKC and lower case.
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

/// A tab or a newline.
fn is_break(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n')
}

/// What becomes of a character of the basic plane when its neighbours do not matter.
fn rule(code: u16) -> u16 {
    match alone(code) {
        None => SLOW,
        Some(only) if invisible(only) => DROP,
        Some(only) if only.is_whitespace() => SPACE,
        Some(only) => u16::try_from(only as u32).unwrap_or(SLOW),
    }
}

/// What NFKC makes of a character of the basic plane, if that is one character whatever its neighbours are.
fn alone(code: u16) -> Option<char> {
    let c = char::from_u32(code.into())?;
    let mut normal = std::iter::once(c).nfkc();
    let (Some(only), None) = (normal.next(), normal.next()) else { return None };
    let alone = canonical_combining_class(only) == 0
        && canonical_combining_class(c) == 0
        && is_nfc_quick(std::iter::once(only)) == IsNormalized::Yes;
    alone.then_some(only)
}

/// Adds a normalised character, unless it cannot be seen; white space at most once, and not first.
fn push(out: &mut String, c: char) {
    if c.is_whitespace() {
        if !out.is_empty() && !out.ends_with(' ') {
            out.push(' ');
        }
    } else if !invisible(c) {
        out.push(c);
    }
}

/// Control characters that are not white space, and marks of direction, joining and byte order.
fn invisible(c: char) -> bool {
    let mark = matches!(c, '\u{AD}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2064}' | '\u{FEFF}');
    mark || c.is_control() && !c.is_whitespace()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same by the book, character after character.
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
    fn what_is_passed_over_by_its_first_byte_stays() {
        assert_eq!(('\u{5000}'..='\u{9FFF}').find(|&c| rule(c as u16) != c as u16), None);
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
