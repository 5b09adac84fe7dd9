//! The search of `zhou2017`: documents that are retrieved together are compared, and duplicates are deleted
//! at once.

use anyhow::Result;
use operators::flow::{self, FoundMatches, GatheredClusters, Retrieved};
use operators::search::zhou::Zhou;
use operators::search::zhou::copy_search::WordRow;
use timely::worker::Worker;

use super::corpus_search::SearchResult;
use super::earlier::NoEarlier;
use super::gather::name_by_input;
use super::mapped::Mapped;
use runtime::progress::StageTimer;

/// Finds pairs in the map output of this worker, and reads the input again for the ids of documents.
pub(super) fn retrieve(
    worker: &mut Worker,
    at: &StageTimer,
    mapped: &Mapped,
    zhou: &Zhou,
) -> Result<(GatheredClusters, SearchResult)> {
    let mut rows = Vec::new();
    mapped.section(worker, 0, |_, frame| rows.extend(WordRow::all(frame)))?;
    let Retrieved { pairs, comparisons, loads } = flow::retrieve(worker, zhou, rows);
    let found = SearchResult {
        loads: vec![loads],
        comparisons: Some(comparisons),
        candidates: pairs.len() as u64,
        ..SearchResult::default()
    };
    let mut matches = FoundMatches::new(worker, &mapped.search.spill);
    for (pair, similarity) in pairs {
        matches.add_pair(worker, pair, Some(similarity));
    }
    Ok((name_by_input(worker, at, mapped, matches, &NoEarlier)?, found))
}
