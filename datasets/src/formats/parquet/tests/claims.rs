//! Files whose metadata or pages claim what is not there. Random bytes found most of them.

use ::parquet::file::metadata::{
    ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader, ParquetMetaDataWriter,
};
use ::parquet::file::properties::WriterVersion;

use super::damage::{checked, read_and_divide};
use super::*;
use crate::formats::parquet::pages::page_header::PageHeader;

/// Returns the file with another footer.
fn with_columns(file: &Bytes, group: usize, change: impl Fn(&mut Vec<ColumnChunkMetaData>)) -> Bytes {
    let metadata = ParquetMetaDataReader::new().parse_and_finish(file).unwrap();
    let mut groups = metadata.row_groups().to_vec();
    let mut columns = groups[group].columns().to_vec();
    change(&mut columns);
    groups[group] = groups[group].clone().into_builder().set_column_metadata(columns).build().unwrap();
    let metadata = ParquetMetaData::new(metadata.file_metadata().clone(), groups);
    let mut bytes = file.to_vec();
    ParquetMetaDataWriter::new(&mut bytes, &metadata).finish().unwrap();
    Bytes::from(bytes)
}

/// Random bytes found this: the library allocated memory for as many values as the header of a dictionary
/// claims.
#[test]
fn a_dictionary_of_more_values_than_bytes_is_refused() {
    let words: DictionaryArray<arrow_array::types::Int32Type> =
        (0..20_000).map(|row| Some(if row % 2 == 0 { "甲" } else { "乙" })).collect();
    let file = encoded(&batch_of(vec![("text", Arc::new(words))]), WriterProperties::default());
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&file).unwrap();
    let start = metadata.row_group(0).column(0).dictionary_page_offset().unwrap() as usize;
    let header = PageHeader::read(&file[start..]).unwrap();
    assert!(header.is_dictionary());
    // Field 7 is the header of the dictionary, a struct whose first field is the number of values.
    let mut own = start..start + header.own_bytes as usize;
    let at = own.find(|&at| file[at..].starts_with(&[0x4c, 0x15, 4])).unwrap();
    let mut damaged = file.to_vec();
    damaged[at + 2] = 2 * 63;
    let read = read_file(&damaged.into());
    assert_eq!((read.docs.len(), read.rejects.len()), (0, 1));
    let reason = &read.rejects[0].reason;
    assert!(reason.contains("a dictionary of 63 values in 14 bytes"), "{reason}");
}

/// Random bytes found this: the library panicked when it had to write parts in this codec.
#[test]
fn a_codec_that_nobody_knows_costs_its_row_group() {
    let (file, _) = checked(WriterVersion::PARQUET_1_0);
    let file = with_columns(&file, 0, |columns| {
        columns[0] = columns[0].clone().into_builder().set_compression(Compression::LZO).build().unwrap();
    });
    let read = read_and_divide(&file, "");
    assert_eq!((read.docs.len(), read.rejects.len()), (45, 1));
    assert!(read.rejects[0].reason.contains("LZO"), "{}", read.rejects[0].reason);
}

#[test]
fn a_column_that_claims_the_bytes_of_another_costs_its_row_group() {
    let (file, _) = checked(WriterVersion::PARQUET_1_0);
    // The words of the second row group would become its texts, with correct checksums.
    let file = with_columns(&file, 1, |columns| {
        let text = columns[1].clone().into_builder();
        let other = columns[3].clone();
        columns[1] = text
            .set_dictionary_page_offset(other.dictionary_page_offset())
            .set_data_page_offset(other.data_page_offset())
            .set_total_compressed_size(other.compressed_size())
            .build()
            .unwrap();
    });
    let read = read_and_divide(&file, "");
    assert_eq!((read.docs.len(), read.rejects.len()), (45, 1));
    let expected =
        "rows 15 to 29, in row group 1: two columns claim the same bytes; the offset is the row's number";
    assert_eq!(read.rejects[0].reason, expected);
}

/// Random bytes found this: the library allocated memory for two billion lengths.
#[test]
fn a_page_that_claims_more_lengths_than_it_may_take_is_refused() {
    let texts = StringArray::from_iter_values((0..20_000).map(|row| format!("正文{row:05}")));
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_encoding(::parquet::basic::Encoding::DELTA_BYTE_ARRAY)
        .build();
    let file = encoded(&batch_of(vec![("text", Arc::new(texts))]), properties);
    // The header announces 20,000 numbers in blocks of 128 with 4 miniblocks. It comes once for the shared
    // prefixes, and once for the rest of each text.
    let header = [0x80, 0x01, 0x04, 0xa0, 0x9c, 0x01];
    let offsets: Vec<_> = (0..file.len()).filter(|&at| file[at..].starts_with(&header)).collect();
    assert_eq!(offsets.len(), 2);
    for offset in offsets {
        let mut damaged = file.to_vec();
        damaged[offset + 3..offset + 6].copy_from_slice(&[0xff, 0xff, 0x7f]);
        let reading = Reading { max_record_bytes: 1 << 16, block_bytes: 1 << 20, ..Reading::default() };
        let read = read(&pieces(&damaged.into(), 1), &reading).unwrap();
        assert_eq!((read.docs.len(), read.rejects.len()), (0, 1), "{:?}", read.rejects.first());
        let reason = &read.rejects[0].reason;
        assert!(reason.contains("bytes of lengths, where at most"), "{reason}");
    }
    assert_eq!(read_file(&file).docs.len(), 20_000);
}

#[test]
fn a_footer_that_would_explode_is_refused() {
    let footer_of = |thrift: &[u8]| {
        let mut file = b"PAR1".to_vec();
        file.extend_from_slice(thrift);
        file.extend_from_slice(&(thrift.len() as u32).to_le_bytes());
        file.extend_from_slice(b"PAR1");
        let error = PARQUET.open(&pieces(&Bytes::from(file), 1)[0], &Reading::default()).err().unwrap();
        assert!(error.is_data());
        error.to_string()
    };
    // A schema of 30,000 groups, each in the one before, would overflow the library's stack.
    let mut deep = b"\x15\x02\x19\xfc\xb0\xea\x01".to_vec();
    deep.extend(b"\x48\x01a\x15\x02\x00".repeat(30_000));
    deep.extend_from_slice(b"\x16\x00\x19\x0c\x00");
    assert!(footer_of(&deep).contains("nested in more than 64 groups"), "{}", footer_of(&deep));
    let long = b"\x15\x02\x19\xfc\xff\xff\xff\xff\x07\x48\x01a\x15\x02\x00".repeat(2);
    assert!(footer_of(&long).contains("it does not end"), "{}", footer_of(&long));
    let encrypted = b"\x15\x02\x19\x1c\x48\x01a\x00\x16\x00\x19\x0c\x4c\x00\x00";
    assert!(footer_of(encrypted).contains("the file is encrypted"), "{}", footer_of(encrypted));
}

/// Random bytes found this: while skipping records, the library waited for ever for missing levels.
#[test]
fn a_page_with_fewer_levels_than_it_says_costs_its_rows() {
    // Each row is long enough to be a batch of its own, so the later ones are read by skipping the earlier
    // ones.
    let texts = StringArray::from_iter_values((0..5).map(|row| format!("{row}{}", "x".repeat(3 << 20))));
    let lists = ListArray::from_iter_primitive::<arrow_array::types::Int32Type, _, _>(
        (0..5).map(|row| Some(vec![Some(row), Some(row)])),
    );
    let file = encoded(
        &batch_of(vec![("text", Arc::new(texts)), ("list", Arc::new(lists))]),
        WriterProperties::default(),
    );
    // Two groups of bits for ten levels become a run of three.
    let levels = [5, 0xaa, 2];
    let at = (0..file.len()).find(|&at| file[at..].starts_with(&levels)).unwrap();
    let mut damaged = file.to_vec();
    damaged[at..at + 3].copy_from_slice(&[6, 0, 0]);
    let read = read_file(&damaged.into());
    assert_eq!((read.docs.len(), read.rejects.len()), (0, 1));
    let reason = &read.rejects[0].reason;
    assert!(reason.contains("3 repetition levels, where its header says 10"), "{reason}");
}
