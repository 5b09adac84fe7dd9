//! Tokens: a cleaned text as a list of units that two texts are aligned by.

use crate::hash;
use crate::text::cleaned::{TextStretch, is_code, stretches};
use crate::text::letters::char_class::is_of_spaced_script;

/// A unit of a text in 32 bits: its kind, and its character or the hash of its letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct TextUnit(pub(super) u32);

/// Number of bits behind the kind of a token.
const VALUE_BITS: u32 = 29;

/// The kind of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnitKind {
    /// A word of a script with spaces.
    Word,
    /// A number.
    Number,
    /// A Chinese character.
    Han,
    /// A letter or mark of another script without spaces between words, or of one that is read letter by letter.
    Letter,
    /// A sign, a superscript, a fraction.
    Sign,
}

impl TextUnit {
    pub(super) fn kind(self) -> UnitKind {
        match self.0 >> VALUE_BITS {
            0 => UnitKind::Word,
            1 => UnitKind::Number,
            2 => UnitKind::Han,
            3 => UnitKind::Letter,
            _ => UnitKind::Sign,
        }
    }

    fn new(kind: UnitKind, value: u32) -> Self {
        TextUnit((kind as u32) << VALUE_BITS | value & ((1 << VALUE_BITS) - 1))
    }

    /// Returns the character of a token that is one.
    pub(super) fn char(self) -> Option<char> {
        let is_char = !matches!(self.kind(), UnitKind::Word | UnitKind::Number);
        is_char.then(|| char::from_u32(self.0 & ((1 << VALUE_BITS) - 1))).flatten()
    }

    #[inline]
    fn of_char(c: char) -> Self {
        let kind = match c {
            '\u{3400}'..='\u{9FFF}' | '\u{20000}'..='\u{3FFFF}' => UnitKind::Han,
            '\u{2070}'..='\u{209C}' | '²' | '³' | '¹' | '¼'..='¾' | '⅐'..='⅟' => UnitKind::Sign,
            _ if c.is_alphanumeric() || unicode_normalization::char::is_combining_mark(c) => UnitKind::Letter,
            _ => UnitKind::Sign,
        };
        TextUnit::new(kind, c as u32)
    }

    /// Returns the token of a word of a script with spaces, by its shape: what scanners take for each other is one letter,
    /// so burned is `bumed` and rebuilt is `rebuiit`.
    pub(super) fn of_word(word: &str) -> Self {
        let mut shape = [0; 64];
        let mut length = 0;
        let bytes = word.as_bytes();
        let mut at = 0;
        while at < bytes.len() && length < shape.len() {
            let (letter, read) = match bytes[at..] {
                [b'r', b'n', ..] => (b'm', 2),
                [b'v', b'v', ..] => (b'w', 2),
                [b'l' | b'1', ..] => (b'i', 1),
                [b'0', ..] => (b'o', 1),
                [other, ..] => (other, 1),
                [] => break,
            };
            shape[length] = letter;
            length += 1;
            at += read;
        }
        // A longer word is told apart by its whole.
        let hash =
            if at < bytes.len() { hash::word(bytes, 0, bytes.len()) } else { hash::word(&shape, 0, length) };
        TextUnit::new(UnitKind::Word, hash as u32)
    }

    fn of_number(digits: &str) -> Self {
        let digits = digits.trim_start_matches('0');
        TextUnit::new(UnitKind::Number, hash::word(digits.as_bytes(), 0, digits.len()) as u32)
    }
}

/// Values of the words of small numbers, which editions write in either way.
const NUMBER_WORDS: [&str; 20] = [
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
    "twenty",
];

/// A cleaned text as it is read. In memory: 4 bytes for each unit, and 8 for each stretch that was cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadText {
    /// Units of what the author wrote.
    pub(super) tokens: Vec<TextUnit>,
    /// Hashes of the stretches that were cut, sorted. The lowest bits are a [`CutSort`].
    pub(super) cuts: Vec<u64>,
    /// Number of units before the post that is repeated, if the text is a repost.
    pub(super) head: Option<usize>,
    /// Whether the text is code.
    pub(super) code: bool,
}

/// A text as it is read, within a list of features that has travelled. (Both processors that the program is built for have
/// the lower half of a word first.)
#[derive(Clone, Copy)]
pub struct PackedText<'a> {
    pub(super) tokens: &'a [TextUnit],
    pub(super) cuts: &'a [u64],
    pub(super) head: Option<usize>,
    pub(super) code: bool,
}

/// How much a stretch that was cut says about the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CutSort {
    /// Nothing that decides.
    Colour,
    /// It points somewhere: a link that names its page, a tag.
    Pointer,
    /// It answers yes or no.
    Answer,
}

impl CutSort {
    pub(super) fn of(cut: u64) -> Self {
        match cut & 3 {
            0 => CutSort::Colour,
            1 => CutSort::Pointer,
            _ => CutSort::Answer,
        }
    }

    fn of_text(cut: &str) -> Self {
        // Short links are made anew for each post.
        const SHORTENED: [&str; 10] = [
            "t cn",
            "url cn",
            "bit ly",
            "goo gl",
            "t co",
            "dwz cn",
            "tinyurl com",
            "is gd",
            "sina lt",
            "suo im",
        ];
        let host = cut.strip_prefix("https ").or_else(|| cut.strip_prefix("http "));
        if let Some(host) = host {
            let shortened = SHORTENED.iter().any(|name| {
                host.strip_prefix(name).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
            });
            return if shortened { CutSort::Colour } else { CutSort::Pointer };
        }
        match cut.chars().next() {
            Some('✅' | '❌' | '✔' | '✖' | '☑' | '✗' | '✘' | '✓' | '⭕' | '👍' | '👎' | '🚫') => {
                CutSort::Answer
            }
            Some('h') if matches!(cut, "h1" | "h2" | "h3" | "h4" | "h5" | "h6") => CutSort::Pointer,
            _ => CutSort::Colour,
        }
    }
}

impl ReadText {
    /// Replaces the units by those of a cleaned text. Cost: some 10 ns a unit.
    pub fn read(&mut self, cleaned: &str) {
        self.tokens.clear();
        self.cuts.clear();
        self.head = None;
        self.code = is_code(cleaned);
        for stretch in stretches(cleaned) {
            match stretch {
                TextStretch::Own(own) => self.add(own),
                TextStretch::Repost(name) => {
                    self.head = Some(self.tokens.len());
                    self.cut(name, CutSort::Colour);
                }
                TextStretch::Topic(cut) => self.cut(cut, CutSort::Colour),
                TextStretch::Cut(cut) => self.cut(cut, CutSort::of_text(cut)),
            }
        }
        self.cuts.sort_unstable();
    }

    fn cut(&mut self, cut: &str, sort: CutSort) {
        self.cuts.push(hash::word(cut.as_bytes(), 0, cut.len()) & !3 | sort as u64);
    }

    fn add(&mut self, own: &str) {
        self.tokens.reserve(own.len() / 3);
        let mut at = 0;
        while let Some(first) = own[at..].chars().next() {
            let rest = &own[at..];
            if is_of_spaced_script(first) {
                let end = rest.find(|c| !is_of_spaced_script(c)).unwrap_or(rest.len());
                self.add_run(&rest[..end]);
                at += end;
                continue;
            }
            let light = self.code && matches!(first, ',' | '.' | ';' | '$' | '"' | '\'' | '`');
            if first != ' ' && !light {
                self.tokens.push(TextUnit::of_char(first));
            }
            at += first.len_utf8();
        }
    }

    /// Adds the words and numbers of a run of letters and digits.
    fn add_run(&mut self, run: &str) {
        // A digit within a word is a letter that a scanner has not read: o1d.
        let bytes = run.as_bytes();
        let digits = || bytes.iter().filter(|byte| byte.is_ascii_digit());
        let between = |byte: &u8| byte.is_ascii_alphabetic();
        let slip = run.is_ascii()
            && bytes.first().is_some_and(between)
            && bytes.last().is_some_and(between)
            && digits().count() == 1
            && digits().all(|digit| matches!(digit, b'0' | b'1'));
        if slip {
            return self.tokens.push(TextUnit::of_word(run));
        }
        let mut rest = run;
        while let Some(first) = rest.chars().next() {
            let digit = first.is_ascii_digit();
            let end = rest.find(|c: char| c.is_ascii_digit() != digit).unwrap_or(rest.len());
            let (part, behind) = rest.split_at(end);
            rest = behind;
            let may_count = !self.code && matches!(first, 'o' | 't' | 'f' | 's' | 'e' | 'n');
            let value = if may_count { NUMBER_WORDS.iter().position(|&word| word == part) } else { None };
            self.tokens.push(match value {
                Some(value) => TextUnit::of_number(&(value + 1).to_string()),
                None if digit => TextUnit::of_number(part),
                None => TextUnit::of_word(part),
            });
        }
    }

    /// Appends the text to a list of features that travels: the number of tokens, the head and whether it is code, the
    /// tokens, the cuts.
    pub fn pack(&self, packed: &mut Vec<u64>) {
        let head = self.head.map_or(0, |head| head as u64 + 1);
        packed.push((self.tokens.len() as u64) << 32);
        packed.push(head << 1 | u64::from(self.code));
        let start = packed.len();
        packed.resize(start + self.tokens.len().div_ceil(2), 0);
        let units: &mut [TextUnit] = bytemuck::cast_slice_mut(&mut packed[start..]);
        units[..self.tokens.len()].copy_from_slice(&self.tokens);
        packed.extend(&self.cuts);
    }

    /// Returns the numbers of the text, in its order.
    pub fn numbers(&self) -> impl Iterator<Item = u64> {
        self.tokens.iter().filter(|token| token.kind() == UnitKind::Number).map(|token| token.0.into())
    }
}

impl<'a> PackedText<'a> {
    /// Reads a text that [`ReadText::pack`] has written.
    pub fn new(packed: &'a [u64]) -> Self {
        let (lengths, rest) = packed.split_at(2);
        let tokens = (lengths[0] >> 32) as usize;
        let (packed_tokens, cuts) = rest.split_at(tokens.div_ceil(2));
        PackedText {
            tokens: &bytemuck::cast_slice(packed_tokens)[..tokens],
            cuts,
            head: (lengths[1] >> 1).checked_sub(1).map(|head| head as usize),
            code: lengths[1] & 1 == 1,
        }
    }

    /// Returns how many of the stretches that were cut only one of two texts has, and how many units the shorter one has.
    pub fn cuts_of_one(self, other: Self) -> [usize; 2] {
        let only = |a: &[u64], b: &[u64]| a.iter().filter(|cut| b.binary_search(cut).is_err()).count();
        let of_one = only(self.cuts, other.cuts) + only(other.cuts, self.cuts);
        [of_one, self.tokens.len().min(other.tokens.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Clean, Cleaner};

    fn read(text: &str) -> ReadText {
        let mut cleaner = Cleaner::new(Clean::Post);
        let mut read = ReadText::default();
        read.read(cleaner.clean(text));
        read
    }

    #[test]
    fn a_text_is_unpacked_as_it_was_packed() {
        for text in ["", "今天5mg 好//@小明: 看 http://t.cn/a [泪]", "fn f(a: u8) { a + 1; }", "one word"]
        {
            let text = read(text);
            let mut packed = vec![];
            text.pack(&mut packed);
            let PackedText { tokens, cuts, head, code } = PackedText::new(&packed);
            assert_eq!(ReadText { tokens: tokens.to_vec(), cuts: cuts.to_vec(), head, code }, text);
        }
    }

    #[test]
    fn units_are_words_numbers_and_characters() {
        use UnitKind::{Han, Letter, Number, Sign, Word};
        let kinds = |text: &str| read(text).tokens.iter().map(|token| token.kind()).collect::<Vec<_>>();
        assert_eq!(kinds("他有5mg药"), [Han, Han, Number, Word, Han]);
        assert_eq!(kinds("ビル x²"), [Letter, Letter, Word, Sign]);
        assert_eq!(kinds("3.5"), [Number, Sign, Number]);
    }

    #[test]
    fn slips_of_scanners_are_one_word() {
        assert_eq!(
            read("the o1d mill bumed down, rebuiIt").tokens,
            read("the old mill burned down, rebuilt").tokens
        );
        assert_eq!(read("eleven minutes").tokens, read("11 minutes").tokens);
        assert_ne!(read("h1 mp3").tokens, read("hl mp3").tokens);
    }

    #[test]
    fn the_head_of_a_repost_ends_at_its_last_mark() {
        assert_eq!(read("好//@小明:看//@小红:今天的天气很好").head, Some(2));
        assert_eq!(read("今天的天气很好").head, None);
    }
}
