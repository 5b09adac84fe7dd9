//! The commands other than `dedup`, a file or folder each.
//!
//! Besides them there are their parts: files of labels and the agreement with them (`labels`) and curves (`plot.rs`) for `eval`, `tune`
//! and `explain`, texts side by side for `show`, and the steps of a comparison for `why` (`pair_trace.rs`). This
//! room uses all other rooms but `launch`; `main.rs` and `reproduce` use it.

pub mod check;
pub mod compare;
pub mod compare_methods;
pub mod demo;
pub mod eval;
pub mod explain;
pub mod fingerprint;
pub mod label;
pub(crate) mod labels;
mod pair_trace;
mod plot;
pub mod repack;
pub mod report;
pub mod rethreshold;
pub mod shell_files;
pub mod show;
pub(crate) mod side_by_side;
pub mod tune;
pub mod version;
pub mod why;
