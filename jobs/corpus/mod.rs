//! The corpus: finds the files of the inputs and of a reference, recognises their formats, plans their splits, and reads these.
//!
//! Outputs of this program inside an input are left out, for which the names in an output are here
//! (`output_layout.rs`). The room also compares what several processes see, keeps the ids of documents,
//! chooses samples, divides work among threads, and sorts what they find. It uses `cli` and `progress`; `output` and the jobs use it.

pub(crate) mod at_once;
pub(crate) mod input;
pub(crate) mod input_files;
pub(crate) mod output_layout;
pub(crate) mod own_outputs;
pub(crate) mod plan;
pub(crate) mod run;
pub(crate) mod same_input;
pub(crate) mod sample;
pub(crate) mod shared_sorts;
pub(crate) mod split;
pub(crate) mod splits;
pub(crate) mod unopened_piece;
pub(crate) mod whole_file;
