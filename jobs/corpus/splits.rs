//! Reads the splits of this worker, batch by batch: the loop that every reading of the corpus shares.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Result, anyhow};
use cluster::Group;
use datasets::{Error, Reading};
use operators::DocBatch;

use super::plan::{Plan, Split};
use crate::progress::{Progress, Stage, StageTimer};

/// Returns the splits that worker `index` of `peers` reads: every `peers`-th one, from `index` on.
pub(crate) fn splits_of(plan: &Plan, index: usize, peers: usize) -> impl Iterator<Item = (u32, &Split)> {
    (0u32..).zip(&plan.splits).skip(index).step_by(peers)
}

/// Returns the number of the process whose workers read a split.
pub(crate) fn process_of(split: u32, group: &Group) -> usize {
    split as usize % group.all_workers() / group.workers()
}

/// Calls `work` for each split of this process, on as many threads as it has workers, and returns the results
/// in the order of the splits. Each thread enters `stage` as a worker.
///
/// # Errors
/// After an error no further split is begun. Of several errors, that of the first split is returned.
pub(crate) fn each_split<T: Send>(
    plan: &Plan,
    group: &Group,
    (progress, stage): (&Progress, Stage),
    work: impl Fn(&StageTimer, u32, &Split) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let mine = (0..).zip(&plan.splits).filter(|&(number, _)| process_of(number, group) == group.index());
    let mine: Vec<(u32, &Split)> = mine.collect();
    let (mine, next, work) = (&mine, &AtomicUsize::new(0), &work);
    let first = group.index() * group.workers();
    let threads = group.workers().min(mine.len());
    let mut results: Vec<(u32, Result<T>)> = thread::scope(|scope| {
        let worker = move |index: usize| {
            let at = progress.worker(first + index);
            at.enter(stage);
            let mut results = Vec::new();
            loop {
                let next_split = mine.get(next.fetch_add(1, Ordering::Relaxed));
                let Some(&(number, split)) = next_split else { return results };
                let result = at.split(number, split.uri(), || work(&at, number, split));
                if result.is_err() {
                    // The other threads find no split any more.
                    next.store(mine.len(), Ordering::Relaxed);
                }
                results.push((number, result));
            }
        };
        let threads: Vec<_> = (0..threads).map(|index| scope.spawn(move || worker(index))).collect();
        let panicked = |_| vec![(0, Err(anyhow!("a thread panicked")))];
        threads.into_iter().flat_map(|thread| thread.join().unwrap_or_else(panicked)).collect()
    });
    results.sort_by_key(|result| result.0);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Reads a split, and calls `each` with every batch of documents. Documents outside the sample of the split
/// are left out.
///
/// An error in the data ends the reading of a piece and counts as one rejected record. A file that cannot be
/// opened is one rejected record, however many pieces it has. Returns the first error of a file, or of a
/// record, that lacks the fields asked for.
pub(crate) fn read(
    number: u32,
    split: &Split,
    reading: &Reading,
    at: &StageTimer,
    mut each: impl FnMut(&mut DocBatch) -> Result<()>,
) -> Result<Option<Error>> {
    let (mut next, mut without_field) = (0, None);
    let mut sample = split.sample.clone();
    for unopened in &split.pieces {
        let piece = unopened.open()?;
        let mut batch = DocBatch::new(number, next);
        let mut reader = match split.format.open(&piece, reading) {
            Ok(reader) => reader,
            Err(error) => {
                let field = end(error, unopened.speaks_for_file().then_some(&mut batch))?;
                without_field = without_field.or(field);
                let first = std::mem::replace(&mut next, batch.next_record());
                at.read(batch.next_record() - first, 0);
                each(&mut batch)?;
                at.done(unopened.bytes());
                continue;
            }
        };
        let mut more = true;
        while more {
            more = match reader.fill(&mut batch) {
                Ok(more) => more,
                Err(error) => {
                    without_field = without_field.or(end(error, Some(&mut batch))?);
                    false
                }
            };
            let first = std::mem::replace(&mut next, batch.next_record());
            at.read(batch.next_record() - first, batch.text_bytes() as u64);
            if let Some(sample) = &mut sample {
                batch.retain(|doc| sample.holds(doc));
            }
            each(&mut batch)?;
            batch = DocBatch::new(number, next);
        }
        without_field = without_field.or_else(|| reader.without_field());
        at.done(unopened.bytes());
    }
    Ok(without_field)
}

/// Handles the error that ends a piece, of which no more is to be read. An error in the data becomes a reject
/// in `batch`, if there is a batch; any other error is returned as `Err` and ends the job.
///
/// Returns an error about a missing field, which is the user's fault if no other file has the field.
pub(crate) fn end(error: Error, batch: Option<&mut DocBatch>) -> Result<Option<Error>> {
    let (path, offset, reason) = match &error {
        Error::Data { path, offset, reason } => (path, *offset, reason.clone()),
        Error::Field { path, field, found } => {
            (path, 0, format!("no field \"{field}\"; it has {}", found.join(", ")))
        }
        Error::Store(_) => return Err(error.into()),
    };
    batch.into_iter().for_each(|batch| batch.reject(path, offset, &reason, b""));
    Ok(matches!(error, Error::Field { .. }).then_some(error))
}
