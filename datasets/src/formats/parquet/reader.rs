//! Documents from two columns of a parquet file, and their priorities from a third; and batches of rows in which texts
//! are shorter.

use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, BinaryArray, BinaryViewArray, RecordBatch, StructArray};
use arrow_schema::DataType;
use operators::{DocBatch, Priority, Reject};

use super::batches::{BatchRows, Batches};
use super::file::File;
use super::schema;
use crate::parts::cut_text::without;
use crate::text::charset::Charset;
use crate::{BadText, Error, Fate, NullText, Piece, Reader, Reading, no_number};

/// Reader of the id, the text and the priority of every row.
pub(super) struct RowReader {
    batches: Batches,
    /// Encoding of the text column.
    charset: Charset,
    bad_text: BadText,
    /// Treatment of a null in the place of a text.
    null_text: NullText,
    max_record_bytes: usize,
    /// Field of the id, if the user has named it. A row without it is a reject.
    id_field: Option<String>,
    /// Path of the id's column. That of the text follows.
    id: Option<Vec<String>>,
    text: Vec<String>,
    /// Field of the priority and path of its column, if it is asked for.
    priority: Option<(String, Vec<String>)>,
    records: Option<ParquetRecords>,
    id_buffer: String,
    text_buffer: Vec<u8>,
    number_buffer: String,
}

struct ParquetRecords {
    first_row: u64,
    next: usize,
    count: usize,
    id: Option<Column>,
    text: Column,
    priority: Option<Column>,
}

impl RowReader {
    pub(super) fn open(piece: &Piece, reading: &Reading) -> Result<Self, Error> {
        let file = File::open(piece, reading)?;
        let path = |leaf: usize| file.footer.schema.column(leaf).path().parts().to_vec();
        let column = file.footer.schema.column(file.text);
        Ok(RowReader {
            charset: Charset::of_values(reading.encoding.filter(|_| schema::is_binary(column.as_ref()))),
            bad_text: reading.bad_text,
            null_text: reading.null_text,
            max_record_bytes: reading.max_record_bytes,
            id_field: reading.id.clone(),
            id: file.id.map(path),
            text: path(file.text),
            priority: reading.priority.clone().zip(file.priority.map(path)),
            records: None,
            id_buffer: String::new(),
            text_buffer: Vec::new(),
            number_buffer: String::new(),
            batches: Batches::new(file, reading),
        })
    }

    fn records(&self, first_row: u64, batch: &RecordBatch) -> Result<ParquetRecords, Error> {
        let column = |path: &[String]| {
            Column::find(batch, path)
                .ok_or_else(|| Error::data(self.batches.file.path(), 0, "a column was not decoded"))
        };
        let id = self.id.as_deref().map(column).transpose()?;
        let priority = self.priority.as_ref().map(|(_, path)| column(path)).transpose()?;
        let text = column(&self.text)?;
        let count = batch.num_rows();
        Ok(ParquetRecords { first_row, next: 0, count, id, text, priority })
    }
}

impl Reader for RowReader {
    fn fill(&mut self, batch: &mut DocBatch) -> Result<bool, Error> {
        while !batch.full() {
            let Some(records) = self.records.as_mut().filter(|records| records.next < records.count) else {
                match self.batches.next()? {
                    Some(BatchRows::Batch { first_row, records }) => {
                        self.records = Some(self.records(first_row, &records)?);
                    }
                    Some(BatchRows::Lost { first_row, reason }) => {
                        reject(batch, self.batches.file.path(), first_row, &reason, b"");
                    }
                    None => return Ok(false),
                }
                continue;
            };
            let row = records.first_row + records.next as u64;
            let path = self.batches.file.path();
            let priority = records.priority();
            let too_long = records.text.bytes(records.next).filter(|text| text.len() > self.max_record_bytes);
            if let Some(text) = too_long {
                let reason = format!(
                    "a text of {} bytes, where at most {} are read",
                    text.len(),
                    self.max_record_bytes
                );
                reject(batch, path, row, &reason, text);
            } else if let (None, Some((field, _))) = (priority, &self.priority) {
                let head = records.text.bytes(records.next).unwrap_or_default();
                reject(batch, path, row, &no_number(field), head);
            } else {
                let place = || match &self.id_field {
                    Some(field) => Err(format!("the field \"{field}\" is null")),
                    None => Ok(format!("{path}:{row}")),
                };
                let buffers = (&mut self.id_buffer, &mut self.text_buffer, &mut self.number_buffer);
                match record(records, self.charset, (self.bad_text, self.null_text), buffers, place) {
                    Ok((id, text, replaced)) => {
                        batch.push_decoded(id, text, replaced);
                        batch.set_priority(priority.unwrap_or_default());
                    }
                    Err((reason, head)) => reject(batch, path, row, &reason, head),
                }
            }
            records.next += 1;
        }
        Ok(true)
    }
}

impl ParquetRecords {
    /// Returns the priority of the next row; the default where none is asked for, `None` where it is no number.
    fn priority(&self) -> Option<Priority> {
        let Some(column) = &self.priority else { return Some(Priority::default()) };
        column.number(self.next).and_then(Priority::new)
    }
}

fn reject(batch: &mut DocBatch, path: &str, row: u64, reason: &str, head: &[u8]) {
    batch.reject(path, row, format!("{reason}; the offset is the row's number"), head);
}

/// Reason why a row is no document, and the first bytes of it.
type RowRefusal<'a> = (String, &'a [u8]);

/// Returns the id and the text of the next row, and whether illegal bytes were replaced.
fn record<'a>(
    records: &'a ParquetRecords,
    charset: Charset,
    (bad_text, null_text): (BadText, NullText),
    (id_buffer, text_buffer, number_buffer): (&'a mut String, &'a mut Vec<u8>, &'a mut String),
    default_id: impl FnOnce() -> Result<String, String>,
) -> Result<(&'a str, &'a str, bool), RowRefusal<'a>> {
    let row = records.next;
    let bytes = match records.text.bytes(row) {
        Some(bytes) => bytes,
        None if records.text.is_null(row) => match null_text {
            NullText::Keep => &[],
            NullText::Drop => return Err((Reject::DROPPED.to_owned(), &[])),
            NullText::Reject => return Err(("the text is null".to_owned(), &[])),
        },
        None => {
            number_buffer.clear();
            records.text.write_integer(row, number_buffer);
            number_buffer.as_bytes()
        }
    };
    let (text, replaced) = charset
        .decode(bytes, bad_text, text_buffer)
        .map_err(|illegal| (format!("the text is {}", illegal.reason), bytes))?;
    let Some(id) = records.id.as_ref().filter(|id| !id.is_null(row)) else {
        *id_buffer = default_id().map_err(|reason| (reason, bytes))?;
        return Ok((id_buffer, text, replaced));
    };
    if let Some(bytes) = id.bytes(row) {
        let (id, bad_id) = match (simdutf8::basic::from_utf8(bytes), bad_text) {
            (Ok(id), _) => return Ok((id, text, replaced)),
            (Err(_), BadText::Reject) => return Err(("the id is not UTF-8".to_owned(), bytes)),
            (Err(_), BadText::Replace) => (String::from_utf8_lossy(bytes), true),
        };
        *id_buffer = id.into_owned();
        return Ok((id_buffer, text, bad_id || replaced));
    }
    id_buffer.clear();
    id.write_integer(row, id_buffer);
    Ok((id_buffer, text, replaced))
}

/// One column of a record batch, and the structs that contain it.
pub(super) struct Column {
    parents: Vec<StructArray>,
    values: ArrayRef,
}

impl Column {
    pub(super) fn find(batch: &RecordBatch, path: &[String]) -> Option<Column> {
        let (own, inner) = path.split_first()?;
        let mut column = Column { parents: Vec::new(), values: batch.column_by_name(own)?.clone() };
        for name in inner {
            let parent = column.values.as_struct_opt()?.clone();
            column.values = parent.column_by_name(name)?.clone();
            column.parents.push(parent);
        }
        Some(column)
    }

    fn is_null(&self, row: usize) -> bool {
        self.values.is_null(row) || self.parents.iter().any(|parent| parent.is_null(row))
    }

    /// Returns the bytes of a value, or `None` when it is null or of another type.
    pub(super) fn bytes(&self, row: usize) -> Option<&[u8]> {
        match self.values.data_type() {
            _ if self.is_null(row) => None,
            DataType::BinaryView => Some(self.values.as_binary_view().value(row)),
            DataType::Binary => Some(self.values.as_binary::<i32>().value(row)),
            _ => None,
        }
    }

    /// Returns a value as a number, or `None` when it is null or of another type.
    fn number(&self, row: usize) -> Option<f64> {
        let values = &self.values;
        match values.data_type() {
            _ if self.is_null(row) => None,
            DataType::Int32 => Some(values.as_primitive::<Int32Type>().value(row).into()),
            DataType::Int64 => Some(values.as_primitive::<Int64Type>().value(row) as f64),
            DataType::UInt32 => Some(values.as_primitive::<UInt32Type>().value(row).into()),
            DataType::UInt64 => Some(values.as_primitive::<UInt64Type>().value(row) as f64),
            DataType::Float32 => Some(values.as_primitive::<Float32Type>().value(row).into()),
            DataType::Float64 => Some(values.as_primitive::<Float64Type>().value(row)),
            _ => None,
        }
    }

    fn write_integer(&self, row: usize, text: &mut String) {
        // Writing to a string cannot fail.
        let _ = match self.values.data_type() {
            DataType::Int32 => write!(text, "{}", self.values.as_primitive::<Int32Type>().value(row)),
            DataType::Int64 => write!(text, "{}", self.values.as_primitive::<Int64Type>().value(row)),
            DataType::UInt32 => write!(text, "{}", self.values.as_primitive::<UInt32Type>().value(row)),
            DataType::UInt64 => write!(text, "{}", self.values.as_primitive::<UInt64Type>().value(row)),
            _ => Ok(()),
        };
    }
}

/// Maker of batches with other values in the column of the text. All other columns are shared with the batch that was
/// read. Memory: the texts of a batch.
pub(super) struct TextShortener {
    /// Path of the column.
    text: Vec<String>,
    charset: Charset,
}

impl TextShortener {
    /// Makes the texts of a file shorter.
    pub fn new(file: &File, reading: &Reading) -> Self {
        let column = file.footer.schema.column(file.text);
        let charset = Charset::of_values(reading.encoding.filter(|_| schema::is_binary(column.as_ref())));
        TextShortener { text: column.path().parts().to_vec(), charset }
    }

    /// Returns a batch without what the fates of its rows cut. `None` if a text has no such ranges.
    pub fn shorten(&self, batch: &RecordBatch, fates: &[Fate]) -> Option<RecordBatch> {
        let (name, inner) = self.text.split_first()?;
        let at = batch.schema_ref().fields().iter().position(|field| field.name() == name)?;
        let mut columns = batch.columns().to_vec();
        columns[at] = self.column(&columns[at], inner, fates)?;
        RecordBatch::try_new(batch.schema(), columns).ok()
    }

    /// Returns a column with shorter texts, which lie in it at the path `inner`.
    fn column(&self, column: &ArrayRef, inner: &[String], fates: &[Fate]) -> Option<ArrayRef> {
        let Some((name, inner)) = inner.split_first() else { return self.values(column, fates) };
        let (fields, mut columns, nulls) = column.as_struct_opt()?.clone().into_parts();
        let at = fields.iter().position(|field| field.name() == name)?;
        columns[at] = self.column(&columns[at], inner, fates)?;
        Some(Arc::new(StructArray::try_new(fields, columns, nulls).ok()?))
    }

    fn values(&self, column: &ArrayRef, fates: &[Fate]) -> Option<ArrayRef> {
        match column.data_type() {
            DataType::BinaryView => {
                let texts = self.texts(column.as_binary_view().iter(), fates)?;
                Some(Arc::new(BinaryViewArray::from_iter(texts)))
            }
            DataType::Binary => {
                let texts = self.texts(column.as_binary::<i32>().iter(), fates)?;
                Some(Arc::new(BinaryArray::from_iter(texts)))
            }
            _ => None,
        }
    }

    fn texts<'a>(
        &self,
        texts: impl Iterator<Item = Option<&'a [u8]>>,
        fates: &[Fate],
    ) -> Option<Vec<Option<Vec<u8>>>> {
        let shortened = texts.zip(fates).map(|(text, fate)| match (text, fate) {
            (Some(text), Fate::Cut(cuts)) => self.text(text, cuts).map(Some),
            (text, _) => Some(text.map(<[u8]>::to_vec)),
        });
        shortened.collect()
    }

    fn text(&self, text: &[u8], cuts: &[Range<usize>]) -> Option<Vec<u8>> {
        let mut buffer = Vec::new();
        let (decoded, _) = self.charset.decode(text, BadText::Replace, &mut buffer).ok()?;
        Some(self.charset.encode(&without(decoded, cuts)?, text).into_owned())
    }
}
