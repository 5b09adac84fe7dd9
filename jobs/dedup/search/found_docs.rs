//! Matches that a search has found, with the names of their documents, from which clusters are gathered more than once.

use anyhow::Result;
use operators::flow::{FoundMatches, GatheredClusters};
use timely::worker::Worker;

use super::asked::FoundLinks;
use super::corpus_search::CorpusSearch;
use crate::corpus::name_spool::NameSpool;
use crate::progress::StageTimer;

/// Matches of this worker.
pub(super) struct FoundDocs {
    pub links: Vec<FoundLinks>,
    /// Names of all documents of the input of which a pair was compared; `None` if the input is to be read again for them.
    pub names: Option<NameSpool>,
}

impl CorpusSearch {
    /// Returns the clusters of the matches of all workers.
    pub(super) fn gather(
        &self,
        worker: &mut Worker,
        at: &StageTimer,
        FoundDocs { links, names }: &FoundDocs,
    ) -> Result<GatheredClusters> {
        let mut matches = FoundMatches::new(worker, &self.spill);
        links.iter().try_for_each(|links| links.add_to(worker, &mut matches))?;
        match names {
            Some(names) => self.name_by(worker, matches, names),
            None => self.name_matched(worker, at, matches),
        }
    }
}
