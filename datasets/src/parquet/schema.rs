//! Parquet schemas: as they are decoded, as they are written, and where a column is in them.

use std::sync::Arc;

use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type as PhysicalType};
use parquet::errors::Result;
use parquet::schema::types::{ColumnDescriptor, SchemaDescriptor, Type, TypePtr};

/// The schema without what columns mean: text is bytes, a date is a number.
///
/// So every value is copied as it is, whatever it means, and a text that is not UTF-8 costs its record
/// where the library would give up the whole page. Only unsigned integers stay what they are, because they
/// may be ids.
pub(super) fn bare(root: &Type) -> Result<TypePtr> {
    map_columns(root, &|column, physical_type, type_length| {
        let info = column.get_basic_info();
        let unsigned = match physical_type {
            PhysicalType::INT32 => info.converted_type() == ConvertedType::UINT_32,
            PhysicalType::INT64 => info.converted_type() == ConvertedType::UINT_64,
            _ => false,
        };
        Type::primitive_type_builder(info.name(), physical_type)
            .with_repetition(info.repetition())
            .with_converted_type(if unsigned { info.converted_type() } else { ConvertedType::NONE })
            .with_length(type_length)
            .with_id(info.has_id().then(|| info.id()))
            .build()
    })
}

/// The schema that is written: the input's, except that nothing writes INT96, Spark's old timestamp.
pub(super) fn written(root: &Type) -> Result<TypePtr> {
    map_columns(root, &|column, physical_type, _| {
        let info = column.get_basic_info();
        if physical_type != PhysicalType::INT96 {
            return Ok(column.clone());
        }
        Type::primitive_type_builder(info.name(), PhysicalType::INT64)
            .with_repetition(info.repetition())
            .with_logical_type(Some(LogicalType::timestamp(false, TimeUnit::NANOS)))
            .with_id(info.has_id().then(|| info.id()))
            .build()
    })
}

fn map_columns(node: &Type, change: &impl Fn(&Type, PhysicalType, i32) -> Result<Type>) -> Result<TypePtr> {
    Ok(Arc::new(match node {
        Type::GroupType { basic_info, fields } => Type::GroupType {
            basic_info: basic_info.clone(),
            fields: fields.iter().map(|field| map_columns(field, change)).collect::<Result<_>>()?,
        },
        Type::PrimitiveType { physical_type, type_length, .. } => change(node, *physical_type, *type_length)?,
    }))
}

/// The column of that name: one of the file's own columns, else one inside of structs, as in `doc.body.text`.
pub(super) fn find(schema: &SchemaDescriptor, name: &str) -> Option<usize> {
    let columns = schema.columns();
    let own = columns.iter().position(|column| matches!(column.path().parts(), [part] if part == name));
    own.or_else(|| columns.iter().position(|column| column.path().string() == name))
}

/// Whether each record has at most one value of the column, and it may be text.
pub(super) fn holds_text(column: &ColumnDescriptor) -> bool {
    column.max_rep_level() == 0
        && column.physical_type() == PhysicalType::BYTE_ARRAY
        && column.converted_type() != ConvertedType::DECIMAL
}

/// Whether each record has at most one value of the column, and it may be an id.
pub(super) fn holds_id(column: &ColumnDescriptor) -> bool {
    let integer = matches!(column.physical_type(), PhysicalType::INT32 | PhysicalType::INT64)
        && column.converted_type() != ConvertedType::DECIMAL;
    holds_text(column) || (integer && column.max_rep_level() == 0)
}
