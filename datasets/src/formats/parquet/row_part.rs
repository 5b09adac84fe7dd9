//! A part that rows are written to, row group by row group.

use std::io;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Schema};
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves,
};
use parquet::errors::Result;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::properties::{DEFAULT_MAX_ROW_GROUP_ROW_COUNT, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnDescPtr, TypePtr};

use super::library::writing;
use super::schema;
use crate::{Error, PartOutput};

/// Largest encoded size of a row group, in bytes. A part keeps a row group in memory until it is written.
/// With little memory the bound is [`Reading::block_bytes`](crate::Reading::block_bytes).
pub(super) const ROW_GROUP_BYTES: usize = 32 << 20;
/// Size of the rows that are given to the library at once, in bytes.
const ROWS_BYTES: usize = 4 << 20;

/// A part that is being written.
///
/// The columns of a row group are encoded by one schema and described in the footer by another, since the library encodes no
/// INT96 ([`schema::encoded`]).
///
/// Memory: the encoded rows of a row group, up to 32 MiB, and the rows that are given to the library at once.
pub(super) struct RowPart {
    file: SerializedFileWriter<Box<dyn PartOutput>>,
    encoders: ArrowRowGroupWriterFactory,
    fields: Arc<Schema>,
    /// Columns of the row group that is being written, if it has begun.
    columns: Vec<ArrowColumnWriter>,
    group_rows: usize,
    rows: u64,
    block_bytes: usize,
}

impl RowPart {
    /// Begins a part. `schema`: the one that the footer will have. `fields`: those of the batches to come.
    pub fn create(
        output: Box<dyn PartOutput>,
        schema: TypePtr,
        fields: Arc<Schema>,
        properties: WriterProperties,
        block_bytes: usize,
    ) -> Result<Self> {
        let properties = Arc::new(properties);
        let encoded = schema::encoded(&schema)?;
        // The library makes encoders for a file alone. This one is never written.
        let encoding = SerializedFileWriter::new(io::sink(), encoded, properties.clone())?;
        Ok(RowPart {
            encoders: ArrowRowGroupWriterFactory::new(&encoding, fields.clone()),
            file: SerializedFileWriter::new(output, schema, properties)?,
            fields,
            columns: Vec::new(),
            group_rows: 0,
            rows: 0,
            block_bytes,
        })
    }

    /// Writes the rows, a few at a time where they are long. The library checks the length of a page only
    /// after every 1,024 rows, and rows that share a value of a dictionary take no memory until they are
    /// written.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        let bytes = batch.columns().iter().map(|column| viewed_bytes(column.as_ref())).sum::<u64>();
        let most = (ROWS_BYTES.min(self.block_bytes) as u64 * batch.num_rows() as u64).checked_div(bytes);
        let most = most.map_or(batch.num_rows(), |rows| rows as usize).max(1);
        let mut row = 0;
        while row < batch.num_rows() {
            let left_in_group = DEFAULT_MAX_ROW_GROUP_ROW_COUNT - self.group_rows;
            let rows = most.min(batch.num_rows() - row).min(left_in_group);
            self.encode(&batch.slice(row, rows)).map_err(writing)?;
            row += rows;
        }
        Ok(())
    }

    fn encode(&mut self, rows: &RecordBatch) -> Result<()> {
        if self.columns.is_empty() {
            self.columns = self.encoders.create_column_writers(self.file.flushed_row_groups().len())?;
        }
        let mut columns = self.columns.iter_mut();
        for (field, array) in self.fields.fields().iter().zip(rows.columns()) {
            let leaves = compute_leaves(field, array)?;
            leaves.iter().zip(&mut columns).try_for_each(|(leaf, column)| column.write(leaf))?;
        }
        self.group_rows += rows.num_rows();
        self.rows += rows.num_rows() as u64;
        let bytes: usize = self.columns.iter().map(ArrowColumnWriter::get_estimated_total_bytes).sum();
        let full = bytes >= ROW_GROUP_BYTES.min(self.block_bytes);
        if full || self.group_rows >= DEFAULT_MAX_ROW_GROUP_ROW_COUNT { self.end_group() } else { Ok(()) }
    }

    /// Ends the row group. The next row begins another one.
    pub fn end_row_group(&mut self) -> Result<(), Error> {
        self.end_group().map_err(writing)
    }

    fn end_group(&mut self) -> Result<()> {
        if self.columns.is_empty() {
            return Ok(());
        }
        self.group_rows = 0;
        let described = self.file.schema_descr().columns().to_vec();
        let mut group = self.file.next_row_group()?;
        for (column, described) in self.columns.drain(..).zip(&described) {
            described_as(described, column.close()?)?.append_to_row_group(&mut group)?;
        }
        group.close()?;
        Ok(())
    }

    /// Writes the footer, and closes the part.
    pub fn finish(mut self) -> Result<(), Error> {
        self.end_row_group()?;
        Ok(self.file.into_inner().map_err(writing)?.finish(self.rows)?)
    }
}

/// Returns a column chunk as the footer describes it. A chunk that was encoded as something else has no least and greatest
/// value, since these have another order.
fn described_as(column: &ColumnDescPtr, mut chunk: ArrowColumnChunk) -> Result<ArrowColumnChunk> {
    let closed = chunk.close_mut();
    let encoded = &closed.metadata;
    if encoded.column_descr() == column.as_ref() {
        return Ok(chunk);
    }
    let mut metadata = ColumnChunkMetaData::builder(column.clone())
        .set_compression_codec(encoded.compression_codec())
        .set_encodings_mask(*encoded.encodings_mask())
        .set_num_values(encoded.num_values())
        .set_total_compressed_size(encoded.compressed_size())
        .set_total_uncompressed_size(encoded.uncompressed_size())
        .set_dictionary_page_offset(encoded.dictionary_page_offset())
        .set_data_page_offset(encoded.data_page_offset())
        .set_definition_level_histogram(encoded.definition_level_histogram().cloned())
        .set_repetition_level_histogram(encoded.repetition_level_histogram().cloned());
    if let Some(pages) = encoded.page_encoding_stats() {
        metadata = metadata.set_page_encoding_stats(pages.clone());
    }
    closed.metadata = metadata.build()?;
    Ok(chunk)
}

/// Returns the size of the values that are views into pages, if each is copied.
fn viewed_bytes(array: &dyn Array) -> u64 {
    if let Some(views) = array.as_binary_view_opt() {
        // The lower half of a view begins with the length of the value.
        return views.views().iter().map(|&view| u64::from(view as u32)).sum();
    }
    match array.data_type() {
        DataType::List(_) => viewed_bytes(array.as_list::<i32>().values().as_ref()),
        DataType::Struct(_) => {
            array.as_struct().columns().iter().map(|column| viewed_bytes(column.as_ref())).sum()
        }
        _ => 0,
    }
}
