//! The topics of an index, which are independent of each other.
//!
//! `change.rs` has what the log says of a topic, `memory/` the documents that are in the log alone, `segment.rs`
//! and `table.rs` the files of the others, and `manifest.rs` names these. `topic.rs` holds all of it, `topic_reader.rs`
//! looks documents up, and `text_identities.rs` the identities of texts. `flush.rs` writes segments and `merge.rs` merges them, while the topic goes on;
//! `living_texts.rs` says which texts stay. This room uses `cluster::runs`; the index uses it.

mod change;
mod flush;
mod living_texts;
mod manifest;
mod memory;
mod merge;
mod met_texts;
mod query_work;
mod segment;
mod table;
mod text_identities;
mod topic;
mod topic_files;
mod topic_name;
mod topic_reader;

pub use change::PreparedDoc;
pub(super) use change::{Change, ChangeKind};
pub(super) use flush::FlushJob;
pub(super) use manifest::{MANIFEST, SegmentEntry, TopicManifest};
pub(super) use merge::{MergeJob, MergedSegment};
pub(super) use met_texts::{IndexCandidate, MetTexts};
pub(super) use query_work::QueryWork;
pub(super) use segment::SegmentWriter;
pub(super) use table::IndexTable;
pub(super) use text_identities::TextIdentities;
pub(super) use topic::Topic;
pub(super) use topic_files::TopicFiles;
pub(super) use topic_name::topic_name;
pub(super) use topic_reader::{IndexedDoc, TopicReader};
