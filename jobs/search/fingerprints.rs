//! By fingerprints: those that match are candidates, which their features confirm.

use anyhow::Result;
use operators::flow::{Compared, Map, Needs, Skew, Verify, compare};
use operators::jaccard;
use operators::method::Method;
use operators::text::Cleaner;
use timely::worker::Worker;

use super::{Found, Search, verified};
use crate::progress::Stage;

impl Search {
    pub(super) fn by_fingerprints<M: Method>(
        &self,
        worker: &mut Worker,
        mut cleaner: Cleaner,
        mut method: M,
    ) -> Result<Found> {
        let mut found = Found::default();
        let mut map = Map::new(worker, cleaner.clone(), method.clone(), self.verify.is_some());
        self.read_all(worker, &mut found, |worker, batch| map.batch(worker, batch))?;
        let mapped = map.finish(worker);
        found.distinct = mapped.rows.len() as u64;

        self.progress.enter(Stage::Compare);
        let Compared { pairs, loads } = compare(worker, &mut method, mapped.rows, Skew::default());
        found.loads = vec![loads];
        found.candidates = pairs.len() as u64;

        self.progress.enter(Stage::Verify);
        let needs = Needs::exchange(worker, &pairs, &mapped.copies, self.verify.is_some());
        let mut verify = self.verify.map(|least| {
            let matching = move |a: &[u64], b: &[u64]| Some(jaccard(a, b)).filter(|&alike| alike >= least);
            Verify::new(worker, &pairs, Box::new(matching))
        });
        self.read_candidates(worker, &mut found, &needs, verify.as_mut(), |text, features| {
            method.features(cleaner.clean(text), features);
        })?;
        found.matches.copies = mapped.copies;
        found.matches.pairs = match verify {
            Some(verify) => verified(verify.finish(worker)),
            None => pairs.into_iter().map(|pair| (pair, None)).collect(),
        };
        Ok(found)
    }
}
