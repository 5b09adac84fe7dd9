//! Parquet of whole files: names in the column `id`, what is in them in the column `text`.

use std::sync::Arc;

use arrow_array::builder::{ArrayBuilder, BinaryBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use cluster::Output;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

use super::file::{Batches, File};
use super::schema;
use super::writer::{ROW_GROUP_BYTES, ZSTD_LEVEL, writing};
use crate::{Content, Error, PackReader, PackWriter, Packed, Piece, Reading};

/// How much is handed to the library at a time, in rows or about so many bytes.
const BATCH_ROWS: usize = 8192;
const BATCH_BYTES: usize = 4 << 20;

/// Writes names and contents.
pub(crate) struct Packer {
    writer: ArrowWriter<Box<dyn Output>>,
    schema: SchemaRef,
    /// Of the rows that are not yet handed over.
    names: StringBuilder,
    contents: BinaryBuilder,
}

impl Packer {
    pub(crate) fn create(output: Box<dyn Output>, content: Content) -> Result<Self, Error> {
        let content = match content {
            Content::Text => DataType::Utf8,
            Content::Bytes => DataType::Binary,
        };
        let fields = vec![Field::new("id", DataType::Utf8, false), Field::new("text", content, false)];
        let schema = Arc::new(Schema::new(fields));
        let writer = ArrowWriter::try_new(output, schema.clone(), Some(properties().map_err(writing)?));
        let (names, contents) = (StringBuilder::new(), BinaryBuilder::new());
        Ok(Packer { writer: writer.map_err(writing)?, schema, names, contents })
    }

    fn flush(&mut self) -> Result<(), ParquetError> {
        let contents = self.contents.finish();
        let contents: ArrayRef = match self.schema.field(1).data_type() {
            DataType::Utf8 => Arc::new(StringArray::try_from_binary(contents)?),
            _ => Arc::new(contents),
        };
        let columns = vec![Arc::new(self.names.finish()) as ArrayRef, contents];
        self.writer.write(&RecordBatch::try_new(self.schema.clone(), columns)?)
    }
}

/// Names and texts hardly repeat, so a dictionary would only be tried and given up; and nobody asks for the least text.
fn properties() -> Result<WriterProperties, ParquetError> {
    Ok(WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
        .set_max_row_group_bytes(Some(ROW_GROUP_BYTES))
        .set_dictionary_enabled(false)
        .set_column_statistics_enabled(ColumnPath::from("text"), EnabledStatistics::None)
        .build())
}

impl PackWriter for Packer {
    fn append(&mut self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        self.names.append_value(name);
        self.contents.append_value(bytes);
        let full = self.names.len() >= BATCH_ROWS || self.contents.values_slice().len() >= BATCH_BYTES;
        if full { self.flush().map_err(writing) } else { Ok(()) }
    }

    fn finish(mut self: Box<Self>) -> Result<(), Error> {
        self.flush().map_err(writing)?;
        Ok(self.writer.into_inner().map_err(writing)?.finish()?)
    }
}

/// Reads names and contents.
pub(crate) struct Unpacker {
    batches: Batches,
    name: String,
    content: String,
    /// The number in the file of the batch's first row, and how many rows have been given.
    batch: Option<(u64, usize, RecordBatch)>,
}

impl Unpacker {
    pub(crate) fn open(piece: &Piece, reading: &Reading) -> Result<Self, Error> {
        let file = File::open(piece)?;
        let (name, content) = (reading.id().0.to_owned(), reading.text().to_owned());
        let mut leaves = Vec::new();
        for field in [&name, &content] {
            let leaf = schema::find(&file.schema, field)
                .filter(|&leaf| schema::holds_text(&file.schema.column(leaf)))
                .filter(|&leaf| file.schema.column(leaf).path().parts().len() == 1);
            leaves.push(leaf.ok_or_else(|| {
                Error::data(file.path(), 0, format!("no column \"{field}\" of strings or binaries"))
            })?);
        }
        let batches = file.batches(Some(&leaves));
        Ok(Unpacker { batches, name, content, batch: None })
    }
}

impl PackReader for Unpacker {
    fn next(&mut self) -> Result<Option<Packed<'_>>, Error> {
        while self.batch.as_ref().is_none_or(|(_, next, batch)| *next >= batch.num_rows()) {
            let Some((first_row, batch)) = self.batches.next()? else { return Ok(None) };
            self.batch = Some((first_row, 0, batch));
        }
        let Some((first_row, next, batch)) = &mut self.batch else { return Ok(None) };
        let row = *next;
        *next += 1;
        let offset = *first_row + row as u64;
        let (name, bytes) = (value(batch, &self.name, row), value(batch, &self.content, row));
        let lost = |reason: &str, head| {
            let reason = format!("{reason}; the offset is the row's number");
            Ok(Some(Packed::Lost { offset, reason, head }))
        };
        let (Some(name), Some(bytes)) = (name, bytes) else {
            return lost("the name or the content is null", &[]);
        };
        match std::str::from_utf8(name) {
            Ok(name) => Ok(Some(Packed::File { offset, name, bytes })),
            Err(_) => lost("the name is not UTF-8", name),
        }
    }
}

/// `None` when the value is null.
fn value<'a>(batch: &'a RecordBatch, column: &str, row: usize) -> Option<&'a [u8]> {
    let column = batch.column_by_name(column)?.as_binary_view_opt()?;
    column.is_valid(row).then(|| column.value(row))
}
