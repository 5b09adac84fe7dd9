//! Tables of blocks: which fingerprints a join brings together, and which of their pairs it takes there.
//!
//! Two fingerprints within `k` bits agree on at least `b - k` of `b` blocks, so each choice of `b - k` blocks has a
//! table keyed on them together: Manku, Jain, Das Sarma, "Detecting Near-Duplicates for Web Crawling", WWW 2007,
//! section 3. A pair that agrees on more of them meets in several tables, and belongs to the first.

use super::bits::Word;

/// The most tables that a join should have: every row is shuffled and joined once for each of them.
pub const MAX_TABLES: u64 = 500;

/// Buckets of a table are not split over fewer bits than this: too few would come of it.
const LEAST_SPLIT_BITS: u32 = 4;
/// Nor into more tables than this, as each takes all rows.
const MOST_SPLIT_TABLES: u32 = 8;

/// A choice of blocks, and the pairs that belong to it: those whose first blocks in common these are.
///
/// No two of the parts share a bit, and together they are all bits.
#[derive(Clone, Debug, Default)]
pub struct Table<W> {
    /// The chosen blocks: a pair agrees on all of them.
    pub(crate) equal: W,
    /// The blocks before the last chosen one that are not chosen: it differs in each.
    pub(crate) differ: Vec<W>,
    /// All blocks after the last chosen one.
    pub(crate) zone: W,
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

    /// The number of a bucket, the same for fingerprints that agree where they must.
    pub fn key(&self, fingerprint: W) -> u64 {
        (fingerprint & self.equal).key()
    }

    /// Narrower tables, of smaller buckets, that share out the pairs within `distance` bits of this one. `None` if there
    /// are too few bits left for that.
    ///
    /// A part of the fingerprint where a pair differs in at most `n` bits is cut into `n + 1` groups, on one of which it
    /// agrees; each has a table for the pairs of which it is the first one.
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
        let (mut outside, mut rest) = (self.clone(), part);
        match widest {
            Some(i) => drop(outside.differ.remove(i)),
            None => outside.zone = W::default(),
        }
        let mut before = Vec::new();
        let tables = (0..=most).map(|number| {
            // The only group takes all bits: they agree on all.
            let group = rest.take_lowest(if most == 0 { part.count_ones() } else { width });
            let mut table = Table { equal: outside.equal | group, ..outside.clone() };
            table.differ.extend(&before);
            // Where it must differ, but not in the groups so far, it does so in the rest.
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
            let mut tables = Table::all(bits, 4, 4 + more_blocks);
            let mut splits = 0;
            while !tables.is_empty() {
                prop_assert_eq!(tables.iter().filter(belongs).count(), 1, "{} splits", splits);
                // The pair's own table again and again, until there is nothing left to split.
                let own = tables.into_iter().find(|table| belongs(&table));
                tables = own.and_then(|table| table.split(4)).unwrap_or_default();
                splits += 1;
            }
            prop_assert!(splits > 1 || more_blocks > 1, "a table of few blocks can be split");
        }
    }
}
