//! The tables of a segment.

use cluster::runs::RunShape;
use serde::{Deserialize, Serialize};

/// A table of a segment, which is a run of `cluster::runs`.
///
/// Documents of a topic are numbered one after the other. A *text* is named by the number of the first document that
/// had it, and everything that a query searches is kept once for each text.
///
/// | table | key | value | bytes |
/// |---|---|---|---|
/// | identities | identity of a text (2), text; none where equal fingerprints are enough | | |
/// | keys | pass, kept key (2), text; none if there is a file of fingerprints | | |
/// | sketches | text | sketches of its short and of its long set (2), for bands alone | |
/// | texts | text | | the cleaned text, if texts are kept |
/// | documents | document | seconds since 1970, document less text | id |
/// | copies | text, document, for documents that are not the first of their text | | |
/// | ids | hash of the id, document | | |
/// | priorities | document | its [priority](operators::Priority), of those that have one | |
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum IndexTable {
    Identities,
    Keys,
    Sketches,
    Texts,
    Documents,
    Copies,
    Ids,
    Priorities,
}

impl IndexTable {
    /// All tables.
    pub const ALL: [IndexTable; 8] = [
        IndexTable::Identities,
        IndexTable::Keys,
        IndexTable::Sketches,
        IndexTable::Texts,
        IndexTable::Documents,
        IndexTable::Copies,
        IndexTable::Ids,
        IndexTable::Priorities,
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
            IndexTable::Identities => ("identities", RunShape::new(3, 0, false)),
            IndexTable::Keys => ("keys", RunShape::new(4, 0, false)),
            IndexTable::Sketches => ("sketches", RunShape::new(1, 2, false)),
            IndexTable::Texts => ("texts", RunShape::new(1, 0, true)),
            IndexTable::Documents => ("documents", RunShape::new(1, 2, true)),
            IndexTable::Copies => ("copies", RunShape::new(2, 0, false)),
            IndexTable::Ids => ("ids", RunShape::new(2, 0, false)),
            IndexTable::Priorities => ("priorities", RunShape::new(1, 1, false)),
        }
    }
}
