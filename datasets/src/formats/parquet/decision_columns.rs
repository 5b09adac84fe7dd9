//! Columns by which rows say what was decided about them.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::errors::ParquetError;
use parquet::schema::types::{Type, TypePtr};

use super::library::writing;
use crate::Error;
use crate::parts::decision_fields::{DecisionValue, DecisionValues, OF_REMOVED, free_names};

/// Columns that rows get beside their own.
pub(super) struct DecisionColumns {
    columns: Vec<DecisionColumn>,
}

struct DecisionColumn {
    name: String,
    kind: DataType,
    is_nullable: bool,
}

impl DecisionColumns {
    /// Makes columns of these fields, with names that a schema does not have. For a removed row, each of them has a value, except
    /// perhaps the similarity.
    pub fn new(fields: &[&str], schema: &Schema) -> Self {
        let all_are_removed = fields == OF_REMOVED;
        let names = free_names(fields, |name| schema.fields().find(name).is_some());
        let column = |(field, name): (&&str, String)| {
            let kind = match *field {
                "similarity" => DataType::Float64,
                "keep" => DataType::Boolean,
                _ => DataType::Utf8,
            };
            let is_nullable = match kind {
                DataType::Float64 => true,
                DataType::Boolean => false,
                _ => !all_are_removed,
            };
            DecisionColumn { name, kind, is_nullable }
        };
        DecisionColumns { columns: fields.iter().zip(names).map(column).collect() }
    }

    /// Returns the columns as fields of Arrow.
    pub fn fields(&self) -> impl Iterator<Item = Arc<Field>> {
        let field = |column: &DecisionColumn| {
            Arc::new(Field::new(&column.name, column.kind.clone(), column.is_nullable))
        };
        self.columns.iter().map(field)
    }

    /// Returns the columns as types of Parquet.
    pub fn types(&self) -> Result<Vec<TypePtr>, ParquetError> {
        let type_of = |column: &DecisionColumn| {
            let (kind, logical) = match column.kind {
                DataType::Float64 => (PhysicalType::DOUBLE, None),
                DataType::Boolean => (PhysicalType::BOOLEAN, None),
                _ => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
            };
            let repetition = if column.is_nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED };
            let builder = Type::primitive_type_builder(&column.name, kind).with_logical_type(logical);
            Ok(Arc::new(builder.with_repetition(repetition).build()?))
        };
        self.columns.iter().map(type_of).collect()
    }

    /// Appends the columns to rows, each of which has its values.
    pub fn append(&self, rows: &RecordBatch, values: &[DecisionValues]) -> Result<RecordBatch, Error> {
        let columns = self.columns.iter().enumerate().map(|(at, column)| -> ArrayRef {
            let values = values.iter().map(|values| values[at]);
            match column.kind {
                DataType::Float64 => Arc::new(Float64Array::from_iter(values.map(|value| match value {
                    DecisionValue::Number(number) => number,
                    _ => None,
                }))),
                DataType::Boolean => Arc::new(BooleanArray::from_iter(values.map(|value| match value {
                    DecisionValue::Flag(flag) => Some(flag),
                    _ => None,
                }))),
                _ => Arc::new(StringArray::from_iter(values.map(|value| match value {
                    DecisionValue::Text(text) => text,
                    _ => None,
                }))),
            }
        });
        let columns = rows.columns().iter().cloned().chain(columns).collect();
        let fields: Vec<_> = rows.schema_ref().fields().iter().cloned().chain(self.fields()).collect();
        let schema: SchemaRef = Arc::new(Schema::new(fields));
        RecordBatch::try_new(schema, columns).map_err(|error| writing(error.into()))
    }
}
