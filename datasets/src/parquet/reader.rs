//! Documents out of two columns of a parquet file.

use std::fmt::Write;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, StructArray};
use arrow_schema::DataType;
use operators::DocBatch;
use parquet::schema::types::SchemaDescriptor;

use super::file::{Batches, File};
use super::schema;
use crate::{Error, Piece, Reader, Reading};

/// How many columns an error names.
const NAMED_COLUMNS: usize = 40;

/// Reads the id and the text of every row; other columns are not fetched.
pub(super) struct RowReader {
    batches: Batches,
    /// The names on the way to the column.
    id: Option<Vec<String>>,
    text: Vec<String>,
    rows: Option<Rows>,
    id_buffer: String,
}

struct Rows {
    first_row: u64,
    next: usize,
    count: usize,
    id: Option<Column>,
    text: Column,
}

impl RowReader {
    pub(super) fn open(piece: &Piece, reading: &Reading) -> Result<Self, Error> {
        let file = File::open(piece)?;
        let missing = |name: &str| Error::Field {
            path: file.path().to_owned(),
            field: name.to_owned(),
            found: names(&file.schema, name),
        };
        let usable = |name: &str, holds: fn(&_) -> bool| {
            schema::find(&file.schema, name).filter(|&leaf| holds(file.schema.column(leaf).as_ref()))
        };
        let text = usable(reading.text(), schema::holds_text).ok_or_else(|| missing(reading.text()))?;
        let (id_name, required) = reading.id();
        let id = usable(id_name, schema::holds_id);
        if required && id.is_none() {
            return Err(missing(id_name));
        }
        let path = |leaf: usize| file.schema.column(leaf).path().parts().to_vec();
        let (id_path, text_path) = (id.map(path), path(text));
        let leaves: Vec<_> = id.into_iter().chain([text]).collect();
        let batches = file.batches(Some(&leaves));
        Ok(RowReader { batches, id: id_path, text: text_path, rows: None, id_buffer: String::new() })
    }

    fn next_rows(&mut self) -> Result<Option<Rows>, Error> {
        let Some((first_row, batch)) = self.batches.next()? else { return Ok(None) };
        let column = |path: &[String]| {
            Column::find(&batch, path)
                .ok_or_else(|| Error::data(self.batches.file.path(), 0, "a column was not decoded"))
        };
        let id = self.id.as_deref().map(column).transpose()?;
        let text = column(&self.text)?;
        Ok(Some(Rows { first_row, next: 0, count: batch.num_rows(), id, text }))
    }
}

impl Reader for RowReader {
    fn fill(&mut self, batch: &mut DocBatch) -> Result<bool, Error> {
        while !batch.full() {
            let Some(rows) = self.rows.as_mut().filter(|rows| rows.next < rows.count) else {
                self.rows = self.next_rows()?;
                match self.rows {
                    Some(_) => continue,
                    None => return Ok(false),
                }
            };
            let row = rows.first_row + rows.next as u64;
            let path = self.batches.file.path();
            match record(rows, &mut self.id_buffer, || format!("{path}:{row}")) {
                Ok((id, text)) => batch.push(id, text),
                Err((reason, head)) => {
                    batch.reject(path, row, format!("{reason}; the offset is the row's number"), head)
                }
            }
            rows.next += 1;
        }
        Ok(true)
    }
}

/// The id and the text of the next row, or why it has none and how it begins.
fn record<'a>(
    rows: &'a Rows,
    id_buffer: &'a mut String,
    default_id: impl FnOnce() -> String,
) -> Result<(&'a str, &'a str), (&'static str, &'a [u8])> {
    let Some(bytes) = rows.text.bytes(rows.next) else {
        return Err(("the text is null", &[]));
    };
    let text = simdutf8::basic::from_utf8(bytes).map_err(|_| ("the text is not UTF-8", bytes))?;
    let Some(id) = rows.id.as_ref().filter(|id| !id.is_null(rows.next)) else {
        *id_buffer = default_id();
        return Ok((id_buffer, text));
    };
    if let Some(bytes) = id.bytes(rows.next) {
        let id = simdutf8::basic::from_utf8(bytes).map_err(|_| ("the id is not UTF-8", bytes))?;
        return Ok((id, text));
    }
    id_buffer.clear();
    id.write_integer(rows.next, id_buffer);
    Ok((id_buffer, text))
}

/// The names of a file's columns; the one that was asked for is there with a type that does not fit.
fn names(schema: &SchemaDescriptor, asked: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for column in schema.columns() {
        let path = column.path();
        // Below lists and maps nothing can be asked for, so their own name says enough.
        let name = match column.max_rep_level() {
            0 => path.string(),
            _ => path.parts().first().cloned().unwrap_or_default(),
        };
        let name = if name == asked { format!("{name} (of another type)") } else { name };
        if names.last() != Some(&name) {
            names.push(name);
        }
    }
    let more = names.len().saturating_sub(NAMED_COLUMNS);
    if more > 0 {
        names.truncate(NAMED_COLUMNS);
        names.push(format!("{more} more"));
    }
    names
}

/// One column of a record batch, and the structs that it is in.
struct Column {
    parents: Vec<StructArray>,
    values: ArrayRef,
}

impl Column {
    fn find(batch: &RecordBatch, path: &[String]) -> Option<Column> {
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

    /// `None` when the value is null or no bytes.
    fn bytes(&self, row: usize) -> Option<&[u8]> {
        match self.values.data_type() {
            _ if self.is_null(row) => None,
            DataType::BinaryView => Some(self.values.as_binary_view().value(row)),
            DataType::Binary => Some(self.values.as_binary::<i32>().value(row)),
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
