//! Words of bits: what a Hamming distance compares.

use std::fmt::Debug;
use std::hash::Hash;
use std::ops::{BitAnd, BitOr, BitXor, Not, Shr, Sub};

use crate::hash;
use crate::record::Record;

/// A fingerprint's bits: `u64` or `u128`, and nothing else, which the compare kernels rely on.
pub trait Word:
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
    /// How many bits it has.
    const BITS: u32;
    /// A feature's bits. Those of 128 begin with the feature's hash and end with the hash of that.
    fn of_feature(feature: u64) -> Self;
    /// The number of set bits.
    fn count_ones(self) -> u32;
    /// The number of bits below the lowest set one.
    fn trailing_zeros(self) -> u32;
    /// The low 64 bits, and the high ones; those of 64 are both.
    fn halves(self) -> [u64; 2];
    /// A number for routing; different words may share it.
    fn key(self) -> u64;
    /// The lowest `count` bits, at least one, set.
    fn lowest(count: u32) -> Self {
        !Self::default() >> (Self::BITS - count)
    }
    /// Takes the lowest `count` set bits away, and returns them.
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

impl Word for u64 {
    const BITS: u32 = 64;

    fn of_feature(feature: u64) -> Self {
        feature
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

impl Word for u128 {
    const BITS: u32 = 128;

    fn of_feature(feature: u64) -> Self {
        u128::from(hash::spread(feature)) << 64 | u128::from(feature)
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
