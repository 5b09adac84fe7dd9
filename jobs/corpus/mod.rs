//! The corpus: finds the files of the inputs, plans their splits, and reads the splits.
//!
//! The room also compares what several processes see, keeps the ids of documents, and divides work among
//! threads. It may use `cli` and `progress`; `output` and the jobs use it.

pub(crate) mod at_once;
pub(crate) mod doc_ids;
pub(crate) mod input;
pub(crate) mod output_layout;
pub(crate) mod own_outputs;
pub(crate) mod plan;
pub(crate) mod same_input;
pub(crate) mod splits;
