//! Blocks cut by content with Rabin fingerprints.

use super::exact::{ExactStore, size_of_blocks};
use super::store::{BlockMethod, BlockStore};

/// Irreducible polynomial over GF(2) of degree 63: bit `i` is the coefficient of `x^i`. It is the one of LBFS.
const POLYNOMIAL: u64 = 0xbfe6_b8a5_bf37_8d83;
/// Number of bytes whose fingerprint decides whether a block ends behind them.
const WINDOW: usize = 48;
/// Value of the fingerprint, modulo the mean size, at the end of a block. It is the one of LBFS.
const MARK: u64 = 0x78;
/// Least and largest wanted mean of the bytes of a block.
const MEAN_BYTES: (usize, usize) = (256, 1 << 20);

/// `rabin:SIZE`: a block ends where the Rabin fingerprint of the last 48 bytes, modulo SIZE, is 0x78. Blocks have a quarter of
/// SIZE to eight times SIZE bytes. SIZE is a power of two.
///
/// A window of bytes is a polynomial over GF(2), and its fingerprint the remainder of the division by [`POLYNOMIAL`].
/// The next window is the last one without its first byte and with one more, so its fingerprint costs two table
/// lookups.
///
/// Sources: Rabin, "Fingerprinting by Random Polynomials", 1981; Muthitacharoen, Chen, Mazières, "A Low-bandwidth
/// Network File System", SOSP 2001, for the polynomial, the window, the mark, and the bounds in proportion to SIZE. Peng 2017,
/// section 1.2.2, names the method and gives no parameters.
pub(super) struct RabinBlocks;

impl BlockMethod for RabinBlocks {
    fn name(&self) -> &'static str {
        "rabin"
    }

    fn form(&self) -> &'static str {
        "rabin:SIZE"
    }

    fn examples(&self) -> &[&'static str] {
        &["rabin:4K"]
    }

    fn open<'a>(&self, parameter: Option<&str>) -> Result<Box<dyn BlockStore<'a> + 'a>, String> {
        let mean = size_of_blocks(parameter, MEAN_BYTES.0, MEAN_BYTES.1)?;
        if !mean.is_power_of_two() {
            return Err("SIZE a power of two".to_owned());
        }
        let tables = RabinTables::new();
        Ok(ExactStore::open(move |text: &'a str| {
            let mut rest = text.as_bytes();
            let mut blocks = Vec::new();
            while !rest.is_empty() {
                let (block, behind) = rest.split_at(tables.first_block(rest, mean));
                blocks.push(block);
                rest = behind;
            }
            blocks
        }))
    }
}

/// Tables of remainders modulo [`POLYNOMIAL`].
struct RabinTables {
    /// Remainder of `byte * x^63`, for a byte that is pushed out of the fingerprint at its upper end.
    overflow: [u64; 256],
    /// Remainder of `byte * x^(8 * WINDOW)`, for the byte that leaves the window when one comes.
    leaving: [u64; 256],
}

impl RabinTables {
    fn new() -> Self {
        let table = |power: usize| {
            std::array::from_fn(|byte| (0..power).fold(byte as u64, |remainder, _| times_x(remainder)))
        };
        RabinTables { overflow: table(63), leaving: table(8 * WINDOW) }
    }

    /// Returns the fingerprint of a window with one more byte behind it.
    #[inline]
    fn push(&self, fingerprint: u64, byte: u8) -> u64 {
        ((fingerprint & ((1 << 55) - 1)) << 8 | u64::from(byte)) ^ self.overflow[(fingerprint >> 55) as usize]
    }

    /// Returns the length of the first block of a text that is not empty.
    fn first_block(&self, text: &[u8], mean: usize) -> usize {
        let least = (mean / 4).max(WINDOW);
        let most = text.len().min(8 * mean);
        if most <= least {
            return most;
        }
        let mask = mean as u64 - 1;
        let mut fingerprint =
            text[least - WINDOW..least].iter().fold(0, |fingerprint, &byte| self.push(fingerprint, byte));
        for end in least..most {
            if fingerprint & mask == MARK {
                return end;
            }
            fingerprint = self.push(fingerprint, text[end]) ^ self.leaving[usize::from(text[end - WINDOW])];
        }
        most
    }
}

/// Multiplies a remainder by `x`.
fn times_x(remainder: u64) -> u64 {
    let doubled = remainder << 1;
    if doubled >> 63 == 1 { doubled ^ POLYNOMIAL } else { doubled }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash;

    #[test]
    fn a_sliding_fingerprint_is_that_of_the_window_alone() {
        let tables = RabinTables::new();
        let text: Vec<u8> = (0..500u32).map(|n| (n * n % 251) as u8).collect();
        // The simplest correct code: division bit by bit.
        let whole = |window: &[u8]| {
            let bits =
                window.iter().flat_map(|&byte| (0..8).rev().map(move |bit| u64::from(byte >> bit & 1)));
            bits.fold(0, |fingerprint, bit| times_x(fingerprint) ^ bit)
        };
        let mut fingerprint =
            text[..WINDOW].iter().fold(0, |fingerprint, &byte| tables.push(fingerprint, byte));
        for end in WINDOW..text.len() {
            assert_eq!(fingerprint, whole(&text[end - WINDOW..end]));
            fingerprint =
                tables.push(fingerprint, text[end]) ^ tables.leaving[usize::from(text[end - WINDOW])];
        }
    }

    /// Rabin's test: a polynomial P of degree 63 is irreducible if x^(2^63) is x modulo P, and P has no factor in common
    /// with x^(2^21) - x and with x^(2^9) - x. (The primes that divide 63 are 3 and 7.)
    #[test]
    fn the_polynomial_is_irreducible() {
        let times = |a: u64, b: u64| {
            let bits = (0..63).rev().map(|bit| b >> bit & 1);
            bits.fold(0, |product, bit| times_x(product) ^ if bit == 1 { a } else { 0 })
        };
        let power = |squarings: u32| (0..squarings).fold(2, |power, _| times(power, power));
        let common = |mut a: u64, mut b: u64| {
            while b != 0 {
                while a != 0 && a.leading_zeros() <= b.leading_zeros() {
                    a ^= b << (b.leading_zeros() - a.leading_zeros());
                }
                (a, b) = (b, a);
            }
            a
        };
        assert_eq!(power(63), 2);
        assert_eq!([common(POLYNOMIAL, power(21) ^ 2), common(POLYNOMIAL, power(9) ^ 2)], [1, 1]);
        assert_eq!(common(0b101, 0b11), 0b11, "x^2 + 1 is (x + 1)^2");
    }

    #[test]
    fn blocks_are_within_their_bounds_and_survive_an_insertion() {
        let text: String =
            (0..40_000).map(|n| char::from_u32(0x4e00 + (hash::spread(n) % 7_919) as u32).unwrap()).collect();
        let changed = format!("{}插入{}", &text[..3_000], &text[3_000..]);
        let tables = RabinTables::new();
        let mut rest = text.as_bytes();
        while rest.len() > 1024 {
            let block = tables.first_block(rest, 1024);
            assert!((256..=8 * 1024).contains(&block), "{block}");
            rest = &rest[block..];
        }
        let mut store = RabinBlocks.open(Some("1K")).unwrap();
        store.add(&text);
        let left_out: usize = store.add(&changed).left_out.iter().map(|range| range.len()).sum();
        assert!(left_out > text.len() - 20_000 && left_out < text.len(), "{left_out} of {}", text.len());
    }
}
