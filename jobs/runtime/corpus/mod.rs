//! The corpus: finds the files of the inputs and of a reference, recognises their formats, plans their splits, and reads these.
//!
//! Outputs of this program inside an input are left out, for which the names in an output are here
//! (`output_layout.rs`). The room also compares what several processes see, keeps the ids of documents,
//! chooses samples, divides work among threads, and sorts what they find. It uses `cli` and `progress`; `output` and the jobs use it.

pub mod at_once;
pub mod input;
pub mod input_files;
pub mod output_layout;
pub mod own_outputs;
pub mod plan;
pub mod run;
pub mod same_input;
pub mod sample;
pub mod shared_sorts;
pub mod split;
pub mod splits;
pub mod unopened_piece;
pub mod whole_file;
