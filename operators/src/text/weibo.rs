//! Parts of a Weibo post that are not its text.
//!
//! Source: Zhou 2017, section 2: emoji, URLs and @names are cut out, and the tail that a repost drags along. What is a
//! URL, a name or an emoji is recognised as `auto` does.

use std::borrow::Cow;

use super::site::{emoticon, link, name};

/// Length of the longest name before a colon that is taken for the name of a user, in characters.
const MAX_NAME_CHARS: usize = 30;

/// Returns the post without URLs, @names, emoji and the tail of a repost, or the whole post if nothing would
/// be left.
pub fn strip(post: &str) -> Cow<'_, str> {
    let tail = post.match_indices('/').map(|(at, _)| at).find(|&at| is_tail(&post[..at], &post[at..]));
    let own = &post[..tail.unwrap_or(post.len())];
    let mut out = String::with_capacity(own.len());
    let mut rest = own;
    while let Some(c) = rest.chars().next() {
        let before = &own[..own.len() - rest.len()];
        let skipped = match c {
            'h' | 'H' => link(before, rest).unwrap_or(0),
            '@' | '＠' => name(before, rest).unwrap_or(0),
            '[' => emoticon(rest, ']').unwrap_or(0),
            _ if is_emoji(c) => c.len_utf8(),
            _ => 0,
        };
        if skipped == 0 {
            out.push(c);
        }
        rest = &rest[skipped.max(c.len_utf8())..];
    }
    if out.trim().is_empty() { Cow::Borrowed(post) } else { Cow::Owned(out) }
}

/// Whether the text is the tail of a repost. A tail begins with `//@`, or with `//name:` as the paper prints
/// it, unless that is part of a URL.
fn is_tail(before: &str, text: &str) -> bool {
    let Some(from) = text.strip_prefix("//") else { return false };
    let name = &from[..name_bytes(from)];
    let named = (1..=MAX_NAME_CHARS).contains(&name.chars().count())
        && from[name.len()..].starts_with([':', '：'])
        && !before.ends_with([':', '/']);
    named || from.starts_with(['@', '＠'])
}

/// Returns the length in bytes of the name that the text begins with, or 0. A name consists of letters,
/// digits, `_` and `-`.
fn name_bytes(text: &str) -> usize {
    text.find(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-')).unwrap_or(text.len())
}

/// Whether a character is a pictograph, or joins pictographs.
fn is_emoji(c: char) -> bool {
    matches!(c, '\u{1F000}'..='\u{1FAFF}' | '\u{2600}'..='\u{27BF}' | '\u{FE0F}' | '\u{200D}' | '\u{20E3}' | '\u{2B50}')
}

#[cfg(test)]
mod tests {
    use super::strip;

    /// The example of Zhou 2017, section 2.
    #[test]
    fn a_repost_is_the_post_that_it_reposts() {
        assert_eq!(strip("今天是晴天.//A:xxx//B:XXX"), "今天是晴天.");
        assert_eq!(strip("今天是晴天.//@A:xxx//@B:XXX"), "今天是晴天.");
        assert_eq!(strip("今天是晴天。http://t.cn/AbC1//小明_1：转发"), "今天是晴天。");
        assert_eq!(strip("今天是晴天///＠A:xxx"), "今天是晴天/");
    }

    #[test]
    fn links_names_and_emoji_go() {
        assert_eq!(strip("看[哈哈]这里😀http://t.cn/AbC1 @小明_1：好✨"), "看这里 ：好");
        assert_eq!(strip("HTTPS://t.cn/x中文"), "中文");
    }

    #[test]
    fn text_that_resembles_links_names_and_tails_stays() {
        for post in [
            "a@ b [] [这是一个很长的方括号里的句子] h",
            "公告[买入] zhang@163.com 通知@所有人明天停水",
            "早//晚都好",
            "ftp://name:80 file:///c:/x",
            "一//这一段话比任何人的名字都要长得多所以它不会是一个名字而是正文的一部分：好",
        ] {
            assert_eq!(strip(post), post);
        }
    }

    #[test]
    fn a_post_of_nothing_else_stays_whole() {
        assert_eq!(strip("//@小明:转发"), "//@小明:转发");
        assert_eq!(strip("@小明 [赞]"), "@小明 [赞]");
    }
}
