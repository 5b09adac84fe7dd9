//! The cleaning of `auto`: the words that an author wrote, and apart from them what a site has added. The steps and their
//! reasons are in docs/design/identity.md and auto.md.

use std::sync::Arc;

use super::cleaned::{CUT, END, REPOST, TOPIC, TextStretch, has_two_units, own, stretches};
use super::entities::decoded;
use super::letters::Letters;
use super::normal::{invisible, normalise, rules};
use super::site::{Cut, CutKind, cut, may_begin, without_button};
use super::source;

/// Cleans texts. Clones share tables of 384 KiB.
#[derive(Clone)]
pub(crate) struct Post {
    rules: Arc<[u16]>,
    letters: Letters,
    /// Text in normal form.
    normal: String,
    out: String,
}

/// Which stretches of a text are cut.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cutting {
    Nothing,
    Tags,
    Everything,
}

impl Post {
    pub fn new() -> Self {
        Post { rules: rules(), letters: Letters::new(), normal: String::new(), out: String::new() }
    }

    /// Returns what counts of a text, nothing cut: the form by which texts are identical.
    pub fn fold(&mut self, text: &str) -> &str {
        self.clean_by(text, &[Cutting::Nothing])
    }

    /// Returns what counts of a text, with what was cut between marks. The result is empty only if the text is empty or
    /// white space.
    pub fn clean(&mut self, text: &str) -> &str {
        self.clean_by(text, &[Cutting::Everything, Cutting::Tags, Cutting::Nothing])
    }

    /// Cleans a text by the first of the ways that leaves enough of it.
    fn clean_by(&mut self, text: &str, ways: &[Cutting]) -> &str {
        let read = decoded(text);
        if source::is_source(&read) {
            source::write(text, &mut self.out);
            return &self.out;
        }
        self.normal.clear();
        normalise(&self.rules, &read, &mut self.normal, |out, c| {
            if !invisible(c) {
                out.push(c);
            }
        });
        for &way in ways {
            self.out.clear();
            let cut = take(&self.letters, &self.normal, way, &mut self.out);
            if !cut.any || enough_left(&self.out, cut) {
                break;
            }
        }
        if self.out.is_empty() {
            self.out.extend(self.normal.chars().filter(|c| !c.is_whitespace()));
        }
        &self.out
    }
}

/// Account of the stretches that were cut out of a text.
#[derive(Clone, Copy, Default)]
struct Taken {
    any: bool,
    topics: bool,
    /// Bytes of topics, names and cards. Tags and links may be longer than any text.
    bytes: usize,
}

/// Least share of a text that must be kept: of this many bytes, without tags and links, at least one must be the
/// author's.
const MOST_CUT: usize = 10;

/// Whether enough is left of a text: two units, or one under a topic.
fn enough_left(cleaned: &str, cut: Taken) -> bool {
    let enough = |own: &str| {
        (has_two_units(own) || cut.topics && !own.is_empty()) && cut.bytes <= MOST_CUT * own.len()
    };
    // In most texts one stretch is enough, and the others need not be joined.
    let alone = |stretch| matches!(stretch, TextStretch::Own(own) if enough(own));
    stretches(cleaned).any(alone) || enough(&own(cleaned))
}

/// Appends what counts of a text in normal form to `out`, and what is cut between marks.
fn take(letters: &Letters, text: &str, way: Cutting, out: &mut String) -> Taken {
    let mut taken = Taken::default();
    let end = if way == Cutting::Everything { without_button(text) } else { text.len() };
    let (text, button) = text.split_at(end);
    let plain = |text: &str, out: &mut String| letters.take(text, out, |out, c| out.push(c), |_, _| 0);
    let stretch = |out: &mut String, at: usize| {
        let wanted = |found: &Cut| way == Cutting::Everything || found.kind == CutKind::Tag;
        let may_begin = way != Cutting::Nothing && may_begin(text, at);
        let found = if may_begin { cut(text, at, taken.topics).filter(wanted) } else { None };
        let Some(found) = found else { return 0 };
        let mark = match found.kind {
            CutKind::Topic => TOPIC,
            CutKind::Repost => REPOST,
            _ => CUT,
        };
        set_apart(out, mark, |out| plain(&text[at..at + found.bytes], out));
        taken.any = true;
        taken.topics |= found.kind == CutKind::Topic;
        if !matches!(found.kind, CutKind::Tag | CutKind::Link | CutKind::Counter) {
            taken.bytes += found.bytes;
        }
        found.bytes
    };
    letters.take(text, out, aside, stretch);
    if !button.is_empty() {
        taken.any = true;
        set_apart(out, CUT, |out| plain(button, out));
    }
    taken
}

/// Appends a pictograph or a question mark, set apart like an emoticon in brackets.
fn aside(out: &mut String, c: char) {
    set_apart(out, CUT, |out| out.push(c));
}

/// Appends what `inside` appends, between two marks, or nothing if it appends nothing.
fn set_apart(out: &mut String, mark: char, inside: impl FnOnce(&mut String)) {
    let start = out.len();
    out.push(mark);
    inside(out);
    if out.len() == start + mark.len_utf8() {
        out.truncate(start);
    } else {
        out.push(END);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::cleaned::shown;

    #[test]
    fn what_a_site_added_is_set_apart() {
        let mut post = Post::new();
        for (text, expected) in [
            ("看这里 http://t.cn/AbC1 好的[泪]", "看这里⟨http t cn/abc1⟩好的⟨泪⟩"),
            ("<p>今天&nbsp;天气</p>", "⟨p⟩今天天气⟨p⟩"),
            ("#春天# 好", "⟨春天⟩好"),
            ("[泪][泪]", "泪泪"),
            ("好的😀//@小明:不好", "好的⟨😀⟩⟨小明⟩不好"),
            ("。。。", "。。。"),
            ("", ""),
        ] {
            assert_eq!(shown(post.clean(text)), expected, "{text}");
        }
    }

    #[test]
    fn texts_that_say_the_same_have_one_form() {
        let mut post = Post::new();
        for texts in [
            ["It's", "It&#x27;s", "it’s"],
            ["後來的門", "后来的门", "后来的⻔"],
            ["二〇二〇年六月一日", "2020年6月1日", "２０２０年６月１日。"],
            ["٣ الباب", "3 الباب", "3، الباب"],
            ["ΣΚΥΛΟΣ", "σκυλος", "σκυλοσ"],
            ["Ещё", "еще", "ЕЩЕ"],
            ["中\u{200B}文", "中 文", "中\n文。"],
            ["−5度", "-5度", "–5度"],
            ["1,200元", "1200元", "1200 元"],
        ] {
            let [a, b, c] = texts.map(|text| post.fold(text).to_owned());
            assert_eq!([&a, &b], [&c, &c], "{texts:?}");
        }
    }

    #[test]
    fn texts_that_say_something_else_have_another_form() {
        let mut post = Post::new();
        for texts in [
            ["他是O型血，急需输血", "他是O型血，找到捐献者"],
            ["Vec<String>", "Vec<u8>"],
            ["公告[买入]", "公告[卖出]"],
            ["通知@所有人明天停水", "通知@所有人明天放假"],
            ["zhang@163.com", "zhang@qq.com"],
            ["เสือ", "เสื้อ"],
            ["-5度", "5度"],
            ["C++", "C#"],
            ["3:1", "3.1"],
            ["a > b", "a < b"],
            ["x+y", "x-y"],
            ["10²平方米", "102平方米"],
            ["1½", "11/2"],
            ["你来了？", "你来了。"],
            ["+3.2 %", "-3.2 %"],
            ["三年", "八年"],
            ["$900", "€900"],
            ["吃饭了", "吃饭吧"],
        ] {
            let [a, b] = texts.map(|text| post.fold(text).to_owned());
            assert_ne!(a, b, "{texts:?}");
        }
    }

    #[test]
    fn identical_texts_are_identical_in_what_was_cut() {
        let mut post = Post::new();
        for texts in [
            ["今天好 http://a.cn/1", "今天好 http://a.cn/2"],
            ["今天好[泪]", "今天好[心]"],
            ["今天好😀", "今天好"],
        ] {
            let [a, b] = texts.map(|text| post.clean(text).to_owned());
            assert_ne!(a, b);
            assert_eq!(own(&a), own(&b));
        }
    }
}
