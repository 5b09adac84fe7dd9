//! The rows of a live view.

use std::rc::Rc;

use crate::decide::{Reason, Removed};
use crate::record::DocId;
use crate::search::crowds::place::Rank;
use crate::sets::similarity::Similarity;

/// Place of a document in keep order, in which the least comes first. It never changes while the document is there.
pub type ViewRank = Rc<dyn Fn(DocId) -> Rank>;

/// Number of a step of the dataflow.
pub(super) type ViewTime = u32;

/// Relation of two documents, as one word: one of the marks below, or two more than a similarity in millionths. The marks come first,
/// so that they are found however many ties a document has.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Deserialize, serde::Serialize,
)]
pub(super) struct Tie(u32);

/// A tie of a document, and the other document.
pub(super) type NearRow = (Tie, u32);

impl Tie {
    /// Mark of the tie of a document with itself: the document has gone, and still names its class.
    pub const GHOST: Tie = Tie(0);
    /// The document with the lower number names the class of both, which are identical.
    pub const COPY: Tie = Tie(1);
    /// The two match, and their similarity was not measured.
    const UNMEASURED: Tie = Tie(2);

    /// Returns the tie of two documents that match and are not identical.
    pub fn near(similarity: Option<Similarity>) -> Self {
        similarity.map_or(Tie::UNMEASURED, |similarity| Tie(similarity.as_millionths() + 3))
    }

    /// Whether two documents match that are not of one class.
    pub fn is_near(self) -> bool {
        self >= Tie::UNMEASURED
    }

    /// Whether it is a match that counts where those below a similarity do not. One that was not measured counts.
    pub fn counts_from(self, least: Option<Similarity>) -> bool {
        match self.reason() {
            Reason::Similar(Some(similarity)) => Some(similarity) >= least,
            _ => self.is_near(),
        }
    }

    /// Returns the reason of a decision that has this tie.
    pub fn reason(self) -> Reason {
        match self {
            Tie::GHOST | Tie::COPY => Reason::Identical,
            Tie::UNMEASURED => Reason::Similar(None),
            Tie(measured) => Reason::Similar(Some(Similarity::millionths(measured - 3))),
        }
    }
}

/// Reason why a document goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gone {
    /// Document that stays in its place.
    pub duplicate_of: u32,
    pub tie: Tie,
}

impl From<Gone> for Removed {
    fn from(Gone { duplicate_of, tie }: Gone) -> Self {
        Removed { duplicate_of: DocId(duplicate_of.into()), tie: tie.reason() }
    }
}

/// Returns the number of a document.
pub(super) fn number(doc: DocId) -> u32 {
    u32::try_from(doc.0).expect("a view has fewer documents")
}
