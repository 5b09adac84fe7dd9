//! By fingerprints: those that match are candidates, which their features confirm.

use anyhow::Result;
use operators::flow::{Compared, RowSpool, Skew, Verify, compare};
use operators::method::Method;
use operators::text::Cleaner;
use operators::{Pair, jaccard};
use timely::worker::Worker;

use super::{Found, Search};
use crate::progress::{At, Stage};

impl Search {
    pub(super) fn by_fingerprints<M: Method>(
        &self,
        worker: &mut Worker,
        at: &At,
        mut cleaner: Cleaner,
        mut method: M,
        text_bytes: usize,
    ) -> Result<Found> {
        let mut found = Found::default();
        at.enter(Stage::Compare);
        let mut rows = RowSpool::new(&self.scratch);
        found.matches.copies = self.collapse(worker, &mut found, |row| rows.push(row))?;
        let Compared { pairs, loads } = compare(worker, &mut method, rows, Skew::default())?;
        found.loads = vec![loads];

        at.enter(Stage::Verify);
        let verify = |worker: &mut Worker, pairs: &[Pair]| {
            let least = self.verify?;
            let matching = move |a: &[u64], b: &[u64]| Some(jaccard(a, b)).filter(|&alike| alike >= least);
            Some(Verify::new(worker, pairs, Box::new(matching), &self.scratch))
        };
        self.verify_in_portions(worker, at, &mut found, pairs, text_bytes, verify, |text, features| {
            method.features(cleaner.clean(text), features);
        })?;
        Ok(found)
    }
}
