//! File systems that a job reads and writes, and the threads and processes that it runs on.
//!
//! This crate knows bytes and workers. It uses no other crate of the workspace, and does not know what a
//! document is.

mod checked;
mod found;
mod guard;
mod hdfs;
mod local;
mod location;
mod name;
mod object;
mod pattern;
mod processes;
mod remote;
mod store;

pub use checked::Noted;
pub use found::Found;
pub use guard::{catch, exit_on_panic};
pub use hdfs::{Hdfs, HdfsLimits};
pub use local::Local;
pub use location::Stores;
pub use name::{NameBelow, path_of_text, shown, text_of_path};
pub use object::{Bucket, ObjectLimits};
pub use processes::{Cluster, Limits, Place};
pub use store::{
    Blob, BlobReader, Child, Entry, Error, Output, Rename, Showing, Store, Upload, UploadOutput, Uploads,
    Version, has_hidden_part,
};
