//! An open parquet file: its columns, and the row groups of a piece.

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields};
use cluster::Blob;
use parquet::arrow::{FieldLevels, ProjectionMask, parquet_to_arrow_field_levels, parquet_to_arrow_schema};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};

use super::footer::{Footer, GroupPlace};
use super::library::decode;
use super::schema;
use crate::{Error, MissingField, Piece, Reading};

/// An open file, and the rows of a piece.
pub(super) struct File {
    pub(super) blob: Arc<dyn Blob>,
    pub(super) footer: Footer,
    /// Index of the column of the text.
    pub(super) text: usize,
    /// Index of the column of the id, if there is one.
    pub(super) id: Option<usize>,
    /// Index of the column of the priority, if it is asked for.
    pub(super) priority: Option<usize>,
    pub(super) groups: Vec<PieceGroup>,
    /// Arrow fields of record batches.
    pub(super) fields: Fields,
}

/// The rows of a row group that belong to the piece.
#[derive(Clone, Debug)]
pub(super) struct PieceGroup {
    /// Index in the file.
    pub(super) index: usize,
    /// Number of the first row of the row group in the file.
    pub(super) first_row: u64,
    pub(super) place: GroupPlace,
    /// Rows of the piece, counted from the first of the row group. There is at least one.
    pub(super) rows: Range<u64>,
}

impl File {
    /// Reads the footer, and chooses the columns and the rows of the piece.
    pub(super) fn open(piece: &Piece, reading: &Reading) -> Result<File, Error> {
        let blob = piece.blob.clone();
        let footer = Footer::read(&blob, reading.block_bytes as u64)?;
        if let Some(name) = schema::unknown_meaning(footer.schema.root_schema()) {
            let reason = format!(
                "column \"{name}\" has a logical type of a later version of the format, which would be lost"
            );
            return Err(Error::data(blob.path(), 0, reason));
        }
        let usable = |name: &str, holds: fn(&_) -> bool| {
            schema::find(&footer.schema, name).filter(|&leaf| holds(footer.schema.column(leaf).as_ref()))
        };
        let missing = |name: &str| match footer.denies_rows {
            true => Error::data(blob.path(), 0, "bad footer: no rows, but some in the row groups"),
            false => Error::Field(MissingField {
                path: blob.path().to_owned(),
                field: name.to_owned(),
                found: schema::names(&footer.schema, name),
            }),
        };
        let is_text = if reading.numbers { schema::holds_id } else { schema::holds_text };
        let text = usable(reading.text(), is_text).ok_or_else(|| missing(reading.text()))?;
        let (id_name, required) = reading.id();
        let id = usable(id_name, schema::holds_id);
        if required && id.is_none() {
            return Err(missing(id_name));
        }
        let priority = reading.priority.as_deref();
        let priority = priority
            .map(|name| usable(name, schema::holds_priority).ok_or_else(|| missing(name)))
            .transpose()?;
        let natural = decode(|| parquet_to_arrow_schema(footer.bare_schema(), None))
            .map_err(|reason| Error::data(blob.path(), 0, format!("bad schema: {reason}")))?;
        let fields = natural.fields().iter().map(with_views).collect();

        let groups = rows_of_piece(&footer, piece);
        Ok(File { blob, footer, text, id, priority, groups, fields })
    }

    /// Returns the file's name for messages.
    pub(super) fn path(&self) -> &str {
        self.blob.path()
    }

    /// Returns the index of the row group that has a row of the piece.
    pub(super) fn group_of_row(&self, row: u64) -> Option<usize> {
        let behind = self.groups.partition_point(|group| group.first_row <= row);
        behind.checked_sub(1).map(|at| self.groups[at].index)
    }

    /// Returns the arrow fields of some columns.
    pub(super) fn levels(&self, mask: ProjectionMask) -> Result<FieldLevels, String> {
        decode(|| parquet_to_arrow_field_levels(self.footer.bare_schema(), mask, Some(&self.fields)))
    }

    /// Decodes the metadata of a row group, and returns it with the ranges of its column chunks.
    pub(super) fn group(
        &self,
        group: &PieceGroup,
    ) -> Result<(Arc<ParquetMetaData>, Vec<Range<u64>>), String> {
        let metadata = self.footer.group(&group.place)?;
        let columns = metadata.row_group(0).columns();
        let ranges: Result<Vec<_>, _> =
            columns.iter().map(|column| chunk_range(column, self.blob.bytes())).collect();
        let ranges = ranges?;
        let mut ordered: Vec<&Range<u64>> = ranges.iter().collect();
        ordered.sort_unstable_by_key(|range| (range.start, range.end));
        if ordered.windows(2).any(|two| two[1].start < two[0].end) {
            return Err("two columns claim the same bytes".to_owned()); // one would read the other's pages
        }
        Ok((Arc::new(metadata), ranges))
    }
}

/// Returns the rows of a piece. The rows of a row group are taken to lie evenly between its first page and that
/// of the next row group, whatever their true lengths, so no page is read to find them.
///
/// Example: a row group of 10 rows begins at byte 100, the next one at byte 200.
///
/// ```text
/// piece        rows
/// 0..150       0 to 4, which are taken to begin at bytes 100, 110, 120, 130 and 140
/// 150..1000    5 to 9, and all of the next row group
/// ```
///
/// Columns with several values a row may have pages that do not tell their rows, and would have to be decoded
/// to be skipped. Row groups with such a column belong whole to the piece in which they begin.
fn rows_of_piece(footer: &Footer, piece: &Piece) -> Vec<PieceGroup> {
    let file_bytes = piece.blob.bytes();
    // An offset behind the end belongs to some piece all the same, which then finds it wrong.
    let offset = |place: &GroupPlace| place.offset.min(file_bytes.saturating_sub(1));
    let cut = footer.schema.columns().iter().all(|column| column.max_rep_level() == 0);
    let mut starts: Vec<u64> = footer.groups.iter().map(offset).chain([file_bytes]).collect();
    starts.sort_unstable();
    let mut groups = Vec::new();
    let mut first_row = 0;
    for (index, place) in footer.groups.iter().enumerate() {
        let start = offset(place);
        let next = starts.get(starts.partition_point(|&other| other <= start));
        let bytes = next.map_or(1, |next| next - start);
        // The number of rows that begin before a byte of the file.
        let before = |end: u64| match end.saturating_sub(start) {
            0 => 0,
            within if cut && within < bytes => {
                (u128::from(within) * u128::from(place.rows)).div_ceil(bytes.into()) as u64
            }
            _ => place.rows,
        };
        let rows = before(piece.start)..before(piece.end);
        if !rows.is_empty() {
            groups.push(PieceGroup { index, first_row, place: place.clone(), rows });
        }
        first_row += place.rows;
    }
    groups
}

/// Returns a field whose binary values are views. Views into the pages cost no copy, and have no limit of 2
/// GiB on what a batch holds.
fn with_views(field: &Arc<Field>) -> Arc<Field> {
    let viewed = match field.data_type() {
        DataType::Binary => DataType::BinaryView,
        DataType::List(values) => DataType::List(with_views(values)),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(with_views).collect()),
        _ => return field.clone(),
    };
    Arc::new(field.as_ref().clone().with_data_type(viewed))
}

/// Returns the range of a column chunk, after checks of what the library asserts.
fn chunk_range(column: &ColumnChunkMetaData, file_bytes: u64) -> Result<Range<u64>, String> {
    let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
    let range = u64::try_from(start).ok().zip(u64::try_from(column.compressed_size()).ok());
    range
        .and_then(|(start, length)| Some(start..start.checked_add(length)?))
        .filter(|range| range.end <= file_bytes && column.file_path().is_none_or(str::is_empty))
        .ok_or_else(|| format!("column \"{}\" lies outside of the file", column.column_path().string()))
}
