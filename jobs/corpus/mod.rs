//! The corpus: which files the inputs are, their splits, and the reading of them.
//!
//! Uses `cli` and `progress`; the jobs use it.

pub(crate) mod doc_ids;
pub(crate) mod input;
pub(crate) mod output_layout;
pub(crate) mod own_outputs;
pub(crate) mod plan;
pub(crate) mod same_input;
pub(crate) mod splits;
