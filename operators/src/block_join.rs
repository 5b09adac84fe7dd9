//! The block join: every pair of fingerprints within a Hamming distance, each once.
//!
//! Two fingerprints within `k` bits agree on at least one of `k + 1` blocks (Manku, Jain, Das Sarma, "Detecting
//! Near-Duplicates for Web Crawling", WWW 2007, section 3), and a pair is emitted for the first block on
//! which it agrees. A bucket that is too large to compare all pairs is split over bits that are not
//! yet fixed, by the same pigeonhole (Zhou's remedy for skew made general; docs/design/0002).

use crate::hamming::Kernel;
use crate::record::{Pair, Row};

/// Buckets up to this size are compared pair by pair, per part that a split would have.
const SMALL: usize = 128;
/// Splitting aims at buckets of this size, or up to twice as many.
const TARGET: usize = 16;
/// At most this many bits are split over at once: 256 buckets are filled without missing the address cache.
const MAX_WIDTH: u32 = 8;
/// Rows of a bucket that are compared with the rest at once; bounds the list of hits.
const STRIP: usize = 256;

/// Joins rows block by block. Keeps its buffers between calls: one copy of the rows (16 bytes each) and
/// small change.
#[derive(Clone, Debug)]
pub struct BlockJoin {
    kernel: Kernel,
    distance: u32,
    blocks: Vec<u64>,
    levels: Vec<Level>,
    differ: Vec<u64>,
    fingerprints: Vec<u64>,
    hits: Vec<(u32, u32)>,
}

/// The buffers of one level of splitting.
#[derive(Clone, Debug, Default)]
struct Level {
    rows: Vec<Row<u64>>,
    /// For each group of bits, where its buckets end.
    ends: Vec<Vec<usize>>,
}

/// What is known of every pair that is wanted from a bucket.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// It agrees on these bits.
    equal: u64,
    /// It differs in at most `budget` of these bits, ...
    zone: u64,
    /// ... in bits.
    budget: u32,
}

impl BlockJoin {
    /// A join of fingerprints of `bits` bits (up to 64) within `distance` bits.
    ///
    /// # Panics
    /// When there are fewer bits than blocks: `distance >= bits`.
    pub fn new(bits: u32, distance: u32, kernel: Kernel) -> Self {
        assert!(bits <= 64 && distance < bits, "at least one bit a block");
        let mut rest = u64::MAX >> (64 - bits);
        let blocks =
            (0..=distance).map(|block| take_low(&mut rest, share(bits, distance + 1, block))).collect();
        BlockJoin {
            kernel,
            distance,
            blocks,
            levels: Vec::new(),
            differ: Vec::new(),
            fingerprints: Vec::new(),
            hits: Vec::new(),
        }
    }

    /// The number of blocks.
    pub fn blocks(&self) -> u32 {
        self.blocks.len() as u32
    }

    /// The value of one block of a fingerprint, in its own bits.
    pub fn value(&self, block: u32, fingerprint: u64) -> u64 {
        fingerprint & self.blocks[block as usize]
    }

    /// Emits every pair of rows that are within the distance and agree on `block` and on no block before it.
    ///
    /// Cost: close to linear in the rows for spread fingerprints, and in the pairs where they are many.
    pub fn join(&mut self, block: u32, rows: &[Row<u64>], emit: &mut impl FnMut(Pair)) {
        let before = &self.blocks[..block as usize];
        let zone: u64 = self.blocks[block as usize + 1..].iter().sum();
        let bounds = narrower(zone, self.distance - block, before.first(), self.distance + 1 - block);
        self.differ = before.to_vec();
        self.split(0, rows, Bounds { equal: self.blocks[block as usize], ..bounds }, emit);
    }

    fn split(&mut self, depth: usize, rows: &[Row<u64>], bounds: Bounds, emit: &mut impl FnMut(Pair)) {
        let parts = bounds.budget as usize + 1;
        if rows.len() <= if bounds.equal == 0 { SMALL * parts } else { SMALL } {
            return self.compare(rows, bounds.equal, emit);
        }
        // Bits on which all rows agree tell nothing apart, and cannot be where a pair differs.
        let varying = rows.iter().fold(0, |bits, row| bits | (row.fingerprint ^ rows[0].fingerprint));
        if self.differ.iter().any(|bits| bits & varying == 0) {
            return;
        }
        let (equal, zone) = (bounds.equal & varying, bounds.zone & varying);
        let wanted = (rows.len() / TARGET).ilog2().clamp(1, MAX_WIDTH);
        if self.levels.len() == depth {
            self.levels.push(Level::default());
        }
        let mut level = std::mem::take(&mut self.levels[depth]);
        if equal != 0 {
            let mut rest = equal;
            let group = take_low(&mut rest, wanted.min(equal.count_ones()));
            level.count(rows, &[group]);
            self.split_by(depth, &mut level, rows, (0, group), Bounds { equal: rest, zone, ..bounds }, emit);
        } else {
            let mut rest = zone;
            let width = wanted.min(zone.count_ones() / parts as u32);
            let groups: Vec<u64> = (0..parts).map(|_| take_low(&mut rest, width)).collect();
            level.count(rows, &groups);
            // Crowded fingerprints may stay together in every part. Halving the work at least bounds it all by a
            // small multiple of comparing all pairs.
            if width == 0 || 2 * level.pairs() > rows.len().pow(2) {
                self.compare(rows, 0, emit);
            } else {
                self.split_zone(depth, &mut level, rows, &groups, Bounds { equal, zone, ..bounds }, emit);
            }
        }
        self.levels[depth] = level;
    }

    /// Looks for each pair in the first group of bits of the zone on which it agrees.
    fn split_zone(
        &mut self,
        depth: usize,
        level: &mut Level,
        rows: &[Row<u64>],
        groups: &[u64],
        bounds: Bounds,
        emit: &mut impl FnMut(Pair),
    ) {
        let known = self.differ.len();
        let mut rest = bounds.zone;
        for (part, &group) in groups.iter().enumerate() {
            rest &= !group;
            let left = bounds.budget - part as u32;
            let below = narrower(rest, left, self.differ.get(known), left + 1);
            self.split_by(depth, level, rows, (part, group), below, emit);
            self.differ.push(group);
        }
        self.differ.truncate(known);
    }

    /// Sorts rows into buckets by the bits of a group, whose ends are counted, and splits each bucket further.
    fn split_by(
        &mut self,
        depth: usize,
        level: &mut Level,
        rows: &[Row<u64>],
        (part, group): (usize, u64),
        bounds: Bounds,
        emit: &mut impl FnMut(Pair),
    ) {
        level.scatter(rows, part, group);
        let mut start = 0;
        for &end in &level.ends[part] {
            if end - start > 1 {
                self.split(depth + 1, &level.rows[start..end], bounds, emit);
            }
            start = end;
        }
    }

    /// Compares all pairs of a bucket.
    fn compare(&mut self, rows: &[Row<u64>], equal: u64, emit: &mut impl FnMut(Pair)) {
        self.fingerprints.clear();
        self.fingerprints.extend(rows.iter().map(|row| row.fingerprint));
        let mut start = 0;
        while start < rows.len() {
            let end = rows.len().min(start + STRIP);
            self.kernel.pairs_within(&self.fingerprints, start..end, self.distance, &mut self.hits);
            for &(one, other) in &self.hits {
                let (one, other) = (&rows[one as usize], &rows[other as usize]);
                let differing = one.fingerprint ^ other.fingerprint;
                if differing & equal == 0 && self.differ.iter().all(|bits| differing & bits != 0) {
                    emit(Pair::new(one.doc, other.doc, differing.count_ones()));
                }
            }
            start = end;
        }
    }
}

impl Level {
    /// Counts the rows of each bucket of each group.
    fn count(&mut self, rows: &[Row<u64>], groups: &[u64]) {
        self.ends.resize_with(self.ends.len().max(groups.len()), Vec::new);
        for (ends, &group) in self.ends.iter_mut().zip(groups) {
            ends.clear();
            ends.resize(1 << group.count_ones(), 0);
            let bits = Bits::new(group);
            rows.iter().for_each(|row| ends[bits.of(row.fingerprint)] += 1);
        }
        self.ends[groups.len()..].iter_mut().for_each(Vec::clear);
    }

    /// Twice the pairs that share a bucket of a group, each row with itself included.
    fn pairs(&self) -> usize {
        self.ends.iter().flatten().map(|count| count * count).sum()
    }

    /// Orders rows by their bits in a group; its counts become its buckets' ends.
    fn scatter(&mut self, rows: &[Row<u64>], part: usize, group: u64) {
        self.rows.resize(rows.len(), Row::default());
        let (ends, to) = (&mut self.ends[part], &mut self.rows);
        let mut start = 0;
        for end in &mut *ends {
            start += std::mem::replace(end, start);
        }
        let bits = Bits::new(group);
        for row in rows {
            let end = &mut ends[bits.of(row.fingerprint)];
            to[*end] = *row;
            *end += 1;
        }
    }
}

/// The tighter of two bounds on where a pair differs: `zone` with its budget, or the first group known to
/// differ, with what the groups after it leave.
fn narrower(zone: u64, budget: u32, first: Option<&u64>, first_budget: u32) -> Bounds {
    let share = |bits: u64, budget: u32| bits.count_ones() / (budget + 1);
    match first {
        Some(&group) if share(group, first_budget) > share(zone, budget) => {
            Bounds { equal: 0, zone: group, budget: first_budget }
        }
        _ if budget == 0 => Bounds { equal: zone, zone: 0, budget: 0 },
        _ => Bounds { equal: 0, zone, budget },
    }
}

/// Block `index` of `parts` has this many of `bits` bits; sizes differ by at most one.
fn share(bits: u32, parts: u32, index: u32) -> u32 {
    bits * (index + 1) / parts - bits * index / parts
}

/// Removes the lowest `count` set bits from `bits` and returns them.
fn take_low(bits: &mut u64, count: u32) -> u64 {
    let before = *bits;
    for _ in 0..count {
        *bits &= *bits - 1;
    }
    before & !*bits
}

/// Packs some bits of a fingerprint into a number.
struct Bits {
    shift: u32,
    mask: u64,
    /// Nearly always the bits lie side by side. Else: the other runs of them, each with its shift, its mask once
    /// shifted, and its place in the number.
    others: Vec<(u32, u64, u32)>,
}

impl Bits {
    fn new(mut bits: u64) -> Self {
        let (mut runs, mut place) = (Vec::new(), 0);
        while bits != 0 {
            let shift = bits.trailing_zeros();
            let length = (bits >> shift).trailing_ones();
            let mask = u64::MAX >> (64 - length);
            runs.push((shift, mask, place));
            place += length;
            bits &= !(mask << shift);
        }
        let (shift, mask, _) = if runs.is_empty() { (0, 0, 0) } else { runs.remove(0) };
        Bits { shift, mask, others: runs }
    }

    #[inline]
    fn of(&self, fingerprint: u64) -> usize {
        let first = fingerprint >> self.shift & self.mask;
        if self.others.is_empty() {
            return first as usize;
        }
        let others = self.others.iter().map(|(shift, mask, place)| (fingerprint >> shift & mask) << place);
        others.fold(first, |value, bits| value | bits) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::DocId;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn rows(fingerprints: &[u64]) -> Vec<Row<u64>> {
        fingerprints.iter().enumerate().map(|(i, &f)| Row { fingerprint: f, doc: DocId(i as u64) }).collect()
    }

    fn joined(bits: u32, distance: u32, rows: &[Row<u64>]) -> Vec<Pair> {
        let mut join = BlockJoin::new(bits, distance, Kernel::widest());
        let mut pairs = Vec::new();
        for block in 0..join.blocks() {
            join.join(block, rows, &mut |pair| pairs.push(pair));
        }
        pairs.sort_unstable();
        pairs
    }

    fn brute_force(distance: u32, rows: &[Row<u64>]) -> Vec<Pair> {
        let mut pairs = Vec::new();
        for (i, one) in rows.iter().enumerate() {
            for other in &rows[i + 1..] {
                let differing = (one.fingerprint ^ other.fingerprint).count_ones();
                if differing <= distance {
                    pairs.push(Pair::new(one.doc, other.doc, differing));
                }
            }
        }
        pairs.sort_unstable();
        pairs
    }

    #[test]
    fn three_differing_bits_still_share_a_block() {
        let rows = rows(&[0, 1 | 1 << 20 | 1 << 40]); // blocks 0, 1 and 2 differ
        assert_eq!(joined(64, 3, &rows), [Pair::new(DocId(0), DocId(1), 3)]);
    }

    #[test]
    fn blocks_cover_all_bits_once() {
        for (bits, distance) in [(64, 3), (32, 3), (64, 6), (32, 15), (64, 0), (64, 15)] {
            let join = BlockJoin::new(bits, distance, Kernel::Portable);
            assert_eq!(join.blocks.iter().fold(0, |all, block| all | block), u64::MAX >> (64 - bits));
            assert_eq!(join.blocks.iter().map(|block| block.count_ones()).sum::<u32>(), bits);
        }
    }

    /// Fingerprints crowded into a few places, so that every bucket is split several times.
    fn skewed() -> impl Strategy<Value = Vec<u64>> {
        (vec(any::<u64>(), 1..4), vec((any::<prop::sample::Index>(), vec(0u32..64, 0..7)), 0..1500)).prop_map(
            |(centres, near)| {
                near.into_iter()
                    .map(|(centre, flips)| flips.iter().fold(*centre.get(&centres), |f, bit| f ^ 1 << bit))
                    .collect()
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn crowded_fingerprints_give_each_pair_once(fingerprints in skewed(), distance in 0u32..=15, wide in any::<bool>()) {
            let bits = if wide { 64 } else { 32 };
            let rows = rows(&fingerprints.iter().map(|f| f & (u64::MAX >> (64 - bits))).collect::<Vec<_>>());
            prop_assert_eq!(joined(bits, distance, &rows), brute_force(distance, &rows));
        }
    }

    #[test]
    fn dense_fingerprints_give_each_pair_once() {
        for distance in [0, 1, 3, 5] {
            let rows = rows(&(0..3000u64).map(|i| i << 7 | 5).collect::<Vec<_>>());
            assert_eq!(joined(64, distance, &rows), brute_force(distance, &rows), "within {distance}");
        }
    }

    /// Many rows that share their last block: pairs of it differ in exactly one bit of each other block, so it is
    /// split over the first block, twice.
    #[test]
    fn pairs_that_share_only_their_last_block_are_found_in_a_crowd() {
        let random = |i: u64| crate::hash::spread(i) >> 16 | 7 << 48;
        let crowd = (0..80_000).map(random);
        let near = (0..2_000).map(|i| {
            let flips = crate::hash::spread(!i);
            let bit = |block: u64| 1 << (16 * block + (flips >> (8 * block) & 15));
            random(i) ^ bit(0) ^ bit(1) ^ bit(2)
        });
        let rows = rows(&crowd.chain(near).collect::<Vec<_>>());
        let found = joined(64, 3, &rows);
        let fingerprints: Vec<u64> = rows.iter().map(|row| row.fingerprint).collect();
        let mut hits = Vec::new();
        Kernel::widest().pairs_within(&fingerprints, 0..fingerprints.len(), 3, &mut hits);
        let mut expected: Vec<Pair> = hits
            .iter()
            .map(|&(i, j)| {
                let (a, b) = (&rows[i as usize], &rows[j as usize]);
                Pair::new(a.doc, b.doc, (a.fingerprint ^ b.fingerprint).count_ones())
            })
            .collect();
        expected.sort_unstable();
        assert!(expected.len() >= 2_000);
        assert_eq!(found, expected);
    }
}
