//! The compare kernel of the block join: finds pairs of fingerprints within a Hamming distance. There are
//! three widths, of which one is picked at run time.
//!
//! This file and `sketch_list.rs` are the only ones of this package with `unsafe`: wide loads, and calls of functions that need a processor feature.
#![expect(unsafe_code, reason = "see above; every block says why it is sound")]

use super::bits::Bits;

/// Width of the compare kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// Compares one pair at a time, on any machine.
    Portable,
    /// Compares four pairs at a time, or two of 128 bits.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// Compares thirty-two pairs at a time, or sixteen of 128 bits.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Kernel {
    /// Returns every kernel that this machine can run, the widest last.
    pub fn available() -> Vec<Kernel> {
        let mut kernels = vec![Kernel::Portable];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") {
                kernels.push(Kernel::Avx2);
            }
            if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vpopcntdq") {
                kernels.push(Kernel::Avx512);
            }
        }
        kernels
    }

    /// Returns the widest kernel that this machine can run.
    pub fn widest() -> Kernel {
        Kernel::available().pop().unwrap_or(Kernel::Portable)
    }

    /// Finds all pairs `i < j` with `i` in `ones` whose fingerprints differ in at most `limit` bits.
    ///
    /// `many`: fingerprints, any order, fewer than 2^32. `hits`: cleared, then filled with `(i, j)`, in no
    /// order. Cost: `ones.len() * many.len()` compares at most, less the half below the diagonal; with
    /// AVX-512 some 6 billion a second in the buckets of docs/design/candidate-search.md.
    ///
    /// # Panics
    /// When `ones` reaches past the end of `many`, or this machine cannot run the kernel.
    pub fn pairs_within<W: Bits>(
        self,
        many: &[W],
        ones: std::ops::Range<usize>,
        limit: u32,
        hits: &mut Vec<(u32, u32)>,
    ) {
        assert!(ones.end <= many.len(), "ones reach past the end");
        hits.clear();
        match self {
            Kernel::Portable => portable(many, ones, limit, hits),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => {
                assert!(is_x86_feature_detected!("avx2"), "this machine has no AVX2");
                // SAFETY: the feature was just found to be there.
                unsafe { x86::avx2(many, ones, limit, hits) }
            }
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => {
                let there =
                    is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vpopcntdq");
                assert!(there, "this machine has no AVX-512 popcount");
                // SAFETY: the features were just found to be there.
                unsafe { x86::avx512(many, ones, limit, hits) }
            }
        }
    }
}

fn portable<W: Bits>(many: &[W], ones: std::ops::Range<usize>, limit: u32, hits: &mut Vec<(u32, u32)>) {
    for i in ones {
        for j in i + 1..many.len() {
            if (many[i] ^ many[j]).count_ones() <= limit {
                hits.push((i as u32, j as u32));
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;
    use std::ops::Range;

    use super::super::bits::Bits;

    /// Returns the number of 64-bit lanes that a word takes: one or two.
    const fn lanes<W: Bits>() -> usize {
        W::BITS as usize / 64
    }

    /// Compares four fingerprints of `ones` at a time with all after them, and those that are left one at a
    /// time.
    #[target_feature(enable = "avx512f,avx512vpopcntdq")]
    pub fn avx512<W: Bits>(many: &[W], ones: Range<usize>, limit: u32, hits: &mut Vec<(u32, u32)>) {
        let mut i = ones.start;
        while i + 4 <= ones.end {
            sweep::<4, W>(many, i, limit, hits);
            i += 4;
        }
        while i < ones.end {
            sweep::<1, W>(many, i, limit, hits);
            i += 1;
        }
    }

    /// Compares `ONES` fingerprints from `i` on with all after them, eight at a time, or four of 128 bits.
    /// One compare of the least distance decides for `8 * ONES` pairs, and almost always finds none near.
    #[target_feature(enable = "avx512f,avx512vpopcntdq")]
    fn sweep<const ONES: usize, W: Bits>(many: &[W], i: usize, limit: u32, hits: &mut Vec<(u32, u32)>) {
        let step = 8 / lanes::<W>();
        let most = _mm512_set1_epi64(i64::from(limit));
        let one: [__m512i; ONES] = std::array::from_fn(|of| everywhere(many[i + of]));
        // The first block may contain some of the ones themselves, so each of the ones is compared only with
        // the lanes after it.
        let mut j = i + 1;
        let first = load(many, j);
        let near = one.iter().enumerate().fold(0, |near, (of, &one)| {
            near | _mm512_mask_cmple_epu64_mask(live(many, i + of, j), distances::<W>(one, first), most)
        });
        if near != 0 {
            note_hits::<ONES, W>(many, i, j, limit, hits);
        }
        j += step;
        while j + step <= many.len() {
            // SAFETY: `step` fingerprints from `j` on lie inside `many`, and are 64 bytes: a word is a u64 or a u128.
            let block = unsafe { _mm512_loadu_epi64(many.as_ptr().add(j).cast()) };
            if any_near::<ONES, W>(&one, block, most) {
                note_hits::<ONES, W>(many, i, j, limit, hits);
            }
            j += step;
        }
        // Lanes behind the end hold zeros, which may seem near. `note_hits` ignores them.
        if j < many.len() && any_near::<ONES, W>(&one, load(many, j), most) {
            note_hits::<ONES, W>(many, i, j, limit, hits);
        }
    }

    /// Whether any of the ones is within `most` bits of any fingerprint of the block.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vpopcntdq")]
    fn any_near<const ONES: usize, W: Bits>(one: &[__m512i; ONES], block: __m512i, most: __m512i) -> bool {
        let distance = one.map(|one| distances::<W>(one, block));
        let least = distance[1..].iter().fold(distance[0], |least, &d| _mm512_min_epu64(least, d));
        _mm512_cmple_epu64_mask(least, most) != 0
    }

    /// Returns a block that repeats one fingerprint.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn everywhere<W: Bits>(one: W) -> __m512i {
        let [low, high] = one.halves().map(|half| half as i64);
        _mm512_set_epi64(high, low, high, low, high, low, high, low)
    }

    /// Returns the numbers of bits in which the fingerprints of two blocks differ. All lanes of a fingerprint
    /// hold its number.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vpopcntdq")]
    fn distances<W: Bits>(one: __m512i, other: __m512i) -> __m512i {
        let distance = _mm512_popcnt_epi64(_mm512_xor_si512(one, other));
        match lanes::<W>() {
            1 => distance,
            _ => _mm512_add_epi64(distance, _mm512_shuffle_epi32::<SWAP>(distance)),
        }
    }

    /// Shuffle that swaps the two 64-bit lanes of each 128 bits.
    const SWAP: i32 = 0b01_00_11_10;

    /// Returns the lanes of the block from `j` on that lie before the end.
    #[inline]
    fn inside<W: Bits>(many: &[W], j: usize) -> __mmask8 {
        let left = lanes::<W>() * (many.len() - j);
        if left >= 8 { 0xFF } else { (1 << left) - 1 }
    }

    /// Loads the block of fingerprints from `j` on, with zeros behind the last one.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn load<W: Bits>(many: &[W], j: usize) -> __m512i {
        // SAFETY: the mask admits only lanes inside `many`, whose words are of one or two lanes; masked-out lanes are
        // not read.
        unsafe { _mm512_maskz_loadu_epi64(inside(many, j), many.as_ptr().add(j).cast()) }
    }

    /// Returns the lanes of the block from `j` on that lie behind `one` and before the end.
    #[inline]
    fn live<W: Bits>(many: &[W], one: usize, j: usize) -> __mmask8 {
        let passed = if one >= j { lanes::<W>() * (one - j + 1) } else { 0 };
        inside(many, j) & 0xFF << passed
    }

    /// Appends the hits of `ONES` fingerprints from `i` on in the block from `j` on.
    #[cold]
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512vpopcntdq")]
    fn note_hits<const ONES: usize, W: Bits>(
        many: &[W],
        i: usize,
        j: usize,
        limit: u32,
        hits: &mut Vec<(u32, u32)>,
    ) {
        let most = _mm512_set1_epi64(i64::from(limit));
        let block = load(many, j);
        let first_lanes = if lanes::<W>() == 1 { 0xFF } else { 0x55 };
        for i in i..i + ONES {
            let distance = distances::<W>(everywhere(many[i]), block);
            let mut near = _mm512_mask_cmple_epu64_mask(live(many, i, j) & first_lanes, distance, most);
            while near != 0 {
                hits.push((i as u32, (j + near.trailing_zeros() as usize / lanes::<W>()) as u32));
                near &= near - 1;
            }
        }
    }

    /// Compares one fingerprint with four others at a time, or two of 128 bits, and counts bits by nibbles.
    #[target_feature(enable = "avx2")]
    pub fn avx2<W: Bits>(many: &[W], ones: Range<usize>, limit: u32, hits: &mut Vec<(u32, u32)>) {
        #[rustfmt::skip]
        let bits_of_nibble = _mm256_setr_epi8(
            0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,
            0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,
        );
        let nibble = _mm256_set1_epi8(0x0F);
        let most = _mm256_set1_epi64x(i64::from(limit) + 1);
        let step = 4 / lanes::<W>();
        let first_lanes = if lanes::<W>() == 1 { 0xF } else { 0x5 };
        for i in ones {
            let [low, high] = many[i].halves().map(|half| half as i64);
            let one = _mm256_set_epi64x(high, low, high, low);
            let mut j = i + 1;
            while j + step <= many.len() {
                // SAFETY: `step` fingerprints from `j` on lie inside `many`, and are 32 bytes: a word is a u64 or a u128.
                let block = unsafe { _mm256_loadu_si256(many.as_ptr().add(j).cast()) };
                let differing = _mm256_xor_si256(one, block);
                let low = _mm256_shuffle_epi8(bits_of_nibble, _mm256_and_si256(differing, nibble));
                let high = _mm256_srli_epi16::<4>(differing);
                let high = _mm256_shuffle_epi8(bits_of_nibble, _mm256_and_si256(high, nibble));
                let mut distance = _mm256_sad_epu8(_mm256_add_epi8(low, high), _mm256_setzero_si256());
                if lanes::<W>() == 2 {
                    distance = _mm256_add_epi64(distance, _mm256_shuffle_epi32::<SWAP>(distance));
                }
                let near = _mm256_cmpgt_epi64(most, distance);
                let mut near = _mm256_movemask_pd(_mm256_castsi256_pd(near)) as u32 & first_lanes;
                while near != 0 {
                    hits.push((i as u32, (j + near.trailing_zeros() as usize / lanes::<W>()) as u32));
                    near &= near - 1;
                }
                j += step;
            }
            for (j, &other) in many.iter().enumerate().skip(j) {
                if (many[i] ^ other).count_ones() <= limit {
                    hits.push((i as u32, j as u32));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn sorted<W: Bits>(
        kernel: Kernel,
        many: &[W],
        ones: std::ops::Range<usize>,
        limit: u32,
    ) -> Vec<(u32, u32)> {
        let mut hits = vec![(9, 9)];
        kernel.pairs_within(many, ones, limit, &mut hits);
        hits.sort_unstable();
        hits
    }

    #[test]
    fn this_machine_tests_more_than_the_portable_kernel_on_x86() {
        assert!(cfg!(not(target_arch = "x86_64")) || Kernel::available().len() > 1);
    }

    proptest! {
        #[test]
        fn every_kernel_equals_its_portable_twin(
            many in vec(prop_oneof![any::<u64>(), (0u64..64).prop_map(|x| x * 0x0101)], 0..70),
            limit in 0u32..=64,
            cut in any::<[prop::sample::Index; 2]>(),
        ) {
            let mut ends = cut.map(|index| index.index(many.len() + 1));
            ends.sort_unstable();
            // Some of the words of 128 bits are decided by the high half, some by the low half, and some by
            // both.
            let wide = many.iter().enumerate().map(|(i, &f)| match i % 3 {
                0 => u128::from(f) << 64 | u128::from(many[0]),
                1 => u128::from(many[0]) << 64 | u128::from(f),
                _ => u128::from(f) << 64 | u128::from(f),
            });
            let wide: Vec<u128> = wide.collect();
            let narrowly = sorted(Kernel::Portable, &many, ends[0]..ends[1], limit);
            let widely = sorted(Kernel::Portable, &wide, ends[0]..ends[1], limit);
            for kernel in Kernel::available() {
                prop_assert_eq!(&sorted(kernel, &many, ends[0]..ends[1], limit), &narrowly, "{:?}", kernel);
                prop_assert_eq!(&sorted(kernel, &wide, ends[0]..ends[1], limit), &widely, "{:?} of 128 bits", kernel);
            }
        }
    }
}
