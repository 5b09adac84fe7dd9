//! Identical documents become one, before anything is compared.

use timely::worker::Worker;

use super::owner;
use super::shuffle::{SortingShuffle, shuffle};
use crate::hash;
use crate::mapped::Mapped;
use crate::record::{DocId, Record, Row};
use crate::{Error, Runs, Scratch, Sorted};

/// Collapses the identical documents of all workers. `mapped`: those of the documents that this worker reads. Calls
/// `each` with one row for every different fingerprint, or text, that comes to this worker, with its first document.
/// Returns each document of this worker that is identical to an earlier one, and the first of them; sorted.
///
/// Of identical documents each worker sends one. Memory: `mapped` while it is sent, and what arrives in `scratch`; 16
/// bytes for each document that is identical to an earlier one, of which some lie twice.
pub fn collapse<F: Record + Ord>(
    worker: &mut Worker,
    mapped: Runs<Mapped<F>>,
    scratch: &Scratch,
    mut each: impl FnMut(Row<F>),
) -> Result<Vec<(DocId, DocId)>, Error> {
    let key = |(fingerprint, _): &Mapped<F>| key(fingerprint);
    let mut meet = SortingShuffle::new(worker, "Fingerprint", key, Runs::new(scratch));
    let mut copies = firsts(mapped.finish()?, |first| meet.send(worker, first))?;
    let row = |(fingerprint, (_, doc))| Row { fingerprint, doc: DocId(doc) };
    // Those that are first on their worker but not of all.
    let later = firsts(meet.finish(worker)?, |first| each(row(first)))?;
    let later = later.into_iter().map(|(doc, first)| (doc.0, first.0));
    let later = shuffle(worker, "Copy", later, |&(doc, _): &(u64, u64)| owner(DocId(doc)));
    let mut later: Vec<_> = later.into_iter().map(|(doc, first)| (DocId(doc), DocId(first))).collect();
    later.sort_unstable();
    for (_, first) in &mut copies {
        *first = later.binary_search_by_key(first, |&(doc, _)| doc).map_or(*first, |at| later[at].1);
    }
    copies.extend(later);
    copies.sort_unstable();
    Ok(copies)
}

/// Where a fingerprint's documents meet.
fn key<F: Record>(fingerprint: &F) -> u64 {
    let mut bytes = [0; 16];
    fingerprint.write(&mut bytes[..F::BYTES]);
    hash::bytes(&bytes[..F::BYTES])
}

/// Gives the first document of each group of identical ones to `each`, and returns the others with it.
fn firsts<F: Record + Ord>(
    mut mapped: Sorted<Mapped<F>>,
    mut each: impl FnMut(Mapped<F>),
) -> Result<Vec<(DocId, DocId)>, Error> {
    let mut copies = Vec::new();
    let mut first: Option<Mapped<F>> = None;
    let same = |a: &Mapped<F>, b: &Mapped<F>| (a.0, a.1.0) == (b.0, b.1.0);
    mapped.each(|document| match first.filter(|first| same(first, &document)) {
        Some(first) => copies.push((DocId(document.1.1), DocId(first.1.1))),
        None => {
            first = Some(document);
            each(document);
        }
    })?;
    Ok(copies)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::twins::Twin;

    #[test]
    fn the_first_of_identical_documents_stays() {
        for budget in [None, Some(1), Some(100)] {
            let mut mapped = Runs::new(&Twin::default().scratch(budget));
            mapped.extend([(7u64, (1, 5)), (7, (1, 2)), (9, (1, 1)), (7, (3, 4)), (7, (1, 3))]);
            let mut left = Vec::new();
            let copies = firsts(mapped.finish().unwrap(), |first| left.push(first)).unwrap();
            assert_eq!(left, [(7, (1, 2)), (7, (3, 4)), (9, (1, 1))]);
            assert_eq!(copies, [(DocId(3), DocId(2)), (DocId(5), DocId(2))]);
        }
    }
}
