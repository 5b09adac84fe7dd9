//! The hash functions: XXH3 for features and routing, SipHash for the identity of texts.
//!
//! Features are hashed by XXH3 with 64 bits and seed 0. XXH3 separates inputs that nobody made to collide; an
//! author who tries can make two inputs collide. Source: <https://github.com/Cyan4973/xxHash>,
//! `doc/xxhash_spec.md`.
//!
//! Where equal hashes are taken for equal texts, the hash is SipHash-2-4 with 128 bits and a secret key, for
//! which nobody without the key can construct collisions (docs/design/identity.md). Source: Aumasson, Bernstein,
//! "SipHash: a fast short-input PRF", INDOCRYPT 2012.

use std::hash::{BuildHasher, Hasher, RandomState};

use siphasher::sip128::{Hasher128, SipHasher24};
use xxhash_rust::xxh3::xxh3_64;

/// Hash of a cleaned text by a [`Secret`], 128 bits. Two texts are equal when their identities are equal.
pub type Identity = (u64, u64);

/// Key of a run. All processes of the run have the same key, and no author of a text knows it.
///
/// The result of a run does not depend on the key: identities are compared for equality and sorted, and their
/// order is never visible.
#[derive(Clone, Copy)]
pub struct Secret([u64; 2]);

impl Secret {
    /// Draws a new key from the operating system's randomness.
    pub fn random() -> Self {
        let random = RandomState::new();
        Secret([random.hash_one(0), random.hash_one(1)])
    }

    /// Restores a key from the two words that [`Secret::words`] returned.
    pub fn of_words(words: [u64; 2]) -> Self {
        Secret(words)
    }

    /// Returns the key as two words. Keep them where no author of a text can read them before writing the
    /// text.
    pub fn words(self) -> [u64; 2] {
        self.0
    }

    /// Returns the identity of a text.
    pub fn identity(&self, text: &str) -> Identity {
        let mut hasher = SipHasher24::new_with_keys(self.0[0], self.0[1]);
        hasher.write(text.as_bytes());
        let hash = hasher.finish128();
        (hash.h1, hash.h2)
    }
}

/// Hashes a string of bytes, such as a word or a whole text.
pub fn bytes(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

/// Hashes up to six characters, packed into `packed` with 21 bits each, as 16 little-endian bytes.
#[inline]
pub fn gram(packed: u128) -> u64 {
    xxh3_64(&packed.to_le_bytes())
}

/// Hashes the word `text[start..end]`. A word of up to 16 bytes is hashed as 16 bytes, with zeros behind the
/// word.
///
/// Cost: no branch on the length of short words, which a processor cannot predict.
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

/// Spreads a value over all bits, for routing. The result is the hash of its 8 little-endian bytes.
#[inline]
pub fn spread(value: u64) -> u64 {
    xxh3_64(&value.to_le_bytes())
}

#[cfg(test)]
mod tests {
    use xxhash_rust::xxh3::xxh3_128;

    use super::*;

    /// Returns two valid texts with the same XXH3. Where the upper half of an 8-byte word equals that half of
    /// the (public) secret's word, the word enters the hash as a plain sum, so one such word may gain what
    /// another loses.
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

    /// Values from the authors' `vectors.h`: key 00 to 0f, the empty message, 128 bits.
    #[test]
    fn identities_are_those_of_the_reference() {
        let secret = Secret::of_words([0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908]);
        let bytes = |(low, high): Identity| [low.to_le_bytes(), high.to_le_bytes()].concat();
        let empty = b"\xa3\x81\x7f\x04\xba\x25\xa8\xe6\x6d\xf6\x72\x14\xc7\x55\x02\x93";
        assert_eq!(bytes(secret.identity("")), empty);
    }

    /// Values printed by `xxh3_64_hexdigest` of the Python package xxhash 4.1.0 (the reference C library
    /// 0.8.4).
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
