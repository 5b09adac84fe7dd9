//! The search by fingerprints: pairs whose fingerprints match are candidates, which are verified by their
//! features.

use anyhow::Result;
use operators::flow::compare;
use operators::flow::{Compared, RowSpool, Skew};
use operators::method::Method;
use operators::method::map_records::Identity;
use operators::text::Cleaner;
use operators::{Row, jaccard};
use timely::worker::Worker;

use super::verify::TextSource;
use super::{CorpusSearch, SearchResult};
use crate::progress::{Stage, StageTimer};

impl CorpusSearch {
    /// Finds pairs in the map output of this worker: collapses identical documents, joins the fingerprints of
    /// the first ones, and verifies the candidates. Without verification every candidate is a match.
    pub(super) fn by_fingerprints<M: Method>(
        &self,
        worker: &mut Worker,
        at: &StageTimer,
        mut cleaner: Cleaner,
        mut method: M,
    ) -> Result<SearchResult> {
        let mut found = SearchResult::default();
        at.enter(Stage::Compare);
        let mut rows = RowSpool::new(&self.scratch);
        let searched = !method.blocks().is_empty();
        let mut push = |fingerprint, doc| {
            if searched {
                rows.push(Row { fingerprint, doc });
            }
        };
        found.matches.copies = match self.verify {
            Some(_) => {
                let push = |(fingerprint, _), doc| push(fingerprint, doc);
                self.collapse::<(M::Fingerprint, Identity)>(worker, &mut found, push)?
            }
            None => self.collapse(worker, &mut found, push)?,
        };
        let Compared { mut pairs, loads } = compare(worker, &mut method, rows, Skew::default())?;
        found.loads = vec![loads];

        at.enter(Stage::Verify);
        let Some(least) = self.verify else {
            pairs.each(|pair| found.matches.pairs.push((pair, None)))?;
            found.candidates = found.matches.pairs.len() as u64;
            drop(pairs);
            self.name_matched(worker, at, &mut found)?;
            return Ok(found);
        };
        let matching = move |a: &[u64], b: &[u64]| Some(jaccard(a, b)).filter(|&alike| alike >= least);
        self.verify(
            worker,
            TextSource::Input(at),
            &mut found,
            pairs,
            Box::new(matching),
            |text, features| {
                method.features(cleaner.clean(text), features);
            },
        )?;
        Ok(found)
    }
}
