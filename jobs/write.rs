//! The last reading of the corpus, which writes kept and removed.

use std::iter;

use anyhow::Result;
use datasets::{Fate, Reading, Removal};
use operators::DocId;

use crate::drive;
use crate::output::{OutputFolder, SplitParts};
use crate::plan::{Plan, Split};
use crate::progress::{At, Progress, Stage};

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
    let results = drive::each_split(plan, workers, (progress, Stage::Write), |at, number, split| {
        let of_split = |split: u32| fates.partition_point(|fate| fate.0.split() < split);
        let fates = &fates[of_split(number)..of_split(number + 1)];
        let mut written = Written::default();
        write_split(split, number, reading, fates, folder, at, &mut written)?;
        Ok(written)
    })?;
    let mut all = Written::default();
    for written in results {
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
    at: &At,
    written: &mut Written,
) -> Result<()> {
    let parts = SplitParts::new(folder, number);
    let mut writer = split.format.writer(&parts, reading);
    let mut rest = fates.iter().peekable();
    let mut next = 0;
    for unopened in &split.pieces {
        let piece = unopened.open()?;
        let first = next;
        let mut fates = iter::from_fn(|| {
            let here = DocId::new(number, next);
            next += 1;
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
            if !error.is_data() || !counted && (next > first || unopened.speaks_for_file()) {
                return Err(error.into());
            }
            next += u64::from(counted);
            written.rejected += u64::from(counted);
        }
        at.read(next - first, unopened.bytes());
        at.done(unopened.bytes());
    }
    writer.finish()?;
    Ok(())
}
