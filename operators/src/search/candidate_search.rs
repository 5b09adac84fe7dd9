//! The join of a search: which records meet, and which of those that meet may match.

use serde::{Deserialize, Serialize};

use super::crowds::PairSink;
use crate::record::{DocId, Record};

/// A way to find candidate pairs without comparing every document with every other.
///
/// The map stage has stored what a search needs of each document ([`TextSearch`](super::TextSearch)): an identity, a
/// fingerprint, the bands of a signature, or the text. A search makes *records* of it, in one or several *passes*. In
/// each pass every record has a key. The shuffle brings the records of one key together on one worker, and the search reduces
/// them to candidate pairs. Documents that may match share a key in at least one pass.
///
/// Example with MinHash of two bands, where a pass is a band and the key of a record is the hash of the band:
///
/// ```text
///     pass 0  pass 1
/// A   17      92
/// B   17      40      meets A in pass 0: a candidate
/// C   55      40      meets B in pass 1: a candidate
/// A and C never meet
/// ```
///
/// | search | pass | key | record |
/// |---|---|---|---|
/// | [`EqualTexts`](super::identity::EqualTexts) | one | identity of the text | identity, document |
/// | [`BitSearch`](super::bits::BitSearch) | some blocks of bits | their value | fingerprint, document, sketch |
/// | [`BandSearch`](super::bands::BandSearch) | a band | its hash | hash, document, sketch |
/// | `PrefixSearch` | a 32nd of all features | a feature | size and sketch of the set, document |
pub trait CandidateSearch: 'static {
    /// A document in one pass.
    type Record: Record + Ord;
    /// A pass. All workers make the same passes in the same order.
    type Pass: Clone + Send + Sync + 'static;
    /// Whether each two records of a key are compared, so that a key of very many records is too much for one
    /// worker. Such keys are then spread over all workers.
    const PAIRWISE: bool = true;
    /// Whether nothing is compared of a key of very many records, if not every pair is asked for. Such a key need not be spread.
    const CROWDED_KEYS: bool = true;

    /// Returns the passes.
    fn passes(&self) -> Vec<Self::Pass>;
    /// Returns the key of a record. Any function of the record will do, since keys are hashed before they
    /// choose a worker.
    fn key(pass: &Self::Pass, record: &Self::Record) -> u64;
    /// Returns the document of a record.
    fn doc(record: &Self::Record) -> DocId;
    /// Returns passes with more keys that together find the same pairs as this pass, or `None` if there are
    /// none. Records of keys that too many records share are spread by them.
    fn narrower(&self, pass: &Self::Pass) -> Option<Vec<Self::Pass>> {
        let _ = pass;
        None
    }
    /// Gives each candidate pair of the records to `found`, but of crowded keys only those that it asks for. `records`: all
    /// records of one or several keys, in any order; their order and content are lost. A pair may be found in several passes.
    fn candidates(
        &mut self,
        pass: &Self::Pass,
        records: &mut [Self::Record],
        found: &mut PairSink,
    ) -> PassLoad;
}

/// Load of one worker in one pass of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct PassLoad {
    /// Number of records that arrived. Records of heavy keys are counted each time that they arrive.
    pub records: u64,
    /// Largest number of records that share a key. For fingerprints it is approximate, because their records
    /// are counted in 65,536 counters by the hash of the key.
    pub largest_bucket: u64,
    /// Number of pairs that were compared.
    pub compared: u64,
}

impl PassLoad {
    /// Adds the load of other records of the same pass.
    pub(crate) fn add(&mut self, other: PassLoad) {
        self.records += other.records;
        self.largest_bucket = self.largest_bucket.max(other.largest_bucket);
        self.compared += other.compared;
    }
}
