//! Random numbers that are the same on any machine.

/// The generator SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA
/// 2014).
pub(super) struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// Returns a number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }

    /// Returns a number between `least` and `most`, both included.
    pub fn between(&mut self, least: usize, most: usize) -> usize {
        least + self.below(most - least + 1)
    }

    /// Puts a value into a window of at most `most` values, in the place of any one if it is full.
    pub fn keep<T>(&mut self, window: &mut Vec<T>, most: usize, new: T) {
        if window.len() < most {
            window.push(new);
        } else {
            let at = self.below(most);
            window[at] = new;
        }
    }

    /// Returns a word. Words at the front come far more often.
    pub fn word<'a>(&mut self, words: &[&'a str]) -> &'a str {
        let end = self.below(words.len()) + 1;
        words[self.below(end)]
    }
}
