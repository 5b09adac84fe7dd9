//! Bit-sliced counters: for each bit, the total weight of the words in which it is set.

use super::bits::Bits;

/// Sums up, for each bit, the weights of the words in which the bit is set.
///
/// The sums are stored in bit planes: bit `b` of `planes[p]` is bit `p` of the sum of bit `b`. Adding a word
/// to all sums at once is then a binary addition over the planes. Words of weight one go sixteen at a time
/// through a tree of full adders, at 5 operations a word. Sums must stay below 2^48.
///
/// Example with words of four bits, added one by one:
///
/// ```text
/// words         0111, 0011, 0001
/// sums          0, 1, 2, 3        for bits 3, 2, 1, 0
/// planes[0]     0101              the ones of the sums
/// planes[1]     0011              the twos of the sums
/// majority      0011              bits with a sum above 3 / 2
/// ```
pub(crate) struct BitCounts<W> {
    planes: [W; 48],
    waiting: [W; 16],
    /// Number of words of weight one.
    count: u64,
    /// Total weight of all other words.
    weight: u64,
}

impl<W: Bits> Default for BitCounts<W> {
    fn default() -> Self {
        BitCounts { planes: [W::default(); 48], waiting: [W::default(); 16], count: 0, weight: 0 }
    }
}

impl<W: Bits> BitCounts<W> {
    /// Adds a word of weight one.
    #[inline]
    pub fn add(&mut self, word: W) {
        self.waiting[self.count as usize % 16] = word;
        self.count += 1;
        if self.count.is_multiple_of(16) {
            self.add_waiting();
        }
    }

    /// Adds a word of any weight. Cost: 5 operations for each bit of the weight, and for each of the few
    /// planes that a carry passes.
    #[inline]
    pub fn add_weighted(&mut self, word: W, weight: u64) {
        self.weight += weight;
        let none = W::default();
        let mut rest = weight;
        let mut carry = W::default();
        for plane in &mut self.planes {
            if rest == 0 && carry == none {
                return;
            }
            let bit = if rest & 1 == 1 { word } else { none };
            let odd = *plane ^ bit;
            (*plane, carry) = (odd ^ carry, *plane & bit | odd & carry);
            rest >>= 1;
        }
    }

    #[inline]
    fn add_waiting(&mut self) {
        let mut carries = self.waiting;
        for (level, plane) in self.planes[..4].iter_mut().enumerate() {
            let width = 16 >> level;
            for i in 0..width / 2 {
                let a = carries[2 * i];
                let b = carries[2 * i + 1];
                let odd = a ^ b;
                carries[i] = a & b | odd & *plane;
                *plane = *plane ^ odd;
            }
        }
        self.ripple(4, carries[0]);
    }

    /// Adds one to the sum of every bit of `carry`, from plane `from` upwards.
    #[inline]
    fn ripple(&mut self, from: usize, mut carry: W) {
        for plane in &mut self.planes[from..] {
            if carry == W::default() {
                return;
            }
            (*plane, carry) = (*plane ^ carry, *plane & carry);
        }
    }

    /// Returns the bits that are set in words of more than half of the total weight.
    pub fn majority(mut self) -> W {
        for i in 0..self.count as usize % 16 {
            self.ripple(0, self.waiting[i]);
        }
        let half = (self.count + self.weight) / 2;
        let mut more = W::default();
        let mut same = !W::default();
        for (p, &plane) in self.planes.iter().enumerate().rev() {
            if half >> p & 1 == 1 {
                same = same & plane;
            } else {
                more = more | same & plane;
                same = same & !plane;
            }
        }
        more
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    #[test]
    fn a_bit_needs_more_than_half_of_the_words() {
        let mut tally = BitCounts::default();
        [0b111u64, 0b011, 0b000, 0b001].into_iter().for_each(|word| tally.add(word));
        assert_eq!(tally.majority(), 0b001); // 3, 2 and 1 of 4
    }

    /// Step 4 of Papers/2: 100101 with weight 4 and 101011 with weight 5 make 101011, by the sums 9 -9 1 -1 1
    /// 9.
    #[test]
    fn the_heavier_word_of_the_blog_s_example_wins() {
        let mut tally = BitCounts::default();
        tally.add_weighted(0b100101u64, 4);
        tally.add_weighted(0b101011, 5);
        assert_eq!(tally.majority(), 0b101011);
    }

    /// The definition, bit by bit.
    fn bit_by_bit(words: &[(u128, u64)]) -> u128 {
        let all: u64 = words.iter().map(|word| word.1).sum();
        let of =
            |bit: u32| words.iter().filter(|word| word.0 >> bit & 1 == 1).map(|word| word.1).sum::<u64>();
        (0..128).filter(|&bit| 2 * of(bit) > all).fold(0, |majority, bit| majority | 1 << bit)
    }

    proptest! {
        #[test]
        fn counting_by_planes_equals_counting_bit_by_bit(
            words in vec((any::<u128>(), prop_oneof![Just(1), 0u64..300]), 0..200),
            bias in any::<u128>(),
        ) {
            let biased = |(i, &(word, weight)): (usize, &(u128, u64))| {
                (if i % 3 == 0 { word | bias } else { word & !bias }, weight)
            };
            let words: Vec<(u128, u64)> = words.iter().enumerate().map(biased).collect();
            let (mut wide, mut narrow) = (BitCounts::default(), BitCounts::default());
            for &(word, weight) in &words {
                if weight == 1 {
                    wide.add(word);
                    narrow.add(word as u64);
                } else {
                    wide.add_weighted(word, weight);
                    narrow.add_weighted(word as u64, weight);
                }
            }
            let expected = bit_by_bit(&words);
            prop_assert_eq!(wide.majority(), expected);
            prop_assert_eq!(narrow.majority(), expected as u64);
        }
    }
}
