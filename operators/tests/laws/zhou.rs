//! `zhou2017` deletes the same on one thread and from the dataflow.

use std::sync::Mutex;

use operators::flow;
use operators::search::zhou::Zhou;
use operators::search::zhou::copy_search::{Alone, COPIES, Comparisons, CopySearch, WordRow};
use operators::text::Cleaner;
use operators::{DocId, Pair, Similarity};

use super::mapped::Mapped;
use super::{doc, on_workers};

/// Returns what `zhou2017` deletes on one thread, in the order of the corpus, and its comparisons. Documents without text
/// have none.
pub fn retrieve_alone(
    texts: &[String],
    mut cleaner: Cleaner,
    zhou: Zhou,
) -> (Vec<(Pair, Similarity)>, Comparisons) {
    let mut rows = Vec::new();
    for (i, text) in texts.iter().enumerate() {
        let text = cleaner.clean(text);
        if !text.trim().is_empty() {
            rows.push(zhou.row(doc(i), text));
        }
    }
    let original = rows.len() as u64;
    let mut pairs = Vec::new();
    let way = (zhou.retrieval, zhou.splitting);
    let mut search = CopySearch::new(way, original, Alone, |kept: &WordRow, row: &WordRow| {
        let pair = zhou.duplicates(kept, row);
        pairs.extend(pair);
        pair.is_some()
    });
    for copy in 0..COPIES {
        rows = search.search(copy, rows);
    }
    let comparisons = search.comparisons;
    pairs.sort_unstable();
    (pairs, comparisons)
}

/// Returns the same from the dataflow.
pub fn retrieve(
    texts: &[String],
    workers: usize,
    cleaner: Cleaner,
    zhou: Zhou,
) -> (Vec<(Pair, Similarity)>, Comparisons) {
    let mapped = Mapped::of(texts, &cleaner, &zhou);
    let shared = Mutex::new(zhou);
    let found = on_workers(workers, move |worker| {
        let zhou = shared.lock().unwrap().clone();
        let sections = mapped.sections(worker.index(), worker.peers(), 0);
        flow::retrieve(worker, &zhou, sections.into_iter().flat_map(WordRow::all).collect())
    });
    assert!(found.iter().all(|found| found.loads.len() == COPIES));
    let mut pairs: Vec<_> = found.iter().flat_map(|found| found.pairs.iter().copied()).collect();
    pairs.sort_unstable();
    (pairs, found.iter().fold(Comparisons::default(), |sum, found| sum + found.comparisons))
}

pub fn places(pairs: Vec<(Pair, Similarity)>) -> Vec<(DocId, DocId)> {
    pairs.into_iter().map(|(pair, _)| (pair.low, pair.high)).collect()
}
