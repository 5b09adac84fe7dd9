//! The tables of an output: pairs, clusters, rejects.

use std::io::Write;
use std::sync::Arc;

use anyhow::Result;
use arrow_array::{ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, UInt32Array};
use cluster::Output;
use operators::vector::Measure;
use operators::{DocId, Matches, Member, Reject, Similarity};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use serde::Serialize;

use crate::output::OutputFolder;

/// Rows of one part.
const PART_ROWS: usize = 1 << 20;
/// Rows that are held at once.
const BATCH_ROWS: usize = 1 << 13;

/// Which of the pairs are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum PairsOf {
    /// Identical documents make one edge each, to the first of them.
    Firsts,
    /// Every pair of documents.
    All,
}

/// Writes `pairs/`; returns the number of rows.
pub(crate) fn write_pairs<'a>(
    folder: &OutputFolder,
    matches: &Matches,
    of: PairsOf,
    verified: bool,
    name: impl Fn(DocId) -> &'a str,
) -> Result<u64> {
    let mut table = Table::new(folder, "pairs");
    let same = verified.then_some(Similarity::ONE);
    let mut row = |a: DocId, b: DocId, distance: u32, similarity: Option<Similarity>| {
        table.push(PairRow { a: name(a.min(b)), b: name(a.max(b)), hamming: distance, similarity })
    };
    // The copies of a first document lie side by side, sorted by it.
    let mut copies: Vec<(DocId, DocId)> = matches.copies.iter().map(|&(doc, first)| (first, doc)).collect();
    copies.sort_unstable();
    let class = |first: DocId| {
        let start = copies.partition_point(|copy| copy.0 < first);
        let end = copies.partition_point(|copy| copy.0 <= first);
        std::iter::once(first).chain(copies[start..end].iter().map(|copy| copy.1))
    };
    for identical in copies.chunk_by(|a, b| a.0 == b.0) {
        let members: Vec<DocId> = class(identical[0].0).collect();
        let ones = if of == PairsOf::All { members.len() } else { 1 };
        for (i, &one) in members[..ones].iter().enumerate() {
            for &other in &members[i + 1..] {
                row(one, other, 0, same)?;
            }
        }
    }
    for &(pair, similarity) in &matches.pairs {
        if of == PairsOf::Firsts {
            row(pair.low, pair.high, pair.distance, similarity)?;
            continue;
        }
        for low in class(pair.low) {
            for high in class(pair.high) {
                row(low, high, pair.distance, similarity)?;
            }
        }
    }
    table.finish()
}

/// Writes `clusters/`.
pub(crate) fn write_clusters<'a>(
    folder: &OutputFolder,
    members: &[Member],
    name: impl Fn(DocId) -> &'a str,
) -> Result<u64> {
    let mut table = Table::new(folder, "clusters");
    for member in members {
        let (id, cluster) = (name(member.doc), name(member.cluster));
        table.push(MemberRow { id, cluster, kept: member.removed.is_none() })?;
    }
    table.finish()
}

/// Writes `labels/`.
pub(crate) fn write_labels<'a>(
    folder: &OutputFolder,
    rows: impl Iterator<Item = LabelRow<'a>>,
) -> Result<u64> {
    let mut table = Table::new(folder, "labels");
    for row in rows {
        table.push(row)?;
    }
    table.finish()
}

/// Writes `rejects/`, if there are any.
pub(crate) fn write_rejects(folder: &OutputFolder, rejects: &[Reject]) -> Result<()> {
    #[derive(Serialize)]
    struct Line<'a> {
        uri: &'a str,
        offset: u64,
        reason: &'a str,
        head: &'a str,
    }
    if rejects.is_empty() {
        return Ok(());
    }
    let mut file = folder.file("rejects/part-00000.jsonl")?;
    for Reject { path, offset, reason, head, .. } in rejects {
        serde_json::to_writer(&mut file, &Line { uri: path, offset: *offset, reason, head })?;
        file.write_all(b"\n")?;
    }
    Ok(file.finish()?)
}

/// A row of a table.
trait TableRow: Sized {
    /// Rows to columns.
    fn columns(rows: &[Self]) -> Vec<(&'static str, ArrayRef)>;
}

struct PairRow<'a> {
    a: &'a str,
    b: &'a str,
    hamming: u32,
    similarity: Option<Similarity>,
}

impl TableRow for PairRow<'_> {
    fn columns(rows: &[Self]) -> Vec<(&'static str, ArrayRef)> {
        let similarity = rows.iter().map(|row| row.similarity.map(Similarity::as_f64));
        vec![
            ("a", Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.a)))),
            ("b", Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.b)))),
            ("hamming", Arc::new(UInt32Array::from_iter_values(rows.iter().map(|row| row.hamming)))),
            ("similarity", Arc::new(Float64Array::from_iter(similarity))),
        ]
    }
}

struct MemberRow<'a> {
    id: &'a str,
    cluster: &'a str,
    kept: bool,
}

impl TableRow for MemberRow<'_> {
    fn columns(rows: &[Self]) -> Vec<(&'static str, ArrayRef)> {
        vec![
            ("id", Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.id)))),
            ("cluster", Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.cluster)))),
            ("kept", Arc::new(BooleanArray::from_iter(rows.iter().map(|row| Some(row.kept))))),
        ]
    }
}

/// A test document, its label, and the label by each measure, in the order of [`Measure::ALL`].
pub(crate) struct LabelRow<'a> {
    pub id: &'a str,
    pub label: &'a str,
    pub nearest: [&'a str; Measure::ALL.len()],
}

impl TableRow for LabelRow<'_> {
    fn columns(rows: &[Self]) -> Vec<(&'static str, ArrayRef)> {
        let mut columns: Vec<(_, ArrayRef)> = vec![
            ("id", Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.id)))),
            ("label", Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.label)))),
        ];
        for (at, measure) in Measure::ALL.into_iter().enumerate() {
            let nearest = rows.iter().map(|row| row.nearest[at]);
            columns.push((measure.name(), Arc::new(StringArray::from_iter_values(nearest))));
        }
        columns
    }
}

/// A table being written, in parts. One without rows has one part without rows.
struct Table<'a, R> {
    folder: &'a OutputFolder,
    name: &'static str,
    rows: Vec<R>,
    part: Option<ArrowWriter<Box<dyn Output>>>,
    part_rows: usize,
    parts: usize,
    total: u64,
}

impl<'a, R: TableRow> Table<'a, R> {
    fn new(folder: &'a OutputFolder, name: &'static str) -> Self {
        Table { folder, name, rows: Vec::new(), part: None, part_rows: 0, parts: 0, total: 0 }
    }

    fn push(&mut self, row: R) -> Result<()> {
        self.rows.push(row);
        if self.rows.len() == BATCH_ROWS { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        // Similarity is missing where nothing was verified; the other columns never are.
        let columns =
            R::columns(&self.rows).into_iter().map(|(name, column)| (name, column, name == "similarity"));
        let batch = RecordBatch::try_from_iter_with_nullable(columns)?;
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
            self.part_rows = 0;
            part.into_inner()?.finish()?;
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
            part.into_inner()?.finish()?;
        }
        Ok(self.total)
    }
}
