//! Stores: local files, HDFS and object stores behind one trait, `Store`, and how their addresses and names
//! are read.
//!
//! Whatever is read twice is compared with what was read first (`checked.rs`, `sums.rs`). Async code stays in
//! `hdfs`, `object` and `remote`. This room uses nothing of `processes`, which takes the errors from here.

pub(crate) mod checked;
mod connector;
pub(crate) mod error;
pub(crate) mod found;
pub(crate) mod hdfs;
pub(crate) mod left_out;
pub(crate) mod local;
pub(crate) mod location;
pub(crate) mod name;
pub(crate) mod object;
mod pattern;
pub(crate) mod remote;
pub(crate) mod store;
pub(crate) mod sums;
