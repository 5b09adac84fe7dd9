//! The two sides of a corpus: a reference, whose documents stay, and the input.

use crate::record::{DocId, Pair, Row};

/// Pairs of documents that a search looks for, where the input is compared against a *reference*.
///
/// The documents of the reference come before those of the input in the corpus. Two of them are never a pair.
/// Two documents of the input are a pair only *within* the input.
///
/// Example with the documents 1 and 2 in the reference, and 3 and 4 in the input:
///
/// ```text
/// within        1-3 1-4 2-3 2-4 3-4
/// not within    1-3 1-4 2-3 2-4
/// ```
///
/// By default there is no reference, and all pairs are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sides {
    first_input: DocId,
    within: bool,
}

impl Default for Sides {
    fn default() -> Self {
        Sides::new(0, true)
    }
}

impl Sides {
    /// Makes the sides of a corpus whose first `reference_splits` splits are the reference. `within`: whether
    /// two documents of the input may be a pair.
    pub fn new(reference_splits: u32, within: bool) -> Self {
        Sides { first_input: DocId::new(reference_splits, 0), within }
    }

    /// Whether two documents of the input may be a pair.
    pub fn within(self) -> bool {
        self.within
    }

    /// Whether there is a reference.
    pub fn has_reference(self) -> bool {
        self.first_input > DocId::default()
    }

    /// Whether a document is of the reference.
    #[inline]
    pub fn is_reference(self, doc: DocId) -> bool {
        doc < self.first_input
    }

    /// Whether the pair is looked for.
    pub fn compares(self, pair: &Pair) -> bool {
        !self.is_reference(pair.high) && (self.within || self.is_reference(pair.low))
    }

    /// Returns the number of rows of the input, which come before those of the reference.
    pub(crate) fn inputs<W>(self, rows: &[Row<W>]) -> usize {
        if !self.has_reference() {
            return rows.len();
        }
        rows.partition_point(|row| !self.is_reference(row.doc))
    }

    /// Moves the records of the reference before those of the input, without any other change of their order.
    /// Returns the number of those of the reference.
    pub(crate) fn part<R>(self, records: &mut [R], doc: impl Fn(&R) -> DocId) -> usize {
        if !self.has_reference() {
            return 0;
        }
        records.sort_by_key(|record| !self.is_reference(doc(record)));
        records.partition_point(|record| self.is_reference(doc(record)))
    }
}
