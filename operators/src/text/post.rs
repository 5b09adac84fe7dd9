//! The cleaning of `auto`: the words that the author of a post, or of any text, wrote. The steps and their
//! reasons are in docs/design/0037.

use std::sync::Arc;

use memchr::{memchr2, memchr2_iter, memchr3, memmem};

use super::letters::{Letters, two_units};
use super::normal::{lower_rules, normalise};
use super::topics::{TOPIC_MARK, each_topic};

/// Longest tag, counted from its second character on. A limit is needed because the `<` of a formula is no
/// tag.
const MAX_TAG_CHARS: usize = 702;
const MAX_TOPIC_CHARS: usize = 40;
const MAX_NAME_CHARS: usize = 30;
const MAX_EMOJI_CHARS: usize = 8;

/// Longest title of a link, in characters.
const MAX_TITLE_CHARS: usize = 40;
/// Longest name of a video's author, in characters.
const MAX_AUTHOR_CHARS: usize = 20;

/// Cleans posts. Clones share tables of 192 KiB.
#[derive(Clone)]
pub(crate) struct Post {
    rules: Arc<[u16]>,
    letters: Letters,
    /// Text in NFKC and lower case.
    normal: String,
    /// Text without markup.
    plain: String,
    /// Text without links, topics, names and names of emoji.
    own: String,
    /// Topics of the text, each between two marks.
    topics: String,
    /// Letters and digits of a topic.
    topic: String,
    out: String,
}

impl Post {
    pub fn new() -> Self {
        let [normal, plain, own, topics, topic, out] = Default::default();
        Post { rules: lower_rules(), letters: Letters::new(), normal, plain, own, topics, topic, out }
    }

    /// Returns the body of a text, and behind it the topics that were cut out of it: letters and digits, with a
    /// space between words and a mark before each topic. The result is empty only if the text is empty or white
    /// space.
    pub fn clean(&mut self, text: &str) -> &str {
        self.normal.clear();
        normalise(&self.rules, text, &mut self.normal, |out, c| match c.is_ascii() {
            true => out.push(c.to_ascii_lowercase()),
            false => out.extend(c.to_lowercase()),
        });
        let normal = self.normal.as_bytes();
        let tag = |from: usize| memchr2(b'<', b'&', &normal[from..]).map(|at| from + at);
        let marked = replace(&self.normal, &mut self.plain, tag, markup_bytes, |_| {});
        let plain = if marked { &self.plain } else { &self.normal };
        self.topics.clear();
        let mut addresses = Addresses::new(plain);
        let cut = replace(
            plain,
            &mut self.own,
            |from| addresses.next(from),
            address_bytes,
            |address| {
                if address.starts_with(TOPIC_MARK) {
                    self.topics.push_str(address);
                }
            },
        );
        if cut && body(&mut self.letters, &self.own, &mut self.out) {
            self.add_topics();
            return &self.out;
        }
        // Nothing was cut out, or too little stays without it.
        if body(&mut self.letters, plain, &mut self.out) {
            return &self.out;
        }
        if self.out.is_empty() {
            self.out.extend(self.normal.chars().filter(|c| !c.is_whitespace()));
        }
        &self.out
    }

    fn add_topics(&mut self) {
        for topic in each_topic(&self.topics) {
            self.letters.take(topic, true, &mut self.topic);
            if !self.topic.is_empty() {
                self.out.push(TOPIC_MARK);
                self.out.push_str(&self.topic);
            }
        }
    }
}

/// Replaces `out` by the letters and digits of a text, without its particles if it can do without them. Returns
/// whether they are at least two units.
fn body(letters: &mut Letters, text: &str, out: &mut String) -> bool {
    [false, true].into_iter().any(|particles| {
        letters.take(text, particles, out);
        two_units(out)
    })
}

/// Copies a text to `out` with a space in place of each part to cut, and returns whether there was one. If
/// there was none, nothing is copied.
///
/// `next`: finds the first place, from an offset on, where such a part may begin. `length`: measures the part
/// that its argument begins with, in bytes, or 0. `cut`: is called with each part.
fn replace(
    text: &str,
    out: &mut String,
    mut next: impl FnMut(usize) -> Option<usize>,
    length: impl Fn(&str) -> usize,
    mut cut: impl FnMut(&str),
) -> bool {
    out.clear();
    let (mut start, mut from) = (0, 0);
    while let Some(at) = next(from) {
        let bytes = length(&text[at..]);
        if bytes > 0 {
            out.push_str(&text[start..at]);
            out.push(' ');
            cut(&text[at..at + bytes]);
            start = at + bytes;
        }
        from = (at + 1).max(start);
    }
    if start > 0 {
        out.push_str(&text[start..]);
    }
    start > 0
}

/// Returns the length in bytes of the tag or entity that the text begins with, or 0.
fn markup_bytes(text: &str) -> usize {
    let bytes = text.as_bytes();
    let run = |from: usize, most: usize, of: fn(&u8) -> bool| {
        bytes[from.min(bytes.len())..].iter().take(most).take_while(|&byte| of(byte)).count()
    };
    if bytes[0] == b'<' {
        let tag = bytes.get(1).is_some_and(|byte| byte.is_ascii_lowercase() || matches!(byte, b'/' | b'!'));
        let mut inside = text.char_indices().skip(1).take(MAX_TAG_CHARS);
        let end = inside.find(|&(_, c)| matches!(c, '<' | '>')).map(|(at, _)| at);
        return end.filter(|&end| tag && bytes[end] == b'>').map_or(0, |end| end + 1);
    }
    let closed = |end: usize| if bytes.get(end) == Some(&b';') { end + 1 } else { 0 };
    if bytes.starts_with(b"&nbsp") {
        return closed(5).max(5);
    }
    if bytes.get(1) == Some(&b'#') {
        let digits = run(2, 7, u8::is_ascii_digit);
        return if digits > 0 { closed(2 + digits) } else { 0 };
    }
    let letters = run(1, 8, u8::is_ascii_lowercase);
    if letters >= 2 { closed(1 + letters) } else { 0 }
}

/// Places where a URL, a topic, a name, an emoji's name or a card may begin: the next mark, the next `http` and
/// the next card, as far as they are known.
struct Addresses<'a> {
    text: &'a [u8],
    mark: Option<usize>,
    http: Option<usize>,
    card: Option<usize>,
}

impl<'a> Addresses<'a> {
    fn new(text: &'a str) -> Self {
        let text = text.as_bytes();
        Addresses {
            text,
            mark: memchr3(b'#', b'@', b'[', text),
            http: memmem::find(text, b"http"),
            card: card(text, 0),
        }
    }

    /// Finds the first place at `from` or behind it. Each mark is searched for once, so all calls together
    /// cost one pass.
    fn next(&mut self, from: usize) -> Option<usize> {
        if self.mark.is_some_and(|at| at < from) {
            self.mark = memchr3(b'#', b'@', b'[', &self.text[from..]).map(|at| from + at);
        }
        if self.http.is_some_and(|at| at < from) {
            self.http = memmem::find(&self.text[from..], b"http").map(|at| from + at);
        }
        if self.card.is_some_and(|at| at < from) {
            self.card = card(self.text, from);
        }
        [self.mark, self.http, self.card].into_iter().flatten().min()
    }
}

/// Finds the first `o` or `l` at `from` or behind it that may be the icon of a card: it stands between a
/// character that is no letter of ASCII and one that is not of ASCII.
fn card(text: &[u8], from: usize) -> Option<usize> {
    let mut icons = memchr2_iter(b'o', b'l', &text[from..]).map(|at| from + at);
    icons.find(|&at| {
        let before = at.checked_sub(1).is_some_and(|before| text[before].is_ascii_alphanumeric());
        !before && text.get(at + 1).is_some_and(|after| !after.is_ascii())
    })
}

/// Returns the length in bytes of the URL, topic, name, emoji's name or card that the text begins with, or 0.
fn address_bytes(text: &str) -> usize {
    let named =
        |most: usize, of: fn(char) -> bool| text.char_indices().skip(1).take(most + 1).find(|&(_, c)| !of(c));
    match text.as_bytes()[0] {
        b'h' => {
            let scheme = ["http:", "https:"].into_iter().find(|scheme| text.starts_with(scheme));
            let in_url = |c: char| c.is_ascii_graphic();
            scheme.map_or(0, |_| text.find(|c| !in_url(c)).unwrap_or(text.len()))
        }
        b'#' => match named(MAX_TOPIC_CHARS, |c| c != '#' && c != '\n') {
            Some((end, '#')) if end > 1 => end + 1,
            _ => 0,
        },
        b'[' => match named(MAX_EMOJI_CHARS, char::is_alphanumeric) {
            Some((end, ']')) if end > 1 => end + 1,
            _ => 0,
        },
        b'o' | b'l' => card_bytes(text),
        _ => {
            let name = text.chars().skip(1).take(MAX_NAME_CHARS);
            let name: usize =
                name.take_while(|&c| c.is_alphanumeric() || matches!(c, '_' | '-')).map(char::len_utf8).sum();
            if name > 0 { 1 + name } else { 0 }
        }
    }
}

/// Returns the length in bytes of the card that the text begins with, or 0. Weibo shows a link as an icon and a
/// title, and a video as another icon, its author and these words; a scraper reads the icons as `O` and `L`.
fn card_bytes(text: &str) -> usize {
    let inside = &text[1..];
    if text.starts_with('o') {
        let link = "网页链接";
        let ends = |c: char| matches!(c, '#' | '\n' | '。' | '?' | '!');
        let title = inside.chars().take(MAX_TITLE_CHARS).take_while(|&c| !ends(c)).map(char::len_utf8).sum();
        let bytes = if inside.starts_with(link) { link.len() } else { title };
        return if bytes > 0 { 1 + bytes } else { 0 };
    }
    let author = inside.char_indices().take(MAX_AUTHOR_CHARS + 1);
    let mut ends = author.take_while(|&(_, c)| !c.is_whitespace() && c != '#').map(|(at, _)| at).skip(1);
    let video =
        |at: usize| ["的微博视频", "的秒拍视频"].into_iter().find(|name| inside[at..].starts_with(name));
    ends.find_map(|at| video(at).map(|name| 1 + at + name.len())).unwrap_or(0)
}
