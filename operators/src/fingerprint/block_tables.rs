//! Tables of blocks: the bits on which fingerprints must agree to meet in a join, and the pairs that a join
//! emits there.
//!
//! Two fingerprints within `k` bits agree on at least `b - k` of `b` blocks, so each choice of `b - k` blocks
//! has a table that is keyed on them together: Manku, Jain, Das Sarma, "Detecting Near-Duplicates for Web
//! Crawling", WWW 2007, section 3. A pair that agrees on more blocks meets in several tables, and belongs to
//! the first.

use super::bits::Bits;

/// Greatest number of tables that a join should have. Every row is shuffled and joined once for each table.
pub const MAX_TABLES: u64 = 500;

/// Least number of bits of a group when a table is split. Fewer bits would divide the bucket too little.
const LEAST_SPLIT_BITS: u32 = 4;
/// Greatest number of tables that a table is split into, because each takes all rows.
const MOST_SPLIT_TABLES: u32 = 8;

/// A choice of blocks, and the pairs that belong to it: those pairs for which these blocks are the first on
/// which they agree.
///
/// No two of the parts share a bit, and together they contain all bits.
///
/// Example with three blocks and distance 1, so that two blocks are chosen:
///
/// ```text
/// chosen    equal     differ    zone
/// 0 and 1   0, 1      -         2
/// 0 and 2   0, 2      1         -
/// 1 and 2   1, 2      0         -
/// ```
#[derive(Clone, Debug, Default)]
pub struct BlockTable<W> {
    /// Chosen blocks. The pair agrees on all of them.
    pub(crate) equal: W,
    /// Blocks before the last chosen one that are not chosen. The pair differs in each of them.
    pub(crate) differ: Vec<W>,
    /// All blocks after the last chosen one.
    pub(crate) zone: W,
}

impl<W: Bits> BlockTable<W> {
    /// Makes the tables of fingerprints of `bits` bits within `distance` bits.
    ///
    /// # Panics
    /// When there are more bits than the word has, fewer bits than blocks, or no more blocks than `distance`.
    pub fn all(bits: u32, distance: u32, blocks: u32) -> Vec<Self> {
        assert!(bits <= W::BITS && distance < blocks && blocks <= bits, "at least one bit a block");
        let mut rest = W::lowest(bits);
        // The sizes of the blocks differ by at most one bit.
        let end = |block: u32| bits * block / blocks;
        let blocks: Vec<W> = (0..blocks).map(|block| rest.take_lowest(end(block + 1) - end(block))).collect();
        let mut tables = Vec::new();
        choose(&blocks, blocks.len() - distance as usize, BlockTable::default(), &mut tables);
        tables
    }

    /// Returns the number of a fingerprint's bucket, which is equal for fingerprints that agree on the chosen
    /// blocks.
    pub fn key(&self, fingerprint: W) -> u64 {
        (fingerprint & self.equal).key()
    }

    /// Splits the table into narrower tables of smaller buckets, which share out the pairs within `distance`
    /// bits of this one. Returns `None` if too few bits are left for that.
    ///
    /// A part of the fingerprint in which a pair differs in at most `n` bits is cut into `n + 1` groups. The
    /// pair agrees on at least one of them, and belongs to the table of the first such group.
    pub fn split(&self, distance: u32) -> Option<Vec<Self>> {
        let left = distance - self.differ.len() as u32;
        let width = |bits: W, most: u32| bits.count_ones() / (most + 1);
        let widest = (0..self.differ.len()).max_by_key(|&i| self.differ[i].count_ones());
        let widest = widest.filter(|&i| width(self.differ[i], left + 1) > width(self.zone, left));
        let (part, most) = widest.map_or((self.zone, left), |i| (self.differ[i], left + 1));
        let width = width(part, most);
        if width < LEAST_SPLIT_BITS || most >= MOST_SPLIT_TABLES {
            return None;
        }
        let mut outside = self.clone();
        let mut rest = part;
        match widest {
            Some(i) => drop(outside.differ.remove(i)),
            None => outside.zone = W::default(),
        }
        let mut before = Vec::new();
        let tables = (0..=most).map(|number| {
            // A single group takes all bits, because the pair agrees on all of them.
            let group = rest.take_lowest(if most == 0 { part.count_ones() } else { width });
            let mut table = BlockTable { equal: outside.equal | group, ..outside.clone() };
            table.differ.extend(&before);
            // If the pair must differ in the part but agrees on the first group, it differs in the rest of
            // the part.
            match widest {
                Some(_) if number == 0 => table.differ.push(rest),
                _ => table.zone = table.zone | rest,
            }
            before.push(group);
            table
        });
        Some(tables.collect())
    }
}

/// Adds the tables of all choices of `count` of the `blocks`, which lie behind the blocks chosen already.
fn choose<W: Bits>(blocks: &[W], count: usize, mut chosen: BlockTable<W>, tables: &mut Vec<BlockTable<W>>) {
    if count == 0 {
        chosen.zone = blocks.iter().fold(W::default(), |zone, &block| zone | block);
        return tables.push(chosen);
    }
    for i in 0..=blocks.len() - count {
        let with = BlockTable { equal: chosen.equal | blocks[i], ..chosen.clone() };
        choose(&blocks[i + 1..], count - 1, with, tables);
        chosen.differ.push(blocks[i]);
    }
}

/// Returns the number of tables that `blocks` blocks make: the ways to choose the `distance` blocks that are
/// not in the key.
pub fn tables(distance: u32, blocks: u32) -> u64 {
    let ways = (0..u128::from(distance)).fold(1, |ways, i| ways * (u128::from(blocks) - i) / (i + 1));
    u64::try_from(ways).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Example 3.1 of Manku et al.: 4, 10 and 20 tables of 64 bits within 3, and the numbers of bits of their
    /// keys.
    #[test]
    fn tables_are_those_of_the_paper() {
        for (blocks, count, key_bits) in [(4, 4, 16..=16), (5, 10, 25..=26), (6, 20, 31..=33)] {
            let all = BlockTable::<u64>::all(64, 3, blocks);
            assert_eq!((all.len() as u64, tables(3, blocks)), (count, count));
            let sizes: Vec<u32> = all.iter().map(|table| table.equal.count_ones()).collect();
            assert_eq!(sizes.iter().min().zip(sizes.iter().max()), Some((key_bits.start(), key_bits.end())));
        }
        assert_eq!((tables(15, 128), tables(0, 9)), (13_216_710_966_550_396_800, 1));
    }

    proptest! {
        #[test]
        fn every_pair_within_the_distance_belongs_to_one_table(
            differing in prop::collection::vec(0u32..128, 0..=4),
            more_blocks in 1u32..=6,
            wide in any::<bool>(),
        ) {
            let bits = if wide { 128 } else { 100 };
            let differing = differing.iter().fold(0u128, |all, bit| all | 1 << (bit % bits));
            let belongs = |table: &&BlockTable<u128>| {
                let BlockTable { equal, differ, zone } = table;
                let parts = differ.iter().fold(equal | zone, |parts, bits| parts | bits);
                assert_eq!(parts, u128::lowest(bits), "all bits");
                differing & equal == 0 && differ.iter().all(|bits| differing & bits != 0)
            };
            let mut tables = BlockTable::all(bits, 4, 4 + more_blocks);
            let mut splits = 0;
            while !tables.is_empty() {
                prop_assert_eq!(tables.iter().filter(belongs).count(), 1, "{} splits", splits);
                // The table of the pair is split again and again, until nothing is left to split.
                let own = tables.into_iter().find(|table| belongs(&table));
                tables = own.and_then(|table| table.split(4)).unwrap_or_default();
                splits += 1;
            }
            prop_assert!(splits > 1 || more_blocks > 1, "a table of few blocks can be split");
        }
    }
}
