//! The rows of a live view, and how they are arranged.

use std::rc::Rc;

use differential_dataflow::lattice::Lattice;
use differential_dataflow::operators::arrange::{Arranged, TraceAgent};
use differential_dataflow::trace::implementations::{ValBuilder, ValSpine};
use differential_dataflow::{ExchangeData, VecCollection};
use timely::progress::Timestamp;

use crate::record::DocId;
use crate::search::crowds::place::Rank;
use crate::sets::similarity::Similarity;
use crate::survivors::Reason;

/// Place of a document in keep order, in which the least comes first. It never changes while the document is there.
pub type ViewRank = Rc<dyn Fn(DocId) -> Rank>;

/// Number of a group of changes.
pub(super) type ViewVersion = u32;

/// Rows with their multiplicities, which sum up to one for a row that is there.
pub(super) type Rows<'s, T, D> = VecCollection<'s, T, D, i32>;

/// Rows in an order in which those of a key are found.
pub(super) type ByKey<'s, T, K, V> = Arranged<'s, TraceAgent<ValSpine<K, V, T, i32>>>;

/// Relation of two documents, as one word: one of the marks below, or two more than a similarity in millionths. The marks come first,
/// so that they are found however many ties a document has.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Deserialize, serde::Serialize,
)]
pub(super) struct Tie(u32);

/// A tie of a document, and the other document.
pub(super) type NearRow = (Tie, u32);

impl Tie {
    /// Mark of a document with itself: it has gone, and its name stays that of its class.
    pub const GHOST: Tie = Tie(0);
    /// The second document is identical to the first, which names the class of both.
    pub const COPY: Tie = Tie(1);
    /// The two match, and their similarity was not measured.
    const UNMEASURED: Tie = Tie(u32::MAX);
    /// The last of all ties.
    pub const LAST: Tie = Tie(u32::MAX);

    /// Returns the tie of two documents that match and are not identical.
    pub fn near(similarity: Option<Similarity>) -> Self {
        similarity.map_or(Tie::UNMEASURED, |similarity| Tie(similarity.as_millionths() + 2))
    }

    /// Returns the reason of a decision that has this tie.
    pub fn reason(self) -> Reason {
        match self {
            Tie::COPY => Reason::Identical,
            Tie::UNMEASURED => Reason::Similar(None),
            Tie(measured) => Reason::Similar(Some(Similarity::millionths(measured.saturating_sub(2)))),
        }
    }

    /// Returns the tie of a decision that has this reason.
    pub fn of_reason(reason: Reason) -> Self {
        match reason {
            Reason::Identical => Tie::COPY,
            // The greedy rule names no chains.
            Reason::Similar(similarity) => Tie::near(similarity),
            Reason::Chain => Tie::UNMEASURED,
        }
    }
}

/// A match of two documents, the first of which has the lower number, or the mark of a ghost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Deserialize, serde::Serialize)]
pub(super) struct Tied {
    pub low: u32,
    pub high: u32,
    pub tie: Tie,
}

/// A document that goes, the one that stays in its place, and their tie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GoneDoc {
    pub doc: u32,
    pub duplicate_of: u32,
    pub tie: Tie,
}

/// Makes rows for each key of its values.
pub(super) fn reduced<'s, T, K, V, R>(
    rows: ByKey<'s, T, K, V>,
    name: &str,
    reduce: impl FnMut(&K, &[(&V, i32)], &mut Vec<(R, i32)>) + 'static,
) -> ByKey<'s, T, K, R>
where
    T: Timestamp + Lattice,
    K: ExchangeData,
    V: ExchangeData,
    R: differential_dataflow::Data,
{
    rows.reduce_abelian::<_, ValBuilder<K, R, T, i32>, ValSpine<K, R, T, i32>, _, _>(
        name,
        reduce,
        |rows, key, changes| {
            rows.clear();
            rows.extend(changes.drain(..).map(|(value, time, count)| ((key.clone(), value), time, count)));
        },
    )
}
