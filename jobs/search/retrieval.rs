//! `zhou2017`: documents that are retrieved together are compared, and duplicates deleted at once.

use anyhow::Result;
use operators::Pair;
use operators::flow::{Needs, Retrieve, Retrieved};
use operators::method::Zhou;
use operators::text::Cleaner;
use timely::worker::Worker;

use super::{Found, Named, Search, verified};
use crate::progress::{At, Stage};

impl Search {
    pub(super) fn by_retrieval(
        &self,
        worker: &mut Worker,
        at: &At,
        cleaner: Cleaner,
        method: Zhou,
    ) -> Result<Found> {
        let mut found = Found::default();
        let mut retrieve = Retrieve::new(worker, cleaner, method);
        self.read_all(worker, at, &mut found, |worker, batch| retrieve.batch(worker, batch))?;
        found.distinct = found.docs; // none is collapsed

        at.enter(Stage::Compare);
        let Retrieved { pairs, comparisons, loads } = retrieve.finish(worker);
        found.loads = vec![loads];
        found.candidates = pairs.len() as u64;
        found.comparisons = Some(comparisons);

        let matched: Vec<Pair> = pairs.iter().map(|(pair, _)| *pair).collect();
        let needs = Needs::exchange(worker, &matched, &[], false);
        self.read_again(
            worker,
            at,
            |split| needs.any_of(split),
            |_, batch| {
                let needed = batch.docs().filter(|doc| needs.of(doc.doc).is_some());
                found.named.extend(needed.map(|doc| Named::new(&doc)));
            },
        )?;
        found.matches.pairs = verified(pairs);
        Ok(found)
    }
}
