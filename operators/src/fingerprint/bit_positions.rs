//! Chosen bits of a fingerprint, packed into the index of a bucket.

use super::bits::Bits;

/// Packs some bits of a fingerprint into a number: the index of a bucket.
pub(super) struct BitPositions {
    shift: u32,
    mask: u64,
    /// Further runs of bits, each with its shift, its mask after the shift, and its position in the number.
    /// The bits nearly always lie side by side, and then there are none.
    others: Vec<(u32, u64, u32)>,
}

impl BitPositions {
    pub fn new<W: Bits>(mut bits: W) -> Self {
        let mut runs = Vec::new();
        let mut place = 0;
        while bits != W::default() {
            let shift = bits.trailing_zeros();
            let length = (!(bits >> shift)).trailing_zeros();
            runs.push((shift, u64::lowest(length), place));
            place += length;
            bits.take_lowest(length);
        }
        let (shift, mask, _) = if runs.is_empty() { (0, 0, 0) } else { runs.remove(0) };
        BitPositions { shift, mask, others: runs }
    }

    #[inline]
    pub fn of(&self, fingerprint: impl Bits) -> usize {
        let first = (fingerprint >> self.shift).halves()[0] & self.mask;
        if self.others.is_empty() {
            return first as usize;
        }
        let others = self
            .others
            .iter()
            .map(|&(shift, mask, place)| ((fingerprint >> shift).halves()[0] & mask) << place);
        others.fold(first, |value, bits| value | bits) as usize
    }
}
