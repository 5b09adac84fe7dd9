//! Parquet files, read in pieces, divided, and refused where they are not as they should be.

use std::sync::Arc;

use ::parquet::arrow::ArrowWriter;
use ::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use ::parquet::basic::{Compression, ZstdLevel};
use ::parquet::file::metadata::{KeyValue, SortingColumn};
use ::parquet::file::properties::WriterProperties;
use arrow_array::types::Int8Type;
use arrow_array::{
    Array, ArrayRef, BinaryArray, DictionaryArray, Int32Array, Int64Array, LargeStringArray, ListArray,
    RecordBatch, StringArray, StringViewArray, StructArray, UInt64Array,
};
use arrow_schema::{DataType, Field, Schema};
use arrow_select::concat::concat_batches;
use arrow_select::filter::filter_record_batch;
use bytes::Bytes;
use operators::{DocBatch, Reject};

use super::*;
use crate::testing::{MemoryBlob, MemoryParts};
use crate::{BadText, Fate, Removal};

mod annotated;
mod claims;
mod cuts;
mod damage;
mod priority;
mod zones;

type Part = (String, Vec<u8>);

fn encoded(batch: &RecordBatch, properties: WriterProperties) -> Bytes {
    let mut file = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    Bytes::from(file)
}

fn decoded(file: Bytes) -> RecordBatch {
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let schema = builder.schema().clone();
    let batches: Vec<_> = builder.build().unwrap().map(Result::unwrap).collect();
    concat_batches(&schema, &batches).unwrap()
}

/// Returns properties of several row groups of `rows` rows, with a codec and metadata of their own.
fn row_groups_of(rows: usize) -> WriterProperties {
    WriterProperties::builder()
        .set_max_row_group_row_count(Some(rows))
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(vec![KeyValue::new("made by".to_owned(), "us".to_owned())]))
        .build()
}

fn batch_of(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true)))
        .unwrap()
}

/// Returns 20 rows: ids, texts of which one is null, a list, a struct, and a dictionary.
fn corpus() -> RecordBatch {
    let texts: StringArray = (0..20).map(|row| (row != 7).then(|| format!("第{row}篇"))).collect();
    let list = ListArray::from_iter_primitive::<arrow_array::types::Int32Type, _, _>(
        (0..20).map(|row| (row % 3 != 0).then(|| vec![Some(row), None])),
    );
    // Words cannot be null, but the struct can.
    let words: ArrayRef = Arc::new(StringArray::from_iter_values((0..20).map(|row| format!("w{row}"))));
    let fields = vec![Field::new("words", DataType::Utf8, false)].into();
    let structs = StructArray::new(fields, vec![words], Some((0..20).map(|row| row % 4 != 0).collect()));
    let tags: DictionaryArray<Int8Type> = (0..20).map(|row| Some(["a", "b"][row % 2])).collect();
    batch_of(vec![
        ("id", Arc::new(Int64Array::from_iter_values(100..120))),
        ("text", Arc::new(texts)),
        ("list", Arc::new(list)),
        ("struct", Arc::new(structs)),
        ("tag", Arc::new(tags)),
    ])
}

/// Cuts the file into `count` pieces.
fn pieces(file: &Bytes, count: u64) -> Vec<Piece> {
    let bytes = file.len() as u64;
    let blob = MemoryBlob::shared("corpus.parquet", file, 64);
    let whole = Piece::whole(blob, String::new());
    let piece = |at| Piece { start: bytes * at / count, end: bytes * (at + 1) / count, ..whole.clone() };
    (0..count).map(piece).collect()
}

#[derive(Debug, Default, PartialEq)]
struct Read {
    docs: Vec<(String, String)>,
    rejects: Vec<Reject>,
    records: u64,
    failure: Option<String>,
}

fn read(pieces: &[Piece], reading: &Reading) -> Result<Read, Error> {
    let mut all = Read::default();
    for piece in pieces {
        let mut reader = PARQUET.open(piece, reading)?;
        let mut more = true;
        while more {
            let mut batch = DocBatch::new(0, all.records);
            more = reader.fill(&mut batch).unwrap_or_else(|error| {
                all.failure = Some(error.to_string());
                false
            });
            all.docs.extend(batch.docs().map(|doc| (doc.id.to_owned(), doc.text.to_owned())));
            all.records = batch.next_record();
            all.rejects.extend(batch.take_rejects());
        }
    }
    Ok(all)
}

fn read_file(file: &Bytes) -> Read {
    read(&pieces(file, 1), &Reading::default()).unwrap()
}

fn divide(pieces: &[Piece], fates: Vec<Fate>) -> Result<Vec<Part>, Error> {
    let (parts, error) = divide_until_damage(pieces, fates);
    error.map_or(Ok(parts), Err)
}

fn divide_until_damage(pieces: &[Piece], fates: Vec<Fate>) -> (Vec<Part>, Option<Error>) {
    let files = MemoryParts::default();
    let mut writer = PARQUET.writer(&files, &Reading::default());
    let mut fates = fates.into_iter();
    let error = pieces.iter().find_map(|piece| writer.divide(piece, &mut fates).err());
    writer.finish().unwrap();
    assert!(error.is_some() || fates.next().is_none(), "a fate is left");
    (files.take().into_iter().collect(), error)
}

fn removed(similarity: Option<f64>) -> Fate {
    Fate::Removed(Removal {
        id: "101".to_owned(),
        duplicate_of: "100".to_owned(),
        similarity,
        cluster: "100".to_owned(),
        reason: "similar".into(),
    })
}

fn ids(read: &Read) -> Vec<&str> {
    read.docs.iter().map(|(id, _)| id.as_str()).collect()
}

#[test]
fn a_null_text_is_a_reject_at_its_row() {
    let read = read_file(&encoded(&corpus(), row_groups_of(3)));
    let [reject] = &read.rejects[..] else { panic!("{read:?}") };
    assert_eq!((reject.offset, reject.doc.record()), (7, 7));
    assert_eq!(reject.reason, "the text is null; the offset is the row's number");
}

#[test]
fn a_null_id_is_a_reject_where_its_field_is_named() {
    let ids: Int64Array = [Some(1), None].into_iter().collect();
    let texts = StringArray::from(vec!["a", "b"]);
    let file = encoded(&batch_of(vec![("id", Arc::new(ids)), ("text", Arc::new(texts))]), row_groups_of(2));
    let docs = |id: Option<&str>| {
        let reading = Reading { id: id.map(str::to_owned), ..Reading::default() };
        let Read { docs, rejects, .. } = read(&pieces(&file, 1), &reading).unwrap();
        (docs.into_iter().map(|(id, _)| id).collect::<Vec<_>>(), rejects)
    };
    assert_eq!(docs(None), (vec!["1".to_owned(), "corpus.parquet:1".to_owned()], vec![]));
    let (ids, rejects) = docs(Some("id"));
    assert_eq!((ids, rejects.len()), (vec!["1".to_owned()], 1));
    assert!(rejects[0].reason.starts_with("the field \"id\" is null"), "{rejects:?}");
}

#[test]
fn kept_and_removed_rows_have_every_column_as_it_was() {
    let file = encoded(&corpus(), row_groups_of(6));
    let input = decoded(file.clone());
    let fates: Vec<Fate> = (0..20)
        .map(|row| match row {
            7 => Fate::Rejected,
            _ if row % 3 == 1 => removed((row > 10).then_some(0.9)),
            _ => Fate::Kept,
        })
        .collect();
    let expected = |fate: fn(&Fate) -> bool| {
        filter_record_batch(&input, &fates.iter().map(|each| Some(fate(each))).collect()).unwrap()
    };
    for count in [1, 2, 7] {
        let parts = divide(&pieces(&file, count), fates.clone()).unwrap();
        let names: Vec<_> = parts.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["kept/0.parquet", "removed/0.parquet"]);
        let [kept, gone] = [0, 1].map(|part| Bytes::from(parts[part].1.clone()));
        assert_eq!(decoded(kept.clone()), expected(|fate| *fate == Fate::Kept));

        let metadata = ParquetRecordBatchReaderBuilder::try_new(kept).unwrap().metadata().clone();
        let key_values = metadata.file_metadata().key_value_metadata().unwrap();
        assert!(key_values.contains(&KeyValue::new("made by".to_owned(), "us".to_owned())));
        assert_eq!(metadata.row_group(0).column(0).compression(), Compression::SNAPPY);

        let gone = decoded(gone);
        let of_input: Vec<usize> = (0..input.num_columns()).collect();
        let columns = gone.project(&of_input).unwrap();
        assert_eq!(columns.columns(), expected(|fate| matches!(fate, Fate::Removed(_))).columns());
        let added: Vec<_> = gone.schema().fields()[5..].iter().map(|field| field.name().clone()).collect();
        assert_eq!(added, ["duplicate_of", "similarity", "cluster", "reason"]);
        assert_eq!(gone.column_by_name("similarity").unwrap().null_count(), 3);
    }
}

#[test]
fn the_same_rows_give_the_same_bytes() {
    let file = encoded(&corpus(), row_groups_of(6));
    let fates: Vec<Fate> = (0..20).map(|row| if row % 2 == 0 { Fate::Kept } else { removed(None) }).collect();
    let once = divide(&pieces(&file, 1), fates.clone()).unwrap();
    assert_eq!(once, divide(&pieces(&file, 1), fates).unwrap());
}

#[test]
fn a_name_that_is_taken_gets_a_suffix() {
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
    let input = batch_of(vec![("text", texts.clone()), ("cluster", texts.clone()), ("similarity", texts)]);
    let parts = divide(&pieces(&encoded(&input, row_groups_of(6)), 1), vec![removed(Some(1.0))]).unwrap();
    let gone = decoded(Bytes::from(parts[0].1.clone()));
    let names: Vec<_> = gone.schema().fields().iter().map(|field| field.name().clone()).collect();
    let ours = ["duplicate_of", "similarity_dedup", "cluster_dedup", "reason"];
    assert_eq!(names[3..], ours);
}

#[test]
fn another_schema_or_codec_begins_another_part() {
    let zstd = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
    let files = [
        encoded(&corpus(), row_groups_of(9)),
        encoded(&corpus(), row_groups_of(6)),
        encoded(&corpus(), zstd),
    ];
    let pieces: Vec<_> = files.iter().flat_map(|file| pieces(file, 2)).collect();
    let parts = divide(&pieces, vec![Fate::Kept; 60]).unwrap();
    let rows: Vec<_> = parts.into_iter().map(|(_, file)| decoded(Bytes::from(file)).num_rows()).collect();
    assert_eq!(rows, [40, 20]);
}

#[test]
fn text_and_id_may_have_any_type_that_holds_them() {
    let texts = ["一", "二"];
    let dictionary: DictionaryArray<Int8Type> = texts.into_iter().collect();
    let text_columns: [ArrayRef; 5] = [
        Arc::new(StringArray::from_iter_values(texts)),
        Arc::new(LargeStringArray::from_iter_values(texts)),
        Arc::new(StringViewArray::from_iter_values(texts)),
        Arc::new(BinaryArray::from_iter_values(texts)),
        Arc::new(dictionary),
    ];
    let id_columns: [(ArrayRef, &str); 4] = [
        (Arc::new(UInt64Array::from(vec![1, u64::MAX])), "18446744073709551615"),
        (Arc::new(Int32Array::from(vec![1, -5])), "-5"),
        (Arc::new(BinaryArray::from_iter_values(["x", "y"])), "y"),
        (Arc::new(Int64Array::from(vec![Some(1), None])), "corpus.parquet:1"),
    ];
    for text in &text_columns {
        for (id, expected) in &id_columns {
            let file = encoded(&batch_of(vec![("id", id.clone()), ("text", text.clone())]), row_groups_of(6));
            let read = read_file(&file);
            let expected = (expected.to_string(), "二".to_owned());
            assert_eq!(read.docs[1], expected, "{} {}", text.data_type(), id.data_type());
        }
    }
}

#[test]
fn bytes_that_are_not_utf_8_cost_only_their_row() {
    let texts = BinaryArray::from_iter_values([&b"ok"[..], b"\xff\xfe", b"fine"]);
    let file = encoded(&batch_of(vec![("text", Arc::new(texts))]), row_groups_of(6));
    let read = read_file(&file);
    assert_eq!(ids(&read), ["corpus.parquet:0", "corpus.parquet:2"]);
    assert_eq!(
        read.rejects[0].reason,
        "the text is not valid UTF-8: 2 of 2 characters are illegal; the offset is the row's number"
    );
}

#[test]
fn illegal_bytes_are_replaced_and_counted_where_that_is_asked_for() {
    let texts = BinaryArray::from_iter_values([&b"ok"[..], b"a\xff\xfeb", b"fine"]);
    let file = encoded(&batch_of(vec![("text", Arc::new(texts))]), row_groups_of(6));
    let reading = Reading { bad_text: BadText::Replace, ..Reading::default() };
    let mut reader = PARQUET.open(&pieces(&file, 1)[0], &reading).unwrap();
    let mut batch = DocBatch::new(0, 0);
    assert!(!reader.fill(&mut batch).unwrap());
    let texts: Vec<_> = batch.docs().map(|doc| doc.text.to_owned()).collect();
    assert_eq!((texts, batch.replaced()), (vec!["ok".into(), "a\u{fffd}\u{fffd}b".into(), "fine".into()], 1));
    let parts = divide(&pieces(&file, 1), vec![Fate::Kept; 3]).unwrap();
    let kept = decoded(Bytes::from(parts[0].1.clone()));
    let text = kept.column(0).as_any().downcast_ref::<BinaryArray>().unwrap();
    assert_eq!(text.value(1), b"a\xff\xfeb", "what is written is the record's own bytes");
}

#[test]
fn a_text_over_the_bound_is_rejected_and_those_around_it_are_read() {
    let texts = StringArray::from_iter_values(["short", "much too long", "shorter"]);
    let file = encoded(&batch_of(vec![("text", Arc::new(texts))]), row_groups_of(6));
    let reading = Reading { max_record_bytes: 7, ..Reading::default() };
    let read = read(&pieces(&file, 1), &reading).unwrap();
    assert_eq!(ids(&read), ["corpus.parquet:0", "corpus.parquet:2"]);
    let expected = "a text of 13 bytes, where at most 7 are read; the offset is the row's number";
    assert_eq!((read.rejects[0].offset, &*read.rejects[0].reason), (1, expected));
}

#[test]
fn text_inside_of_structs_is_found_by_its_path() {
    let reading = Reading { text: Some("struct.words".to_owned()), ..Reading::default() };
    let read = read(&pieces(&encoded(&corpus(), row_groups_of(6)), 1), &reading).unwrap();
    assert_eq!((read.docs.len(), read.rejects.len()), (15, 5));
    assert_eq!(read.docs[0], ("101".to_owned(), "w1".to_owned()));
}

#[test]
fn a_missing_field_is_reported_with_those_there_are() {
    let pieces = pieces(&encoded(&corpus(), row_groups_of(6)), 1);
    let error = |id: Option<&str>, text: &str| {
        let reading =
            Reading { id: id.map(str::to_owned), text: Some(text.to_owned()), ..Reading::default() };
        read(&pieces, &reading).unwrap_err().to_string()
    };
    assert_eq!(
        error(None, "body"),
        "\"corpus.parquet\" has no field \"body\"; it has id, text, list, struct.words, tag"
    );
    assert!(error(Some("uid"), "text").contains("no field \"uid\""));
    assert!(error(None, "list").contains("list (of another type)"));
}

#[test]
fn a_file_without_rows_is_empty() {
    let schema = Arc::new(Schema::new(vec![Field::new("text", DataType::Utf8, true)]));
    let file = encoded(&RecordBatch::new_empty(schema), row_groups_of(6));
    assert_eq!(read_file(&file), Read::default());
    assert_eq!(divide(&pieces(&file, 1), Vec::new()).unwrap(), Vec::new());
}

#[test]
fn a_cut_file_is_an_error() {
    let file = encoded(&corpus(), row_groups_of(6));
    for length in 0..file.len() {
        let error = PARQUET.open(&pieces(&file.slice(..length), 1)[0], &Reading::default()).err();
        assert!(error.is_some_and(|error| error.is_data()), "{length} bytes");
    }
}

/// Random bytes found this: the library reads a meaning that it does not know, and cannot write it.
#[test]
fn a_file_with_a_meaning_that_a_later_version_has_brought_is_refused() {
    let texts = StringArray::from_iter_values(["甲", "乙"]);
    let file = encoded(&batch_of(vec![("text", Arc::new(texts))]), WriterProperties::default());
    // The bytes are the name, the old kind of meaning, and the new kind, a union whose first field means
    // text.
    let text = b"text\x25\x00\x4c\x1c\x00\x00";
    let at = (0..file.len()).find(|&at| file[at..].starts_with(text)).unwrap();
    // They become a scale of 0 instead of the old kind, and field 9 of the union, which is reserved.
    let mut later = file.to_vec();
    later[at..at + text.len()].copy_from_slice(b"text\x35\x00\x3c\x9c\x00\x00");
    let refused = PARQUET.open(&pieces(&later.into(), 1)[0], &Reading::default()).err().unwrap().to_string();
    assert!(refused.contains("column \"text\" has a logical type of a later version"), "{refused}");
}

#[test]
fn rows_of_a_sorted_row_group_stay_sorted_and_with_no_others() {
    let sorting = vec![SortingColumn { column_idx: 0, descending: true, nulls_first: false }];
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(5))
        .set_sorting_columns(Some(sorting.clone()))
        .build();
    let texts = StringArray::from_iter_values((0..20).map(|row| format!("第{row}篇")));
    let batch = batch_of(vec![
        ("id", Arc::new(Int64Array::from_iter_values((0..20).map(|row| 100 - row % 5)))),
        ("text", Arc::new(texts)),
    ]);
    let file = encoded(&batch, properties);
    let fates = (0..20).map(|row| if row % 3 == 0 { removed(None) } else { Fate::Kept });
    for (name, part) in divide(&pieces(&file, 1), fates.collect()).unwrap() {
        let part = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(part)).unwrap();
        let groups = part.metadata().row_groups();
        assert_eq!(groups.len(), 4);
        for (number, group) in groups.iter().enumerate() {
            assert_eq!(group.sorting_columns(), Some(&sorting));
            let of_part = |row: &usize| row.is_multiple_of(3) == name.starts_with("removed");
            assert_eq!(group.num_rows(), (5 * number..5 * number + 5).filter(of_part).count() as i64);
        }
    }
}
