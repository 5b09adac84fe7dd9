//! The join of fingerprints, block by block.

use super::{BitSearch, SimHash};
use crate::fingerprint::Bits;
use crate::fingerprint::block_tables::BlockTable;
use crate::fingerprint::bucket_pairs::PairTaker;
use crate::record::Sides;
use crate::record::{DocId, Pair, Row};
use crate::search::candidate_search::{CandidateSearch, PassLoad};
use crate::search::crowds::PairSink;
use crate::search::crowds::met_before::ComparedAs;
use crate::search::crowds::placed::{BucketSearch, PlacedRecord, TakeRecords};
use crate::search::key_counters::KeyCounters;
use crate::sets::small_sketch::{SketchSieve, SmallSketch};

impl<W: Bits> CandidateSearch for BitSearch<W> {
    type Record = Row<W>;
    type Pass = BlockTable<W>;
    /// A block has records of very different fingerprints, so only pairs show which documents are of a crowd.
    const CROWDED_KEYS: bool = false;

    fn passes(&self) -> Vec<BlockTable<W>> {
        self.simhash.join.tables().to_vec()
    }

    fn key(table: &BlockTable<W>, row: &Row<W>) -> u64 {
        table.key(row.fingerprint)
    }

    fn doc(row: &Row<W>) -> DocId {
        row.doc
    }

    fn narrower(&self, table: &BlockTable<W>) -> Option<Vec<BlockTable<W>>> {
        table.split(self.simhash.join.distance())
    }

    fn candidates(&mut self, table: &BlockTable<W>, rows: &mut [Row<W>], found: &mut PairSink) -> PassLoad {
        let largest_bucket = KeyCounters::largest_of(rows.iter().map(|row| Self::key(table, row)));
        let BitSearch { simhash: SimHash { join, .. }, sieve, sides, .. } = self;
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

impl<W: Bits> BucketSearch for BitSearch<W> {
    fn each_bucket(
        &self,
        table: &BlockTable<W>,
        rows: &mut [PlacedRecord<Row<W>>],
        each: TakeRecords<Row<W>>,
    ) {
        let sides = self.sides;
        rows.sort_unstable_by_key(|(place, row)| (!sides.is_reference(row.doc), place.rank));
        let reference = rows.partition_point(|(_, row)| sides.is_reference(row.doc));
        // The join needs the rows of the reference behind the others. Positions take the place of the sketches, which the
        // join returns unchanged.
        let positions = (reference..rows.len()).chain(0..reference);
        let by_position: Vec<Row<W>> = positions.map(|at| Row { sketch: at as u64, ..rows[at].1 }).collect();
        let (mut of_bucket, mut bucket) = (Vec::new(), Vec::new());
        self.simhash.join.buckets(table, &by_position, |some| {
            of_bucket.clear();
            of_bucket.extend(some.iter().map(|row| row.sketch as usize));
            of_bucket.sort_unstable();
            bucket.clear();
            bucket.extend(of_bucket.iter().map(|&at| rows[at]));
            each(&bucket);
        });
    }

    fn may_match(&self, one: &Row<W>, other: &Row<W>) -> Option<u32> {
        Some(distance(one, other)).filter(|&apart| {
            apart <= self.simhash.join.distance() && may_match(self.sieve.as_ref(), one, other)
        })
    }

    fn compared_as(row: &Row<W>) -> ComparedAs {
        (row.doc, row.sketch)
    }

    fn sides(&self) -> Sides {
        self.sides
    }
}
