//! The schema of Arrow beside the columns, to which removed parts add their fields.

use ::parquet::arrow::arrow_writer::ArrowWriterOptions;
use ::parquet::arrow::{ARROW_SCHEMA_META_KEY, encode_arrow_schema};
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use arrow_array::TimestampMillisecondArray;
use arrow_schema::TimeUnit;

use super::*;

#[test]
fn zones_and_units_that_the_columns_do_not_tell_stay() {
    let zone = Some("Asia/Shanghai".into());
    // Parquet has no seconds, so a writer stores milliseconds and says seconds beside them.
    let times = TimestampMillisecondArray::from(vec![1000, 2000]).with_timezone_opt(zone.clone());
    let batch =
        batch_of(vec![("text", Arc::new(StringArray::from(vec!["x", "x"]))), ("at", Arc::new(times))]);
    let fields = vec![
        Field::new("text", DataType::Utf8, true),
        Field::new("at", DataType::Timestamp(TimeUnit::Second, zone), true),
    ];
    let beside = |fields: Vec<Field>| encode_arrow_schema(&Schema::new(fields));
    let key_value = KeyValue::new(ARROW_SCHEMA_META_KEY.to_owned(), beside(fields.clone()));
    let properties = WriterProperties::builder().set_key_value_metadata(Some(vec![key_value])).build();
    let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
    let mut file = Vec::new();
    let mut writer = ArrowWriter::try_new_with_options(&mut file, batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();

    let parts = divide(&pieces(&Bytes::from(file), 1), vec![Fate::Kept, removed(None)]).unwrap();
    let more = ["duplicate_of", "cluster", "reason"].map(|name| Field::new(name, DataType::Utf8, false));
    let [duplicate_of, cluster, reason] = more;
    let similarity = Field::new("similarity", DataType::Float64, true);
    let with_reasons = [fields.clone(), vec![duplicate_of, similarity, cluster, reason]].concat();
    for (name, bytes) in parts {
        let reader = SerializedFileReader::new(Bytes::from(bytes)).unwrap();
        let key_values = reader.metadata().file_metadata().key_value_metadata().unwrap().clone();
        let expected = if name.starts_with("kept") { fields.clone() } else { with_reasons.clone() };
        assert_eq!(key_values[0].value.as_ref(), Some(&beside(expected)), "{name}");
    }
}
