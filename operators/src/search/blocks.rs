//! The search by fingerprints: fingerprints that agree on some blocks of bits meet.

use super::{CandidateSearch, KeyCounters, PassLoad};
use crate::fingerprint::Bits;
use crate::fingerprint::block_join::BlockJoin;
use crate::fingerprint::block_tables::BlockTable;
use crate::record::{DocId, Pair, Row};

/// A pass is a table of the block join, which emits a pair in the first table where it meets, with its
/// distance. So a candidate is a pair within the distance.
impl<W: Bits> CandidateSearch for BlockJoin<W> {
    type Record = Row<W>;
    type Pass = BlockTable<W>;

    fn passes(&self) -> Vec<BlockTable<W>> {
        self.tables().to_vec()
    }

    fn key(table: &BlockTable<W>, row: &Row<W>) -> u64 {
        table.key(row.fingerprint)
    }

    fn doc(row: &Row<W>) -> DocId {
        row.doc
    }

    fn narrower(&self, table: &BlockTable<W>) -> Option<Vec<BlockTable<W>>> {
        table.split(self.distance())
    }

    fn candidates(
        &mut self,
        table: &BlockTable<W>,
        rows: &mut [Row<W>],
        mut emit: impl FnMut(Pair),
    ) -> PassLoad {
        let largest_bucket = KeyCounters::largest_of(rows.iter().map(|row| Self::key(table, row)));
        let compared = self.join(table, rows, &mut emit);
        PassLoad { records: rows.len() as u64, largest_bucket, compared }
    }
}
