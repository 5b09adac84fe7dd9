//! The search by fingerprints: fingerprints that agree on some blocks of bits meet.

use super::crowds::PairSink;
use super::placed::{BucketSearch, PlacedRecord, TakeRecords};
use super::{CandidateSearch, KeyCounters, PassLoad};
use crate::fingerprint::Bits;
use crate::fingerprint::block_join::BlockJoin;
use crate::fingerprint::block_tables::BlockTable;
use crate::fingerprint::bucket_pairs::PairTaker;
use crate::record::{DocId, Pair, Row};
use crate::sets::Rule;
use crate::sets::small_sketch::{SketchSieve, SmallSketch};
use crate::sides::Sides;

/// A pass is a table of the block join, which emits a pair in the first table where it meets. A candidate is a
/// pair within the distance, unless the sketches of its texts show that they cannot match.
///
/// A few features decide the fingerprint of a short text, so without sketches the candidates of short texts
/// grow nearly with the square of their number.
#[derive(Clone)]
pub struct BlockSearch<W> {
    pub(super) join: BlockJoin<W>,
    pub(super) sieve: Option<SketchSieve>,
    sides: Sides,
}

impl<W: Bits> BlockSearch<W> {
    /// Makes a search. `rule`: the rule by which candidates are verified; `None` if they are not, so that every
    /// pair within the distance is one.
    pub fn new(join: BlockJoin<W>, rule: Option<&Rule>) -> Self {
        BlockSearch { join, sieve: rule.map(SketchSieve::new), sides: Sides::default() }
    }

    /// Looks for the pairs of these sides alone.
    pub fn between(self, sides: Sides) -> Self {
        BlockSearch { join: self.join.between(sides), sides, ..self }
    }
}

impl<W: Bits> CandidateSearch for BlockSearch<W> {
    type Record = Row<W>;
    type Pass = BlockTable<W>;
    /// A block has records of very different fingerprints, so who is of a crowd is known by the pairs alone.
    const CROWDED_KEYS: bool = false;

    fn passes(&self) -> Vec<BlockTable<W>> {
        self.join.tables().to_vec()
    }

    fn key(table: &BlockTable<W>, row: &Row<W>) -> u64 {
        table.key(row.fingerprint)
    }

    fn doc(row: &Row<W>) -> DocId {
        row.doc
    }

    fn narrower(&self, table: &BlockTable<W>) -> Option<Vec<BlockTable<W>>> {
        table.split(self.join.distance())
    }

    fn candidates(&mut self, table: &BlockTable<W>, rows: &mut [Row<W>], found: &mut PairSink) -> PassLoad {
        let largest_bucket = KeyCounters::largest_of(rows.iter().map(|row| Self::key(table, row)));
        let BlockSearch { join, sieve, sides } = self;
        if sides.has_reference() {
            rows.sort_unstable_by_key(|row| sides.is_reference(row.doc));
        }
        let compared = join.join(table, rows, &mut SievedPairs { sieve: sieve.as_ref(), found });
        PassLoad { records: rows.len() as u64, largest_bucket, compared }
    }
}

/// Takes the pairs whose sketches do not rule a match out.
struct SievedPairs<'a> {
    sieve: Option<&'a SketchSieve>,
    found: &'a mut PairSink,
}

impl<W: Bits> PairTaker<W> for SievedPairs<'_> {
    fn take(&mut self, one: &Row<W>, other: &Row<W>) {
        if may_match(self.sieve, one, other) {
            self.found.add_unless_crowded(Pair::new(one.doc, other.doc, distance(one, other)));
        }
    }

    fn passes_over(&self, row: &Row<W>) -> bool {
        self.found.is_of_crowd(row.doc)
    }
}

fn may_match<W: Bits>(sieve: Option<&SketchSieve>, one: &Row<W>, other: &Row<W>) -> bool {
    let [one, other] = [one, other].map(|row| SmallSketch::of_bits(row.sketch));
    sieve.is_none_or(|sieve| sieve.may_match(one, other))
}

fn distance<W: Bits>(one: &Row<W>, other: &Row<W>) -> u32 {
    (one.fingerprint ^ other.fingerprint).count_ones()
}

impl<W: Bits> BucketSearch for BlockSearch<W> {
    fn each_bucket(
        &self,
        table: &BlockTable<W>,
        rows: &mut [PlacedRecord<Row<W>>],
        each: TakeRecords<Row<W>>,
    ) {
        let sides = self.sides;
        rows.sort_unstable_by_key(|(place, row)| (!sides.is_reference(row.doc), place.rank));
        let reference = rows.partition_point(|(_, row)| sides.is_reference(row.doc));
        // The join wants those of the reference behind the others, and gives their positions back in place of the sketches.
        let positions = (reference..rows.len()).chain(0..reference);
        let by_position: Vec<Row<W>> = positions.map(|at| Row { sketch: at as u64, ..rows[at].1 }).collect();
        let (mut of_bucket, mut bucket) = (Vec::new(), Vec::new());
        self.join.buckets(table, &by_position, |some| {
            of_bucket.clear();
            of_bucket.extend(some.iter().map(|row| row.sketch as usize));
            of_bucket.sort_unstable();
            bucket.clear();
            bucket.extend(of_bucket.iter().map(|&at| rows[at]));
            each(&bucket);
        });
    }

    fn may_match(&self, one: &Row<W>, other: &Row<W>) -> Option<u32> {
        Some(distance(one, other))
            .filter(|&apart| apart <= self.join.distance() && may_match(self.sieve.as_ref(), one, other))
    }

    fn sides(&self) -> Sides {
        self.sides
    }
}
