//! The Parquet tables of an output: pairs, clusters and labels.

use std::sync::Arc;

use anyhow::Result;
use arrow_array::{ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, UInt32Array, UInt64Array};
use datasets::PartOutput;
use operators::classify::Measure;
use operators::{DocId, Matches, Member, Pair, Reason, Similarity};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use serde::{Deserialize, Serialize};

use super::OutputFolder;
use crate::corpus::doc_ids::DocIds;

/// Number of rows of a part.
const PART_ROWS: usize = 1 << 20;
/// Number of rows that are held at once.
const BATCH_ROWS: usize = 1 << 13;

/// The pairs that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PairsOf {
    /// Identical documents give one pair each, with the first of them.
    Firsts,
    /// Every pair of documents.
    All,
}

/// Writes `pairs/`, identical documents first; returns the number of rows. `matches`: copies are sorted by
/// their first document. `measured`: whether the similarity of each pair is known.
pub(crate) fn write_pairs<'a>(
    folder: &OutputFolder,
    matches: &Matches,
    of: PairsOf,
    measured: bool,
    distance: impl Fn(&Pair) -> Option<u32>,
    name: impl Fn(DocId) -> &'a str,
) -> Result<u64> {
    let mut table = TableWriter::new(folder, "pairs", |rows: &[WrittenPair]| {
        let similarity = rows.iter().map(|row| row.similarity.map(Similarity::as_f64));
        let identical = rows.iter().map(|row| Some(row.identical));
        vec![
            ("a", strings(rows.iter().map(|row| Some(row.a))), false),
            ("b", strings(rows.iter().map(|row| Some(row.b))), false),
            ("hamming", Arc::new(UInt32Array::from_iter(rows.iter().map(|row| row.hamming))), true),
            ("similarity", Arc::new(Float64Array::from_iter(similarity)), true),
            ("identical", Arc::new(BooleanArray::from_iter(identical)), false),
            ("a_place", places(rows.iter().map(|row| row.places.0)), false),
            ("b_place", places(rows.iter().map(|row| row.places.1)), false),
        ]
    });
    let same = measured.then_some(Similarity::ONE);
    let mut row = |pair: Pair, similarity: Option<Similarity>, identical: bool| {
        let (a, b) = (name(pair.low), name(pair.high));
        let places = (pair.low, pair.high);
        table.push(WrittenPair { a, b, hamming: distance(&pair), similarity, identical, places })
    };
    let copies = &matches.copies;
    let class = |first: DocId| {
        let start = copies.partition_point(|copy| copy.1 < first);
        let end = copies.partition_point(|copy| copy.1 <= first);
        std::iter::once(first).chain(copies[start..end].iter().map(|copy| copy.0))
    };
    for identical in copies.chunk_by(|a, b| a.1 == b.1) {
        let members: Vec<DocId> = class(identical[0].1).collect();
        let ones = if of == PairsOf::All { members.len() } else { 1 };
        for (i, &one) in members[..ones].iter().enumerate() {
            for &other in &members[i + 1..] {
                row(Pair::new(one, other, 0), same, true)?;
            }
        }
    }
    for &(pair, similarity) in &matches.pairs {
        if of == PairsOf::Firsts {
            row(pair, similarity, false)?;
            continue;
        }
        for low in class(pair.low) {
            for high in class(pair.high) {
                row(Pair::new(low, high, pair.distance), similarity, false)?;
            }
        }
    }
    table.finish()
}

/// Writes `clusters/`. `measured`: whether the similarity of each pair is known.
pub(crate) fn write_clusters(
    folder: &OutputFolder,
    members: &[Member],
    names: &DocIds,
    measured: bool,
) -> Result<()> {
    let columns = |rows: &[&Member]| {
        let removals = || rows.iter().map(|row| row.removed);
        let kept = removals().map(|removed| Some(removed.is_none()));
        let similarity = removals().map(|removed| similarity(removed?.tie, measured));
        let characters = rows.iter().map(|row| names.chars(row.doc));
        let name = |doc: fn(&Member) -> Option<DocId>| {
            strings(rows.iter().map(move |row| doc(row).map(|doc| names.id(doc))))
        };
        vec![
            ("id", name(|member| Some(member.doc)), false),
            ("cluster", name(|member| Some(member.cluster)), false),
            ("kept", Arc::new(BooleanArray::from_iter(kept)), false),
            ("duplicate_of", name(|member| Some(member.removed?.duplicate_of)), true),
            ("similarity", Arc::new(Float64Array::from_iter(similarity)), true),
            ("reason", strings(removals().map(|removed| Some(reason(removed?.tie)))), true),
            ("characters", Arc::new(UInt64Array::from_iter_values(characters)), false),
            ("place", places(rows.iter().map(|row| row.doc)), false),
        ]
    };
    let mut table = TableWriter::new(folder, "clusters", columns);
    members.iter().try_for_each(|member| table.push(member))?;
    table.finish()?;
    Ok(())
}

/// Writes `labels/`; returns the number of rows.
pub(crate) fn write_labels<'a>(
    folder: &OutputFolder,
    mut rows: impl Iterator<Item = LabelRow<'a>>,
) -> Result<u64> {
    let mut table = TableWriter::new(folder, "labels", |rows: &[LabelRow]| {
        let mut columns = vec![
            ("id", strings(rows.iter().map(|row| Some(row.id))), false),
            ("label", strings(rows.iter().map(|row| Some(row.label))), false),
        ];
        for (at, measure) in Measure::ALL.into_iter().enumerate() {
            columns.push((measure.name(), strings(rows.iter().map(|row| Some(row.nearest[at]))), false));
        }
        columns
    });
    rows.try_for_each(|row| table.push(row))?;
    table.finish()
}

/// Row of `pairs/`, as it is written.
struct WrittenPair<'a> {
    a: &'a str,
    b: &'a str,
    hamming: Option<u32>,
    similarity: Option<Similarity>,
    identical: bool,
    places: (DocId, DocId),
}

fn strings<'a>(values: impl Iterator<Item = Option<&'a str>>) -> ArrayRef {
    Arc::new(StringArray::from_iter(values))
}

/// Returns the positions of documents, as the tables hold them.
fn places(docs: impl Iterator<Item = DocId>) -> ArrayRef {
    Arc::new(UInt64Array::from_iter_values(docs.map(|doc| doc.0)))
}

/// Test document with its label, and the label by each measure, in the order of [`Measure::ALL`].
pub(crate) struct LabelRow<'a> {
    pub id: &'a str,
    pub label: &'a str,
    pub nearest: [&'a str; Measure::ALL.len()],
}

/// Column of a table: its name, its values, and whether a value may be missing.
type TableColumn = (&'static str, ArrayRef, bool);

/// Table that is being written, in parts. A table without rows has one part without rows.
struct TableWriter<'a, R, C> {
    folder: &'a OutputFolder,
    name: &'static str,
    /// Turns rows into columns.
    columns: C,
    rows: Vec<R>,
    part: Option<ArrowWriter<Box<dyn PartOutput>>>,
    part_rows: usize,
    parts: usize,
    total: u64,
}

impl<'a, R, C: Fn(&[R]) -> Vec<TableColumn>> TableWriter<'a, R, C> {
    fn new(folder: &'a OutputFolder, name: &'static str, columns: C) -> Self {
        TableWriter { folder, name, columns, rows: Vec::new(), part: None, part_rows: 0, parts: 0, total: 0 }
    }

    fn push(&mut self, row: R) -> Result<()> {
        self.rows.push(row);
        if self.rows.len() == BATCH_ROWS { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        let batch = RecordBatch::try_from_iter_with_nullable((self.columns)(&self.rows))?;
        let mut part = match self.part.take() {
            Some(part) => part,
            None => {
                let file = self.folder.file(&format!("{}/part-{:05}.parquet", self.name, self.parts))?;
                self.parts += 1;
                let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
                ArrowWriter::try_new(file, batch.schema(), Some(properties))?
            }
        };
        part.write(&batch)?;
        self.total += self.rows.len() as u64;
        self.part_rows += self.rows.len();
        self.rows.clear();
        if self.part_rows >= PART_ROWS {
            let rows = std::mem::take(&mut self.part_rows);
            part.into_inner()?.finish(rows as u64)?;
        } else {
            self.part = Some(part);
        }
        Ok(())
    }

    fn finish(mut self) -> Result<u64> {
        if !self.rows.is_empty() || self.parts == 0 {
            self.flush()?;
        }
        if let Some(part) = self.part {
            part.into_inner()?.finish(self.part_rows as u64)?;
        }
        Ok(self.total)
    }
}

/// Returns the similarity of a removed document to the one that stays, as it is written. `measured`: whether
/// the similarity of each pair is known.
pub(crate) fn similarity(tie: Reason, measured: bool) -> Option<f64> {
    match tie {
        Reason::Identical => measured.then_some(1.0),
        Reason::Similar(similarity) => similarity.map(Similarity::as_f64),
        Reason::Chain => None,
    }
}

/// Returns the reason of a removal, as it is written.
pub(crate) fn reason(tie: Reason) -> &'static str {
    match tie {
        Reason::Identical => "identical",
        Reason::Similar(_) => "similar",
        Reason::Chain => "chain",
    }
}
