//! Collapsing: identical documents become one, before anything is compared.

use timely::worker::Worker;

use super::exchange::shuffle::{SortingShuffle, shuffle};
use super::owner;
use crate::hash;
use crate::method::map_records::Mapped;
use crate::record::{DocId, Record};
use crate::{Error, ExternalSort, Sorted, SpillBudget};

/// Size of the largest key, a fingerprint and an identity, in bytes.
const MAX_KEY_BYTES: usize = 32;

/// Collapses the identical documents of all workers, and returns each document of this worker that is
/// identical to an earlier one, with the first of them, sorted.
///
/// `mapped`: the documents that this worker reads, with their keys (a fingerprint, the identity of a text, or
/// both). `each`: is called with every different key that comes to this worker, and with its first document.
///
/// Each worker sends one of its identical documents. Memory: `mapped` while it is sent; `scratch` for what
/// arrives; 16 bytes for each document that is identical to an earlier one, and for some of them twice.
pub fn collapse<K: Record + Ord>(
    worker: &mut Worker,
    mapped: ExternalSort<Mapped<K>>,
    scratch: &SpillBudget,
    mut each: impl FnMut(K, DocId),
) -> Result<Vec<(DocId, DocId)>, Error> {
    let key = |(key, _): &Mapped<K>| place(key);
    let mut meet = SortingShuffle::new(worker, "Fingerprint", key, ExternalSort::new(scratch));
    let mut copies = firsts(mapped.finish()?, |first| meet.send(worker, first))?;
    // Documents that are the first on their worker, but not of all.
    let later = firsts(meet.finish(worker)?, |(key, doc)| each(key, DocId(doc)))?;
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

/// Returns the worker where the documents of a key meet, modulo the number of workers.
fn place<K: Record>(key: &K) -> u64 {
    let mut bytes = [0; MAX_KEY_BYTES];
    key.write(&mut bytes[..K::BYTES]);
    hash::bytes(&bytes[..K::BYTES])
}

/// Gives the first document of each group of identical ones to `each`, and returns the others, each with that
/// first one.
fn firsts<K: Record + Ord>(
    mut mapped: Sorted<Mapped<K>>,
    mut each: impl FnMut(Mapped<K>),
) -> Result<Vec<(DocId, DocId)>, Error> {
    let mut copies = Vec::new();
    let mut first: Option<Mapped<K>> = None;
    mapped.each(|document| match first.filter(|first| first.0 == document.0) {
        Some(first) => copies.push((DocId(document.1), DocId(first.1))),
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
    use crate::spill::budget::twins::Twin;

    #[test]
    fn the_first_of_identical_documents_stays() {
        for budget in [None, Some(1), Some(100)] {
            let mut mapped = ExternalSort::new(&Twin::default().scratch(budget));
            mapped.extend([((7u64, 1u64), 5), ((7, 1), 2), ((9, 1), 1), ((7, 3), 4), ((7, 1), 3)]);
            let mut left = Vec::new();
            let copies = firsts(mapped.finish().unwrap(), |first| left.push(first)).unwrap();
            assert_eq!(left, [((7, 1), 2), ((7, 3), 4), ((9, 1), 1)]);
            assert_eq!(copies, [(DocId(3), DocId(2)), (DocId(5), DocId(2))]);
        }
    }
}
