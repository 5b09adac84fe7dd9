//! Bytes and workers: file systems a job reads from and writes to, and the threads it runs on.
//!
//! Arrows: this crate uses none of ours, and does not know what a document is.

mod store;
mod topology;

pub use store::{Blob, BlobReader, Entry, Error, Output, Store};
pub use topology::{exit_on_panic, run};
