//! Features of a text: the words or n-grams that a fingerprint is made from and that two texts are compared
//! by.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use unicode_segmentation::UnicodeSegmentation;

use super::cleaned::{compared, topics};
use super::letters::char_class::{is_letter, is_of_spaced_script};
use super::segmenter::Segmenter;
use super::topics::TopicSample;
use crate::{Error, hash};

/// Kind of features that a method takes from a cleaned text. Every text has at least one: a text that is too
/// short for the kind is its own only feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeatureSpec {
    /// Words as jieba segments them, without stop words and without words of punctuation alone.
    Jieba,
    /// Every `n` neighbouring characters (n-grams).
    Chars(usize),
    /// Every `n` neighbouring words by Unicode's word boundaries. A Chinese character is a word.
    Words(usize),
    /// Every `n` neighbouring units. A unit is a word of a script that puts spaces between words, or a single
    /// character of any other script. For texts cleaned as posts.
    Units(usize),
}

impl FeatureSpec {
    /// Parses `jieba`, `char:N`, `word:N` or `unit:N`.
    pub fn parse(text: &str) -> Option<Self> {
        let size = |n: &str| n.parse().ok().filter(|n| (1..=64).contains(n));
        match text.split_once(':') {
            None if text == "jieba" => Some(FeatureSpec::Jieba),
            Some(("char", n)) => size(n).map(FeatureSpec::Chars),
            Some(("word", n)) => size(n).map(FeatureSpec::Words),
            Some(("unit", n)) => size(n).map(FeatureSpec::Units),
            _ => None,
        }
    }
}

impl fmt::Display for FeatureSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FeatureSpec::Jieba => f.write_str("jieba"),
            FeatureSpec::Chars(n) => write!(f, "char:{n}"),
            FeatureSpec::Words(n) => write!(f, "word:{n}"),
            FeatureSpec::Units(n) => write!(f, "unit:{n}"),
        }
    }
}

/// Words of the user, as text with one word a line.
#[derive(Clone, Debug, Default)]
pub struct Lexicon {
    /// Words that are no features.
    pub stop_words: String,
    /// User dictionary of jieba. A line has a word, then optionally its frequency and its tag.
    pub user_words: String,
}

/// Takes features from texts. Clones share the dictionary of jieba, which takes 0.5 MB beside the program, and
/// some 7 MB with words of the user.
#[derive(Clone)]
pub enum Features {
    /// See [`FeatureSpec::Jieba`].
    Jieba(Arc<JiebaWords>),
    /// See [`FeatureSpec::Chars`].
    Chars(usize),
    /// See [`FeatureSpec::Words`].
    Words(usize),
    /// See [`FeatureSpec::Units`].
    Units(usize),
    /// Every `n` neighbouring characters of the body of a text that was cleaned as a post.
    BodyChars(usize),
    /// Every `n` neighbouring units of the body of a text that was cleaned as a post, and three such features of
    /// its topics, which are a sample: those of the least hashes. So a topic tells texts apart, but never more
    /// than a word would.
    BodyUnits(usize),
}

/// Dictionary of jieba with the user's words, and the stop words.
pub struct JiebaWords {
    segmenter: Segmenter,
    stop_words: HashSet<String>,
}

impl Features {
    /// Loads the dictionary if the features need one. Cost: 0.4 CPU seconds for jieba with words of the user,
    /// otherwise at most some milliseconds.
    pub fn new(spec: FeatureSpec, lexicon: &Lexicon) -> Result<Self, Error> {
        Ok(match spec {
            FeatureSpec::Chars(n) => Features::Chars(n),
            FeatureSpec::Words(n) => Features::Words(n),
            FeatureSpec::Units(n) => Features::Units(n),
            FeatureSpec::Jieba => Features::Jieba(Arc::new(JiebaWords::new(lexicon)?)),
        })
    }

    /// Calls `emit` with the hash of each feature in the order of the text. A repeated feature is emitted
    /// each time.
    pub fn each(&self, text: &str, emit: impl FnMut(u64)) {
        self.each_of_part(&self.part(text), text, emit);
    }

    /// Calls `emit` with the hash of each feature of a part of a text, as [`Features::part`] returns it, and of the topics of
    /// `whole`.
    fn each_of_part(&self, text: &str, whole: &str, mut emit: impl FnMut(u64)) {
        let none = Cell::new(true);
        let mut of_text = |feature| {
            none.set(false);
            emit(feature);
        };
        match self {
            Features::Jieba(words) => {
                words.cut(text, |start, end| of_text(hash::word(text.as_bytes(), start, end)))
            }
            Features::Chars(n) | Features::BodyChars(n) if *n <= PACKED_CHARS => {
                packed_grams(text, *n, &mut of_text)
            }
            Features::Chars(n) | Features::BodyChars(n) => {
                let grams = char_grams(text, *n);
                grams.for_each(|(start, end)| of_text(hash::word(text.as_bytes(), start, end)));
            }
            Features::Words(n) => {
                let words = text.unicode_words();
                grams(words.map(|word| hash::word(word.as_bytes(), 0, word.len())), *n, &mut of_text)
            }
            Features::Units(n) | Features::BodyUnits(n) => grams(unit_numbers(text), *n, &mut of_text),
        }
        if none.get() {
            emit(hash::word(text.as_bytes(), 0, text.len()));
        }
        let Features::BodyUnits(n) = self else { return };
        let mut sample = TopicSample::default();
        for topic in topics(whole) {
            let mut none = true;
            grams(unit_numbers(topic), *n, &mut |feature| {
                none = false;
                sample.draw(feature);
            });
            if none {
                sample.draw(hash::word(topic.as_bytes(), 0, topic.len()));
            }
        }
        sample.features().for_each(emit);
    }

    /// Returns the part of a text that features are taken from. Features of a body have the same one, whatever their width.
    pub fn part<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self {
            Features::BodyChars(_) | Features::BodyUnits(_) => compared(text),
            _ => Cow::Borrowed(text),
        }
    }

    /// Calls `emit` with each feature as a slice of the text, in order, but for those of topics. A repeated
    /// feature is emitted each time.
    pub fn slices(&self, text: &str, mut emit: impl FnMut(&str)) {
        let mut none = true;
        let text = &*self.part(text);
        let mut found = |start: usize, end: usize| {
            none = false;
            emit(&text[start..end]);
        };
        let runs = |places: Vec<(usize, usize)>, n: usize, found: &mut dyn FnMut(usize, usize)| {
            places.iter().zip(places.iter().skip(n - 1)).for_each(|(first, last)| found(first.0, last.1));
        };
        match self {
            Features::Jieba(words) => words.cut(text, found),
            Features::Chars(n) | Features::BodyChars(n) => {
                char_grams(text, *n).for_each(|(start, end)| found(start, end));
            }
            Features::Words(n) => {
                let words = text.unicode_word_indices().map(|(start, word)| (start, start + word.len()));
                runs(words.collect(), *n, &mut found);
            }
            Features::Units(n) | Features::BodyUnits(n) => {
                runs(units(text).map(|(_, start, end)| (start, end)).collect(), *n, &mut found);
            }
        }
        if none {
            emit(text);
        }
    }

    /// Replaces `all` by the hashes of the features of a text, in the order of the text and with repetitions.
    pub fn all(&self, text: &str, all: &mut Vec<u64>) {
        self.all_of_part(&self.part(text), text, all);
    }

    /// Replaces `all` by the hashes of the features of a part of a text and of the topics of `whole`. So who takes several
    /// kinds of features of a text makes its part once.
    pub fn all_of_part(&self, part: &str, whole: &str, all: &mut Vec<u64>) {
        all.clear();
        self.each_of_part(part, whole, |feature| all.push(feature));
    }
}

impl JiebaWords {
    fn new(lexicon: &Lexicon) -> Result<Self, Error> {
        let mut user_words = Vec::new();
        for (line, text) in lexicon.user_words.lines().enumerate() {
            let mut fields = text.trim_start_matches('\u{FEFF}').split_whitespace();
            let Some(word) = fields.next() else { continue };
            let bad = |reason: &str| Error::BadDictionary { line: line + 1, reason: reason.to_owned() };
            let frequency = match (fields.next(), fields.next(), fields.next()) {
                (None, ..) => None,
                // The tag alone.
                (Some(one), None, _) if one.parse::<u32>().is_err() => None,
                (Some(frequency), _, None) => {
                    let frequency = frequency.parse::<u32>();
                    Some(frequency.map_err(|_| bad("the frequency is not a whole number below 2^32"))?)
                }
                _ => return Err(bad("expected a word, a frequency and a tag")),
            };
            user_words.push((word, frequency));
        }
        let segmenter = Segmenter::new(user_words).ok_or_else(|| Error::BadDictionary {
            line: lexicon.user_words.lines().count(),
            reason: "there are too many words, characters or frequencies".to_owned(),
        })?;
        let stop_words = lexicon.stop_words.lines().map(str::trim).filter(|word| !word.is_empty());
        Ok(JiebaWords { segmenter, stop_words: stop_words.map(str::to_owned).collect() })
    }

    /// Calls `emit` with the start and the end of each word, in bytes.
    fn cut(&self, text: &str, mut emit: impl FnMut(usize, usize)) {
        self.segmenter.cut(text, |start, end| {
            let word = &text[start..end];
            let counts = word.contains(is_letter);
            if counts && (self.stop_words.is_empty() || !self.stop_words.contains(word)) {
                emit(start, end);
            }
        });
    }
}

const CHAR_BITS: usize = 21;
const PACKED_CHARS: usize = 128 / CHAR_BITS;

/// Emits the hashes of the grams of up to six characters. A gram is packed into one number, which is shifted
/// along the text.
fn packed_grams(text: &str, n: usize, emit: &mut impl FnMut(u64)) {
    let mask = u128::MAX >> (128 - n * CHAR_BITS);
    let mut packed = 0;
    let mut chars = text.chars();
    for c in chars.by_ref().take(n - 1) {
        packed = packed << CHAR_BITS | c as u128;
    }
    for c in chars {
        packed = (packed << CHAR_BITS | c as u128) & mask;
        emit(hash::gram(packed));
    }
}

/// Returns the start and the end, in bytes, of every `n` neighbouring characters.
fn char_grams(text: &str, n: usize) -> impl Iterator<Item = (usize, usize)> {
    let starts = text.char_indices().map(|(at, _)| at);
    starts.zip(text.char_indices().map(|(at, _)| at).chain([text.len()]).skip(n))
}

/// Emits the hash of every `n` neighbouring numbers.
fn grams(mut items: impl Iterator<Item = u64>, n: usize, emit: &mut impl FnMut(u64)) {
    if n == 2 {
        // Gives the same hashes as the general case below, and is faster.
        let Some(mut before) = items.next() else { return };
        return items.for_each(|item| {
            emit(hash::gram(u128::from(item) << 64 | u128::from(before)));
            before = item;
        });
    }
    let mut bytes = Vec::new();
    items.for_each(|item| bytes.extend_from_slice(&item.to_le_bytes()));
    for gram in bytes.chunks_exact(8).enumerate().filter_map(|(i, _)| bytes.get(8 * i..8 * (i + n))) {
        emit(hash::bytes(gram));
    }
}

/// Returns the units of a text as numbers: the code of a character, the hash of a word.
fn unit_numbers(text: &str) -> impl Iterator<Item = u64> {
    units(text).map(|(first, start, end)| match is_of_spaced_script(first) {
        true => hash::word(text.as_bytes(), start, end),
        false => first as u64,
    })
}

/// Returns the units of a text: the first character, the start and the end of each, in bytes.
fn units(text: &str) -> impl Iterator<Item = (char, usize, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let (start, first) = loop {
            let c = text[at..].chars().next()?;
            at += c.len_utf8();
            if c != ' ' {
                break (at - c.len_utf8(), c);
            }
        };
        if is_of_spaced_script(first) {
            let rest = &text[at..];
            at += rest.find(|c| !is_of_spaced_script(c)).unwrap_or(rest.len());
        }
        Some((first, start, at))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features(spec: &str, lexicon: &Lexicon, text: &str) -> Vec<u64> {
        let features = Features::new(FeatureSpec::parse(spec).unwrap(), lexicon).unwrap();
        let mut all = Vec::new();
        features.each(text, |feature| all.push(feature));
        all
    }

    fn words(words: &[&str]) -> Vec<u64> {
        words.iter().map(|word| hash::word(word.as_bytes(), 0, word.len())).collect()
    }

    #[test]
    fn grams_are_every_n_neighbours() {
        let none = Lexicon::default();
        assert_eq!(features("char:2", &none, "中文中文").len(), 3);
        assert_eq!(features("char:2", &none, "中文中文")[0], features("char:2", &none, "中文中文")[2]);
        assert_eq!(features("char:7", &none, "今天是星期六吗"), words(&["今天是星期六吗"]));
        assert_eq!(features("char:7", &none, "今天是星期六吗?").len(), 2);
        assert_eq!(features("word:2", &none, "one two, three").len(), 2);
    }

    #[test]
    fn a_text_shorter_than_its_gram_is_its_own_feature() {
        for spec in ["char:5", "char:9", "word:5", "jieba"] {
            for text in ["", "。", "。。"] {
                assert_eq!(features(spec, &Lexicon::default(), text), words(&[text]), "{spec} of {text:?}");
            }
        }
    }

    #[test]
    fn slices_are_the_features_as_they_stand_in_the_text() {
        let text = "今天天气很好, 大家 today 都去公园。今天天气很好";
        for (spec, first, last) in [
            ("jieba", "今天天气", "好"),
            ("char:2", "今天", "很好"),
            ("char:9", "今天天气很好, 大", "公园。今天天气很好"),
            ("word:2", "今天", "很好"),
            ("unit:2", "今天", "很好"),
            ("word:64", text, text),
        ] {
            let hashes = features(spec, &Lexicon::default(), text);
            let of_spec = Features::new(FeatureSpec::parse(spec).unwrap(), &Lexicon::default()).unwrap();
            let mut slices = Vec::new();
            of_spec.slices(text, |slice| slices.push(slice.to_owned()));
            assert_eq!(
                (slices.first().map(String::as_str), slices.last().map(String::as_str), slices.len()),
                (Some(first), Some(last), hashes.len()),
                "{spec}"
            );
            for (a, b) in (0..slices.len()).flat_map(|a| (0..a).map(move |b| (a, b))) {
                assert_eq!(slices[a] == slices[b], hashes[a] == hashes[b], "{spec}");
            }
        }
    }

    #[test]
    fn jieba_words_leave_out_stop_words_and_punctuation() {
        let lexicon = Lexicon { stop_words: "\n的\n".into(), user_words: "石墨烯材料 9999 n\n".into() };
        let got = features("jieba", &lexicon, "石墨烯材料的研究,  好");
        assert_eq!(got, words(&["石墨烯材料", "研究", "好"]));
    }

    #[test]
    fn a_bad_line_of_a_dictionary_is_named() {
        let lexicon = Lexicon { stop_words: String::new(), user_words: "好\n坏 x y\n".into() };
        let error = Features::new(FeatureSpec::Jieba, &lexicon).err().unwrap();
        assert!(error.to_string().contains("line 2"), "{error}");
    }
}
