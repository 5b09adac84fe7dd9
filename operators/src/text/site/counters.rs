//! Numbers that a site counts beside a text: how often it was read, answered and praised, and how long ago it was written.
//!
//! They differ in every copy of a page. A number counts only beside one of these words, and only where no sentence goes on
//! behind it: 阅读 1023 is a counter, 阅读3本书 is none.

use std::sync::LazyLock;

use foldhash::HashMap;

use super::counter_words::{AGO, LABELS, NAMES, TIMES, UNITS};
use crate::text::letters::char_set::CharSet;

/// Least length in bytes of a text that has counters beside it.
const LEAST_TEXT: usize = 48;

/// Whether a character stands between a label and its number.
fn between(c: char) -> bool {
    c.is_whitespace() || matches!(c, ':' | '(' | '|' | '·' | '-' | '[' | '+')
}

/// The words of `counter_words.rs` by one of their characters, so that few are compared.
struct CounterTables {
    labels: WordsByChar,
    labels_by_end: WordsByChar,
    units: WordsByChar,
    names: WordsByChar,
    ago: WordsByChar,
}

static TABLES: LazyLock<CounterTables> = LazyLock::new(|| CounterTables {
    labels: WordsByChar::of_beginnings(LABELS),
    labels_by_end: WordsByChar::new(LABELS, |word| word.chars().next_back()),
    units: WordsByChar::of_beginnings(UNITS),
    names: WordsByChar::of_beginnings(NAMES),
    ago: WordsByChar::of_beginnings(AGO),
});

/// Words in lower case by their first or last character, in the order of their list.
struct WordsByChar(HashMap<char, Vec<&'static str>>);

impl WordsByChar {
    fn new(words: &[&'static str], edge: fn(&str) -> Option<char>) -> Self {
        let mut by_char: HashMap<char, Vec<&str>> = HashMap::default();
        for word in words {
            by_char.entry(edge(word).unwrap_or_default()).or_default().push(word);
        }
        WordsByChar(by_char)
    }

    fn of_beginnings(words: &[&'static str]) -> Self {
        WordsByChar::new(words, |word| word.chars().next())
    }

    fn of(&self, c: Option<char>) -> &[&'static str] {
        c.and_then(|c| self.0.get(&lower(c))).map_or(&[], Vec::as_slice)
    }

    /// Returns the first of the words that a text begins with, without case.
    fn beginning(&self, text: &str) -> Option<&'static str> {
        self.of(text.chars().next()).iter().copied().find(|word| begins(text, word))
    }

    /// Whether a text ends with one of the words, which were given by their ends.
    fn is_at_end(&self, text: &str) -> bool {
        self.of(text.chars().next_back()).iter().any(|word| ends_with_word(text, word))
    }
}

/// Returns the length of the counter or time that begins at a digit of a text, if a site has put it there.
pub(super) fn counter(text: &str, at: usize) -> Option<usize> {
    let (before, rest) = text.split_at(at);
    if text.len() < LEAST_TEXT || before.ends_with(|c: char| c.is_ascii_alphanumeric()) {
        return None;
    }
    let digits = number(rest);
    let behind = &rest[digits..];
    let label = before.trim_end_matches(between);
    if !may_count(label.chars().next_back(), behind.trim_start().chars().next()) {
        return None;
    }
    if let Some(ago) = TABLES.ago.beginning(behind.trim_start()) {
        let bytes = digits + (behind.len() - behind.trim_start().len()) + ago.len();
        return ends(&rest[bytes..]).then_some(bytes);
    }
    if TIMES.iter().any(|time| label.ends_with(time)) {
        let time = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | ':' | '.' | '/' | ' '));
        return Some(rest.find(time).unwrap_or(rest.len()));
    }
    let spaced = behind.trim_start_matches(' ');
    let unit = TABLES.units.beginning(spaced).map_or(0, |unit| behind.len() - spaced.len() + unit.len());
    let bytes = digits + unit;
    if TABLES.labels_by_end.is_at_end(label) && ends(&rest[bytes..]) {
        return Some(bytes);
    }
    let name = TABLES.names.beginning(spaced)?;
    let bytes = digits + (behind.len() - spaced.len()) + name.len();
    ends(&rest[bytes..]).then_some(digits)
}

/// Whether a number between two characters may be a counter. Most numbers are told to be none by this.
fn may_count(before: Option<char>, behind: Option<char>) -> bool {
    static ENDS_OF_LABELS: CharSet =
        CharSet::new("读讀览覽论論发發赞讚藏复覆帖放击看享气度欢言量数幕币顶踩间于戳");
    static BEGINNINGS: CharSet = CharSet::new("秒分小天周个年時日次条人");
    let may = |c: char, known: &CharSet| match c {
        '\u{4E00}'..='\u{9FFF}' => known.contains(c),
        _ => c.is_alphabetic(),
    };
    before.is_some_and(|c| may(c, &ENDS_OF_LABELS)) || behind.is_some_and(|c| may(c, &BEGINNINGS))
}

/// Returns the length of the number that a text begins with, with its fraction and its thousands.
fn number(text: &str) -> usize {
    let mut end = 0;
    let digits = |from: usize| text[from..].bytes().take_while(u8::is_ascii_digit).count();
    loop {
        end += digits(end);
        let separated = matches!(text.as_bytes().get(end), Some(b',' | b'.'))
            || text.as_bytes().get(end) == Some(&b' ') && digits(end + 1) == 3;
        if !separated || digits(end + 1) == 0 {
            return end;
        }
        end += 1;
    }
}

/// Whether a sentence ends where a text begins: nothing follows, or white space, punctuation or another counter, and no
/// word in lower case goes on.
fn ends(text: &str) -> bool {
    let next = text.trim_start_matches([')', ']']);
    let word = next.trim_start_matches(' ');
    let goes_on = |c: char| c.is_lowercase() || next.len() == word.len() && c.is_alphanumeric();
    !word.starts_with(goes_on) || TABLES.labels.beginning(word).is_some()
}

/// Whether a text begins with a word, without case.
fn begins(text: &str, word: &str) -> bool {
    let mut chars = text.chars();
    word.chars().all(|c| chars.next().is_some_and(|d| lower(d) == c))
}

/// Returns a character in lower case, if that is one character.
fn lower(c: char) -> char {
    match c {
        '\0'..'\u{80}' => c.to_ascii_lowercase(),
        '\u{80}'..'\u{600}' if c.to_lowercase().len() == 1 => c.to_lowercase().next().unwrap_or(c),
        _ => c,
    }
}

/// Whether a text ends with a word, without case. Before a word of Latin or Cyrillic letters stands no other letter.
fn ends_with_word(text: &str, word: &str) -> bool {
    let mut rest = text.char_indices().rev();
    for expected in word.chars().rev() {
        match rest.next() {
            Some((_, c)) if lower(c) == expected => {}
            _ => return false,
        }
    }
    let before = rest.next().map(|(_, c)| c);
    let spaced = word.chars().all(|c| c.is_ascii_lowercase() || ('\u{400}'..'\u{530}').contains(&c));
    !spaced || !before.is_some_and(char::is_alphabetic)
}

#[cfg(test)]
mod tests {
    use super::counter;

    fn counters(text: &str) -> Vec<&str> {
        let mut found = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let digit = text.as_bytes()[at].is_ascii_digit()
                && !text.as_bytes()[..at].last().is_some_and(u8::is_ascii_digit);
            match digit.then(|| counter(text, at)).flatten() {
                Some(bytes) => {
                    found.push(&text[at..at + bytes]);
                    at += bytes;
                }
                None => at += 1,
            }
        }
        found
    }

    #[test]
    fn counters_of_a_page_are_found() {
        let article = "记者从市园林局获悉,人民公园的百年紫藤今年提前10天开花. ";
        for (tail, expected) in [
            ("2021-04-02 09:15 浏览:1082次 评论:13 点赞:56", vec!["1082次", "13", "56"]),
            ("阅读1023评论45转发12", vec!["1023", "45", "12"]),
            ("[阅读 6.8万 · 收藏 2301]", vec!["6.8万", "2301"]),
            ("转发(3) 评论(8) 2小时前", vec!["3", "8", "2小时前"]),
            ("Views: 18,244 | Replies: 129 | Last post 2 days ago", vec!["18,244", "129", "2 days ago"]),
            ("Просмотров: 15 320. Комментариев: 218.", vec!["15 320", "218"]),
            ("更新时间: 2025-03-12T02:15:11.909Z", vec!["2025-03-12T02:15:11.909Z"]),
            ("12 comments", vec!["12"]),
            ("조회수 48983 · 댓글 80 · 좋아요 78\n이용약관", vec!["48983", "80", "78"]),
            ("閲覧数 60　コメント 5", vec!["60", "5"]),
        ] {
            assert_eq!(counters(&format!("{article}{tail}")), expected, "{tail}");
        }
    }

    #[test]
    fn numbers_of_a_sentence_are_none() {
        for text in [
            "本频道粉丝突破10万,谢谢每一位,我们会继续努力为大家服务",
            "他今年阅读3本书,回复1退订,点击5次即可完成,分享2个故事给大家听",
            "The company had 12 views of the market and likes 3 of them very much indeed",
            "阅读12",
        ] {
            assert_eq!(counters(text), Vec::<&str>::new(), "{text}");
        }
    }
}
