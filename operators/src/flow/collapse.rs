//! Identical documents become one, before anything is compared.

use std::collections::HashMap;

use timely::worker::Worker;

use super::owner;
use super::shuffle::shuffle;
use crate::hash;
use crate::mapped::Mapped;
use crate::record::{DocId, Record, Row};

/// What is left on one worker.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Collapsed<F> {
    /// One row for every different fingerprint, or text, with its first document.
    pub rows: Vec<Row<F>>,
    /// Each document of this worker that is identical to an earlier one, and the first of them; sorted.
    pub copies: Vec<(DocId, DocId)>,
}

/// Collapses the identical documents of all workers. `mapped`: those of the documents that this worker reads.
///
/// Of identical documents each worker sends one. Memory: what is given, and twice that of different documents.
pub fn collapse<F: Record + Ord>(worker: &mut Worker, mapped: Vec<Mapped<F>>) -> Collapsed<F> {
    let Firsts { firsts, mut copies } = firsts(mapped);
    let key = |(fingerprint, _): &Mapped<F>| key(fingerprint);
    let Firsts { firsts, copies: later } = self::firsts(shuffle(worker, "Fingerprint", firsts, key));
    // Those that are first on their worker but not of all.
    let later = later.into_iter().map(|(doc, first)| (doc.0, first.0));
    let later = shuffle(worker, "Copy", later, |&(doc, _): &(u64, u64)| owner(DocId(doc)));
    let later: HashMap<DocId, DocId> =
        later.into_iter().map(|(doc, first)| (DocId(doc), DocId(first))).collect();
    for (_, first) in &mut copies {
        *first = *later.get(first).unwrap_or(first);
    }
    copies.extend(later);
    copies.sort_unstable();
    let row = |(fingerprint, (_, doc))| Row { fingerprint, doc: DocId(doc) };
    Collapsed { rows: firsts.into_iter().map(row).collect(), copies }
}

/// Where a fingerprint's documents meet.
fn key<F: Record>(fingerprint: &F) -> u64 {
    let mut bytes = [0; 16];
    fingerprint.write(&mut bytes[..F::BYTES]);
    hash::bytes(&bytes[..F::BYTES])
}

struct Firsts<F> {
    firsts: Vec<Mapped<F>>,
    copies: Vec<(DocId, DocId)>,
}

/// Keeps the first document of each group of identical ones.
fn firsts<F: Copy + Ord>(mut mapped: Vec<Mapped<F>>) -> Firsts<F> {
    mapped.sort_unstable();
    let mut copies = Vec::new();
    mapped.dedup_by(|later, first| {
        let same = (later.0, later.1.0) == (first.0, first.1.0);
        if same {
            copies.push((DocId(later.1.1), DocId(first.1.1)));
        }
        same
    });
    Firsts { firsts: mapped, copies }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_identical_documents_stays() {
        let Firsts { firsts, copies } =
            firsts(vec![(7u64, (1, 5)), (7, (1, 2)), (9, (1, 1)), (7, (3, 4)), (7, (1, 3))]);
        assert_eq!(firsts, [(7, (1, 2)), (7, (3, 4)), (9, (1, 1))]);
        assert_eq!(copies, [(DocId(3), DocId(2)), (DocId(5), DocId(2))]);
    }
}
