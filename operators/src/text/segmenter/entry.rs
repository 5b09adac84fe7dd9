//! Codes of characters, and the entries of the dictionary's table. The build script uses this file too.

/// Code of a character that cannot be in a word of more than one character, such as a comma.
pub const SEPARATOR: u16 = 0;
/// Code of a carriage return. It separates words too, and forms one word with a line feed behind it.
pub const CARRIAGE_RETURN: u16 = 1;
/// Code of a character that may be in words but is in none of the dictionary.
pub const UNKNOWN: u16 = 2;
/// Code of `0`; those of the other ASCII digits and letters follow.
pub const FIRST_ALPHANUMERIC: u16 = 3;
/// The first code behind those of the ASCII digits and letters.
pub const FIRST_OTHER: u16 = FIRST_ALPHANUMERIC + 62;

/// One number of a blob, little-endian. A slice of bytes can be read as these whatever its alignment.
pub type Stored = [u8; 8];

/// Entry of the table for a beginning of words. From low to high: 16 bits for the code of its last character,
/// 16 for the number of its frequency if it is a word itself (otherwise 0), 24 for the base where what follows
/// it is found (0 if nothing does), and 8 that tell most characters that do not follow it from those that do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prefix(pub u64);

const FREQUENCY_SHIFT: u32 = 16;
const BASE_SHIFT: u32 = 32;
const FILTER_SHIFT: u32 = 56;
const FILTER_BITS: u16 = 8;
/// Bases are below this.
pub const BASES: usize = 1 << (FILTER_SHIFT - BASE_SHIFT);

impl Prefix {
    /// Makes a prefix that nothing follows.
    pub fn new(code: u16, frequency: u16, base: usize) -> Self {
        Prefix(u64::from(code) | u64::from(frequency) << FREQUENCY_SHIFT | (base as u64) << BASE_SHIFT)
    }

    /// Says that a character follows.
    pub fn follow(&mut self, code: u16) {
        self.0 |= 1 << (FILTER_SHIFT + u32::from(code % FILTER_BITS));
    }

    /// Whether a character may follow. If it does follow, the answer is `true`.
    #[inline]
    pub fn may_be_followed(self, code: u16) -> bool {
        self.0 >> (FILTER_SHIFT + u32::from(code % FILTER_BITS)) & 1 == 1
    }

    /// Returns the code of the last character.
    #[inline]
    pub fn code(self) -> u16 {
        self.0 as u16
    }

    /// Returns the number of the frequency; 0 if this is no word.
    #[inline]
    pub fn frequency(self) -> u16 {
        (self.0 >> FREQUENCY_SHIFT) as u16
    }

    /// Returns where what follows is found: at the base plus the code of the character that follows.
    #[inline]
    pub fn base(self) -> usize {
        (self.0 >> BASE_SHIFT) as usize % BASES
    }
}

/// Whether a character can be in a word of more than one character. Source: jieba's `re_han_default`, in the
/// ranges of jieba-rs 0.11.
pub fn joins(c: char) -> bool {
    matches!(c, '\u{4E00}'..='\u{9FFF}' | '0'..='9' | 'A'..='Z' | 'a'..='z')
        || matches!(c, '+' | '#' | '&' | '.' | '_' | '%' | '-')
        || matches!(c, '\u{3400}'..='\u{4DBF}' | '\u{F900}'..='\u{FAFF}' | '\u{2F800}'..='\u{2FA1F}')
        || matches!(c, '\u{20000}'..='\u{2A6DF}' | '\u{2A700}'..='\u{2EBEF}')
}
