//! File systems that a job reads and writes, and the threads and processes that it runs on.
//!
//! This crate knows bytes and workers. It uses no other crate of the workspace, and does not know what a
//! document is.

mod panics;
mod processes;
pub mod runs;
mod stores;
pub mod write_ahead_log;

pub use panics::{catch, exit_on_panic, panics_are_caught};
pub use processes::{Group, Limits, Membership};
pub use stores::error::Error;
pub use stores::found::{InputFile, TablePartition};
pub use stores::hdfs::{Hdfs, HdfsLimits};
pub use stores::left_out::has_hidden_part;
pub use stores::local::{Local, leads_back, real_path};
pub use stores::location::Stores;
pub use stores::name::{NameBelow, one_line, path_of_text, text_of_path};
pub use stores::object::{Bucket, ObjectLimits};
pub use stores::remote::Backoff;
pub use stores::store::{
    Blob, BlobReader, Entry, Output, Rename, Showing, Store, Upload, UploadOutput, Uploads, Version,
};
pub use stores::sums::Noted;
