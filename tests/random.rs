//! The random numbers of all tests, which those of `jobs`, `datasets` and `cluster`
//! include.
#![allow(dead_code, reason = "not all tests use all of it")]

/// Random numbers that are the same in every run: a linear congruential generator with the factor of Knuth's
/// MMIX, whose low bits are left out.
pub struct Random(pub u64);

impl Random {
    /// Returns a number of 31 bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 33
    }

    /// Returns a number below `end`, or 0 if `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() as usize).checked_rem(end).unwrap_or(0)
    }

    pub fn byte(&mut self) -> u8 {
        (self.next() >> 23) as u8
    }

    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.byte()).collect()
    }

    /// Returns a text of `chars` Chinese characters, with a comma now and then.
    pub fn text(&mut self, chars: usize) -> String {
        let comma = |at: usize| at % 11 == 10;
        let hanzi = |n: usize| char::from_u32(0x4E00 + n as u32).unwrap();
        (0..chars).map(|at| if comma(at) { '，' } else { hanzi(self.below(3000)) }).collect()
    }
}
