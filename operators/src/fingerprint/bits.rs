//! Words of bits: the type of a fingerprint that Hamming distances are computed on.

use std::fmt::Debug;
use std::hash::Hash;
use std::ops::{BitAnd, BitOr, BitXor, Not, Shr, Sub};

use crate::hash;
use crate::record::Record;

/// Bits of a fingerprint: `u64` or `u128`. The trait is sealed, because the compare kernels rely on there
/// being no other.
pub trait Bits:
    sealed::Sealed
    + Record
    + Sync
    + Debug
    + Default
    + Hash
    + Ord
    + From<u64>
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + Not<Output = Self>
    + Shr<u32, Output = Self>
    + Sub<Output = Self>
{
    /// Number of bits.
    const BITS: u32;
    /// Returns the bits of a feature. With 128 bits, the low half is the feature's hash and the high half is
    /// the hash of that.
    fn of_feature(feature: u64) -> Self;
    /// Returns the bits of a number: a decimal one, where a negative one stands for its two's complement, or 0x and hexadecimal
    /// digits.
    fn of_number(text: &str) -> Option<Self>;
    /// Returns the number of set bits.
    fn count_ones(self) -> u32;
    /// Returns the number of bits below the lowest set one.
    fn trailing_zeros(self) -> u32;
    /// Returns the low and the high 64 bits. A word of 64 bits is returned twice.
    fn halves(self) -> [u64; 2];
    /// Returns a number for routing. Different words may have the same.
    fn key(self) -> u64;
    /// Returns a word with the lowest `count` bits set; `count` is at least one.
    fn lowest(count: u32) -> Self {
        !Self::default() >> (Self::BITS - count)
    }
    /// Clears the lowest `count` set bits, and returns them.
    fn take_lowest(&mut self, count: u32) -> Self {
        let before = *self;
        for _ in 0..count {
            *self = *self & (*self - Self::from(1));
        }
        before & !*self
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for u64 {}
    impl Sealed for u128 {}
}

impl Bits for u64 {
    const BITS: u32 = 64;

    fn of_feature(feature: u64) -> Self {
        feature
    }

    fn of_number(text: &str) -> Option<Self> {
        let text = text.trim();
        match text.strip_prefix("0x") {
            Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16).ok(),
            Some(_) => None,
            None => text.parse().ok().or_else(|| text.parse().ok().map(i64::cast_unsigned)),
        }
    }

    #[inline]
    fn count_ones(self) -> u32 {
        self.count_ones()
    }

    #[inline]
    fn trailing_zeros(self) -> u32 {
        self.trailing_zeros()
    }

    #[inline]
    fn halves(self) -> [u64; 2] {
        [self, self]
    }

    #[inline]
    fn key(self) -> u64 {
        self
    }
}

impl Bits for u128 {
    const BITS: u32 = 128;

    fn of_feature(feature: u64) -> Self {
        u128::from(hash::spread(feature)) << 64 | u128::from(feature)
    }

    fn of_number(text: &str) -> Option<Self> {
        let text = text.trim();
        match text.strip_prefix("0x") {
            Some(digits) if !digits.starts_with('+') => u128::from_str_radix(digits, 16).ok(),
            Some(_) => None,
            None => text.parse().ok().or_else(|| text.parse().ok().map(i128::cast_unsigned)),
        }
    }

    #[inline]
    fn count_ones(self) -> u32 {
        self.count_ones()
    }

    #[inline]
    fn trailing_zeros(self) -> u32 {
        self.trailing_zeros()
    }

    #[inline]
    fn halves(self) -> [u64; 2] {
        [self as u64, (self >> 64) as u64]
    }

    #[inline]
    fn key(self) -> u64 {
        let [low, high] = self.halves();
        low ^ hash::spread(high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_bits() {
        assert_eq!(u64::of_number("18446744073709551615"), Some(u64::MAX));
        assert_eq!(u64::of_number(" -1\n"), Some(u64::MAX));
        assert_eq!(u64::of_number("0x00ff"), Some(255));
        assert_eq!(u128::of_number("-2"), Some(u128::MAX - 1));
        for text in ["", "x", "0x", "0x+1", "18446744073709551616", "1.5", "文"] {
            assert_eq!(u64::of_number(text), None, "{text}");
        }
    }
}
