//! A set of Chinese characters, as a table of bits.

/// A set of characters of three bytes in UTF-8, so of U+0800 to U+FFFF. It takes 8 KiB, of which Chinese texts touch 3.
pub(crate) struct CharSet([u64; 1 << 10]);

/// Length of each character of a [`CharSet`] in UTF-8.
pub(crate) const CHAR_BYTES: usize = 3;

impl CharSet {
    /// Makes a set of the characters of a text, all of which have three bytes in UTF-8.
    pub const fn new(chars: &str) -> Self {
        let bytes = chars.as_bytes();
        let mut bits = [0; 1 << 10];
        let mut at = 0;
        while at < bytes.len() {
            assert!(bytes[at] & 0xF0 == 0xE0, "the character has three bytes");
            let (word, bit) = place([bytes[at], bytes[at + 1], bytes[at + 2]]);
            bits[word] |= 1 << bit;
            at += CHAR_BYTES;
        }
        CharSet(bits)
    }

    /// Whether a character is of the set.
    pub fn contains(&self, c: char) -> bool {
        self.0.get(c as usize >> 6).is_some_and(|bits| bits >> (c as u32 & 63) & 1 == 1)
    }

    /// Whether a character of three bytes in UTF-8 is of the set.
    pub fn contains_encoded(&self, encoded: [u8; CHAR_BYTES]) -> bool {
        let (word, bit) = place(encoded);
        self.0[word] >> bit & 1 == 1
    }
}

/// Returns the place of a character in the table.
const fn place([first, second, third]: [u8; CHAR_BYTES]) -> (usize, u32) {
    ((first as usize & 0xF) << 6 | second as usize & 0x3F, third as u32 & 0x3F)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_its_characters_alone() {
        const CHARS: &str = "的一龥\u{800}\u{FFFD}";
        static SET: CharSet = CharSet::new(CHARS);
        for c in '\0'..='\u{20000}' {
            assert_eq!(SET.contains(c), CHARS.contains(c), "{c:?}");
            let mut bytes = [0; 4];
            if let &[first, second, third] = c.encode_utf8(&mut bytes).as_bytes() {
                assert_eq!(SET.contains_encoded([first, second, third]), CHARS.contains(c), "{c:?}");
            }
        }
    }
}
