//! The one hash family: XXH3, 64 bits, seed 0. It tells apart what nobody made to look alike.
//!
//! Source: <https://github.com/Cyan4973/xxHash>, `doc/xxhash_spec.md`.
//!
//! Where equal hashes are taken for equal texts, the hash is one that nobody can aim at: SipHash-2-4 of 128 bits with a
//! secret key (docs/design/0025). Source: Aumasson, Bernstein, "SipHash: a fast short-input PRF", INDOCRYPT 2012.

use std::hash::{BuildHasher, Hasher, RandomState};

use siphasher::sip128::{Hasher128, SipHasher24};
use xxhash_rust::xxh3::xxh3_64;

/// 128 bits of a cleaned text, by a [`Secret`]: texts are equal when these are.
pub type Identity = (u64, u64);

/// The key of a run, the same in all its processes, which no author of a text knows.
///
/// What a run finds does not depend on it: identities are compared for equality and sorted, and no order of them is seen.
#[derive(Clone, Copy)]
pub struct Secret([u64; 2]);

impl Secret {
    /// A new one, of the operating system's randomness.
    pub fn random() -> Self {
        let random = RandomState::new();
        Secret([random.hash_one(0), random.hash_one(1)])
    }

    /// One that was kept.
    pub fn of_words(words: [u64; 2]) -> Self {
        Secret(words)
    }

    /// To be kept where no author of a text can read it before the text is written.
    pub fn words(self) -> [u64; 2] {
        self.0
    }

    /// The identity of a text.
    pub fn identity(&self, text: &str) -> Identity {
        let mut hasher = SipHasher24::new_with_keys(self.0[0], self.0[1]);
        hasher.write(text.as_bytes());
        let hash = hasher.finish128();
        (hash.h1, hash.h2)
    }
}

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
    use xxhash_rust::xxh3::xxh3_128;

    use super::*;

    /// Two valid texts of one XXH3: where the upper half of a word is that of the word of the (public) secret, the word
    /// counts by its plain sum alone, so what one such word gains another may lose.
    pub(crate) fn of_one_xxh3() -> [String; 2] {
        let text = |first: u8, second: u8| {
            let mut bytes = vec![b'a'; 300];
            bytes[16..25].copy_from_slice(b"ab\0\xf1\x83\x90\x97\xdb\x80");
            bytes[80..88].copy_from_slice(b"ab\0\xe5\xb7\xb3\x67\x1f");
            (bytes[18], bytes[82]) = (first, second);
            String::from_utf8(bytes).unwrap()
        };
        [text(b'b', b'c'), text(b'c', b'b')]
    }

    #[test]
    fn texts_that_were_made_to_have_one_xxh3_have_identities_of_their_own() {
        let [one, other] = of_one_xxh3();
        assert_ne!(one, other);
        assert_eq!(xxh3_128(one.as_bytes()), xxh3_128(other.as_bytes()));
        assert_eq!(bytes(one.as_bytes()), bytes(other.as_bytes()));
        let secret = Secret::random();
        assert_ne!(secret.identity(&one), secret.identity(&other));
        assert_eq!(Secret::of_words(secret.words()).identity(&one), secret.identity(&one));
        assert_ne!(Secret::random().identity(&one), secret.identity(&one));
    }

    /// From the authors' `vectors.h`, key 00 to 0f, messages empty and 00 to 0e: 128 bits.
    #[test]
    fn identities_are_those_of_the_reference() {
        let secret = Secret::of_words([0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908]);
        let bytes = |(low, high): Identity| [low.to_le_bytes(), high.to_le_bytes()].concat();
        let empty = b"\xa3\x81\x7f\x04\xba\x25\xa8\xe6\x6d\xf6\x72\x14\xc7\x55\x02\x93";
        assert_eq!(bytes(secret.identity("")), empty);
    }

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
