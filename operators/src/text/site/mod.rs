//! Recognises what a site, and not the author, has put into a text: tags of HTML, links, topics, names, emoticons,
//! cards, counters, and the heads of reposts. Nothing is recognised by its place alone. Source: docs/design/auto.md.

mod counter_words;
mod counters;
mod words;

use self::counters::counter;
use self::words::{BUTTONS, LINKS, VIDEOS, is_element, is_emoticon};

/// A stretch of a text that no author wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub kind: CutKind,
    /// Length in bytes.
    pub bytes: usize,
}

/// Kind of a stretch that is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CutKind {
    /// A tag or comment of HTML.
    Tag,
    /// A link.
    Link,
    /// A topic, such as `#spring#`.
    Topic,
    /// The name of a user.
    Name,
    /// The name of a user whose post is repeated behind it.
    Repost,
    /// An emoticon in brackets, such as `[泪]` and `《心》`.
    Emoticon,
    /// A number that a site counts.
    Counter,
    /// A link or video that Weibo shows as an icon and a title, or a button.
    Card,
}

/// Longest tag, in bytes. In 219,837 documents of all kinds true tags are shorter.
const MAX_TAG: usize = 702;
const MAX_TOPIC_CHARS: usize = 40;
const MAX_NAME_CHARS: usize = 30;
const MAX_EMOTICON_CHARS: usize = 8;
/// Shortest and longest title of a card, in characters.
const TITLE_CHARS: std::ops::RangeInclusive<usize> = 6..=40;
/// Longest name of a video's author, in characters.
const MAX_AUTHOR_CHARS: usize = 20;

/// Bytes with which a stretch may begin: nearly all bytes of a text are others.
const BEGINNINGS: [bool; 256] = {
    let mut table = [false; 256];
    let mut at = 0;
    let bytes = b"<hH#@[OL\xE30123456789";
    while at < bytes.len() {
        table[bytes[at] as usize] = true;
        at += 1;
    }
    table
};

/// Whether a stretch may begin at a place of a text, so that [`cut`] is asked seldom.
#[inline]
pub(super) fn may_begin(text: &str, at: usize) -> bool {
    let bytes = text.as_bytes();
    let first = bytes[at];
    if !BEGINNINGS[usize::from(first)] {
        return false;
    }
    let behind = bytes.get(at + 1).copied().unwrap_or(b' ');
    match first {
        b'h' | b'H' => matches!(behind, b't' | b'T'),
        b'O' | b'L' => behind >= 0x80,
        b'<' => behind.is_ascii_alphabetic() || matches!(behind, b'/' | b'!'),
        b'0'..=b'9' => at == 0 || !bytes[at - 1].is_ascii_digit(),
        0xE3 => bytes[at..].starts_with("《".as_bytes()),
        _ => true,
    }
}

/// Returns the stretch that begins at a place of a text in normal form.
///
/// `post`: whether a topic stands before the place, so that the text is a post of Weibo.
pub(super) fn cut(text: &str, at: usize, post: bool) -> Option<Cut> {
    let (before, rest) = text.split_at(at);
    let (kind, bytes) = match rest.as_bytes()[0] {
        b'<' => (CutKind::Tag, tag(before, rest)?),
        b'h' | b'H' => (CutKind::Link, link(before, rest)?),
        b'#' => (CutKind::Topic, topic(before, rest)?),
        b'@' => (if before.ends_with("//") { CutKind::Repost } else { CutKind::Name }, name(before, rest)?),
        b'[' => (CutKind::Emoticon, emoticon(rest, ']')?),
        0xE3 => (CutKind::Emoticon, emoticon(rest, '》').filter(|_| rest.starts_with('《'))?),
        b'0'..=b'9' => (CutKind::Counter, counter(text, at)?),
        _ => (CutKind::Card, card(before, rest, post)?),
    };
    Some(Cut { kind, bytes })
}

/// Returns the length of the tag or comment of HTML that a text begins with.
fn tag(before: &str, rest: &str) -> Option<usize> {
    let within = &rest[..rest.floor_char_boundary(MAX_TAG)];
    if let Some(comment) = within.strip_prefix("<!--") {
        return comment.find("-->").map(|end| "<!--".len() + end + "-->".len());
    }
    let end = 1 + within[1..].find(['<', '>']).filter(|&end| within.as_bytes()[1 + end] == b'>')?;
    let inside = &within[1..end];
    if inside.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("!doctype")) {
        return Some(end + 1);
    }
    let closing = inside.starts_with('/');
    let inside = inside.trim_start_matches('/').trim_end_matches('/');
    let (name, attributes) =
        inside.split_at(inside.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(inside.len()));
    // An attribute has a value, or else `a<b and c>d` would have a tag.
    let formed = attributes.trim().is_empty()
        || attributes.starts_with(char::is_whitespace) && attributes.contains('=');
    if !formed || !is_element(name) {
        return None;
    }
    // A single letter behind a word may be a parameter of a type, unless the tag is closed somewhere.
    let doubtful = name.len() == 1 && !closing && before.ends_with(|c: char| c.is_ascii_alphanumeric());
    (!doubtful || rest.contains(&format!("</{name}>"))).then_some(end + 1)
}

/// Returns the length of the link that a text begins with.
pub(super) fn link(before: &str, rest: &str) -> Option<usize> {
    let scheme = ["http://", "https://"]
        .into_iter()
        .find(|scheme| rest.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)))?;
    if before.ends_with(|c: char| c.is_ascii_alphanumeric()) {
        return None;
    }
    let inside = |c: char| {
        c.is_ascii_graphic()
            && !matches!(
                c,
                '"' | '<' | '>' | ',' | '(' | ')' | '[' | ']' | '|' | '`' | '{' | '}' | '\\' | '^'
            )
    };
    let end = rest.find(|c| !inside(c)).unwrap_or(rest.len());
    let link = rest[..end].trim_end_matches(['.', ',', ';', ':', '!', '?', '\'']);
    (link.len() > scheme.len()).then_some(link.len())
}

/// Returns the length of the topic that a text begins with: between two `#` that touch it, and behind no letter, as in
/// C#.
fn topic(before: &str, rest: &str) -> Option<usize> {
    let inside = &rest[1..];
    let end = inside.char_indices().take(MAX_TOPIC_CHARS + 1).find(|&(_, c)| c == '#' || c == '\n')?.0;
    let topic = &inside[..end];
    let touches = !topic.is_empty() && topic.trim() == topic && inside.as_bytes()[end] == b'#';
    (touches && !before.ends_with(|c: char| c.is_ascii_alphanumeric())).then_some(end + 2)
}

/// Returns the length of the name that a text begins with, the `@` included. Weibo puts a name behind white space,
/// punctuation or its own words, and ends it by white space or punctuation.
pub(super) fn name(before: &str, rest: &str) -> Option<usize> {
    let begins = ["回复", "转发", "转自", "来自", "感谢", "via", "by", "RT", "cc"]
        .into_iter()
        .any(|word| before.ends_with(word));
    let begins =
        begins || !before.ends_with(char::is_alphanumeric) && !before.ends_with(['.', '_', '-', '+']);
    let inside = rest.strip_prefix(['@', '＠'])?;
    let at = rest.len() - inside.len();
    let name = inside.char_indices().find(|&(_, c)| !c.is_alphanumeric() && !matches!(c, '_' | '-'));
    let end = name.map_or(inside.len(), |(end, _)| end);
    let chars = inside[..end].chars().count();
    let ends = name
        .is_none_or(|(_, c)| c.is_whitespace() || ":：,，.。!！?？;；、)）]】\"”》>@/#[【（《…~".contains(c));
    (begins && ends && (1..=MAX_NAME_CHARS).contains(&chars)).then_some(at + end)
}

/// Returns the length of the emoticon that a text begins with: a name in brackets.
pub(super) fn emoticon(rest: &str, close: char) -> Option<usize> {
    let (end, _) = rest.char_indices().skip(1).take(MAX_EMOTICON_CHARS + 1).find(|&(_, c)| c == close)?;
    let open = rest.chars().next().map_or(0, char::len_utf8);
    is_emoticon(&rest[open..end]).then_some(end + close.len_utf8())
}

/// Returns the length of a text without the button of Weibo's page that it ends with.
pub(super) fn without_button(text: &str) -> usize {
    let rest = text.trim_end();
    BUTTONS.into_iter().find_map(|button| rest.strip_suffix(button)).map_or(text.len(), str::len)
}

/// Returns the length of the card that a text begins with. Weibo shows a link as an icon and a title, and a video
/// as another icon, its author and these words; a scraper reads the icons as `O` and `L`.
fn card(before: &str, rest: &str, post: bool) -> Option<usize> {
    let icon = rest.as_bytes()[0];
    if before.ends_with(|c: char| c.is_ascii_alphanumeric()) || !matches!(icon, b'O' | b'L') {
        return None;
    }
    let inside = &rest[1..];
    if icon == b'L' {
        let author = inside.char_indices().take(MAX_AUTHOR_CHARS + 1);
        let mut ends = author.take_while(|&(_, c)| !c.is_whitespace() && c != '#').map(|(at, _)| at).skip(1);
        let video = |at: usize| VIDEOS.into_iter().find(|words| inside[at..].starts_with(words));
        return ends.find_map(|at| video(at).map(|words| 1 + at + words.len()));
    }
    if let Some(words) = LINKS.into_iter().find(|words| inside.starts_with(words)) {
        return Some(1 + words.len());
    }
    // The title of a card stands in a post that has a topic, behind a space, to the end of its sentence.
    let set_apart =
        post && before.ends_with(char::is_whitespace) && !inside.starts_with(['型', '形', '环', '字', '型']);
    let han = inside.starts_with(|c: char| ('\u{4E00}'..='\u{9FFF}').contains(&c) || c == '【');
    if !set_apart || !han {
        return None;
    }
    let ends = |c: char| matches!(c, '#' | '\n' | '。' | '?' | '!');
    let title: Vec<usize> =
        inside.chars().take(*TITLE_CHARS.end()).take_while(|&c| !ends(c)).map(char::len_utf8).collect();
    (title.len() >= *TITLE_CHARS.start()).then(|| 1 + title.iter().sum::<usize>())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The stretches that are cut out of a text.
    fn cuts(text: &str) -> Vec<&str> {
        let mut found = Vec::new();
        let mut at = 0;
        let mut post = false;
        while at < text.len() {
            let cut = if may_begin(text, at) { super::cut(text, at, post) } else { None };
            if let Some(cut) = cut {
                post |= cut.kind == CutKind::Topic;
                found.push(&text[at..at + cut.bytes]);
            }
            at += cut.map_or(1, |cut| cut.bytes);
        }
        found
    }

    #[test]
    fn what_a_site_has_added_is_cut() {
        for (text, expected) in [
            (
                "<p class=\"a\">好<br/>的</p><!-- end -->",
                vec!["<p class=\"a\">", "<br/>", "</p>", "<!-- end -->"],
            ),
            (
                "看 http://t.cn/AbC1，好(https://a.org/x?y=1).",
                vec!["http://t.cn/AbC1", "https://a.org/x?y=1"],
            ),
            ("#武汉加油##抗疫# 一起", vec!["#武汉加油#", "#抗疫#"]),
            ("好//@小明_1:转 @小红 看 回复@a:是", vec!["@小明_1", "@小红", "@a"]),
            ("哈[哈哈]ok[OK]《心》《红楼梦》", vec!["[哈哈]", "[OK]", "《心》"]),
            ("看O网页链接 L央视新闻的微博视频", vec!["O网页链接", "L央视新闻的微博视频"]),
            ("#药# 没有 O目前为止有专门的药物吗? ?", vec!["#药#", "O目前为止有专门的药物吗"]),
        ] {
            assert_eq!(cuts(text), expected, "{text}");
        }
    }

    #[test]
    fn a_button_is_cut_off_the_end() {
        assert_eq!(without_button("看 收起全文d\n"), "看 ".len());
        assert_eq!(without_button("收起全文d看"), "收起全文d看".len());
    }

    #[test]
    fn text_that_resembles_additions_of_a_site_stays() {
        for text in [
            "设实数a<b，故c>0。",
            "Vec<String> 和 Vec<u8>，Option<S> or Box<dyn Fn(a) -> b>",
            "if a<b and c>d, x < y > z",
            "<关于>的事 <h7> <unknown>",
            "公告[买入] 本题选[A] row[left] [ ] [x]",
            "通知@所有人明天停水，提醒@全体成员 今晚",
            "zhang@163.com git@example.com:team @GetMapping(\"/\")",
            "他是O型血，急需输血。仓库 O型圈 où oğlum o’clock L型",
            "GET,xhttp://a.cn/x http:// https",
            "C# and F# are, #1 foo #2, # 你好 #",
            "他 O目前为止有专门的药物吗",
        ] {
            assert_eq!(cuts(text), Vec::<&str>::new(), "{text}");
        }
    }
}
