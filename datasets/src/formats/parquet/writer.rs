//! The rows of a Parquet file, divided into those that are kept and others.

use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::root_as_message;
use arrow_schema::Schema;
use arrow_select::filter::filter_record_batch;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use parquet::arrow::{ARROW_SCHEMA_META_KEY, encode_arrow_schema};
use parquet::basic::{Compression, Encoding, EncodingMask, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, RowGroupMetaData, SortingColumn};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::{ColumnPath, Type, TypePtr};

use super::batches::{BatchRows, Batches};
use super::decision_columns::DecisionColumns;
use super::file::File;
use super::library::writing;
use super::reader::TextShortener;
use super::row_part::RowPart;
use crate::parts::decision_fields::{DecisionValues, OF_ANNOTATED, OF_REMOVED};
use crate::{Error, Fate, Parts, Piece, Reading, Writer};

/// Compression level of zstd, which a file does not record. This one is the library's default. Level 1 makes
/// the kept part of a corpus larger than the whole was (104 MB for 71 MB of mixed.parquet; level 3: 81 MB).
pub(super) const ZSTD_LEVEL: i32 = 3;

/// Writer that copies rows to parts. New parts begin where a file's layout differs from that of the file before.
///
/// Memory: up to 32 MiB of encoded rows for each part.
pub(super) struct RowWriter<'a> {
    parts: &'a dyn Parts,
    reading: Reading,
    layout: Option<Layout>,
    kept: Option<RowPart>,
    removed: Option<RowPart>,
    annotated: Option<RowPart>,
    rejected: Option<RowPart>,
}

/// Layout of a file, without its rows.
#[derive(PartialEq)]
struct Layout {
    schema: TypePtr,
    key_values: Vec<KeyValue>,
    columns: Vec<ColumnLayout>,
    /// Columns by which the rows of each row group are sorted.
    sorting: Vec<SortingColumn>,
}

#[derive(PartialEq)]
struct ColumnLayout {
    path: ColumnPath,
    compression: Compression,
    /// Whether all of the input's pages use the dictionary, or the input does not say.
    dictionary: bool,
}

impl<'a> RowWriter<'a> {
    pub(super) fn new(parts: &'a dyn Parts, reading: &Reading) -> Self {
        let (kept, removed, annotated, rejected) = Default::default();
        RowWriter { parts, reading: reading.clone(), layout: None, kept, removed, annotated, rejected }
    }

    fn each_part(&mut self) -> [&mut Option<RowPart>; 4] {
        [&mut self.kept, &mut self.removed, &mut self.annotated, &mut self.rejected]
    }

    fn close_parts(&mut self) -> Result<(), Error> {
        self.each_part().into_iter().filter_map(Option::take).try_for_each(RowPart::finish)
    }

    /// Ends the row groups of the parts.
    fn end_row_groups(&mut self) -> Result<(), Error> {
        self.each_part().into_iter().flatten().try_for_each(RowPart::end_row_group)
    }

    fn divide_batch(&mut self, batch: &RecordBatch, fates: &[Fate]) -> Result<(), Error> {
        let Some(layout) = &self.layout else { return Ok(()) };
        let takes_rejected = self.parts.takes_rejected();
        let to = (layout, self.parts, self.reading.block_bytes);
        write_rows(to, ("kept", &mut self.kept), (batch, fates), None, |fate| {
            matches!(fate, Fate::Kept | Fate::Cut(_)).then(Vec::new)
        })?;
        write_rows(
            to,
            ("removed", &mut self.removed),
            (batch, fates),
            Some(OF_REMOVED),
            |fate| match fate {
                Fate::Removed(removal) => Some(removal.values()),
                _ => None,
            },
        )?;
        write_rows(to, ("annotated", &mut self.annotated), (batch, fates), Some(OF_ANNOTATED), |fate| {
            match fate {
                Fate::Annotated(annotation) => Some(annotation.values()),
                _ => None,
            }
        })?;
        write_rows(to, ("rejected", &mut self.rejected), (batch, fates), None, |fate| {
            (takes_rejected && *fate == Fate::Rejected).then(Vec::new)
        })
    }
}

/// Writes those rows of a batch for which `values` returns values to a part, which is begun if there is none. `fields`: the columns that the
/// values are of, if the rows get more.
fn write_rows<'f>(
    (layout, parts, block_bytes): (&Layout, &dyn Parts, usize),
    (folder, part): (&str, &mut Option<RowPart>),
    (batch, fates): (&RecordBatch, &'f [Fate]),
    fields: Option<&[&str]>,
    values: impl Fn(&'f Fate) -> Option<DecisionValues<'f>>,
) -> Result<(), Error> {
    let values: Vec<Option<DecisionValues>> = fates.iter().map(values).collect();
    let rows: BooleanArray = values.iter().map(|values| Some(values.is_some())).collect();
    if rows.true_count() == 0 {
        return Ok(());
    }
    let mut selected = select(batch, &rows)?;
    let more = fields.map(|fields| DecisionColumns::new(fields, batch.schema_ref()));
    if let Some(more) = &more {
        let values: Vec<DecisionValues> = values.into_iter().flatten().collect();
        selected = more.append(&selected, &values)?;
    }
    let part = match part {
        Some(part) => part,
        none => {
            none.insert(layout.create(parts, folder, selected.schema_ref(), more.as_ref(), block_bytes)?)
        }
    };
    part.write(&selected)
}

impl Writer for RowWriter<'_> {
    fn divide(&mut self, piece: &Piece, fates: &mut dyn Iterator<Item = Fate>) -> Result<(), Error> {
        let file = File::open(piece, &self.reading)?;
        // A row group whose columns cannot be decoded gives no record, so it needs no layout.
        let layout = Layout::of_file(&file)?;
        if layout.is_some() && layout != self.layout {
            self.close_parts()?;
            self.layout = layout;
        }
        let sorted = self.layout.as_ref().is_some_and(|layout| !layout.sorting.is_empty());
        let shortener = TextShortener::new(&file, &self.reading);
        let mut batches = Batches::new(file, &self.reading);
        let mut batch_fates = Vec::new();
        let mut last_group = None;
        while let Some(rows) = batches.next()? {
            let (count, records) = match rows {
                BatchRows::Batch { first_row, records } => {
                    let group = batches.file.group_of_row(first_row);
                    if last_group.replace(group) != Some(group) && sorted {
                        // Rows of two row groups are not sorted together.
                        self.end_row_groups()?;
                    }
                    (records.num_rows(), Some(records))
                }
                BatchRows::Lost { .. } => (1, None),
            };
            batch_fates.clear();
            batch_fates.extend(fates.take(count));
            let lost = records.is_none();
            if batch_fates.len() < count || lost && batch_fates != [Fate::Rejected] {
                return Err(Error::changed(batches.file.path()));
            }
            if let Some(mut records) = records {
                if batch_fates.iter().any(|fate| matches!(fate, Fate::Cut(_))) {
                    let shortened = shortener.shorten(&records, &batch_fates);
                    records = shortened.ok_or_else(|| Error::changed(batches.file.path()))?;
                }
                self.divide_batch(&records, &batch_fates)?;
            }
        }
        Ok(())
    }

    fn keep_none(&mut self, piece: &Piece) -> Result<bool, Error> {
        let file = File::open(piece, &self.reading)?;
        let layout = Layout::of_file(&file)?.map_or_else(|| Layout::new(&file, None), Ok)?;
        let schema = Arc::new(Schema::new(file.fields.clone()));
        self.kept = Some(layout.create(self.parts, "kept", &schema, None, self.reading.block_bytes)?);
        Ok(true)
    }

    fn finish(mut self: Box<Self>) -> Result<(), Error> {
        self.close_parts()
    }
}

impl Layout {
    /// Returns the layout of the piece's first row group whose columns can be decoded, if there is one.
    fn of_file(file: &File) -> Result<Option<Layout>, Error> {
        let group = file.groups.iter().find_map(|group| file.group(group).ok());
        group.map(|(metadata, _)| Layout::new(file, Some(metadata.row_group(0)))).transpose()
    }

    /// Makes the layout of a file. `group`: a row group, or `None` for a part without rows.
    fn new(file: &File, group: Option<&RowGroupMetaData>) -> Result<Layout, Error> {
        let failed = |error| Error::data(file.path(), 0, error);
        let level = ZstdLevel::try_new(ZSTD_LEVEL).map_err(failed)?;
        let columns = group.map_or(&[][..], RowGroupMetaData::columns).iter().map(|column| ColumnLayout {
            path: column.column_path().clone(),
            compression: match column.compression() {
                Compression::ZSTD(_) => Compression::ZSTD(level),
                // The library neither reads nor writes this codec, but other row groups of the file may be
                // readable.
                Compression::LZO => Compression::UNCOMPRESSED,
                other => other,
            },
            dictionary: column.dictionary_page_offset().is_some()
                && column.page_encoding_stats_mask().is_none_or(|pages| !holds_plain(pages)),
        });
        Ok(Layout {
            schema: file.footer.schema.root_schema_ptr(),
            key_values: file.footer.key_values.clone(),
            columns: columns.collect(),
            sorting: group.and_then(RowGroupMetaData::sorting_columns).cloned().unwrap_or_default(),
        })
    }

    /// Creates the next part. `arrow_schema` is the schema of the batches to come.
    fn create(
        &self,
        parts: &dyn Parts,
        folder: &str,
        arrow_schema: &Arc<Schema>,
        more: Option<&DecisionColumns>,
        block_bytes: usize,
    ) -> Result<RowPart, Error> {
        let (schema, key_values) = match more {
            None => (self.schema.clone(), self.key_values.clone()),
            Some(more) => self.with_columns(more).map_err(writing)?,
        };
        let mut properties = WriterProperties::builder()
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_sorting_columns((!self.sorting.is_empty()).then(|| self.sorting.clone()))
            .set_key_value_metadata(Some(key_values))
            .set_compression(
                self.columns.first().map_or(Compression::UNCOMPRESSED, |column| column.compression),
            );
        for column in &self.columns {
            properties = properties
                .set_column_compression(column.path.clone(), column.compression)
                .set_column_dictionary_enabled(column.path.clone(), column.dictionary);
        }
        let output = parts.part(folder, ".parquet")?;
        RowPart::create(output, schema, arrow_schema.clone(), properties.build(), block_bytes)
            .map_err(writing)
    }

    /// Returns the parquet schema and the key-values with more columns.
    fn with_columns(&self, more: &DecisionColumns) -> Result<(TypePtr, Vec<KeyValue>), ParquetError> {
        let mut fields = self.schema.get_fields().to_vec();
        fields.extend(more.types()?);
        let schema = Type::group_type_builder(self.schema.name()).with_fields(fields).build()?;

        let mut key_values = self.key_values.clone();
        for key_value in key_values.iter_mut().filter(|key_value| key_value.key == ARROW_SCHEMA_META_KEY) {
            let Some(input) = key_value.value.as_deref().and_then(schema_beside) else { continue };
            let fields: Vec<_> = input.fields().iter().cloned().chain(more.fields()).collect();
            let schema = Schema::new_with_metadata(fields, input.metadata().clone());
            key_value.value = Some(encode_arrow_schema(&schema));
        }
        Ok((Arc::new(schema), key_values))
    }
}

/// Decodes the schema of Arrow that a writer has put beside the columns. It is not that of the columns: it may have other
/// units, and its zones are told nowhere else.
fn schema_beside(text: &str) -> Option<Schema> {
    let bytes = BASE64_STANDARD.decode(text).ok()?;
    // A mark and the length of the message may stand before it.
    let message =
        bytes.strip_prefix(&[0xff; 4]).map_or(&bytes[..], |marked| marked.get(4..).unwrap_or_default());
    root_as_message(message).ok()?.header_as_schema().and_then(|schema| try_fb_to_schema(schema).ok())
}

fn holds_plain(pages: &EncodingMask) -> bool {
    let plain = EncodingMask::new_from_encodings([Encoding::PLAIN].iter());
    pages.as_i32() & plain.as_i32() != 0
}

fn select(batch: &RecordBatch, rows: &BooleanArray) -> Result<RecordBatch, Error> {
    if rows.true_count() == batch.num_rows() {
        return Ok(batch.clone());
    }
    filter_record_batch(batch, rows).map_err(|error| writing(error.into()))
}
