//! The newest documents of a topic, which are in the log and in no segment yet.
//!
//! `table.rs` has documents and texts; `keys.rs` and `fingerprints.rs` find texts by keys.

mod fingerprints;
mod keys;
mod table;

pub(crate) use keys::MemoryKey;
pub(crate) use table::{MemoryDoc, MemoryTable, MemoryText};
