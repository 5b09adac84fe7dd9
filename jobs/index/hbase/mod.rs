//! An index in HBase, where one machine is too small: 64-bit fingerprints of documents, in one table.
//!
//! `layout.rs` says which cells a document has. `settings_row.rs` opens an index, and holds it to the method that it was
//! made with. `meeting.rs` finds the documents near a fingerprint, `query.rs` answers with them, `writing.rs` adds and
//! removes documents, and `race.rs` decides which of two documents that come at once is new. `tools.rs` runs the tools,
//! and `scanning.rs` has those that read all documents. This room uses `hbase`, and of the index the command
//! line, settings and answers; `index` calls it when the name of an index begins with `hbase://`.

mod layout;
mod meeting;
mod query;
mod race;
mod scanning;
mod settings_row;
mod tools;
mod writing;

pub(super) use tools::{address, run};
