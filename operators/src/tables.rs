//! Tables of blocks: which fingerprints a join brings together, and which of their pairs it takes there.
//!
//! Two fingerprints within `k` bits agree on at least `b - k` of `b` blocks, so each choice of `b - k` blocks has a
//! table keyed on them together: Manku, Jain, Das Sarma, "Detecting Near-Duplicates for Web Crawling", WWW 2007,
//! section 3. A pair that agrees on more of them meets in several tables, and belongs to the first.

use crate::word::Word;

/// The most tables that a join should have: every row is shuffled and joined once for each of them.
pub const MAX_TABLES: u64 = 500;

/// A choice of blocks, and the pairs that belong to it: those whose first blocks in common these are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table<W> {
    /// The chosen blocks: a pair agrees on all of them.
    pub equal: W,
    /// The blocks before the last chosen one that are not chosen: it differs in each.
    pub differ: Vec<W>,
    /// All blocks after the last chosen one.
    pub zone: W,
}

impl<W: Word> Table<W> {
    /// The tables of fingerprints of `bits` bits within `distance` bits.
    ///
    /// # Panics
    /// When there are more bits than the word has, fewer bits than blocks, or no more blocks than `distance`.
    pub fn all(bits: u32, distance: u32, blocks: u32) -> Vec<Self> {
        assert!(bits <= W::BITS && distance < blocks && blocks <= bits, "at least one bit a block");
        let mut rest = W::lowest(bits);
        // Their sizes differ by at most one.
        let end = |block: u32| bits * block / blocks;
        let blocks: Vec<W> = (0..blocks).map(|block| rest.take_lowest(end(block + 1) - end(block))).collect();
        let mut tables = Vec::new();
        choose(&blocks, blocks.len() - distance as usize, Table::default(), &mut tables);
        tables
    }
}

/// Adds the tables of all choices of `count` of the `blocks`, which lie behind those chosen already.
fn choose<W: Word>(blocks: &[W], count: usize, mut chosen: Table<W>, tables: &mut Vec<Table<W>>) {
    if count == 0 {
        chosen.zone = blocks.iter().fold(W::default(), |zone, &block| zone | block);
        return tables.push(chosen);
    }
    for i in 0..=blocks.len() - count {
        let with = Table { equal: chosen.equal | blocks[i], ..chosen.clone() };
        choose(&blocks[i + 1..], count - 1, with, tables);
        chosen.differ.push(blocks[i]);
    }
}

/// The number of tables that so many blocks make: the ways to choose the `distance` blocks that are not in the key.
pub fn tables(distance: u32, blocks: u32) -> u64 {
    let ways = (0..u128::from(distance)).fold(1, |ways, i| ways * (u128::from(blocks) - i) / (i + 1));
    u64::try_from(ways).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Manku, example 3.1: 4, 10 and 20 tables of 64 bits within 3, and the bits of their keys.
    #[test]
    fn tables_are_those_of_the_paper() {
        for (blocks, count, key_bits) in [(4, 4, 16..=16), (5, 10, 25..=26), (6, 20, 31..=33)] {
            let all = Table::<u64>::all(64, 3, blocks);
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
            let belongs = |table: &&Table<u128>| {
                let Table { equal, differ, zone } = table;
                let parts = differ.iter().fold(equal | zone, |parts, bits| parts | bits);
                assert_eq!(parts, u128::lowest(bits), "all bits");
                differing & equal == 0 && differ.iter().all(|bits| differing & bits != 0)
            };
            prop_assert_eq!(Table::all(bits, 4, 4 + more_blocks).iter().filter(belongs).count(), 1);
        }
    }
}
