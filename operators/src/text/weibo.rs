//! Parts of a Weibo post that are not its text.
//!
//! Source: Zhou 2017, section 2: emoji, URLs and @names are cut out, and the tail that a repost drags along.

use std::borrow::Cow;

/// Length of the longest name in square brackets that stands for an emoji, such as `[good]` or `[允悲]`, in
/// characters.
const MAX_EMOJI_CHARS: usize = 8;
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
        let skipped = match c {
            'h' | 'H' => url_bytes(rest),
            '@' | '＠' => match name_bytes(&rest[c.len_utf8()..]) {
                0 => 0,
                name => c.len_utf8() + name,
            },
            '[' => bracket_bytes(rest),
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

/// Returns the length in bytes of the URL that the text begins with, or 0.
fn url_bytes(text: &str) -> usize {
    let scheme = ["http://", "https://"]
        .into_iter()
        .find(|scheme| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)));
    let in_url = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '<' | '>');
    scheme.map_or(0, |_| text.find(|c| !in_url(c)).unwrap_or(text.len()))
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

/// Returns the length in bytes of the bracketed emoji name that the text begins with, or 0.
fn bracket_bytes(text: &str) -> usize {
    let inside = &text[1..];
    match inside.char_indices().take(MAX_EMOJI_CHARS + 1).find(|(_, c)| !c.is_alphanumeric()) {
        Some((end, ']')) if end > 0 => end + 2,
        _ => 0,
    }
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
    fn what_only_looks_like_one_stays() {
        for post in [
            "a@ b [] [这是一个很长的方括号里的句子] h",
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
