//! The tables of clusters, corrections and labels.

use std::sync::Arc;

use anyhow::Result;
use arrow_array::{BooleanArray, Float64Array, UInt64Array};
use operators::classify::Measure;
use operators::flow::ClusterBatch;
use operators::{DocId, Member, Reason, Similarity};
use serde::{Deserialize, Serialize};

use super::output_table::{OutputTable, TableColumn, TableRows, places, strings};
use crate::output::OutputFolder;

/// The table `clusters/` as one worker writes it.
pub struct ClusterTable<'a>(OutputTable<'a>);

impl<'a> ClusterTable<'a> {
    /// Begins the table in an output, without a part.
    pub fn new(folder: &'a OutputFolder) -> Self {
        ClusterTable(OutputTable::new(folder, "clusters"))
    }

    /// Adds rows to the part of a split. `measured`: whether the similarity of each pair is known.
    pub fn rows<'r>(
        &mut self,
        split: u32,
        measured: bool,
    ) -> TableRows<'_, 'a, ClusterRow<'r>, impl Fn(&[ClusterRow<'r>]) -> Vec<TableColumn> + use<'r>> {
        self.0.rows(split, move |rows: &[ClusterRow]| {
            let removals = || rows.iter().map(|row| row.removed);
            let kept = removals().map(|removed| Some(removed.is_none()));
            let similarity = removals().map(|removed| similarity(removed?.1, measured));
            vec![
                ("id", strings(rows.iter().map(|row| Some(row.id))), false),
                ("cluster", strings(rows.iter().map(|row| Some(row.cluster))), false),
                ("kept", Arc::new(BooleanArray::from_iter(kept)), false),
                ("duplicate_of", strings(removals().map(|removed| Some(removed?.0))), true),
                ("similarity", Arc::new(Float64Array::from_iter(similarity)), true),
                ("reason", strings(removals().map(|removed| Some(reason(removed?.1)))), true),
                (
                    "characters",
                    Arc::new(UInt64Array::from_iter_values(rows.iter().map(|row| row.characters))),
                    false,
                ),
                ("place", places(rows.iter().map(|row| row.doc)), false),
            ]
        })
    }

    /// Writes the members of some clusters. `measured`: whether the similarity of each pair is known.
    pub fn write(&mut self, batch: &ClusterBatch, members: &[Member], measured: bool) -> Result<()> {
        let mut rows = self.rows(batch.split(), measured);
        for &Member { cluster, doc, removed } in members {
            rows.push(ClusterRow {
                id: batch.id(doc),
                cluster: batch.id(cluster),
                removed: removed.map(|removed| (batch.id(removed.duplicate_of), removed.tie)),
                characters: batch.merit(doc).chars,
                doc,
            })?;
        }
        rows.finish()
    }

    /// Ends the table.
    pub fn finish(self) -> Result<()> {
        self.0.finish()?;
        Ok(())
    }
}

/// Row of `clusters/`.
pub struct ClusterRow<'a> {
    /// Id of the document that the row is about.
    pub id: &'a str,
    /// Name of the cluster.
    pub cluster: &'a str,
    /// Document that stays in its place, and the relation to it; `None` if the document stays.
    pub removed: Option<(&'a str, Reason)>,
    /// Length of its text.
    pub characters: u64,
    /// Position of the document in the corpus, which is the column `place`.
    pub doc: DocId,
}

/// The table `corrections/` as one worker writes it: earlier decisions that have changed.
pub struct CorrectionTable<'a>(OutputTable<'a>);

/// Row of `corrections/`.
#[derive(Deserialize, Serialize)]
pub struct CorrectionRow<'a> {
    /// Id of the document whose decision has changed.
    pub id: &'a str,
    /// Night in which the document came.
    pub night: &'a str,
    /// Document that stays in its place, and the relation to it; `None` if the document is restored.
    pub removed: Option<(&'a str, Reason)>,
}

impl<'a> CorrectionTable<'a> {
    /// Begins the table in the output of a night, without a part.
    pub fn new(folder: &'a OutputFolder) -> Self {
        CorrectionTable(OutputTable::new(folder, "corrections"))
    }

    /// Writes the corrections of the documents of a split.
    pub fn write<'r>(&mut self, split: u32, rows: impl Iterator<Item = CorrectionRow<'r>>) -> Result<()> {
        let mut rows = rows.peekable();
        if rows.peek().is_none() {
            return Ok(());
        }
        let mut held = self.0.rows(split, |rows: &[CorrectionRow]| {
            let removed = || rows.iter().map(|row| row.removed);
            let change =
                removed().map(|removed| Some(if removed.is_some() { "removed" } else { "restored" }));
            vec![
                ("id", strings(rows.iter().map(|row| Some(row.id))), false),
                ("night", strings(rows.iter().map(|row| Some(row.night))), false),
                ("change", strings(change), false),
                ("reason", strings(removed().map(|removed| Some(reason(removed?.1)))), true),
                ("duplicate_of", strings(removed().map(|removed| Some(removed?.0))), true),
            ]
        });
        rows.try_for_each(|row| held.push(row))?;
        held.finish()
    }

    /// Ends the table. Returns the number of rows.
    pub fn finish(self) -> Result<u64> {
        self.0.finish()
    }
}

/// Writes `labels/`; returns the number of rows.
pub fn write_labels<'a>(
    folder: &OutputFolder,
    measures: &[Measure],
    mut rows: impl Iterator<Item = LabelRow<'a>>,
) -> Result<u64> {
    let mut table = OutputTable::new(folder, "labels");
    let mut held = table.rows(0, |rows: &[LabelRow]| {
        let mut columns = vec![
            ("id", strings(rows.iter().map(|row| Some(row.id))), false),
            ("label", strings(rows.iter().map(|row| Some(row.label))), false),
        ];
        for measure in measures {
            let nearest = rows.iter().map(|row| Some(row.nearest[*measure as usize]));
            columns.push((measure.name(), strings(nearest), false));
        }
        columns
    });
    rows.try_for_each(|row| held.push(row))?;
    held.finish()?;
    table.finish()
}

/// Test document with its label, and the label by each measure, in the order of [`Measure::ALL`].
pub struct LabelRow<'a> {
    /// Id of the test document.
    pub id: &'a str,
    /// Label that the document has in the input.
    pub label: &'a str,
    /// Label of the nearest class by each measure; empty for a measure that was not asked for.
    pub nearest: [&'a str; Measure::ALL.len()],
}

/// Returns the similarity of a removed document to the one that stays, as it is written. `measured`: whether
/// the similarity of each pair is known.
pub fn similarity(tie: Reason, measured: bool) -> Option<f64> {
    match tie {
        Reason::Identical => measured.then_some(1.0),
        Reason::Similar(similarity) => similarity.map(Similarity::as_f64),
        Reason::Chain => None,
    }
}

/// Returns the reason of a removal, as it is written.
pub fn reason(tie: Reason) -> &'static str {
    match tie {
        Reason::Identical => "identical",
        Reason::Similar(_) => "similar",
        Reason::Chain => "chain",
    }
}
