//! The one hash family: XXH3, 64 bits, seed 0.
//!
//! Source: <https://github.com/Cyan4973/xxHash>, `doc/xxhash_spec.md`.

use xxhash_rust::xxh3::xxh3_64;

/// The hash of a string of bytes: words, whole texts.
pub fn bytes(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

/// The hash of up to six characters, packed 21 bits each: that of the packed value's 16 bytes, least first.
#[inline]
pub fn gram(packed: u128) -> u64 {
    xxh3_64(&packed.to_le_bytes())
}

/// The hash of the word `text[start..end]`: up to 16 bytes, that of 16 bytes with zeros behind the word.
///
/// Cost: no branch on the length of short words, which a processor cannot guess.
#[inline]
pub fn word(text: &[u8], start: usize, end: usize) -> u64 {
    let length = end - start;
    if length > 16 {
        return bytes(&text[start..end]);
    }
    let padded = match text[start..].first_chunk() {
        Some(chunk) => u128::from_le_bytes(*chunk),
        None => text[start..].iter().rev().fold(0, |padded, &byte| padded << 8 | u128::from(byte)),
    };
    let mask = u128::MAX.checked_shr(128 - 8 * length as u32).unwrap_or(0);
    gram(padded & mask)
}

/// Spreads a value over all bits, for routing: the hash of its 8 bytes, least first.
#[inline]
pub fn spread(value: u64) -> u64 {
    xxh3_64(&value.to_le_bytes())
}

#[cfg(test)]
mod tests {
    /// Printed by the Python package xxhash 4.1.0 (the reference C library 0.8.4): `xxh3_64_hexdigest`.
    #[test]
    fn hashes_equal_the_reference_library() {
        assert_eq!(super::bytes(b""), 0x2d06_8005_38d3_94c2);
        assert_eq!(super::bytes(b"a"), 0xe6c6_32b6_1e96_4e1f);
        assert_eq!(super::bytes("中文".as_bytes()), 0x8dbc_e87f_e32c_dda6);
        assert_eq!(super::bytes("中文".repeat(100).as_bytes()), 0x5739_5b3d_1bcf_4fdc);
        assert_eq!(super::spread(1), 0x2fbc_5935_64db_792e);
        assert_eq!(super::gram(1), 0x26f2_a114_8cf5_2011);
    }

    #[test]
    fn a_word_has_the_same_hash_wherever_it_stands() {
        let text = "中文词和一个长得多的词语";
        for (word, at) in [("中文", 0), ("词语", 30), ("一个长得多的", 12), ("", 3)] {
            let inside = super::word(text.as_bytes(), at, at + word.len());
            assert_eq!(inside, super::word(word.as_bytes(), 0, word.len()), "{word}");
        }
        assert_eq!(super::word(b"a", 0, 1), super::gram(0x61));
    }
}
