//! Texts: cleaning, by which texts that a reader takes for the same become equal strings, and features.
//!
//! Features are hashes of characters or words of a cleaned text; the document frequency of a feature says how
//! rare it is in a corpus. `segmenter` cuts Chinese texts into words, as jieba does. This room uses `hash`,
//! `record` and `error` alone; `sets`, `method`, `classify.rs` and the jobs use it.

pub mod cleaned;
pub mod document_frequencies;
mod entities;
pub mod features;
pub mod ignored_lines;
pub(crate) mod letters;
mod normal;
mod post;
pub mod segmenter;
mod site;
mod source;
pub(crate) mod topics;
pub mod units;
mod weibo;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use memchr::memchr2_iter;
use serde::{Deserialize, Serialize};

use self::normal::{invisible, normalise, spaced_rules};
use self::post::Post;

/// Cleaning that a text undergoes before features are taken from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Clean {
    /// No cleaning, except that a tab and a newline are read as a space.
    None,
    /// Unicode NFKC (full width becomes half width), but for superscripts and fractions. Control and invisible
    /// characters are dropped, each run of white space becomes one space, and there is none at the ends.
    #[default]
    Nfkc,
    /// Letters, digits, marks and signs alone, in one form whatever their case, script and width. Two texts are identical
    /// if this form is equal. Source: docs/design/identity.md.
    Fold,
    /// As by `Fold`, and what a site has added (tags, links, topics, names, emoticons, cards) is set apart from the words of
    /// the author. Source: docs/design/auto.md.
    Post,
    /// URLs, @names, emoji and the `//@name:` tail of a repost are cut out, unless nothing would be left;
    /// then the text is cleaned as by `Nfkc`. Source: Zhou 2017, section 2.
    Weibo,
}

impl fmt::Display for Clean {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
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
    Fold(Box<Post>),
    Post(Box<Post>),
    Weibo(Arc<[u16]>),
}

impl Cleaner {
    /// Makes a cleaner. Cost: some 10 ms for the tables.
    pub fn new(clean: Clean) -> Self {
        let how = match clean {
            Clean::None => How::None,
            Clean::Nfkc => How::Nfkc(spaced_rules()),
            Clean::Fold => How::Fold(Box::new(Post::new())),
            Clean::Post => How::Post(Box::new(Post::new())),
            Clean::Weibo => How::Weibo(spaced_rules()),
        };
        Cleaner { how, out: String::new() }
    }

    /// Whether the cleaning reads code in its own way, and marks it.
    pub fn knows_code(&self) -> bool {
        matches!(self.how, How::Fold(_) | How::Post(_))
    }

    /// Returns the cleaned text. Cost: 2 ns a byte; 4 for posts.
    pub fn clean<'a>(&'a mut self, text: &'a str) -> &'a str {
        let (rules, text) = match &mut self.how {
            How::None => return spaced(text, &mut self.out),
            How::Fold(post) => return post.fold(text),
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition of `Nfkc`, character after character.
    fn slowly(text: &str) -> String {
        let mut out = String::new();
        normal::each_normal(text, |c| push(&mut out, c));
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
