//! The last reading of the corpus, which writes kept and removed.

use std::iter;

use anyhow::Result;
use cluster::Cluster;
use datasets::{Fate, Reading, Removal};
use operators::{DocId, hash};
use serde::{Deserialize, Serialize};

use crate::drive;
use crate::output::{OutputFolder, SplitParts, TaskManifest};
use crate::plan::{Plan, Split};
use crate::progress::{At, Progress, Stage};

/// What becomes of each record that does not simply stay, sorted by place.
pub(crate) type Fates = Vec<(DocId, Option<Removal>)>;

/// Records written, to be held against those read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Written {
    pub kept: u64,
    pub removed: u64,
    pub rejected: u64,
}

impl Written {
    /// Adds what another one has written.
    pub fn add(&mut self, other: Written) {
        self.kept += other.kept;
        self.removed += other.removed;
        self.rejected += other.rejected;
    }
}

/// Writes kept and removed of the splits of this process. `fates`: the removal of a removed record, `None` for a rejected one.
pub(crate) fn write(
    plan: &Plan,
    reading: &Reading,
    fates: &Fates,
    folder: &OutputFolder,
    cluster: &Cluster,
    progress: &Progress,
) -> Result<Written> {
    let results = drive::each_split(plan, cluster, (progress, Stage::Write), |at, number, split| {
        let of_split = |split: u32| fates.partition_point(|fate| fate.0.split() < split);
        let fates = &fates[of_split(number)..of_split(number + 1)];
        let decided = decided(fates);
        if let Some(task) = folder.finished_task(number, decided)? {
            split.pieces.iter().for_each(|piece| at.done(piece.bytes()));
            return Ok(task);
        }
        let mut task = TaskManifest { decided, ..TaskManifest::default() };
        write_split(split, number, reading, fates, folder, at, &mut task)?;
        folder.task(number, &task)?;
        Ok(task)
    })?;
    let mut all = Written::default();
    for TaskManifest { kept, removed, rejected, .. } in results {
        all.add(Written { kept, removed, rejected });
    }
    Ok(all)
}

/// A hash of what was decided for a split.
fn decided(fates: &[(DocId, Option<Removal>)]) -> u64 {
    let mut text = String::new();
    for (doc, removal) in fates {
        text += &format!("{} {removal:?}\n", doc.0);
    }
    hash::bytes(text.as_bytes())
}

fn write_split(
    split: &Split,
    number: u32,
    reading: &Reading,
    fates: &[(DocId, Option<Removal>)],
    folder: &OutputFolder,
    at: &At,
    written: &mut TaskManifest,
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
    written.files = parts.files();
    Ok(())
}
