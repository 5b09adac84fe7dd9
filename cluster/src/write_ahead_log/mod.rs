//! A write-ahead log: records of bytes in the files of a local folder, which are durable before anyone relies on them.
//!
//! Records are numbered one after the other. Those that are appended between two commits are a *group*, which is
//! written at once and has a checksum. `writer.rs` appends, `reader.rs` reads what is there and finds the group that a
//! crash has torn. docs/formats.md describes the files.

mod reader;
mod record_group;
#[cfg(test)]
mod tests;
mod writer;

pub use reader::{LogContents, TornTail, read_log};
pub use writer::LogWriter;
