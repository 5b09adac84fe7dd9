//! Collapsing: identical documents become one before anything else is compared.

use timely::worker::Worker;

use super::candidates::{CandidateJoin, Candidates};
use crate::flow::skew::heavy::Skew;
use crate::hash::Identity;
use crate::record::DocId;
use crate::search::identity::EqualTexts;
use crate::{Error, ExternalSort, Sorted, SpillBudget};

/// Collapses the identical documents of all workers, and returns each document of this worker that is
/// identical to an earlier one, with the first of them, sorted.
///
/// `identities`: the documents that this worker reads. A worker looks for identical documents among its own
/// first, and sends only one of each group, so no identity has more records than there are workers. `earlier`:
/// returns the document of an earlier run that has an identity, if there is one; identities are asked for in
/// order. It comes before all documents of this run.
///
/// ```text
/// worker 0 reads   a1 b2 a3    sends a1 b2    learns 3 = 1
/// worker 1 reads   b4 c5       sends b4 c5    learns 4 = 2
/// ```
///
/// Memory: `identities` while they are sent; `spill` for what arrives; 16 bytes for each document that is
/// identical to an earlier one, and for some of them twice.
///
/// # Errors
/// Those of `earlier`, and of records that are spilled to disk.
pub fn collapse<E: From<Error>>(
    worker: &mut Worker,
    identities: ExternalSort<(Identity, DocId)>,
    spill: &SpillBudget,
    mut earlier: impl FnMut(Identity) -> Result<Option<DocId>, E>,
) -> Result<Vec<(DocId, DocId)>, E> {
    let mut identities = identities.finish()?;
    let mut copies = Vec::new();
    let mut join = CandidateJoin::new(EqualTexts, Skew::default(), spill);
    let mut failed = Ok(());
    join.pass(worker, &(), &mut |worker, each| {
        firsts(&mut identities, &mut copies, |first| {
            each(worker, first);
            match earlier(first.0) {
                Ok(found) => found.into_iter().for_each(|doc| each(worker, (first.0, doc))),
                Err(error) => failed = Err(error),
            }
        })
    })?;
    failed?;
    drop(identities);
    // Documents that are the first of their text on their worker, but not among all workers.
    let Candidates { mut pairs, .. } = join.finish(worker, |pair| pair.high)?;
    let mut later = Vec::new();
    pairs.each(|pair| later.push((pair.high, pair.low)))?;
    later.sort_unstable();
    for (_, first) in &mut copies {
        *first = later.binary_search_by_key(first, |&(doc, _)| doc).map_or(*first, |at| later[at].1);
    }
    copies.extend(later);
    copies.sort_unstable();
    Ok(copies)
}

/// Gives the first document of each group of identical ones to `each`, and adds the others to `copies`, each
/// with that first one.
fn firsts(
    identities: &mut Sorted<(Identity, DocId)>,
    copies: &mut Vec<(DocId, DocId)>,
    mut each: impl FnMut((Identity, DocId)),
) -> Result<(), Error> {
    let mut first: Option<(Identity, DocId)> = None;
    identities.each(|document| match first.filter(|first| first.0 == document.0) {
        Some(first) => copies.push((document.1, first.1)),
        None => {
            first = Some(document);
            each(document);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spill::budget::twins::Twin;

    #[test]
    fn the_first_of_identical_documents_stays() {
        for budget in [None, Some(1), Some(100)] {
            let mut identities = ExternalSort::new(&Twin::default().budget(budget));
            let of = |(identity, doc)| (identity, DocId(doc));
            identities.extend([((7, 1), 5), ((7, 1), 2), ((9, 1), 1), ((7, 3), 4), ((7, 1), 3)].map(of));
            let (mut left, mut copies) = (Vec::new(), Vec::new());
            firsts(&mut identities.finish().unwrap(), &mut copies, |first| left.push(first)).unwrap();
            assert_eq!(left, [((7, 1), 2), ((7, 3), 4), ((9, 1), 1)].map(of));
            assert_eq!(copies, [(DocId(3), DocId(2)), (DocId(5), DocId(2))]);
        }
    }
}
