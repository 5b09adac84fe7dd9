//! The block join: finds every pair of fingerprints within a Hamming distance, each once.

use super::bits::Bits;
use super::block_tables::BlockTable;
use super::bucket_pairs::{BucketPairs, PairTaker, RowBucket};
use super::hamming::Kernel;
use super::split_level::SplitLevel;
use crate::record::Row;
use crate::record::Sides;

/// Greatest size of a bucket that is compared pair by pair, for each part that a split would have.
const SMALL: usize = 128;
/// Size of the buckets that a split aims at. The buckets may have up to twice as many rows.
const TARGET: usize = 16;
/// Greatest number of bits of a split: 256 buckets can be filled without misses of the address cache (TLB).
const MAX_WIDTH: u32 = 8;

/// Joins rows of fingerprints, table by table.
///
/// Two fingerprints that differ in at most `k` bits agree on at least `b - k` of `b` blocks of bits. Each
/// choice of `b - k` blocks has a table, in whose buckets the fingerprints meet that agree on these blocks
/// (`block_tables.rs`). A pair that meets in several tables is emitted in the first one. A small bucket is compared
/// pair by pair. A larger one is split over bits that are not yet fixed: the pair differs in at most `k` of
/// them, so of `k + 1` groups of these bits it agrees on at least one, and it is looked for in the first such
/// group. Splitting goes on until the buckets are small. It generalises Zhou's remedy for skew; the costs are
/// in docs/design/candidate-search.md.
///
/// Example with 8 bits, distance 1 and two blocks of 4 bits: `a` = 0000 0000, `b` = 0000 0001, `c` = 0001 0000.
///
/// ```text
/// table 0   equal low block                      bucket 0000: a and c, 1 bit, emitted    bucket 0001: b
/// table 1   equal high block, unequal low block  bucket 0000: a and b, 1 bit, emitted    bucket 0001: c
/// b and c differ in 2 bits, one in each block, and never meet
/// two equal fingerprints meet in both tables; table 1 drops the pair, because its low blocks are equal
/// ```
///
/// If there is a reference (`Sides`), its rows come after those of the input, in every bucket too. So a bucket
/// without a row of the input is left out, and two rows of the reference are not compared.
///
/// Memory: buffers that are kept between calls, with one copy of the rows (24 bytes each, 32 for 128 bits)
/// and little else.
#[derive(Clone, Debug)]
pub struct BlockJoin<W> {
    tables: Vec<BlockTable<W>>,
    splitter: BlockSplitter<W>,
    pairs: BucketPairs<W>,
}

/// Splits the rows of a table into buckets.
#[derive(Clone, Debug)]
struct BlockSplitter<W> {
    distance: u32,
    sides: Sides,
    /// Buffers: the rows of each level of splitting, and the groups of bits in which the pairs of a bucket differ.
    levels: Vec<SplitLevel<W>>,
    differ: Vec<W>,
}

/// Takes the buckets of a table.
type TakeBucket<'a, W> = &'a mut dyn FnMut(RowBucket<W>);

/// Properties of every pair that is wanted from a bucket.
#[derive(Clone, Copy, Debug)]
struct PairBounds<W> {
    /// Bits on which the pair agrees.
    equal: W,
    /// Bits of which the pair differs in at most `budget`.
    zone: W,
    /// Greatest number of bits of `zone` in which the pair differs.
    budget: u32,
}

impl<W: Bits> BlockJoin<W> {
    /// Makes a join of fingerprints of `bits` bits within `distance` bits. The fingerprints are cut into
    /// `blocks` blocks: `distance + 1` blocks make as many tables, and more blocks make more tables with
    /// smaller buckets (see [`super::block_tables`]).
    ///
    /// # Panics
    /// When there are more bits than the word has, fewer bits than blocks, or no more blocks than `distance`.
    pub fn new(bits: u32, distance: u32, blocks: u32, kernel: Kernel) -> Self {
        BlockJoin {
            tables: BlockTable::all(bits, distance, blocks),
            splitter: BlockSplitter::new(distance, Sides::default()),
            pairs: BucketPairs::new(kernel, distance),
        }
    }

    /// Looks for the pairs of these sides alone.
    pub fn between(self, sides: Sides) -> Self {
        BlockJoin { splitter: BlockSplitter::new(self.distance(), sides), ..self }
    }

    /// Returns the tables, in the order in which pairs belong to them.
    pub fn tables(&self) -> &[BlockTable<W>] {
        &self.tables
    }

    /// Returns the greatest distance of a pair, in bits.
    pub fn distance(&self) -> u32 {
        self.splitter.distance
    }

    /// Gives every pair of rows that is within the distance and belongs to the table to `to`. Returns the number of
    /// pairs compared.
    ///
    /// `rows`: in any order, but those of the reference last, which are not compared with each other.
    ///
    /// Cost: close to linear in the rows where fingerprints are spread evenly, and in the pairs where there
    /// are many.
    pub fn join(&mut self, table: &BlockTable<W>, rows: &[Row<W>], to: &mut impl PairTaker<W>) -> u64 {
        let BlockJoin { splitter, pairs, .. } = self;
        let sides = splitter.sides;
        let mut compared = 0;
        splitter.split_table(table, rows, &mut |bucket| compared += pairs.compare(bucket, sides, to));
        compared
    }

    /// Calls `each` with the rows of buckets in which all pairs of the table meet that are within the distance, and others too.
    /// Rows keep their order. The rows are those of [`BlockJoin::join`], and so is the cost without that of the pairs.
    pub fn buckets(&self, table: &BlockTable<W>, rows: &[Row<W>], mut each: impl FnMut(&[Row<W>])) {
        let mut splitter = BlockSplitter::new(self.splitter.distance, self.splitter.sides);
        splitter.split_table(table, rows, &mut |bucket| each(bucket.rows));
    }
}

impl<W: Bits> BlockSplitter<W> {
    fn new(distance: u32, sides: Sides) -> Self {
        BlockSplitter { distance, sides, levels: Vec::new(), differ: Vec::new() }
    }

    fn split_table(&mut self, table: &BlockTable<W>, rows: &[Row<W>], each: TakeBucket<W>) {
        let BlockTable { equal, differ, zone } = table.clone();
        let left = self.distance - differ.len() as u32;
        let bounds = narrower(zone, left, differ.first(), left + 1);
        self.differ = differ;
        self.split(0, rows, PairBounds { equal: bounds.equal | equal, ..bounds }, each);
    }

    fn split(&mut self, depth: usize, rows: &[Row<W>], bounds: PairBounds<W>, each: TakeBucket<W>) {
        let none = W::default();
        let inputs = self.sides.inputs(rows);
        if inputs == 0 || inputs == rows.len() && !self.sides.within() {
            return;
        }
        let parts = bounds.budget as usize + 1;
        if rows.len() <= if bounds.equal == none { SMALL * parts } else { SMALL } {
            return each(RowBucket { rows, equal: bounds.equal, differ: &self.differ });
        }
        // A bit on which all rows agree separates none of them, and no pair differs in it.
        let varying = rows.iter().fold(none, |bits, row| bits | (row.fingerprint ^ rows[0].fingerprint));
        if self.differ.iter().any(|&bits| bits & varying == none) {
            return;
        }
        let (equal, zone) = (bounds.equal & varying, bounds.zone & varying);
        let wanted = (rows.len() / TARGET).ilog2().clamp(1, MAX_WIDTH);
        if self.levels.len() == depth {
            self.levels.push(SplitLevel::default());
        }
        let mut level = std::mem::take(&mut self.levels[depth]);
        if equal != none {
            let mut rest = equal;
            let group = rest.take_lowest(wanted.min(equal.count_ones()));
            level.count(rows, &[group]);
            self.split_by(
                depth,
                &mut level,
                rows,
                (0, group),
                PairBounds { equal: rest, zone, ..bounds },
                each,
            );
        } else {
            let mut rest = zone;
            let width = wanted.min(zone.count_ones() / parts as u32);
            let groups: Vec<W> = (0..parts).map(|_| rest.take_lowest(width)).collect();
            level.count(rows, &groups);
            // Crowded fingerprints may stay together in every part. A split that at least halves the work
            // bounds the total by a small multiple of comparing all pairs.
            if width == 0 || 2 * level.pairs() > rows.len().pow(2) {
                each(RowBucket { rows, equal: none, differ: &self.differ });
            } else {
                self.split_zone(depth, &mut level, rows, &groups, PairBounds { equal, zone, ..bounds }, each);
            }
        }
        self.levels[depth] = level;
    }

    /// Looks for each pair in the first group of bits of the zone on which the pair agrees.
    fn split_zone(
        &mut self,
        depth: usize,
        level: &mut SplitLevel<W>,
        rows: &[Row<W>],
        groups: &[W],
        bounds: PairBounds<W>,
        each: TakeBucket<W>,
    ) {
        let known = self.differ.len();
        let mut rest = bounds.zone;
        for (part, &group) in groups.iter().enumerate() {
            rest = rest & !group;
            let left = bounds.budget - part as u32;
            let below = narrower(rest, left, self.differ.get(known), left + 1);
            self.split_by(depth, level, rows, (part, group), below, each);
            self.differ.push(group);
        }
        self.differ.truncate(known);
    }

    /// Sorts rows into buckets by the bits of a group, whose rows are counted already, and splits each bucket
    /// further.
    fn split_by(
        &mut self,
        depth: usize,
        level: &mut SplitLevel<W>,
        rows: &[Row<W>],
        (part, group): (usize, W),
        bounds: PairBounds<W>,
        each: TakeBucket<W>,
    ) {
        level.scatter(rows, part, group);
        let mut start = 0;
        for &end in &level.ends[part] {
            if end - start > 1 {
                self.split(depth + 1, &level.rows[start..end], bounds, each);
            }
            start = end;
        }
    }
}

/// Returns the tighter of two bounds on where a pair differs: `zone` with `budget`, or the first group known
/// to differ with `first_budget`, the bits that the groups after it leave.
fn narrower<W: Bits>(zone: W, budget: u32, first: Option<&W>, first_budget: u32) -> PairBounds<W> {
    let share = |bits: W, budget: u32| bits.count_ones() / (budget + 1);
    match first {
        Some(&group) if share(group, first_budget) > share(zone, budget) => {
            PairBounds { equal: W::default(), zone: group, budget: first_budget }
        }
        _ if budget == 0 => PairBounds { equal: zone, zone: W::default(), budget: 0 },
        _ => PairBounds { equal: W::default(), zone, budget },
    }
}

#[cfg(test)]
mod tests {
    use super::super::block_tables::tables;
    use super::*;
    use crate::record::{DocId, Pair};
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn rows<W: Bits>(fingerprints: &[W]) -> Vec<Row<W>> {
        let docs = (0..).map(DocId);
        docs.zip(fingerprints).map(|(doc, &fingerprint)| Row { fingerprint, doc, sketch: 0 }).collect()
    }

    fn joined<W: Bits>(bits: u32, distance: u32, blocks: u32, rows: &[Row<W>]) -> Vec<Pair> {
        let mut join = BlockJoin::new(bits, distance, blocks, Kernel::widest());
        let mut pairs = Vec::new();
        for table in join.tables().to_vec() {
            join.join(&table, rows, &mut |one: &Row<W>, other: &Row<W>| {
                let differing = one.fingerprint ^ other.fingerprint;
                pairs.push(Pair::new(one.doc, other.doc, differing.count_ones()));
            });
        }
        pairs.sort_unstable();
        pairs
    }

    fn brute_force<W: Bits>(distance: u32, rows: &[Row<W>]) -> Vec<Pair> {
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
        let rows = rows(&[0u64, 1 | 1 << 20 | 1 << 40]); // blocks 0, 1 and 2 differ
        assert_eq!(joined(64, 3, 4, &rows), [Pair::new(DocId(0), DocId(1), 3)]);
    }

    /// Distances of up to 15 bits, and for each the numbers of blocks whose tables are few enough for a test.
    fn designs() -> impl Strategy<Value = (u32, u32)> {
        let blocks = |distance| (distance + 1..=32).filter(move |&blocks| tables(distance, blocks) <= 60);
        let designs = (0..=15).flat_map(|distance| blocks(distance).map(move |blocks| (distance, blocks)));
        prop::sample::select(designs.collect::<Vec<_>>())
    }

    /// Fingerprints crowded into a few places, so that every bucket is split several times.
    fn skewed() -> impl Strategy<Value = Vec<u128>> {
        let near = (any::<prop::sample::Index>(), vec(0u32..128, 0..9));
        (vec(any::<u128>(), 1..4), vec(near, 0..1500)).prop_map(|(centres, near)| {
            let flip = |(centre, flips): (prop::sample::Index, Vec<u32>)| {
                flips.iter().fold(*centre.get(&centres), |f, bit| f ^ 1 << bit)
            };
            near.into_iter().map(flip).collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn crowded_fingerprints_give_each_pair_once(
            fingerprints in skewed(),
            (distance, blocks) in designs(),
            bits in prop::sample::select(vec![32u32, 64, 128]),
        ) {
            let masked = fingerprints.iter().map(|f| f & u128::lowest(bits));
            if bits > 64 {
                let rows = rows(&masked.collect::<Vec<u128>>());
                prop_assert_eq!(joined(bits, distance, blocks, &rows), brute_force(distance, &rows));
            } else {
                let rows = rows(&masked.map(|f| f as u64).collect::<Vec<u64>>());
                prop_assert_eq!(joined(bits, distance, blocks, &rows), brute_force(distance, &rows));
            }
        }
    }

    #[test]
    fn dense_fingerprints_give_each_pair_once() {
        for distance in [0, 1, 3, 5] {
            let rows = rows(&(0..3000u64).map(|i| i << 7 | 5).collect::<Vec<_>>());
            for blocks in [distance + 1, distance + 3] {
                let found = joined(64, distance, blocks, &rows);
                assert_eq!(found, brute_force(distance, &rows), "within {distance}, {blocks} blocks");
            }
        }
    }

    /// Many rows share their last block. A pair of that table differs in exactly one bit of each other block,
    /// so the bucket is split over the first block, twice.
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
        let found = joined(64, 3, 4, &rows);
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
