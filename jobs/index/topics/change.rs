//! Changes of an index, as its log has them.

use std::collections::VecDeque;

use operators::Priority;
use operators::hash::Identity;
use operators::method::{KeptKeys, TextKeys};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// A document that comes into an index, prepared by the method of the index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PreparedDoc {
    /// Id of the document.
    pub id: String,
    /// Keys by which the index finds it.
    pub keys: TextKeys,
    /// Cleaned text; empty if the index keeps no texts.
    pub text: String,
    /// Priority, by which a view may prefer it to others; the default if it has none.
    pub priority: Priority,
}

/// A change of one topic. It holds all that is needed to make it again, whatever the segments have become since.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Change {
    pub topic: String,
    pub what: ChangeKind,
}

/// Kind of a change.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) enum ChangeKind {
    /// A document was added.
    Insert(NewDoc),
    /// Documents were deleted.
    Delete(Vec<u64>),
    /// Documents with lower numbers have expired.
    Expire(u64),
    /// The topic was dropped with all of its documents.
    Drop,
    /// The document that was added by the change before it has a priority.
    Prioritize { number: u64, priority: u64 },
}

/// A document that was added.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct NewDoc {
    pub number: u64,
    /// Time of the insertion, in seconds since 1970.
    pub time: u64,
    pub id: String,
    /// Number of the first document with the same text.
    pub text: u64,
    /// The text, if this document is the first that has it.
    pub kept: Option<KeptText>,
}

/// All that is kept of a text.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct KeptText {
    pub identity: Identity,
    /// Pass and kept key, whose high and low 64 bits stand apart because the low ones are often 0. Of a fingerprint in four
    /// blocks this is the first key alone, which is the fingerprint.
    pub keys: SmallVec<[(u32, u64, u64); 1]>,
    pub sketches: [u64; 2],
    /// Cleaned text; empty if the index keeps no texts.
    pub text: String,
}

impl KeptText {
    /// Takes what is kept of a document. `kept`: the keys of the index.
    pub fn of(doc: &PreparedDoc, kept: &KeptKeys) -> Self {
        let TextKeys { identity, keys, sketches, .. } = &doc.keys;
        let keys = &keys[..if kept.have_four_blocks() { keys.len().min(1) } else { keys.len() }];
        KeptText {
            identity: *identity,
            keys: keys.iter().map(|of| (of.pass, (of.key >> 64) as u64, of.key as u64)).collect(),
            sketches: *sketches,
            text: doc.text.clone(),
        }
    }
}

/// The last insertions into a topic since a document went, so that a view can tell of them one after the other, after a restart too.
#[derive(Debug, Default)]
pub(crate) struct LatestInsertions {
    /// Version of the topic before them: the number in the log of the change behind which they come.
    after: u64,
    /// Versions that they have led to, in order. The documents are the last ones of the topic.
    versions: VecDeque<u64>,
}

impl LatestInsertions {
    /// Largest number of insertions that are known.
    const MOST: usize = 4096;

    /// Begins with none. `after`: the number of the next change in the log.
    pub fn new(after: u64) -> Self {
        LatestInsertions { after, versions: VecDeque::new() }
    }

    /// Notes the change with a number in the log.
    pub fn note(&mut self, number: u64, change: &ChangeKind) {
        let version = number + 1;
        match change {
            ChangeKind::Insert(_) => {
                if self.versions.len() == LatestInsertions::MOST {
                    self.after = self.versions.pop_front().unwrap_or(self.after);
                }
                self.versions.push_back(version);
            }
            ChangeKind::Prioritize { .. } => {
                if let Some(last) = self.versions.back_mut() {
                    *last = version;
                }
            }
            ChangeKind::Delete(_) | ChangeKind::Expire(_) | ChangeKind::Drop => {
                // A removal is made later than the insertions of its group that are behind it in the log.
                self.versions.retain(|of| *of > version);
                self.after = version;
            }
        }
    }

    /// Returns the version before the insertions of the documents with numbers below `end`, and these, each with the version that
    /// its insertion has led to. `next`: the number of the next document.
    pub fn before(&self, end: u64, next: u64) -> (u64, Vec<(u64, u64)>) {
        let first = next - self.versions.len() as u64;
        let docs = (first..end).zip(self.versions.iter().copied());
        (self.after, docs.collect())
    }
}
