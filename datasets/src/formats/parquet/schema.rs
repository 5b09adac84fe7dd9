//! Parquet schemas: as they are decoded, as they are written, and the place of a column in them.

use std::sync::Arc;

use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type as PhysicalType};
use parquet::errors::Result;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::schema::types::{BasicTypeInfo, ColumnDescriptor, SchemaDescriptor, Type, TypePtr};

/// Number of columns that an error names.
const NAMED_COLUMNS: usize = 40;

/// Returns the schema without the meaning of columns: a text is bytes, a date is a number.
///
/// So every value is copied as it is, whatever it means. A text that is not UTF-8 costs its record, where the
/// library would give up the whole page. Only unsigned integers keep their meaning, because they may be ids.
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

/// Returns the schema that is written. It is the input's, with two exceptions: nothing writes INT96, Spark's
/// old timestamp, and the library cannot write a meaning that it does not know.
pub(super) fn written(root: &Type) -> Result<TypePtr> {
    map_columns(root, &|column, physical_type, type_length| {
        let info = column.get_basic_info();
        if physical_type != PhysicalType::INT96 {
            if !is_unknown(info) {
                return Ok(column.clone());
            }
            return Type::primitive_type_builder(info.name(), physical_type)
                .with_repetition(info.repetition())
                .with_converted_type(info.converted_type())
                .with_length(type_length)
                .with_precision(column.get_precision())
                .with_scale(column.get_scale())
                .with_id(info.has_id().then(|| info.id()))
                .build();
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
        Type::GroupType { basic_info, fields } => {
            let fields = fields.iter().map(|field| map_columns(field, change)).collect::<Result<_>>()?;
            match is_unknown(basic_info) && basic_info.has_repetition() {
                true => Type::group_type_builder(basic_info.name())
                    .with_repetition(basic_info.repetition())
                    .with_converted_type(basic_info.converted_type())
                    .with_id(basic_info.has_id().then(|| basic_info.id()))
                    .with_fields(fields)
                    .build()?,
                false => Type::GroupType { basic_info: basic_info.clone(), fields },
            }
        }
        Type::PrimitiveType { physical_type, type_length, .. } => change(node, *physical_type, *type_length)?,
    }))
}

/// Returns whether a column or group has a meaning from a later version of the format.
fn is_unknown(info: &BasicTypeInfo) -> bool {
    matches!(info.logical_type_ref(), Some(LogicalType::_Unknown { .. }))
}

/// Finds the column that a user's name means. This is one of the file's top-level columns by its whole name,
/// whatever characters it has, otherwise one inside of structs by its path, as in `doc.body.text`.
///
/// In a path, `\.` is a dot that belongs to a name, and `\\` a backslash.
pub(super) fn find(schema: &SchemaDescriptor, name: &str) -> Option<usize> {
    let columns = schema.columns();
    let own = columns.iter().position(|column| matches!(column.path().parts(), [part] if part == name));
    own.or_else(|| {
        let path = path(name);
        columns.iter().position(|column| column.path().parts() == path)
    })
}

fn path(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut letters = name.chars();
    while let Some(letter) = letters.next() {
        let letter = match letter {
            '.' => {
                parts.push(String::new());
                continue;
            }
            '\\' => letters.next().unwrap_or(letter),
            _ => letter,
        };
        if let Some(part) = parts.last_mut() {
            part.push(letter);
        }
    }
    parts
}

/// Returns a path in the form that [`find`] takes.
pub(super) fn escaped(path: &[String]) -> String {
    let parts: Vec<_> = path.iter().map(|part| part.replace('\\', "\\\\").replace('.', "\\.")).collect();
    parts.join(".")
}

/// Returns the names of a file's columns. The requested column may be among them, with a type that does not
/// fit.
pub(super) fn names(schema: &SchemaDescriptor, asked: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let found = find(schema, asked).map(|leaf| schema.column(leaf).path().clone());
    for column in schema.columns() {
        let path = column.path();
        // Columns below lists and maps cannot be requested, so the name of the list or map is enough.
        let parts = if column.max_rep_level() == 0 { path.parts() } else { &path.parts()[..1] };
        let repeated = parts.len() < path.parts().len() && parts == [asked];
        let mut name = escaped(parts);
        if name.is_empty() || name != name.trim() {
            name = format!("\"{name}\"");
        }
        if repeated || found.as_ref() == Some(path) {
            name.push_str(" (of another type)");
        }
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

/// Returns whether each record has at most one value of the column, and that value may be text.
pub(super) fn holds_text(column: &ColumnDescriptor) -> bool {
    column.max_rep_level() == 0
        && column.physical_type() == PhysicalType::BYTE_ARRAY
        && column.converted_type() != ConvertedType::DECIMAL
}

/// Returns whether nothing says that the values are UTF-8.
pub(super) fn is_binary(column: &ColumnDescriptor) -> bool {
    column.logical_type_ref().is_none() && column.converted_type() == ConvertedType::NONE
}

/// Returns whether each record has at most one value of the column, and that value may be an id.
pub(super) fn holds_id(column: &ColumnDescriptor) -> bool {
    holds_text(column) || holds_integer(column)
}

/// Returns whether each record has at most one value of the column, and that value is a priority. A time or a date
/// counts as the integer that stands for it.
pub(super) fn holds_priority(column: &ColumnDescriptor) -> bool {
    let float = matches!(column.physical_type(), PhysicalType::FLOAT | PhysicalType::DOUBLE);
    holds_integer(column) || (float && column.max_rep_level() == 0)
}

fn holds_integer(column: &ColumnDescriptor) -> bool {
    column.max_rep_level() == 0
        && matches!(column.physical_type(), PhysicalType::INT32 | PhysicalType::INT64)
        && column.converted_type() != ConvertedType::DECIMAL
}

/// Returns the length of a value of a column, null or not, where all values have one length; otherwise 0.
pub(super) fn fixed_bytes(column: &ColumnChunkMetaData) -> u64 {
    let fixed = column.column_type() == parquet::basic::Type::FIXED_LEN_BYTE_ARRAY;
    if fixed { u64::try_from(column.column_descr().type_length()).unwrap_or(0) } else { 0 }
}

#[cfg(test)]
mod tests {
    use parquet::basic::Repetition;

    use super::*;

    fn schema_of(columns: &[&[&str]]) -> SchemaDescriptor {
        let fields = columns.iter().map(|path| {
            let (name, groups) = path.split_last().unwrap();
            let column = Type::primitive_type_builder(name, PhysicalType::BYTE_ARRAY);
            let column = column.with_repetition(Repetition::REQUIRED).build().unwrap();
            groups.iter().rev().fold(Arc::new(column), |inner, name| {
                let group = Type::group_type_builder(name).with_repetition(Repetition::REQUIRED);
                Arc::new(group.with_fields(vec![inner]).build().unwrap())
            })
        });
        let root = Type::group_type_builder("root").with_fields(fields.collect()).build().unwrap();
        SchemaDescriptor::new(Arc::new(root))
    }

    #[test]
    fn odd_names_are_found_by_their_whole_name_or_by_an_escaped_path() {
        let schema = schema_of(&[
            &["te.xt"],
            &["te", "xt"],
            &["a.b", "c\\d"],
            &[""],
            &["text "],
            &["正文"],
            &["doc", "body", "text"],
        ]);
        let found = |name: &str| find(&schema, name);
        assert_eq!(found("te.xt"), Some(0));
        assert_eq!(found("te\\.xt"), Some(0));
        assert_eq!(found("a\\.b.c\\\\d"), Some(2));
        assert_eq!((found(""), found("text "), found("正文")), (Some(3), Some(4), Some(5)));
        assert_eq!((found("doc.body.text"), found("a.b.c\\\\d"), found("text")), (Some(6), None, None));
        // Every column that an error names can be requested, except the one that another column hides.
        for (leaf, column) in schema.columns().iter().enumerate().filter(|(leaf, _)| *leaf != 1) {
            assert_eq!(found(&escaped(column.path().parts())), Some(leaf));
        }
    }
}
