//! Tables as CSV and as JSON lines, for programs without Parquet.

use std::io::{BufWriter, Read, Write};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, UInt32Array, UInt64Array,
};
use arrow_schema::{DataType, Schema};
use datasets::PartOutput;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Format of the tables of an output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum TableFormat {
    /// Parquet.
    #[default]
    Parquet,
    /// JSON lines: an object for each row.
    Jsonl,
    /// CSV, whose first line names the columns. A value that is missing is empty.
    Csv,
}

impl TableFormat {
    /// Returns the ending of the names of files.
    pub fn extension(self) -> &'static str {
        match self {
            TableFormat::Parquet => ".parquet",
            TableFormat::Jsonl => ".jsonl",
            TableFormat::Csv => ".csv",
        }
    }

    /// Whether this is the default, which `_SUCCESS` leaves out.
    pub fn is_parquet(&self) -> bool {
        *self == TableFormat::Parquet
    }
}

/// Kinds of columns whose values are no texts, by their names.
const KINDS: [(&str, DataType); 9] = [
    ("kept", DataType::Boolean),
    ("identical", DataType::Boolean),
    ("similarity", DataType::Float64),
    ("sim", DataType::Float64),
    ("hamming", DataType::UInt32),
    ("characters", DataType::UInt64),
    ("place", DataType::UInt64),
    ("a_place", DataType::UInt64),
    ("b_place", DataType::UInt64),
];

/// A file of rows that is being written.
pub enum TextTable {
    Jsonl(BufWriter<Box<dyn PartOutput>>),
    Csv(Box<csv::Writer<Box<dyn PartOutput>>>),
}

impl TextTable {
    /// Begins a file, for rows with the columns of `batch`.
    pub fn begin(format: TableFormat, file: Box<dyn PartOutput>, batch: &RecordBatch) -> Result<Self> {
        if format == TableFormat::Jsonl {
            return Ok(TextTable::Jsonl(BufWriter::new(file)));
        }
        let mut writer = csv::Writer::from_writer(file);
        writer.write_record(batch.schema_ref().fields().iter().map(|field| field.name()))?;
        Ok(TextTable::Csv(Box::new(writer)))
    }

    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let schema = batch.schema_ref();
        for row in 0..batch.num_rows() {
            let values = batch.columns().iter().map(|column| value(column, row));
            match self {
                TextTable::Jsonl(file) => {
                    let names = schema.fields().iter().map(|field| field.name());
                    let mut separator = b"{";
                    for (name, value) in names.zip(values) {
                        file.write_all(separator)?;
                        serde_json::to_writer(&mut *file, name)?;
                        file.write_all(b":")?;
                        serde_json::to_writer(&mut *file, &value?)?;
                        separator = b",";
                    }
                    file.write_all(b"}\n")?;
                }
                TextTable::Csv(file) => {
                    let fields: Result<Vec<String>> = values.map(|value| Ok(field(value?))).collect();
                    file.write_record(fields?)?;
                }
            }
        }
        Ok(())
    }

    pub fn into_file(self) -> Result<Box<dyn PartOutput>> {
        match self {
            TextTable::Jsonl(file) => file.into_inner().map_err(|error| error.into_error().into()),
            TextTable::Csv(file) => file.into_inner().map_err(|error| error.into_error().into()),
        }
    }
}

/// Returns a value of a column.
fn value(column: &ArrayRef, row: usize) -> Result<Value> {
    if column.is_null(row) {
        return Ok(Value::Null);
    }
    Ok(match column.data_type() {
        DataType::Utf8 => column.as_string::<i32>().value(row).into(),
        DataType::Boolean => column.as_boolean().value(row).into(),
        DataType::Float64 => column.as_primitive::<Float64Type>().value(row).into(),
        DataType::UInt32 => column.as_primitive::<UInt32Type>().value(row).into(),
        DataType::UInt64 => column.as_primitive::<UInt64Type>().value(row).into(),
        other => bail!("a column of {other} has no form as a text"),
    })
}

/// Returns a value as a field of CSV.
fn field(value: Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text,
        other => other.to_string(),
    }
}

/// Reads the rows of a file of a table that was written as a text.
///
/// # Errors
/// When a row is no object or no record, or a value is not of the kind that its column has.
pub fn read_text_table(format: TableFormat, file: impl Read) -> Result<RecordBatch> {
    let mut rows: Vec<Map<String, Value>> = Vec::new();
    if format == TableFormat::Jsonl {
        for row in serde_json::Deserializer::from_reader(file).into_iter() {
            rows.push(row?);
        }
    } else {
        let mut reader = csv::Reader::from_reader(file);
        let names = reader.headers()?.clone();
        for row in reader.records() {
            let value = |(name, text): (&str, &str)| (name.to_owned(), typed(name, text));
            rows.push(names.iter().zip(row?.iter()).map(value).collect());
        }
    }
    let names: Vec<String> = rows.first().map(|row| row.keys().cloned().collect()).unwrap_or_default();
    let columns = names.iter().map(|name| {
        let column = column(name, &rows).with_context(|| format!("column \"{name}\""))?;
        anyhow::Ok((name.as_str(), column, true))
    });
    let columns: Vec<_> = columns.collect::<Result<_>>()?;
    match columns.is_empty() {
        true => Ok(RecordBatch::new_empty(Arc::new(Schema::empty()))),
        false => Ok(RecordBatch::try_from_iter_with_nullable(columns)?),
    }
}

fn kind_of(name: &str) -> DataType {
    KINDS.iter().find(|(known, _)| *known == name).map_or(DataType::Utf8, |(_, kind)| kind.clone())
}

/// Returns a field of CSV as a value. An empty one is missing.
fn typed(name: &str, text: &str) -> Value {
    match kind_of(name) {
        _ if text.is_empty() => Value::Null,
        DataType::Utf8 => text.into(),
        _ => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
    }
}

/// Returns the values of a column.
fn column(name: &str, rows: &[Map<String, Value>]) -> Result<ArrayRef> {
    fn all<'r, T>(
        values: impl Iterator<Item = &'r Value>,
        of: impl Fn(&'r Value) -> Option<T>,
    ) -> Result<Vec<Option<T>>> {
        let value = |value: &'r Value| match value {
            Value::Null => Ok(None),
            value => of(value).map(Some).with_context(|| format!("{value} is not of its kind")),
        };
        values.map(value).collect()
    }
    let values = rows.iter().map(|row| row.get(name).unwrap_or(&Value::Null));
    Ok(match kind_of(name) {
        DataType::Boolean => Arc::new(BooleanArray::from(all(values, Value::as_bool)?)),
        DataType::Float64 => Arc::new(Float64Array::from(all(values, Value::as_f64)?)),
        DataType::UInt32 => {
            Arc::new(UInt32Array::from(all(values, |value| u32::try_from(value.as_u64()?).ok())?))
        }
        DataType::UInt64 => Arc::new(UInt64Array::from(all(values, Value::as_u64)?)),
        _ => Arc::new(StringArray::from(all(values, Value::as_str)?)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_comes_back_from_its_text() {
        let columns: Vec<(&str, ArrayRef, bool)> = vec![
            ("a", Arc::new(StringArray::from(vec!["一,\"x\"\n", "12"])), false),
            ("hamming", Arc::new(UInt32Array::from(vec![None, Some(3)])), true),
            ("similarity", Arc::new(Float64Array::from(vec![Some(0.8125), None])), true),
            ("identical", Arc::new(BooleanArray::from(vec![false, true])), false),
            ("a_place", Arc::new(UInt64Array::from(vec![u64::MAX, 0])), false),
        ];
        let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        for format in [TableFormat::Jsonl, TableFormat::Csv] {
            let file = tempfile::NamedTempFile::new().unwrap();
            let output: Box<dyn PartOutput> = Box::new(LocalPart(file.reopen().unwrap()));
            let mut table = TextTable::begin(format, output, &batch).unwrap();
            table.write(&batch).unwrap();
            table.into_file().unwrap().flush().unwrap();
            let read = read_text_table(format, file.reopen().unwrap()).unwrap();
            for (at, field) in batch.schema_ref().fields().iter().enumerate() {
                assert_eq!(
                    read.column_by_name(field.name()).unwrap(),
                    batch.column(at),
                    "{format:?} {field}"
                );
            }
        }
    }

    struct LocalPart(std::fs::File);

    impl Write for LocalPart {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            self.0.flush()
        }
    }

    impl PartOutput for LocalPart {
        fn finish(self: Box<Self>, _records: u64) -> Result<(), cluster::Error> {
            Ok(())
        }
    }
}
