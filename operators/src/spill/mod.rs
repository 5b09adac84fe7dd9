//! Data beyond the memory budget: records are spilled to local files, sorted there, and read again in order; and the plan by which
//! steps divide the budget (`memory_plan.rs`).
//!
//! This is the only room of the crate that opens files. It uses `record` and `error` alone; `sets`, `search`,
//! `flow` and the jobs use it.

pub(crate) mod budget;
pub(crate) mod external_sort;
pub(crate) mod growing_file;
pub mod memory_plan;
pub(crate) mod merge;
pub(crate) mod spool;
pub(crate) mod value_file;

pub use budget::{SpillBudget, Spilled};
pub use external_sort::ExternalSort;
pub use growing_file::GrowingFile;
pub use merge::{MergeCursor, Sorted};
pub use spool::Spool;
pub use value_file::ValueFile;
