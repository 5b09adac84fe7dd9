//! Changes of an index, as its log has them.

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
pub(in crate::index) struct Change {
    pub topic: String,
    pub what: ChangeKind,
}

/// Kind of a change.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(in crate::index) enum ChangeKind {
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
pub(in crate::index) struct NewDoc {
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
pub(in crate::index) struct KeptText {
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
