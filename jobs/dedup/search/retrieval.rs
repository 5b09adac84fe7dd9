//! The search of `zhou2017`: documents that are retrieved together are compared, and duplicates are deleted
//! at once.

use anyhow::Result;
use operators::flow::{FoundMatches, GatheredClusters, Retrieve, Retrieved};
use operators::method::Zhou;
use operators::method::map_records::Words;
use timely::worker::Worker;

use super::corpus_search::{CorpusSearch, SearchResult};
use crate::progress::StageTimer;

impl CorpusSearch {
    /// Finds pairs in the map output of this worker, and reads the input again for the ids of documents.
    pub(super) fn retrieve(
        &self,
        worker: &mut Worker,
        at: &StageTimer,
        zhou: Zhou,
        found: &mut SearchResult,
    ) -> Result<GatheredClusters> {
        let mut retrieve = Retrieve::new(worker, zhou);
        self.section(worker, 0, |worker, frame| {
            for row in Words::of(frame) {
                retrieve.add(row);
            }
            retrieve.round(worker);
        })?;
        let Retrieved { pairs, comparisons, loads } = retrieve.finish(worker);
        found.loads = vec![loads];
        found.comparisons = Some(comparisons);
        found.candidates = pairs.len() as u64;
        let mut matches = FoundMatches::new(worker, &self.spill);
        for (pair, similarity) in pairs {
            matches.add_pair(worker, pair, Some(similarity));
        }
        self.name_matched(worker, at, matches)
    }
}
