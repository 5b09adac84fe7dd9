//! The memory plan: into how many equal parts each step divides the budget of a worker.
//!
//! The budget of a worker is what `--memory` leaves it. Steps follow each other, so each may divide all of it; within a step every
//! holder gets one part, and spills what is beyond. Holders that are not filled at the same time may share a part.
//!
//! | step | parts | holders |
//! |---|---|---|
//! | collapse | 3 | identities of this worker; those that come to it, twice |
//! | join | 8 | 4 for the records of a pass, 2 for the pairs before and after they are sent, 2 for what a search holds besides |
//! | join with a state | 3 | keys of a pass; what was found in all passes; candidates |
//! | rows that a state keeps | 2 | records that are sent; those that arrive |
//! | verification | 8 | see [`VERIFY`] |
//! | clusters | 8 | matches and three sorts of links; the other 4 leave room for the links and names of the caller |
//!
//! Counters of features may fill [half](COUNTERS) of it before anything else is held, and a list of ignored lines an
//! [eighth](LINE_LIST) of the memory of the process. `jobs/batch/memory.rs` says how `--memory` becomes the budget of a worker.

/// Parts of the budget when identical documents collapse.
pub const COLLAPSE: usize = 3;
/// Parts of the budget of a join.
pub const JOIN: usize = 8;
/// Parts of a join that hold the records of a pass.
pub(crate) const JOIN_RECORDS: usize = 4;
/// Part of the budget of a pass that the records of one key may fill, as a divisor. Comparing them needs more memory.
pub(crate) const RECORDS_OF_KEY: usize = 4;
/// Least part of the budget of a pass that the records given to the search at once fill, as a divisor, if there are enough records.
pub(crate) const RECORDS_AT_ONCE: usize = 8;
/// Parts of the budget of a join with the kept keys of a state.
pub const STATE_JOIN: usize = 3;
/// Parts of the budget when rows are written to a state.
pub const STATE_ROWS: usize = 2;
/// Parts of the budget of a verification: one for the pairs in parts, two for their features, two for two bundles of documents, one
/// for the features of a range of parts while it is divided, one for the pairs sorted by their bundles, and one for the names that the
/// caller keeps. Before there are bundles, the documents to be read and the records that travel take less than that.
pub const VERIFY: usize = 8;
/// Parts of the budget of finding clusters.
pub(crate) const CLUSTERS: usize = 8;
/// Part of the memory of a process that counters of features may fill, as a divisor.
pub const COUNTERS: usize = 2;
/// Part of the memory of a process that a list of ignored lines may take, as a divisor.
pub const LINE_LIST: usize = 8;
