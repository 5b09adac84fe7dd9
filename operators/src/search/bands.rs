//! The search by MinHash: documents that agree on a band of their signatures meet.

use super::{CandidateSearch, PassLoad};
use crate::record::{DocId, Pair};
use crate::sets::minhash::MinHash;

/// Each two documents that agree on a band are a candidate, whatever their similarity. A document may have a
/// record for each kind of its sets.
impl CandidateSearch for MinHash {
    /// Hash of a band, and the document.
    type Record = (u64, DocId);
    /// Number of a band.
    type Pass = u32;

    fn passes(&self) -> Vec<u32> {
        (0..self.bands).collect()
    }

    fn key(_band: &u32, record: &(u64, DocId)) -> u64 {
        record.0
    }

    fn doc(record: &(u64, DocId)) -> DocId {
        record.1
    }

    fn candidates(
        &mut self,
        _band: &u32,
        records: &mut [(u64, DocId)],
        mut emit: impl FnMut(Pair),
    ) -> PassLoad {
        records.sort_unstable();
        let mut load = PassLoad { records: records.len() as u64, ..PassLoad::default() };
        for same in records.chunk_by(|a, b| a.0 == b.0) {
            load.largest_bucket = load.largest_bucket.max(same.len() as u64);
            load.compared += (same.len() * (same.len() - 1) / 2) as u64;
            for (i, one) in same.iter().enumerate() {
                let others = same[i + 1..].iter().filter(|other| other.1 != one.1);
                others.for_each(|other| emit(Pair::new(one.1, other.1, 0)));
            }
        }
        load
    }
}
