//! Parquet schemas: as they are decoded, as they are encoded, and the place of a column in them.

use std::sync::Arc;

use parquet::basic::{ConvertedType, LogicalType, Type as PhysicalType};
use parquet::errors::Result;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::schema::types::{ColumnDescriptor, SchemaDescriptor, Type, TypePtr};

/// Number of columns that an error names.
const NAMED_COLUMNS: usize = 40;

/// Number of bytes of an INT96.
const INT96_BYTES: i32 = 12;

/// Returns the schema without the meaning of columns and groups: a text is bytes, a date is a number, a map is a group
/// with a repeated group.
///
/// So every value is copied as it is, whatever it means. A text that is not UTF-8 costs its record, where the
/// library would give up the whole page. A map keeps its keys that are null, and lists of any shape are lists of what is
/// repeated, where the library would make them fit its own types. Only unsigned integers keep their meaning, because they may
/// be ids.
pub(super) fn bare(root: &Type) -> Result<TypePtr> {
    let column = |column: &Type, physical_type, type_length| {
        let info = column.get_basic_info();
        let unsigned = match physical_type {
            PhysicalType::INT32 => info.converted_type() == ConvertedType::UINT_32,
            PhysicalType::INT64 => info.converted_type() == ConvertedType::UINT_64,
            _ => false,
        };
        let (physical_type, type_length) = without_int96(physical_type, type_length);
        Type::primitive_type_builder(info.name(), physical_type)
            .with_repetition(info.repetition())
            .with_converted_type(if unsigned { info.converted_type() } else { ConvertedType::NONE })
            .with_length(type_length)
            .with_id(info.has_id().then(|| info.id()))
            .build()
    };
    map_types(root, &column, &|group, fields| {
        let info = group.get_basic_info();
        let bare = Type::group_type_builder(info.name())
            .with_id(info.has_id().then(|| info.id()))
            .with_fields(fields);
        // The root has no repetition.
        match info.has_repetition() {
            true => bare.with_repetition(info.repetition()).build(),
            false => bare.build(),
        }
    })
}

/// Returns the schema by which columns are encoded: that of the file, but that an INT96, Spark's old timestamp, is twelve
/// bytes. Both are encoded alike, and the library encodes no INT96.
pub(super) fn encoded(root: &Type) -> Result<TypePtr> {
    let column = |column: &Type, physical_type, type_length| {
        if physical_type != PhysicalType::INT96 {
            return Ok(column.clone());
        }
        let info = column.get_basic_info();
        let (physical_type, type_length) = without_int96(physical_type, type_length);
        Type::primitive_type_builder(info.name(), physical_type)
            .with_repetition(info.repetition())
            .with_length(type_length)
            .with_id(info.has_id().then(|| info.id()))
            .build()
    };
    map_types(root, &column, &|group, fields| {
        Ok(Type::GroupType { basic_info: group.get_basic_info().clone(), fields })
    })
}

fn without_int96(physical_type: PhysicalType, type_length: i32) -> (PhysicalType, i32) {
    match physical_type {
        PhysicalType::INT96 => (PhysicalType::FIXED_LEN_BYTE_ARRAY, INT96_BYTES),
        other => (other, type_length),
    }
}

/// Replaces the columns of a schema, given with their physical type and length, and its groups, given with their new fields.
fn map_types(
    node: &Type,
    column: &impl Fn(&Type, PhysicalType, i32) -> Result<Type>,
    group: &impl Fn(&Type, Vec<TypePtr>) -> Result<Type>,
) -> Result<TypePtr> {
    Ok(Arc::new(match node {
        Type::GroupType { fields, .. } => {
            let fields = fields.iter().map(|field| map_types(field, column, group)).collect::<Result<_>>()?;
            group(node, fields)?
        }
        Type::PrimitiveType { physical_type, type_length, .. } => column(node, *physical_type, *type_length)?,
    }))
}

/// Returns the name of a column or group that has a meaning from a later version of the format, which the library cannot
/// write; `None` if there is none.
pub(super) fn unknown_meaning(node: &Type) -> Option<&str> {
    let info = node.get_basic_info();
    let unknown = matches!(info.logical_type_ref(), Some(LogicalType::_Unknown { .. }));
    let fields = if node.is_group() { node.get_fields() } else { &[] };
    unknown.then(|| info.name()).or_else(|| fields.iter().find_map(|field| unknown_meaning(field)))
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
    let is_bytes = column.physical_type() == PhysicalType::BYTE_ARRAY
        && column.converted_type() != ConvertedType::DECIMAL;
    // Writers give a column of nothing but nulls a type of its own.
    let is_null = matches!(column.logical_type_ref(), Some(LogicalType::Unknown));
    column.max_rep_level() == 0 && (is_bytes || is_null)
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
