//! The ids of a corpus as two tables, in the place of its records.

use std::sync::Arc;

use anyhow::Result;
use arrow_array::{Float64Array, RecordBatch};
use datasets::{Fate, Parts, Reading, Removal};
use operators::DocId;

use crate::verdicts::RecordFates;
use runtime::corpus::split::Split;
use runtime::corpus::splits::SplitReader;
use runtime::output::TaskManifest;
use runtime::output::tables::{TableColumn, TableFile, TableFormat, places, strings};
use runtime::progress::StageTimer;

/// Number of rows that are held at once.
const ROWS: usize = 1 << 13;

/// Writes the ids of the documents of a split to tables in `kept` and `removed`, and notes their numbers in `task`.
pub(super) fn write_ids(
    (split, number): (&Split, u32),
    reading: &Reading,
    fates: &mut impl RecordFates,
    (parts, format): (&dyn Parts, TableFormat),
    at: &StageTimer,
    task: &mut TaskManifest,
) -> Result<()> {
    let mut kept = IdTable::new("kept", parts, format);
    let mut removed = IdTable::new("removed", parts, format);
    let mut reader = SplitReader::new(number, split, reading, at);
    while let Some(mut batch) = reader.next_batch()? {
        let written = task.by_source.entry(reader.path()).or_default();
        written.rejected += batch.take_rejects().len() as u64;
        for doc in batch.docs() {
            let fate = fates.next(doc.doc);
            fates.check()?;
            written.count(&fate);
            match fate {
                Fate::Removed(removal) => removed.push(doc.id, doc.doc, Some(removal))?,
                Fate::Rejected => {}
                Fate::Kept | Fate::Cut(_) | Fate::Annotated(_) => kept.push(doc.id, doc.doc, None)?,
            }
        }
    }
    task.by_source.values().for_each(|written| task.written.add(*written));
    if fates.stands_for_all() {
        kept.flush()?;
    }
    kept.finish()?;
    removed.finish()
}

/// A table of ids that is being written: a part for a split that has rows.
struct IdTable<'a> {
    folder: &'static str,
    parts: &'a dyn Parts,
    format: TableFormat,
    file: Option<TableFile>,
    held: Vec<(String, DocId, Option<Removal>)>,
    rows: u64,
}

impl<'a> IdTable<'a> {
    fn new(folder: &'static str, parts: &'a dyn Parts, format: TableFormat) -> Self {
        IdTable { folder, parts, format, file: None, held: Vec::new(), rows: 0 }
    }

    fn push(&mut self, id: &str, place: DocId, removal: Option<Removal>) -> Result<()> {
        self.held.push((id.to_owned(), place, removal));
        if self.held.len() == ROWS { self.flush() } else { Ok(()) }
    }

    /// Writes the rows that are held, into a file that is there even if there are none.
    fn flush(&mut self) -> Result<()> {
        let batch = RecordBatch::try_from_iter_with_nullable(self.columns())?;
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let output = self.parts.part(self.folder, self.format.extension())?;
                none.insert(TableFile::begin(self.format, output, &batch)?)
            }
        };
        self.rows += batch.num_rows() as u64;
        self.held.clear();
        file.write(&batch)
    }

    fn columns(&self) -> Vec<TableColumn> {
        let id = ("id", strings(self.held.iter().map(|(id, ..)| Some(&**id))), false);
        let place = ("place", places(self.held.iter().map(|(_, place, _)| *place)), false);
        if self.folder == "kept" {
            return vec![id, place];
        }
        let removals = || self.held.iter().map(|(.., removal)| removal.as_ref());
        let text = |field: fn(&Removal) -> &str| strings(removals().map(|removal| removal.map(field)));
        let similarity = Float64Array::from_iter(removals().map(|removal| removal?.similarity));
        vec![
            id,
            ("duplicate_of", text(|removal| &removal.duplicate_of), true),
            ("similarity", Arc::new(similarity), true),
            ("cluster", text(|removal| &removal.cluster), true),
            ("reason", text(|removal| &removal.reason), true),
            place,
        ]
    }

    fn finish(mut self) -> Result<()> {
        if !self.held.is_empty() {
            self.flush()?;
        }
        self.file.map_or(Ok(()), |file| file.finish(self.rows))
    }
}
