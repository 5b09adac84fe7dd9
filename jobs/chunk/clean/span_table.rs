//! The table of what was cut out of texts.

use std::sync::Arc;

use anyhow::Result;
use arrow_array::{ArrayRef, Float64Array, UInt64Array};
use operators::{DocId, Similarity};

use runtime::output::OutputFolder;
use runtime::output::tables::{OutputTable, TableColumn, places, strings};

/// Number of rows that are held.
const HELD: usize = 1 << 13;

/// The table `spans/` as the writer of a split writes it.
pub(super) struct SpanTable<'a> {
    table: OutputTable<'a>,
    split: u32,
    held: Vec<CutSpan>,
}

/// Row of `spans/`: a unit that was cut.
pub(super) struct CutSpan {
    pub id: String,
    pub place: DocId,
    /// Offset in the text of the document, in bytes.
    pub offset: u32,
    /// Length in bytes.
    pub bytes: u32,
    /// Occurrence of the unit that stays, if one does.
    pub kept: Option<KeptSpan>,
}

/// Occurrence of a unit that stays.
pub(super) struct KeptSpan {
    pub id: String,
    pub place: DocId,
    /// Offset in the text of the document, in bytes.
    pub offset: u32,
    /// Similarity to the unit that was cut: one if the two are equal.
    pub similarity: Similarity,
}

impl<'a> SpanTable<'a> {
    /// Begins the table of a split.
    pub fn new(folder: &'a OutputFolder, split: u32) -> Self {
        SpanTable { table: OutputTable::new(folder, "spans"), split, held: Vec::new() }
    }

    /// Adds a row.
    pub fn push(&mut self, span: CutSpan) -> Result<()> {
        self.held.push(span);
        if self.held.len() == HELD { self.flush() } else { Ok(()) }
    }

    /// Writes the rows that are held. A part is made even if there are none.
    fn flush(&mut self) -> Result<()> {
        let mut rows = self.table.rows(self.split, columns);
        self.held.drain(..).try_for_each(|span| rows.push(span))?;
        rows.finish()
    }

    /// Ends the table. A split without rows gets a part only if it `stands_for_all`.
    pub fn finish(mut self, stands_for_all: bool) -> Result<()> {
        if stands_for_all || !self.held.is_empty() {
            self.flush()?;
        }
        self.table.finish()?;
        Ok(())
    }
}

fn columns(rows: &[CutSpan]) -> Vec<TableColumn> {
    let numbers = |number: fn(&CutSpan) -> u32| -> ArrayRef {
        Arc::new(UInt64Array::from_iter_values(rows.iter().map(|row| number(row).into())))
    };
    let kept = || rows.iter().map(|row| row.kept.as_ref());
    let offsets = kept().map(|kept| kept.map(|kept| kept.offset.into()));
    let similarities = kept().map(|kept| kept.map(|kept| kept.similarity.as_f64()));
    let kept_places = kept().map(|kept| kept.map(|kept| kept.place.0));
    vec![
        ("id", strings(rows.iter().map(|row| Some(row.id.as_str()))), false),
        ("offset", numbers(|row| row.offset), false),
        ("length", numbers(|row| row.bytes), false),
        ("kept_id", strings(kept().map(|kept| kept.map(|kept| kept.id.as_str()))), true),
        ("kept_offset", Arc::new(UInt64Array::from_iter(offsets)), true),
        ("similarity", Arc::new(Float64Array::from_iter(similarities)), true),
        ("place", places(rows.iter().map(|row| row.place)), false),
        ("kept_place", Arc::new(UInt64Array::from_iter(kept_places)), true),
    ]
}
