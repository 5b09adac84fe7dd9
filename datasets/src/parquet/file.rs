//! One open parquet file: its footer, the row groups of a piece, and their record batches.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema};
use cluster::Blob;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::arrow::{ARROW_SCHEMA_META_KEY, ProjectionMask, parquet_to_arrow_schema};
use parquet::file::metadata::{
    ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataOptions, ParquetMetaDataReader,
    ParquetStatisticsPolicy, RowGroupMetaData,
};
use parquet::file::reader::ChunkReader;
use parquet::schema::types::{SchemaDescPtr, SchemaDescriptor};

use super::chunks::Chunks;
use super::schema;
use crate::{Error, Piece};

const MAGIC: &[u8; 4] = b"PAR1";
const ENCRYPTED_MAGIC: &[u8; 4] = b"PARE";
/// The length of the footer, then the magic.
const TAIL_BYTES: u64 = 8;
/// About how much a record batch holds when it is decoded.
const BATCH_BYTES: u64 = 4 << 20;
const MAX_BATCH_ROWS: u64 = 8192;

/// The row groups of a piece.
pub(super) struct File {
    blob: Arc<dyn Blob>,
    /// As the file has it.
    pub(super) schema: SchemaDescPtr,
    /// The footer, decoded with the [`schema::bare`] schema, which the record batches have, too.
    bare: ArrowReaderMetadata,
    groups: Vec<Group>,
}

/// A row group of the piece.
#[derive(Clone)]
struct Group {
    index: usize,
    first_row: u64,
    rows: u64,
    offset: u64,
}

impl File {
    /// Reads the footer and chooses the row groups whose first page lies in the piece.
    pub(super) fn open(piece: &Piece) -> Result<File, Error> {
        let (blob, path) = (piece.blob.clone(), piece.blob.path());
        let (footer, start) = read_footer(&blob)?;
        let bad = |reason: &str| Error::data(path, start, format!("bad footer: {reason}"));
        let (schema, bare) = decode(|| decode_footer(&footer)).map_err(|reason| bad(&reason))?;

        let mut groups = Vec::new();
        let mut first_row = 0;
        for (index, group) in bare.metadata().row_groups().iter().enumerate() {
            let rows = u64::try_from(group.num_rows()).map_err(|_| bad("a negative number of rows"))?;
            let offset = match group.columns().first() {
                Some(column) => chunk_range(column, blob.bytes()).map_err(|reason| bad(&reason))?.start,
                None => 0,
            };
            if rows > 0 && (piece.start..piece.end).contains(&offset) {
                groups.push(Group { index, first_row, rows, offset });
            }
            first_row = first_row.checked_add(rows).ok_or_else(|| bad("too many rows"))?;
        }
        // The library reads no row of a file that claims to have none, whatever its row groups say.
        let file_rows = bare.metadata().file_metadata().num_rows();
        if u64::try_from(file_rows) != Ok(first_row) {
            return Err(bad(&format!("{file_rows} rows, but {first_row} in the row groups")));
        }
        Ok(File { blob, schema, bare, groups })
    }

    /// The file's name for people.
    pub(super) fn path(&self) -> &str {
        self.blob.path()
    }

    /// The footer.
    pub(super) fn metadata(&self) -> &ParquetMetaData {
        self.bare.metadata()
    }

    fn bad(&self, group: &Group, reason: &str) -> Error {
        Error::data(self.path(), group.offset, format!("row group {}: {reason}", group.index))
    }

    /// The first row group of the piece.
    pub(super) fn first_group(&self) -> Option<&RowGroupMetaData> {
        self.groups.first().map(|group| self.metadata().row_group(group.index))
    }

    /// The rows of the piece's row groups, in order. `leaves`: the columns to decode; `None` is all.
    pub(super) fn batches(self, leaves: Option<&[usize]>) -> Batches {
        let schema = self.metadata().file_metadata().schema_descr();
        let mask = match leaves {
            Some(leaves) => ProjectionMask::leaves(schema, leaves.iter().copied()),
            None => ProjectionMask::all(),
        };
        let mut waiting = self.groups.clone();
        waiting.reverse();
        Batches { file: self, mask, waiting, open: None }
    }
}

/// Reads record batches, each from one row group.
///
/// Batches end at the same rows whichever columns are read, so that a bad page ends the first and the
/// second reading of a piece at the same record.
pub(super) struct Batches {
    pub(super) file: File,
    mask: ProjectionMask,
    /// In reverse order.
    waiting: Vec<Group>,
    open: Option<OpenGroup>,
}

struct OpenGroup {
    group: Group,
    chunks: Chunks,
    reader: ParquetRecordBatchReader,
    read_rows: u64,
}

impl Batches {
    /// The next batch and the number in the file of its first row.
    ///
    /// # Errors
    /// A page that cannot be decoded, or a row group that has not as many rows as the footer says.
    pub(super) fn next(&mut self) -> Result<Option<(u64, RecordBatch)>, Error> {
        loop {
            let Some(open) = &mut self.open else {
                let Some(group) = self.waiting.pop() else { return Ok(None) };
                self.open = Some(self.open_group(group)?);
                continue;
            };
            let next = decode(|| open.reader.next().transpose());
            let reason = match next {
                Ok(Some(batch)) => {
                    let row = open.group.first_row + open.read_rows;
                    open.read_rows += batch.num_rows() as u64;
                    return Ok(Some((row, batch)));
                }
                Ok(None) if open.read_rows == open.group.rows => {
                    self.open = None;
                    continue;
                }
                Ok(None) => format!("{} rows, not {}", open.read_rows, open.group.rows),
                Err(reason) => reason,
            };
            let error =
                open.chunks.take_failure().map_or_else(|| self.file.bad(&open.group, &reason), Error::Store);
            (self.open, self.waiting) = (None, Vec::new());
            return Err(error);
        }
    }

    fn open_group(&self, group: Group) -> Result<OpenGroup, Error> {
        let metadata = self.file.metadata().row_group(group.index);
        let mut ranges = Vec::new();
        for (leaf, column) in metadata.columns().iter().enumerate() {
            if self.mask.leaf_included(leaf) {
                ranges.push(
                    chunk_range(column, self.file.blob.bytes())
                        .map_err(|reason| self.file.bad(&group, &reason))?,
                );
            }
        }
        let chunks = Chunks::new(self.file.blob.clone(), ranges);
        let row_bytes = metadata.total_byte_size().max(0) as u64 / group.rows;
        let batch_rows = (BATCH_BYTES / row_bytes.max(1)).clamp(1, MAX_BATCH_ROWS);
        let builder =
            ParquetRecordBatchReaderBuilder::new_with_metadata(chunks.clone(), self.file.bare.clone())
                .with_row_groups(vec![group.index])
                .with_projection(self.mask.clone())
                .with_batch_size(batch_rows as usize);
        let reader = decode(|| builder.build()).map_err(|reason| {
            chunks.take_failure().map_or_else(|| self.file.bad(&group, &reason), Error::Store)
        })?;
        Ok(OpenGroup { group, chunks, reader, read_rows: 0 })
    }
}

/// The encoded footer and its offset.
fn read_footer(blob: &Arc<dyn Blob>) -> Result<(bytes::Bytes, u64), Error> {
    let (path, bytes) = (blob.path(), blob.bytes());
    let read = |start: u64, length: u64| {
        let chunks = Chunks::new(blob.clone(), std::iter::once(start..start + length).collect());
        chunks.get_bytes(start, length as usize).map_err(|error| {
            chunks.take_failure().map_or_else(|| Error::data(path, start, text(&error)), Error::Store)
        })
    };
    let body_bytes = bytes
        .checked_sub(TAIL_BYTES)
        .filter(|&body_bytes| body_bytes >= MAGIC.len() as u64)
        .ok_or_else(|| Error::data(path, 0, "too short for a parquet file"))?;
    let tail = read(body_bytes, TAIL_BYTES)?;
    let (length, magic) = tail.split_at(4);
    if magic == ENCRYPTED_MAGIC {
        return Err(Error::data(path, body_bytes, "the file is encrypted"));
    }
    if magic != MAGIC {
        return Err(Error::data(path, body_bytes, "no parquet footer: the file is cut or not parquet"));
    }
    let length = u64::from(u32::from_le_bytes([length[0], length[1], length[2], length[3]]));
    let start = body_bytes
        .checked_sub(length)
        .ok_or_else(|| Error::data(path, body_bytes, format!("a footer of {length} bytes does not fit")))?;
    Ok((read(start, length)?, start))
}

/// The file's schema, and the footer decoded with the bare one, without statistics: nobody here looks at them.
fn decode_footer(footer: &[u8]) -> parquet::errors::Result<(SchemaDescPtr, ArrowReaderMetadata)> {
    let schema = ParquetMetaDataReader::decode_schema(footer)?;
    let bare = SchemaDescriptor::new(schema::bare(schema.root_schema())?);
    let options = ParquetMetaDataOptions::new()
        .with_schema(Arc::new(bare))
        .with_column_stats_policy(ParquetStatisticsPolicy::SkipAll)
        .with_size_stats_policy(ParquetStatisticsPolicy::SkipAll);
    let metadata = ParquetMetaDataReader::decode_metadata_with_options(footer, Some(&options))?;
    let key_values = metadata.file_metadata().key_value_metadata();
    if key_values.is_some_and(|all| all.iter().any(|key_value| key_value.key == ARROW_SCHEMA_META_KEY)) {
        // It is copied to the parts, which could not be read if it did not fit the columns.
        parquet_to_arrow_schema(&schema, key_values)?;
    }
    let metadata = Arc::new(metadata);
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let natural = ArrowReaderMetadata::try_new(metadata.clone(), options.clone())?;
    let fields: Vec<_> = natural.schema().fields().iter().map(with_views).collect();
    let options = options.with_schema(Arc::new(Schema::new(fields)));
    Ok((schema, ArrowReaderMetadata::try_new(metadata, options)?))
}

/// Views into the pages cost no copy, and have no limit of 2 GiB on what a batch holds.
fn with_views(field: &Arc<Field>) -> Arc<Field> {
    match field.data_type() {
        DataType::Binary => Arc::new(field.as_ref().clone().with_data_type(DataType::BinaryView)),
        _ => field.clone(),
    }
}

/// The bytes of a column chunk. The library asserts what is checked here.
fn chunk_range(column: &ColumnChunkMetaData, file_bytes: u64) -> Result<Range<u64>, String> {
    let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
    let range = u64::try_from(start).ok().zip(u64::try_from(column.compressed_size()).ok());
    range
        .and_then(|(start, length)| Some(start..start.checked_add(length)?))
        .filter(|range| range.end <= file_bytes)
        .ok_or_else(|| format!("column \"{}\" lies outside of the file", column.column_path().string()))
}

/// Calls the library, which panics on some damaged pages: a page header that names another encoding, or
/// levels and run lengths that do not fit (parquet 60.1, found by changing single bits of small files).
fn decode<T, E: std::error::Error>(call: impl FnOnce() -> Result<T, E>) -> Result<T, String> {
    cluster::catch(call)?.map_err(|error| text(&error))
}

/// What the library says, without the names of the layers that it came through.
fn text(error: &dyn std::error::Error) -> String {
    let text = error.to_string();
    let mut text = text.as_str();
    for layer in ["Parquet argument error: ", "Parquet error: ", "EOF: "] {
        text = text.strip_prefix(layer).unwrap_or(text);
    }
    text.to_owned()
}
