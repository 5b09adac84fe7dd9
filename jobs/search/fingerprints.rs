//! By fingerprints: those that match are candidates, which their features confirm.

use anyhow::Result;
use operators::flow::{Collapsed, Compared, Needs, Skew, Verify, collapse, compare};
use operators::jaccard;
use operators::method::Method;
use operators::text::Cleaner;
use timely::worker::Worker;

use super::{Found, Search, verified};
use crate::progress::{At, Stage};

impl Search {
    pub(super) fn by_fingerprints<M: Method>(
        &self,
        worker: &mut Worker,
        at: &At,
        mut cleaner: Cleaner,
        mut method: M,
    ) -> Result<Found> {
        let mut found = Found::default();
        at.enter(Stage::Compare);
        let mapped = self.rows(worker, 0)?;
        let Collapsed { rows, copies } = collapse(worker, mapped);
        found.distinct = rows.len() as u64;
        let Compared { pairs, loads } = compare(worker, &mut method, rows, Skew::default());
        found.loads = vec![loads];
        found.candidates = pairs.len() as u64;

        at.enter(Stage::Verify);
        let needs = Needs::exchange(worker, &pairs, &copies, self.verify.is_some());
        let mut verify = self.verify.map(|least| {
            let matching = move |a: &[u64], b: &[u64]| Some(jaccard(a, b)).filter(|&alike| alike >= least);
            Verify::new(worker, &pairs, Box::new(matching))
        });
        self.read_candidates(worker, at, &mut found, &needs, verify.as_mut(), |text, features| {
            method.features(cleaner.clean(text), features);
        })?;
        found.matches.copies = copies;
        found.matches.pairs = match verify {
            Some(verify) => verified(verify.finish(worker)),
            None => pairs.into_iter().map(|pair| (pair, None)).collect(),
        };
        Ok(found)
    }
}
