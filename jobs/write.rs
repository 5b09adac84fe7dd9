//! The last reading of the corpus, which writes kept and removed.

use std::iter;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Error, Result};
use datasets::{Fate, Reading, Removal};
use operators::DocId;

use crate::output::{OutputFolder, SplitParts};
use crate::plan::{Plan, Split};
use crate::progress::Progress;

/// What becomes of each record that does not simply stay, sorted by place.
pub(crate) type Fates = Vec<(DocId, Option<Removal>)>;

/// Records written, to be held against those read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Written {
    pub kept: u64,
    pub removed: u64,
    pub rejected: u64,
}

/// Writes kept and removed, on so many threads. `fates`: the removal of a removed record, `None` for a rejected one.
pub(crate) fn write(
    plan: &Plan,
    reading: &Reading,
    fates: &Fates,
    folder: &OutputFolder,
    workers: usize,
    progress: &Progress,
) -> Result<Written> {
    let next = AtomicUsize::new(0);
    let results: Vec<Result<Written>> = thread::scope(|scope| {
        let worker = || {
            let mut written = Written::default();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(split) = plan.splits.get(number) else { return Ok(written) };
                let of_split = |split: u32| fates.partition_point(|fate| fate.0.split() < split);
                let number = number as u32;
                let result = write_split(
                    split,
                    number,
                    reading,
                    &fates[of_split(number)..of_split(number + 1)],
                    folder,
                    progress,
                    &mut written,
                );
                if let Err(error) = result {
                    // The others find nothing more to do.
                    next.store(plan.splits.len(), Ordering::Relaxed);
                    return Err(error);
                }
            }
        };
        let threads: Vec<_> = iter::repeat_with(|| scope.spawn(worker)).take(workers).collect();
        let panicked = |_| Err(Error::msg("a writing thread panicked"));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).collect()
    });
    let mut all = Written::default();
    for written in results {
        let written = written?;
        all.kept += written.kept;
        all.removed += written.removed;
        all.rejected += written.rejected;
    }
    Ok(all)
}

fn write_split(
    split: &Split,
    number: u32,
    reading: &Reading,
    fates: &[(DocId, Option<Removal>)],
    folder: &OutputFolder,
    progress: &Progress,
    written: &mut Written,
) -> Result<()> {
    let parts = SplitParts::new(folder, number);
    let mut writer = split.format.writer(&parts, reading);
    let mut rest = fates.iter().peekable();
    let mut next = 0;
    for unopened in &split.pieces {
        let piece = unopened.open()?;
        let mut read = 0;
        let mut fates = iter::from_fn(|| {
            let here = DocId::new(number, next);
            next += 1;
            read += 1;
            let fate = match rest.next_if(|(doc, _)| *doc == here) {
                None => Fate::Kept,
                Some((_, Some(removal))) => Fate::Removed(removal.clone()),
                Some((_, None)) => Fate::Rejected,
            };
            match fate {
                Fate::Kept => written.kept += 1,
                Fate::Removed(_) => written.removed += 1,
                Fate::Rejected => written.rejected += 1,
            }
            Some(fate)
        });
        if let Err(error) = writer.divide(&piece, &mut fates) {
            // What ended the first reading of the piece ends this one. It was counted as a rejected record, but
            // for a file that cannot be opened only by its first piece.
            let counted = rest.next_if(|fate| *fate == &(DocId::new(number, next), None)).is_some();
            if !error.is_data() || !counted && (read > 0 || unopened.speaks_for_file()) {
                return Err(error.into());
            }
            next += u64::from(counted);
            written.rejected += u64::from(counted);
        }
        progress.read(read, unopened.bytes());
        progress.done(unopened.bytes());
    }
    writer.finish()?;
    Ok(())
}
