//! Writing of the tables of an output.

use std::sync::Arc;

use anyhow::Result;
use arrow_array::{ArrayRef, RecordBatch, StringArray, UInt64Array};
use datasets::PartOutput;
use operators::DocId;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

use super::text_table::{TableFormat, TextTable};
use crate::output::OutputFolder;

/// Number of rows that are held at once.
const BATCH_ROWS: usize = 1 << 13;
/// Length of a row group in bytes. It is held until it is written.
const GROUP_BYTES: usize = 2 << 20;

/// Returns a column of strings.
pub fn strings<'a>(values: impl Iterator<Item = Option<&'a str>>) -> ArrayRef {
    Arc::new(StringArray::from_iter(values))
}

/// Returns the positions of documents, as the tables hold them.
pub fn places(docs: impl Iterator<Item = DocId>) -> ArrayRef {
    Arc::new(UInt64Array::from_iter_values(docs.map(|doc| doc.0)))
}

/// Column of a table: its name, its values, and whether a value may be missing.
pub type TableColumn = (&'static str, ArrayRef, bool);

/// A table that is being written: one part for each split that has rows, named after the split.
pub struct OutputTable<'a> {
    folder: &'a OutputFolder,
    name: &'static str,
    part: Option<OutputTablePart>,
    /// Number of rows of all parts.
    rows: u64,
}

/// Part of a table that is being written.
struct OutputTablePart {
    split: u32,
    writer: TableFile,
    rows: u64,
}

/// A file of rows.
pub enum TableFile {
    /// Parquet, compressed by Snappy.
    Parquet(Box<ArrowWriter<Box<dyn PartOutput>>>),
    /// JSON lines or CSV.
    Text(TextTable),
}

impl TableFile {
    /// Begins a file for rows with the columns of `batch`, which are not written.
    pub fn begin(format: TableFormat, file: Box<dyn PartOutput>, batch: &RecordBatch) -> Result<Self> {
        if format != TableFormat::Parquet {
            return Ok(TableFile::Text(TextTable::begin(format, file, batch)?));
        }
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_max_row_group_bytes(Some(GROUP_BYTES))
            .build();
        Ok(TableFile::Parquet(Box::new(ArrowWriter::try_new(file, batch.schema(), Some(properties))?)))
    }

    /// Writes rows with the columns of the first ones.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        match self {
            TableFile::Parquet(writer) => Ok(writer.write(batch)?),
            TableFile::Text(writer) => writer.write(batch),
        }
    }

    /// Ends the file. `rows`: the number of its rows.
    pub fn finish(self, rows: u64) -> Result<()> {
        let file = match self {
            TableFile::Parquet(writer) => writer.into_inner()?,
            TableFile::Text(writer) => writer.into_file()?,
        };
        Ok(file.finish(rows)?)
    }
}

impl<'a> OutputTable<'a> {
    /// Begins the table in the folder `name` of an output, without a part.
    pub fn new(folder: &'a OutputFolder, name: &'static str) -> Self {
        OutputTable { folder, name, part: None, rows: 0 }
    }

    /// Adds rows to the part of a split. `columns`: turns rows into columns.
    pub fn rows<R, C: Fn(&[R]) -> Vec<TableColumn>>(
        &mut self,
        split: u32,
        columns: C,
    ) -> TableRows<'_, 'a, R, C> {
        TableRows { table: self, split, columns, held: Vec::new() }
    }

    fn write(&mut self, split: u32, batch: &RecordBatch) -> Result<()> {
        if self.part.as_ref().is_some_and(|part| part.split != split) {
            self.end_part()?;
        }
        let part = match &mut self.part {
            Some(part) => part,
            none => {
                let format = self.folder.table_format;
                let file =
                    self.folder.file(&format!("{}/part-{split:05}{}", self.name, format.extension()))?;
                let writer = TableFile::begin(format, file, batch)?;
                none.insert(OutputTablePart { split, writer, rows: 0 })
            }
        };
        part.writer.write(batch)?;
        part.rows += batch.num_rows() as u64;
        Ok(())
    }

    fn end_part(&mut self) -> Result<()> {
        let Some(OutputTablePart { writer, rows, .. }) = self.part.take() else { return Ok(()) };
        self.rows += rows;
        writer.finish(rows)
    }

    /// Ends the table. Returns the number of rows.
    pub fn finish(mut self) -> Result<u64> {
        self.end_part()?;
        Ok(self.rows)
    }
}

/// Rows on their way to a part of a table. A part is made even if there are none.
pub struct TableRows<'t, 'a, R, C> {
    table: &'t mut OutputTable<'a>,
    split: u32,
    columns: C,
    held: Vec<R>,
}

impl<R, C: Fn(&[R]) -> Vec<TableColumn>> TableRows<'_, '_, R, C> {
    /// Adds a row.
    pub fn push(&mut self, row: R) -> Result<()> {
        self.held.push(row);
        if self.held.len() == BATCH_ROWS { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        let batch = RecordBatch::try_from_iter_with_nullable((self.columns)(&self.held))?;
        self.held.clear();
        self.table.write(self.split, &batch)
    }

    /// Writes the rows that are held.
    pub fn finish(mut self) -> Result<()> {
        self.flush()
    }
}
