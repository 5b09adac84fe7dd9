//! Columns of words, packed into as few bits as the values of one block need.

/// Number of bytes that describe a packed column, without those of its base.
const HEADER_BYTES: usize = 3;

/// Range of the words of a column, from which its packing follows.
#[derive(Clone, Copy)]
pub(super) struct WordRange {
    least: u64,
    most: u64,
    /// Bits that are set in any word.
    union: u64,
}

impl WordRange {
    /// The range of no words.
    pub const EMPTY: WordRange = WordRange { least: u64::MAX, most: 0, union: 0 };

    /// Extends the range to one more word.
    #[inline]
    pub fn add(&mut self, word: u64) {
        self.least = self.least.min(word);
        self.most = self.most.max(word);
        self.union |= word;
    }

    /// Returns the packing with the fewest bits for the words of this range.
    #[inline]
    pub fn packing(&self) -> BitPacking {
        if self.union == 0 {
            return BitPacking::default();
        }
        let shift = self.union.trailing_zeros();
        let (least, most) = (self.least >> shift, self.most >> shift);
        let width = bits(most - least);
        // A base that saves no bit is not worth its own bytes.
        let base = if bits(most) == width { 0 } else { least };
        BitPacking { base, shift, width }
    }
}

/// Number of bits up to the highest one that is set.
#[inline]
fn bits(word: u64) -> u32 {
    u64::BITS - word.leading_zeros()
}

/// A packing by frame of reference: a word is `(base + offset) << shift`, and `offset` has `width` bits.
///
/// ```text
/// words     0x51000, 0x53000, 0x58000
/// shift     12, since the low 12 bits of all of them are zero
/// base      0x51
/// offsets   0, 2, 7
/// width     3 bits
/// ```
#[derive(Clone, Copy, Default)]
pub(super) struct BitPacking {
    base: u64,
    shift: u32,
    /// Number of bits of each offset.
    pub width: u32,
}

impl BitPacking {
    /// Appends the description of the column: width, shift, length of the base, base.
    pub fn write_header(&self, to: &mut Vec<u8>) {
        let base_bytes = bits(self.base).div_ceil(8) as usize;
        to.extend([self.width as u8, self.shift as u8, base_bytes as u8]);
        to.extend(&self.base.to_le_bytes()[..base_bytes]);
    }

    /// Reads the description of a column from the start of `bytes`, and returns it with its length.
    pub fn read_header(bytes: &[u8]) -> Option<(BitPacking, usize)> {
        let &[width, shift, base_bytes] = bytes.first_chunk::<HEADER_BYTES>()?;
        let end = HEADER_BYTES + usize::from(base_bytes);
        let mut base = [0; 8];
        base.get_mut(..usize::from(base_bytes))?.copy_from_slice(bytes.get(HEADER_BYTES..end)?);
        let packing = BitPacking { base: u64::from_le_bytes(base), shift: shift.into(), width: width.into() };
        (packing.shift < u64::BITS && packing.width <= u64::BITS).then_some((packing, end))
    }

    /// Returns the number of bytes of a column of `rows` words.
    pub fn column_bytes(&self, rows: usize) -> usize {
        (rows * self.width as usize).div_ceil(8)
    }

    /// Appends the packed offsets of `words`, all of which are in the range of this packing.
    pub fn pack(&self, words: impl Iterator<Item = u64>, to: &mut Vec<u8>) {
        let (mut pending, mut pending_bits) = (0u128, 0);
        for word in words {
            pending |= u128::from((word >> self.shift) - self.base) << pending_bits;
            pending_bits += self.width;
            if pending_bits >= u64::BITS {
                to.extend((pending as u64).to_le_bytes());
                pending >>= u64::BITS;
                pending_bits -= u64::BITS;
            }
        }
        to.extend(&(pending as u64).to_le_bytes()[..pending_bits.div_ceil(8) as usize]);
    }

    /// Returns a word of the column that begins at byte `start` of `block`. Bytes behind the end of the block
    /// count as zero. The cost is two reads of memory and a few shifts.
    #[inline]
    pub fn word(&self, block: &[u8], start: usize, row: usize) -> u64 {
        if self.width == 0 {
            return self.base << self.shift;
        }
        let bit = row * self.width as usize;
        let at = start + bit / 8;
        let skipped = (bit % 8) as u32;
        let mut offset = eight_bytes(block, at) >> skipped;
        if skipped + self.width > u64::BITS {
            let ninth = block.get(at + 8).copied().unwrap_or_default();
            offset |= u64::from(ninth) << (u64::BITS - skipped);
        }
        let mask = u64::MAX.checked_shr(u64::BITS - self.width).unwrap_or_default();
        self.base.wrapping_add(offset & mask) << self.shift
    }
}

/// Reads eight bytes at `at`, little-endian. Bytes behind the end count as zero.
#[inline]
fn eight_bytes(bytes: &[u8], at: usize) -> u64 {
    if let Some(Ok(eight)) = bytes.get(at..at + 8).map(<[u8; 8]>::try_from) {
        return u64::from_le_bytes(eight);
    }
    let rest = bytes.get(at..).unwrap_or_default();
    rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_packs(words: &[u64], width: u32, header_bytes: usize) {
        let mut range = WordRange::EMPTY;
        words.iter().for_each(|word| range.add(*word));
        let mut bytes = Vec::new();
        range.packing().write_header(&mut bytes);
        assert_eq!((range.packing().width, bytes.len()), (width, header_bytes));
        range.packing().pack(words.iter().copied(), &mut bytes);
        let (packing, start) = BitPacking::read_header(&bytes).unwrap();
        assert_eq!(bytes.len(), start + packing.column_bytes(words.len()));
        for (row, word) in words.iter().enumerate() {
            assert_eq!(packing.word(&bytes, start, row), *word, "row {row} of {words:x?}");
        }
    }

    #[test]
    fn a_column_takes_the_bits_of_its_differences() {
        assert_packs(&[0x51000, 0x53000, 0x58000], 3, 4);
        assert_packs(&[7, 7, 7], 0, 4);
        assert_packs(&[0, 0], 0, 3);
        assert_packs(&[0, u64::MAX, 1, u64::MAX - 1], 64, 3);
        assert_packs(&[1 << 63, 0, 1 << 63], 1, 3);
        assert_packs(&[u64::MAX; 3], 0, 11);
        // No base, because it would save no bit.
        assert_packs(&[1, 9, 15], 4, 3);
    }

    #[test]
    fn words_of_any_width_cross_bytes() {
        for width in 1..=64 {
            let most = u64::MAX >> (64 - width);
            let words: Vec<u64> = (0..40).map(|row| most.wrapping_mul(row * row + 1) & most).collect();
            assert_packs(&[words, vec![0, 1, most]].concat(), width, 3);
        }
    }
}
