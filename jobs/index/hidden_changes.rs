//! Keeps the changes of an index that many share from readers until they are durable.

use super::topics::ChangeKind;

/// Changes that are in the log, and that no reader sees yet, since a failed write would undo them.
///
/// ```text
/// writer     insert a   query-insert b   delete c   commit               show
/// readers    no a       no b             c          no a, no b, c        a, b, no c
/// ```
///
/// A document that comes is in memory at once, where the writer sees it, and is hidden by its number. What takes documents
/// away is made when it is durable. If the commit fails, readers go on seeing what is durable.
#[derive(Default)]
pub(super) struct HiddenChanges {
    /// Topics that have hidden documents.
    pub topics: Vec<String>,
    /// Deletions and expiries that are not made yet.
    pub removals: Vec<HiddenRemoval>,
}

/// A deletion or expiry.
pub(super) struct HiddenRemoval {
    pub topic: String,
    /// Number in the log.
    pub number: u64,
    pub what: ChangeKind,
}
