//! Parquet of whole files: names in the column `id`, contents in the column `text`.

use std::sync::Arc;

use arrow_array::builder::{ArrayBuilder, BinaryBuilder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

use super::batches::{BatchRows, Batches};
use super::file::File;
use super::library::writing;
use super::reader::Column;
use super::row_part::ROW_GROUP_BYTES;
use super::schema;
use super::writer::ZSTD_LEVEL;
use crate::{Content, Error, PackReader, PackWriter, Packed, PartOutput, Piece, Reading};

/// Number of rows, or about the number of bytes, that are given to the library at a time.
const BATCH_ROWS: usize = 8192;
const BATCH_BYTES: usize = 4 << 20;

/// Writer of names and contents.
pub(crate) struct ParquetPacker {
    writer: ArrowWriter<Box<dyn PartOutput>>,
    rows: u64,
    schema: SchemaRef,
    /// Names and contents of the rows that were not yet given to the library.
    names: StringBuilder,
    contents: BinaryBuilder,
}

impl ParquetPacker {
    pub(crate) fn create(output: Box<dyn PartOutput>, content: Content) -> Result<Self, Error> {
        let (name, content) = match content {
            Content::Text => ("text", DataType::Utf8),
            Content::Bytes => ("text", DataType::Binary),
            Content::Fingerprint => ("fingerprint", DataType::UInt64),
        };
        let fields = vec![Field::new("id", DataType::Utf8, false), Field::new(name, content, false)];
        let schema = Arc::new(Schema::new(fields));
        let writer = ArrowWriter::try_new(output, schema.clone(), Some(properties().map_err(writing)?));
        let (names, contents) = (StringBuilder::new(), BinaryBuilder::new());
        Ok(ParquetPacker { writer: writer.map_err(writing)?, rows: 0, schema, names, contents })
    }

    fn flush(&mut self) -> Result<(), ParquetError> {
        let contents = self.contents.finish();
        let contents: ArrayRef = match self.schema.field(1).data_type() {
            DataType::Utf8 => Arc::new(StringArray::try_from_binary(contents)?),
            DataType::UInt64 => {
                let number = |bytes: Option<&[u8]>| Some(u64::from_be_bytes(*bytes?.first_chunk()?));
                Arc::new(contents.iter().map(number).collect::<UInt64Array>())
            }
            _ => Arc::new(contents),
        };
        let columns = vec![Arc::new(self.names.finish()) as ArrayRef, contents];
        self.writer.write(&RecordBatch::try_new(self.schema.clone(), columns)?)
    }
}

/// Returns the properties of a packed file. Names and texts hardly repeat, so a dictionary would be tried in
/// vain. Nobody needs the least text, so that column has no statistics.
fn properties() -> Result<WriterProperties, ParquetError> {
    Ok(WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
        .set_max_row_group_bytes(Some(ROW_GROUP_BYTES))
        .set_dictionary_enabled(false)
        .set_column_statistics_enabled(ColumnPath::from("text"), EnabledStatistics::None)
        .build())
}

impl PackWriter for ParquetPacker {
    fn append(&mut self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        self.rows += 1;
        self.names.append_value(name);
        self.contents.append_value(bytes);
        let full = self.names.len() >= BATCH_ROWS || self.contents.values_slice().len() >= BATCH_BYTES;
        if full { self.flush().map_err(writing) } else { Ok(()) }
    }

    fn finish(mut self: Box<Self>) -> Result<(), Error> {
        self.flush().map_err(writing)?;
        Ok(self.writer.into_inner().map_err(writing)?.finish(self.rows)?)
    }
}

/// Reader of names and contents.
pub(crate) struct ParquetUnpacker {
    batches: Batches,
    /// Paths of the columns.
    name: Vec<String>,
    content: Vec<String>,
    columns: Option<BatchColumns>,
}

/// Columns of a record batch.
struct BatchColumns {
    /// Number of its first row in the file.
    first_row: u64,
    next: usize,
    count: usize,
    name: Column,
    content: Column,
}

impl ParquetUnpacker {
    pub(crate) fn open(piece: &Piece, reading: &Reading) -> Result<Self, Error> {
        let file = File::open(piece, reading)?;
        let path = |leaf: usize| file.footer.schema.column(leaf).path().parts().to_vec();
        let names = |leaf: &usize| schema::holds_text(file.footer.schema.column(*leaf).as_ref());
        let Some(name) = file.id.filter(names).map(path) else {
            let reason = format!("no column \"{}\" of strings, which names are", reading.id().0);
            return Err(Error::data(file.path(), 0, reason));
        };
        let content = path(file.text);
        Ok(ParquetUnpacker { name, content, columns: None, batches: Batches::new(file, reading) })
    }

    fn columns(&self, first_row: u64, batch: &RecordBatch) -> Result<BatchColumns, Error> {
        let column = |path| {
            Column::find(batch, path)
                .ok_or_else(|| Error::data(self.batches.file.path(), 0, "a column was not decoded"))
        };
        let (name, content) = (column(&self.name)?, column(&self.content)?);
        Ok(BatchColumns { first_row, next: 0, count: batch.num_rows(), name, content })
    }
}

impl PackReader for ParquetUnpacker {
    fn next(&mut self) -> Result<Option<Packed<'_>>, Error> {
        let lost = |offset, reason: &str, head| {
            let reason = format!("{reason}; the offset is the row's number");
            Ok(Some(Packed::Lost { offset, reason, head }))
        };
        while self.columns.as_ref().is_none_or(|columns| columns.next >= columns.count) {
            match self.batches.next()? {
                None => return Ok(None),
                Some(BatchRows::Lost { first_row, reason }) => return lost(first_row, &reason, &[]),
                Some(BatchRows::Batch { first_row, records }) => {
                    self.columns = Some(self.columns(first_row, &records)?);
                }
            }
        }
        let Some(columns) = &mut self.columns else { return Ok(None) };
        let row = columns.next;
        columns.next += 1;
        let offset = columns.first_row + row as u64;
        let (Some(name), Some(bytes)) = (columns.name.bytes(row), columns.content.bytes(row)) else {
            return lost(offset, "the name or the content is null", &[]);
        };
        match std::str::from_utf8(name) {
            Ok(name) => Ok(Some(Packed::File { offset, name, bytes })),
            Err(_) => lost(offset, "the name is not UTF-8", name),
        }
    }
}
