//! The two sides of a corpus: a reference, whose documents stay, and the input.

use std::ops::Range;

use crate::record::{DocId, Pair};

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

    /// Returns which of the records after record `at` it is compared with. `records`: the number of all
    /// records, of which the first `reference` ones are of the reference.
    #[inline]
    pub(crate) fn partners(self, at: usize, reference: usize, records: usize) -> Range<usize> {
        if at < reference || self.within { reference.max(at + 1)..records } else { records..records }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_record_is_compared_with_the_later_ones_that_make_a_pair_with_it() {
        for (reference_splits, within) in [(0, true), (2, true), (2, false), (5, false)] {
            let sides = Sides::new(reference_splits, within);
            let mut docs: Vec<DocId> = [3, 0, 4, 1, 2].map(|split| DocId::new(split, 7)).into();
            let reference = sides.part(&mut docs, |doc| *doc);
            assert_eq!(reference, reference_splits as usize);
            let mut found: Vec<Pair> = (0..docs.len())
                .flat_map(|at| sides.partners(at, reference, docs.len()).map(move |other| (at, other)))
                .map(|(at, other)| Pair::new(docs[at], docs[other], 0))
                .collect();
            found.sort_unstable();
            docs.sort_unstable();
            let all = docs.iter().flat_map(|&a| docs.iter().map(move |&b| (a, b)));
            let all = all.filter(|(a, b)| a < b).map(|(a, b)| Pair::new(a, b, 0));
            assert_eq!(found, all.filter(|pair| sides.compares(pair)).collect::<Vec<_>>());
        }
    }
}
