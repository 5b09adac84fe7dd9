//! The tables of a state.

use cluster::runs::{RunRow, RunShape};
use operators::{DocId, Merit, Priority, hash};
use serde::{Deserialize, Serialize};

/// Number of bits of a document's number that count the documents of a split of the state.
const SPLIT_BITS: u32 = 16;

/// Returns the number by which a state knows a document of an earlier night.
///
/// The documents of all nights are numbered one after the other. In a run, document `n` of the state stands in
/// split `n >> 16`, and the splits of the night's input follow, so the order of documents is that of nights.
pub fn number_of(doc: DocId) -> u64 {
    u64::from(doc.split()) << SPLIT_BITS | doc.record()
}

/// Returns the document of an earlier night with this number.
pub fn doc_of(number: u64) -> DocId {
    DocId::new((number >> SPLIT_BITS) as u32, number & ((1 << SPLIT_BITS) - 1))
}

/// Returns the key of an id in the table of ids: a hash whose last 16 bits are zero and so take no room. Two ids in
/// 2^48 share a key, so what is found by it must be compared with the id.
pub fn key_of_id(id: &[u8]) -> u64 {
    hash::bytes(id) & !0xFFFF
}

/// Returns the number of splits of a state that has documents up to number `end`.
pub(crate) fn splits_below(end: u64) -> u32 {
    end.div_ceil(1 << SPLIT_BITS) as u32
}

/// A table of a state. Rows are sorted by their keys; of rows with one key, the newest counts.
///
/// A *text* is named by the number of the first document that had it. All that a search needs is kept once for
/// each text, whatever the number of its documents.
///
/// | table | key | value | bytes |
/// |---|---|---|---|
/// | identities | identity of a text (2) | text | |
/// | keys | pass, kept key (2), text | | |
/// | sketches | text | sketches of its short and of its long set (2), for bands alone | |
/// | texts | text | | the cleaned text |
/// | documents | document | length in characters, priority | id |
/// | ids | hash of the id, document | | |
/// | parents | document, or text that goes | its text, or the one for which it goes, or `NO_PARENT`; 0 or 1 as below | |
/// | members | text, 0 or 1, document that has it (0) or text that goes for it (1) | how far they are apart, or 0 if it is none any more | |
/// | withdrawn | document | 1 if no document of the text is left | |
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StateTable {
    /// Texts by their hashes, so that equal texts are found.
    Identities,
    /// Texts by the keys that the search has kept for them, so that candidates are found.
    Keys,
    /// Sketches of texts, which methods with bands compare; empty for other methods.
    Sketches,
    /// Cleaned texts, which are compared with those of later nights.
    Texts,
    /// Length, priority and id of each document.
    Documents,
    /// Documents by the hashes of their ids, so that withdrawn documents are found.
    Ids,
    /// The text of each document, and the text for which a text goes.
    Parents,
    /// Documents that have a text, and texts that go for it: the reverse of [`StateTable::Parents`].
    Members,
    /// Documents that were withdrawn and are no longer part of the corpus.
    Withdrawn,
}

/// Parent of a document that has none any more.
pub(crate) const NO_PARENT: u64 = u64::MAX;
/// Second word of the key of a member: it has the text, or goes for it.
pub const OF_TEXT: u64 = 0;
pub(crate) const GOES: u64 = 1;
/// Value of a row of members that says that the document is none any more.
pub(crate) const NO_MEMBER: u64 = 0;
/// Value of a row of members for a document that has the text. That of a text that goes for it is what `pack_apart` makes.
pub(crate) const HAS_TEXT: u64 = 1;

impl StateTable {
    /// All tables.
    pub const ALL: [StateTable; 9] = [
        StateTable::Identities,
        StateTable::Keys,
        StateTable::Sketches,
        StateTable::Texts,
        StateTable::Documents,
        StateTable::Ids,
        StateTable::Parents,
        StateTable::Members,
        StateTable::Withdrawn,
    ];

    /// Returns the name of the table, as files have it.
    pub fn name(self) -> &'static str {
        self.layout().0
    }

    /// Returns the shape of its rows.
    pub fn shape(self) -> RunShape {
        self.layout().1
    }

    /// Returns name and shape.
    fn layout(self) -> (&'static str, RunShape) {
        match self {
            StateTable::Identities => ("identities", RunShape::new(2, 1, false)),
            StateTable::Keys => ("keys", RunShape::new(4, 0, false)),
            StateTable::Sketches => ("sketches", RunShape::new(1, 2, false)),
            StateTable::Texts => ("texts", RunShape::new(1, 0, true)),
            StateTable::Documents => ("documents", RunShape::new(1, 2, true)),
            StateTable::Ids => ("ids", RunShape::new(2, 0, false)),
            StateTable::Parents => ("parents", RunShape::new(1, 2, false)),
            StateTable::Members => ("members", RunShape::new(3, 1, false)),
            StateTable::Withdrawn => ("withdrawn", RunShape::new(1, 1, false)),
        }
    }
}

/// Returns the merit of a document. `row`: its row of the table of documents.
pub(crate) fn merit_of(row: &RunRow) -> Merit {
    Merit { chars: row.words[1], priority: Priority(row.words[2]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_keep_their_order_and_their_numbers() {
        let numbers = [0, 1, 65_535, 65_536, 70_000_000];
        assert_eq!(numbers.map(|number| number_of(doc_of(number))), numbers);
        assert!(numbers.map(doc_of).is_sorted());
        assert_eq!([0, 1, 65_536, 65_537].map(splits_below), [0, 1, 1, 2]);
    }
}
