//! The search by fingerprints: fingerprints that agree on some blocks of bits meet.

use super::crowds::PairSink;
use super::{CandidateSearch, KeyCounters, PassLoad};
use crate::fingerprint::Bits;
use crate::fingerprint::block_join::BlockJoin;
use crate::fingerprint::block_tables::BlockTable;
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
        let compared = join.join(table, rows, &mut |one, other| {
            let sketches = [one, other].map(|row| SmallSketch::of_bits(row.sketch));
            if sieve.as_ref().is_none_or(|sieve| sieve.may_match(sketches[0], sketches[1])) {
                let differing = one.fingerprint ^ other.fingerprint;
                found.add(Pair::new(one.doc, other.doc, differing.count_ones()));
            }
        });
        PassLoad { records: rows.len() as u64, largest_bucket, compared }
    }
}
