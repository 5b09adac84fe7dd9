//! The map stage: documents to fingerprints, and equal ones to one worker.

use timely::worker::Worker;

use super::shuffle::Shuffle;
use crate::hash;
use crate::method::Method;
use crate::record::{DocBatch, DocId, Row};
use crate::text::Cleaner;

/// Fingerprint, hash of the cleaned text, document.
type Mapped<F> = (F, (u64, u64));

/// Fingerprints documents as they are read. Holds 16 bytes and a fingerprint per document, and at the end 8
/// bytes and a fingerprint more for those that are not identical to an earlier one.
pub struct Map<M: Method> {
    cleaner: Cleaner,
    method: M,
    by_text: bool,
    shuffle: Shuffle<Mapped<M::Fingerprint>>,
}

/// What the map stage found on one worker.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found<F> {
    /// One row for every different fingerprint, or text.
    pub rows: Vec<Row<F>>,
    /// Each document that is identical to an earlier one, and the first of them.
    pub copies: Vec<(DocId, DocId)>,
}

impl<M: Method> Map<M> {
    /// `by_text`: documents are identical when their cleaned texts are (by 64 bits of hash and the
    /// fingerprint), and not already when their fingerprints are.
    pub fn new(worker: &mut Worker, cleaner: Cleaner, method: M, by_text: bool) -> Self {
        let shuffle =
            Shuffle::new(worker, "Fingerprint", |(fingerprint, _): &Mapped<M::Fingerprint>| key(fingerprint));
        Map { cleaner, method, by_text, shuffle }
    }

    /// Fingerprints a batch and sends the fingerprints on their way.
    pub fn batch(&mut self, worker: &mut Worker, batch: &DocBatch) {
        for doc in batch.docs() {
            let text = self.cleaner.clean(doc.text);
            let identity = if self.by_text { hash::bytes(text.as_bytes()) } else { 0 };
            self.shuffle.send((self.method.fingerprint(text), (identity, doc.doc.0)));
        }
        self.shuffle.round(worker);
    }

    /// Waits for all workers, and collapses identical documents.
    pub fn finish(self, worker: &mut Worker) -> Found<M::Fingerprint> {
        collapse(self.shuffle.finish(worker))
    }
}

/// Where a fingerprint's documents meet.
fn key<F: crate::Record>(fingerprint: &F) -> u64 {
    let mut bytes = [0; 16];
    fingerprint.write(&mut bytes[..F::BYTES]);
    hash::bytes(&bytes[..F::BYTES])
}

/// Keeps the first document of each group of identical ones.
pub(super) fn collapse<F: Copy + Ord>(mut mapped: Vec<Mapped<F>>) -> Found<F> {
    mapped.sort_unstable();
    let mut found = Found { rows: Vec::with_capacity(mapped.len()), copies: Vec::new() };
    for same in mapped.chunk_by(|a, b| (a.0, a.1.0) == (b.0, b.1.0)) {
        let (fingerprint, (_, first)) = same[0];
        found.rows.push(Row { fingerprint, doc: DocId(first) });
        found.copies.extend(same[1..].iter().map(|&(_, (_, doc))| (DocId(doc), DocId(first))));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identical_documents_become_one_row_and_copies_of_the_first() {
        let found = collapse(vec![(7u64, (1, 5)), (7, (1, 2)), (9, (1, 1)), (7, (3, 4)), (7, (1, 3))]);
        let row = |fingerprint, doc| Row { fingerprint, doc: DocId(doc) };
        assert_eq!(found.rows, [row(7, 2), row(7, 4), row(9, 1)]);
        assert_eq!(found.copies, [(DocId(3), DocId(2)), (DocId(5), DocId(2))]);
    }
}
