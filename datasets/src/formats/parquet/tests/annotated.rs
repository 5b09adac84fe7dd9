//! Rows that say what was decided about them, and rows that are rejected.

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;

use super::*;
use crate::Annotation;

/// Divides a file by the fates of its rows, and returns the parts, rejected ones too.
fn divided(file: &Bytes, fates: Vec<Fate>) -> MemoryParts {
    let parts = MemoryParts::with_rejected();
    let mut writer = PARQUET.writer(&parts, &Reading::default());
    let mut fates = fates.into_iter();
    pieces(file, 2).iter().for_each(|piece| writer.divide(piece, &mut fates).unwrap());
    writer.finish().unwrap();
    parts
}

#[test]
fn annotated_rows_lie_together_and_say_what_was_decided() {
    let file = encoded(&corpus(), row_groups_of(6));
    let removal = match removed(Some(0.9)) {
        Fate::Removed(removal) => removal,
        other => panic!("{other:?}"),
    };
    let annotation = |row: usize| match row {
        0 => Annotation { cluster: Some("100".to_owned()), removal: None },
        1 => Annotation { cluster: Some("100".to_owned()), removal: Some(removal.clone()) },
        _ => Annotation::default(),
    };
    let fates =
        (0..20).map(|row| if row == 7 { Fate::Rejected } else { Fate::Annotated(annotation(row)) }).collect();
    let parts = divided(&file, fates);
    assert_eq!(parts.names(), ["annotated/0.parquet", "rejected/0.parquet"]);
    let rows = decoded(Bytes::from(parts.bytes("annotated/0.parquet")));
    let input = decoded(file);
    let others = (0..20).map(|row| Some(row != 7)).collect();
    let of_input: Vec<usize> = (0..input.num_columns()).collect();
    assert_eq!(
        rows.project(&of_input).unwrap().columns(),
        filter_record_batch(&input, &others).unwrap().columns()
    );
    let text = |name: &str| rows.column_by_name(name).unwrap().as_string::<i32>();
    assert_eq!(
        (text("cluster").value(0), text("cluster").value(1), text("cluster").null_count()),
        ("100", "100", 17)
    );
    assert_eq!((text("duplicate_of").value(1), text("duplicate_of").null_count()), ("100", 18));
    assert_eq!((text("reason").value(1), text("reason").null_count()), ("similar", 18));
    assert_eq!(rows.column_by_name("similarity").unwrap().as_primitive::<Float64Type>().value(1), 0.9);
    let keep = rows.column_by_name("keep").unwrap().as_boolean();
    assert_eq!((keep.true_count(), keep.value(1)), (18, false));
    let rejected = decoded(Bytes::from(parts.bytes("rejected/0.parquet")));
    assert_eq!(rejected.columns(), input.slice(7, 1).columns());
}
