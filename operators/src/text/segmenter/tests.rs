//! The segmenter against jieba-rs, which is the definition of what it does.

use std::sync::LazyLock;

use jieba_rs::Jieba;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;

static JIEBA: LazyLock<Jieba> = LazyLock::new(Jieba::new);
static SEGMENTER: LazyLock<Segmenter> = LazyLock::new(|| Segmenter::new([]).unwrap());

/// Every hundredth word of the dictionary, and all that have other characters than Chinese ones.
static WORDS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut words: Vec<String> = Table::of_jieba().words().into_keys().collect();
    words.sort();
    let wanted = |(n, word): &(usize, String)| n % 100 == 0 || word.contains(|c| c < '\u{4E00}');
    words.into_iter().enumerate().filter(wanted).map(|(_, word)| word).collect()
});

fn ours<'t>(segmenter: &Segmenter, text: &'t str) -> Vec<&'t str> {
    let mut words = Vec::new();
    segmenter.cut(text, |start, end| words.push(&text[start..end]));
    words
}

fn theirs<'t>(jieba: &Jieba, text: &'t str) -> Vec<&'t str> {
    jieba.cut(text, false).iter().map(|token| token.word).collect()
}

/// A character that jieba treats in a way of its own, or a neighbour of one.
fn odd() -> impl Strategy<Value = String> {
    let chars: Vec<char> = "\r\n\t 　，。！AbZz09+#&._%-()/·γéか\u{33FF}\u{3400}\u{4DBF}\u{4DC0}\u{4DFF}\u{4E00}\u{9FD5}\
        \u{9FD6}\u{9FFF}\u{A000}\u{F8FF}\u{F900}\u{FAFF}\u{FB00}\u{FFFD}\u{1F600}\u{1FFFF}\u{20000}\u{2A6DF}\u{2A6E0}\
        \u{2A6FF}\u{2A700}\u{2B740}\u{2CEAF}\u{2CEB0}\u{2EBEF}\u{2EBF0}\u{2F7FF}\u{2F800}\u{2FA1F}\u{2FA20}\u{30000}\0"
        .chars()
        .collect();
    prop_oneof![9 => select(chars).prop_map(String::from), 1 => Just("\r\n".to_owned())]
}

/// Part of a text: a word, the beginning or the end of one, Chinese characters, something odd, any character.
fn piece() -> impl Strategy<Value = String> {
    let part = |(word, at, end): (String, usize, bool)| {
        let cut = word.char_indices().nth(at).map_or(word.len(), |(at, _)| at);
        word[if end { cut..word.len() } else { 0..cut }].to_owned()
    };
    let chinese = |c: u32| char::from_u32(c).unwrap().to_string();
    prop_oneof![
        4 => select(WORDS.as_slice()),
        4 => (select(WORDS.as_slice()), 0usize..4, any::<bool>()).prop_map(part),
        2 => select("的一是了我不人在他有这个上们来到时大地为子中说国年和生".chars().collect::<Vec<_>>()).prop_map(String::from),
        1 => (0x4E00u32..0x9FFF).prop_map(chinese),
        2 => odd(),
        1 => any::<char>().prop_map(String::from),
        1 => "[0-9A-Za-z]{1,8}",
    ]
}

fn text(pieces: std::ops::Range<usize>) -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), pieces).prop_map(|pieces| pieces.concat())
}

#[test]
fn words_end_where_jieba_ends_them() {
    let long = "网球拍卖会的讲讲讲".repeat(2000);
    let lines = "第一行\r\n".repeat(1500);
    for text in
        ["", "。", "abc网球拍卖会def", "B超和AA制A", "x\r\n\r\r\ny\n\r", "每斤1.31元", "γ射线", &long, &lines]
    {
        assert_eq!(ours(&SEGMENTER, text), theirs(&JIEBA, text), "{text:?}");
    }
    assert_eq!(ours(&SEGMENTER, "abc网球拍卖会"), ["abc", "网球", "拍卖会"]);
}

/// Where two rows of words have one product of frequencies, the rounding of floats decides. These texts are
/// from mixed.parquet; logarithms of quotients instead of differences of logarithms cut them otherwise.
#[test]
fn ties_are_broken_by_the_same_rounding() {
    for text in
        ["不值不值不值", "最最最想的", "好久好久好久的感觉", "质量不好不好不好", "讲讲讲", "哈哈哈哈哈哈哈"]
    {
        assert_eq!(ours(&SEGMENTER, text), theirs(&JIEBA, text), "{text:?}");
    }
}

#[test]
fn a_packed_dictionary_gives_its_words_back() {
    let words = Table::of_jieba().words();
    assert_eq!(words.len(), 349_045);
    assert_eq!(words.values().sum::<u64>(), Table::of_jieba().total());
    assert!(words.keys().all(|word| JIEBA.has_word(word)));
    let some =
        Vocabulary::new([("甲", 1), ("甲乙丙", 0), ("γ射线", 7)].map(|(w, f)| (w.to_owned(), f)).into());
    assert_eq!(Table::new(Cow::Owned(some.pack().unwrap())).words(), some.frequencies);
}

#[test]
fn a_dictionary_is_refused_only_if_it_is_too_large() {
    let with_frequencies = |count: u64| {
        let words = (0..count).map(|n| (format!("甲{n}"), n));
        Vocabulary::new(words.collect()).pack()
    };
    assert!(with_frequencies(u16::MAX.into()).is_some());
    assert!(with_frequencies(u64::from(u16::MAX) + 1).is_none());
    let every_character = ('\u{1}'..=char::MAX).take(1 << 16).map(|c| (c.to_string(), 1));
    assert!(Vocabulary::new(every_character.collect()).pack().is_none());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn texts_are_cut_as_jieba_cuts_them(text in text(0..30)) {
        prop_assert_eq!(ours(&SEGMENTER, &text), theirs(&JIEBA, &text));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    #[test]
    fn long_texts_are_cut_as_jieba_cuts_them(text in text(1000..3000)) {
        prop_assert_eq!(ours(&SEGMENTER, &text), theirs(&JIEBA, &text));
        let unbroken: String = text.chars().filter(|&c| entry::joins(c)).collect();
        prop_assert_eq!(ours(&SEGMENTER, &unbroken), theirs(&JIEBA, &unbroken));
    }
}

/// Frequencies that a user may give: none, those that change nothing, and those that outweigh all.
fn frequency() -> impl Strategy<Value = Option<u32>> {
    prop_oneof![3 => Just(None), 1 => Just(Some(0)), 1 => Just(Some(u32::MAX)), 3 => (0u32..100_000).prop_map(Some)]
}

/// Words of the user, some of them twice.
fn user_words() -> impl Strategy<Value = Vec<(String, Option<u32>)>> {
    prop::collection::vec((text(1..4), frequency()), 0..200).prop_map(|words| {
        let words = words.into_iter().map(|(word, frequency)| {
            let word: String = word.split_whitespace().collect();
            (if word.is_empty() { "网球拍卖会".to_owned() } else { word }, frequency)
        });
        let words: Vec<_> = words.collect();
        let again = words.iter().step_by(3).cloned();
        let parts = words.iter().step_by(3).map(|(word, _)| (word.chars().take(2).collect(), None));
        words.iter().cloned().chain(again).chain(parts).collect()
    })
}

fn add_to_jieba(jieba: &mut Jieba, words: &[(String, Option<u32>)]) -> Vec<u64> {
    let add =
        |(word, frequency): &(String, Option<u32>)| jieba.add_word(word, frequency.map(|f| f as usize), None);
    words.iter().map(add).map(|frequency| frequency as u64).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn words_of_the_user_get_the_frequencies_that_jieba_gives_them(words in user_words()) {
        let mut jieba = JIEBA.clone();
        let theirs = add_to_jieba(&mut jieba, &words);
        let mut vocabulary = Vocabulary::new(Table::of_jieba().words());
        for ((word, frequency), theirs) in words.iter().zip(theirs) {
            vocabulary.add(word, *frequency);
            prop_assert_eq!(vocabulary.frequencies[word], theirs, "{}", word);
        }
    }
}

proptest! {
    // Each case packs the whole dictionary, which takes some seconds without optimisation.
    #![proptest_config(ProptestConfig::with_cases(2))]

    #[test]
    fn words_of_the_user_are_found_as_jieba_finds_them(
        words in user_words(),
        texts in prop::collection::vec(text(0..30), 50),
    ) {
        let mut jieba = JIEBA.clone();
        add_to_jieba(&mut jieba, &words);
        let segmenter = Segmenter::new(words.iter().map(|(word, frequency)| (word.as_str(), *frequency))).unwrap();
        let with_words = texts.iter().zip(&words).map(|(text, (word, _))| format!("{text}{word}{text}{word}"));
        for text in texts.iter().cloned().chain(with_words) {
            prop_assert_eq!(ours(&segmenter, &text), theirs(&jieba, &text));
        }
    }
}
