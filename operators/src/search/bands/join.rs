//! The join of bands.

use super::{BandRecord, BandSearch};
use crate::record::DocId;
use crate::record::Sides;
use crate::search::candidate_search::{CandidateSearch, PassLoad};
use crate::search::crowds::PairSink;
use crate::search::crowds::met_before::ComparedAs;
use crate::search::crowds::placed::{BucketSearch, PlacedRecord, TakeRecords, each_equal};

impl CandidateSearch for BandSearch {
    type Record = BandRecord;
    /// Number of a band.
    type Pass = u32;

    fn passes(&self) -> Vec<u32> {
        (0..self.minhash.bands).collect()
    }

    fn key(_band: &u32, record: &BandRecord) -> u64 {
        record.0
    }

    fn doc(record: &BandRecord) -> DocId {
        record.1.0
    }

    fn candidates(&mut self, _band: &u32, records: &mut [BandRecord], found: &mut PairSink) -> PassLoad {
        let mut load = PassLoad { records: records.len() as u64, ..PassLoad::default() };
        load.largest_bucket = load.records.min(1);
        let met = drop_lone(records);
        met.sort_unstable_by_key(|record| record.0);
        for same in met.chunk_by_mut(|a, b| a.0 == b.0) {
            load.largest_bucket = load.largest_bucket.max(same.len() as u64);
            let may_match = |one: &BandRecord, other: &BandRecord| self.may_match(one, other);
            load.compared += found.meet(self.sides, same, Self::doc, may_match);
        }
        load
    }
}

impl BucketSearch for BandSearch {
    fn each_bucket(
        &self,
        _band: &u32,
        records: &mut [PlacedRecord<BandRecord>],
        each: TakeRecords<BandRecord>,
    ) {
        each_equal(records, self.sides, Self::doc, |record| record.0, each);
    }

    fn may_match(&self, one: &BandRecord, other: &BandRecord) -> Option<u32> {
        self.sieve.may_match(one.1.1, other.1.1).then_some(0)
    }

    fn compared_as(record: &BandRecord) -> ComparedAs {
        (record.1.0, record.1.1.bits())
    }

    fn sides(&self) -> Sides {
        self.sides
    }
}

/// Returns the records whose band another record may have too, and drops most others. In most corpora these are most records,
/// so few are left to be sorted. Memory: two to four bytes a record.
fn drop_lone(records: &mut [BandRecord]) -> &mut [BandRecord] {
    const WORD: usize = u64::BITS as usize;
    let words = records.len().div_ceil(WORD / 8).next_power_of_two();
    let place = |key: u64| ((key >> 6) as usize & (words - 1), 1 << (key & 63));
    let (mut once, mut again) = (vec![0_u64; words], vec![0_u64; words]);
    for &(key, _) in records.iter() {
        let (word, bit) = place(key);
        again[word] |= once[word] & bit;
        once[word] |= bit;
    }
    let mut kept = 0;
    for at in 0..records.len() {
        let record = records[at];
        let (word, bit) = place(record.0);
        records[kept] = record;
        kept += usize::from(again[word] & bit != 0);
    }
    &mut records[..kept]
}
