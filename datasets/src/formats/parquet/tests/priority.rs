//! Priorities of rows by a column of each type.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float16Array, Float32Array, Float64Array,
    Int8Array, Int32Array, Int64Array, ListArray, StringArray, StructArray, TimestampMicrosecondArray,
    UInt32Array, UInt64Array,
};
use operators::Priority;

use super::{batch_of, encoded, row_groups_of};
use crate::Error;
use crate::formats::parquet::PARQUET;
use crate::testing::{MemoryBlob, priorities};

/// Returns the priority of each row by the field, or the reason why the row is rejected.
fn read(field: &str, column: &ArrayRef) -> Result<Vec<Result<Priority, String>>, Error> {
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a"; column.len()]));
    let name = field.split('.').next().unwrap();
    let file = encoded(&batch_of(vec![("text", texts), (name, column.clone())]), row_groups_of(2));
    priorities(&PARQUET, MemoryBlob::shared("a.parquet", &file, 64), field)
}

#[test]
fn integers_floats_dates_and_times_are_priorities() {
    let columns: [(ArrayRef, [f64; 2]); 9] = [
        (Arc::new(Int8Array::from(vec![Some(-7), None, Some(7)])), [-7.0, 7.0]),
        (Arc::new(Int32Array::from(vec![Some(i32::MIN), None, Some(7)])), [-2_147_483_648.0, 7.0]),
        (Arc::new(Int64Array::from(vec![Some(i64::MIN), None, Some(7)])), [-(2f64.powi(63)), 7.0]),
        (Arc::new(UInt32Array::from(vec![Some(u32::MAX), None, Some(7)])), [4_294_967_295.0, 7.0]),
        (Arc::new(UInt64Array::from(vec![Some(u64::MAX), None, Some(7)])), [2f64.powi(64), 7.0]),
        (Arc::new(Float32Array::from(vec![Some(-2.5), None, Some(-0.0)])), [-2.5, 0.0]),
        (Arc::new(Float64Array::from(vec![Some(-2.5), None, Some(-0.0)])), [-2.5, 0.0]),
        (Arc::new(Date32Array::from(vec![Some(-1), None, Some(19_000)])), [-1.0, 19_000.0]),
        (Arc::new(TimestampMicrosecondArray::from(vec![Some(5), None, Some(6)])), [5.0, 6.0]),
    ];
    let refused = "no number in the field \"score\"; the offset is the row's number".to_owned();
    for (column, [first, last]) in columns {
        let [first, last] = [first, last].map(|number| Ok(Priority::new(number).unwrap()));
        let found = read("score", &column).unwrap();
        assert_eq!(found, [first, Err(refused.clone()), last], "{}", column.data_type());
    }
    let column: ArrayRef = Arc::new(Float64Array::from(vec![f64::NAN, f64::INFINITY, -f64::INFINITY]));
    assert_eq!(read("score", &column).unwrap(), [(); 3].map(|()| Err(refused.clone())));
}

#[test]
fn a_priority_inside_of_a_struct_is_found_by_its_path() {
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), Some(2), None]));
    let field = Arc::new(arrow_schema::Field::new("score", arrow_schema::DataType::Int32, true));
    let structs = StructArray::new(vec![field].into(), vec![numbers], Some(vec![true, false, true].into()));
    let found = read("meta.score", &(Arc::new(structs) as ArrayRef)).unwrap();
    assert_eq!(found[0].as_ref().ok(), Priority::new(1.0).as_ref());
    assert!(found[1..].iter().all(|row| row.as_ref().is_err_and(|reason| reason.contains("\"meta.score\""))));
}

#[test]
fn columns_of_other_types_are_refused() {
    let columns: [ArrayRef; 5] = [
        Arc::new(StringArray::from(vec!["7"])),
        Arc::new(BooleanArray::from(vec![true])),
        Arc::new(Decimal128Array::from(vec![7]).with_precision_and_scale(9, 2).unwrap()),
        Arc::new(Float16Array::new_null(1)),
        Arc::new(ListArray::from_iter_primitive::<arrow_array::types::Int32Type, _, _>([Some([Some(7)])])),
    ];
    for column in columns {
        let error = read("score", &column).unwrap_err().to_string();
        let of_type = error.contains("has no field \"score\"; it has text, score (of another type)");
        assert!(of_type, "{}: {error}", column.data_type());
    }
}
