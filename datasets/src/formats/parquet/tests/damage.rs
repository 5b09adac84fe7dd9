//! Damaged files: the damage costs only the rows that it hits.

use std::collections::BTreeMap;
use std::ops::Range;

use ::parquet::file::metadata::{
    ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader, ParquetMetaDataWriter,
};
use ::parquet::file::properties::WriterVersion;

use super::*;
use crate::formats::parquet::batches::{BatchRows, Batches};
use crate::formats::parquet::file::File;
use crate::formats::parquet::pages::page_header::PageHeader;
use crate::formats::parquet::thrift::Thrift;
use crate::testing::mutants;

/// Returns properties of four row groups of 15 rows, with each column in pages of five rows.
fn small_pages(version: WriterVersion) -> WriterProperties {
    WriterProperties::builder()
        .set_max_row_group_row_count(Some(15))
        .set_data_page_row_count_limit(5)
        .set_write_batch_size(5)
        .set_writer_version(version)
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_offset_index_disabled(true)
        .set_statistics_enabled(::parquet::file::properties::EnabledStatistics::None)
        .build()
}

/// Returns 60 rows: ids from 0 on, texts, numbers, words of a dictionary, and lists.
fn rows() -> RecordBatch {
    let texts = StringArray::from_iter_values((0..60).map(|row| format!("正文 number {row} {}", row * row)));
    let words: DictionaryArray<Int8Type> = (0..60).map(|row| Some(["a", "b", "c"][row % 3])).collect();
    let lists = ListArray::from_iter_primitive::<arrow_array::types::Int32Type, _, _>(
        (0..60).map(|row| (row % 3 != 0).then(|| vec![Some(row), None])),
    );
    batch_of(vec![
        ("id", Arc::new(Int64Array::from_iter_values(0..60))),
        ("text", Arc::new(texts)),
        ("number", Arc::new(Int32Array::from_iter_values((0..60).map(|row| row * 7919 % 61)))),
        ("word", Arc::new(words)),
        ("list", Arc::new(lists)),
    ])
}

/// A page of a file made by [`rebuilt`].
pub(super) struct PagePlace {
    group: usize,
    column: usize,
    dictionary: bool,
    /// Rows of the page in the row group, if its header tells them.
    rows: Option<Range<usize>>,
    start: usize,
    data: Range<usize>,
}

/// Returns the file with a checksum in the header of each page, which the library does not write, and with
/// other lengths in page headers where `uncompressed` says so.
fn rebuilt(
    file: &Bytes,
    checksums: bool,
    uncompressed: impl Fn(&PageHeader, usize) -> u64,
    total_bytes: Option<i64>,
) -> (Bytes, Vec<PagePlace>) {
    let metadata = ParquetMetaDataReader::new().parse_and_finish(file).unwrap();
    let mut out = b"PAR1".to_vec();
    let mut pages = Vec::new();
    let mut groups = Vec::new();
    for (group, row_group) in metadata.row_groups().iter().enumerate() {
        let mut columns: Vec<ColumnChunkMetaData> = Vec::new();
        for (column, chunk) in row_group.columns().iter().enumerate() {
            let (start, length) = chunk.byte_range();
            let mut at = start as usize;
            let end = (start + length) as usize;
            let chunk_start = out.len();
            let (mut first_data, mut row) = (None, 0);
            let repeated = chunk.column_descr().max_rep_level() > 0;
            while at < end {
                let header = PageHeader::read(&file[at..]).unwrap();
                let data = at + header.own_bytes as usize;
                let body = &file[data..data + header.compressed_bytes as usize];
                let page_start = out.len();
                let length = uncompressed(&header, column);
                put_header(&mut out, &file[at..data], length, checksums.then(|| crc32(body)));
                let dictionary = header.is_dictionary();
                let rows = header.rows(repeated).map(|rows| row..row + rows as usize);
                row = rows.as_ref().map_or(row, |rows| rows.end);
                pages.push(PagePlace {
                    group,
                    column,
                    dictionary,
                    rows,
                    start: page_start,
                    data: out.len()..out.len() + body.len(),
                });
                out.extend_from_slice(body);
                at = data + body.len();
                if !dictionary {
                    first_data.get_or_insert(page_start as i64);
                }
            }
            let chunk = chunk.clone().into_builder();
            let builder = match chunk_start as i64 == first_data.unwrap() {
                true => chunk.set_dictionary_page_offset(None),
                false => chunk.set_dictionary_page_offset(Some(chunk_start as i64)),
            };
            let builder = builder.set_data_page_offset(first_data.unwrap());
            columns
                .push(builder.set_total_compressed_size((out.len() - chunk_start) as i64).build().unwrap());
        }
        let total = total_bytes.unwrap_or(row_group.total_byte_size());
        let builder =
            row_group.clone().into_builder().set_column_metadata(columns).set_total_byte_size(total);
        groups.push(builder.build().unwrap());
    }
    let metadata = ParquetMetaData::new(metadata.file_metadata().clone(), groups);
    ParquetMetaDataWriter::new(&mut out, &metadata).finish().unwrap();
    (Bytes::from(out), pages)
}

/// Writes a page header with another second field, the uncompressed length, and with a fourth, the checksum.
fn put_header(out: &mut Vec<u8>, header: &[u8], uncompressed: u64, checksum: Option<u32>) {
    // Fields 1 to 3 are integers and come first. The numbers of later fields are relative to the third.
    let mut thrift = Thrift::new(&header[1..]);
    let kind = thrift.integer().unwrap();
    let second = 1 + thrift.position() + 1;
    let mut thrift = Thrift::new(&header[second..]);
    thrift.integer().unwrap();
    let mut after = second + thrift.position() + 1;
    let mut thrift = Thrift::new(&header[after..]);
    let compressed = thrift.integer().unwrap();
    after += thrift.position();
    for value in [kind, uncompressed as i64, compressed] {
        out.push(0x15);
        put_integer(out, value);
    }
    let mut next = header[after];
    if let Some(checksum) = checksum {
        out.push(0x15);
        put_integer(out, i64::from(checksum as i32));
        next -= 0x10;
    }
    out.push(next);
    out.extend_from_slice(&header[after + 1..]);
}

fn put_integer(out: &mut Vec<u8>, value: i64) {
    let mut bits = (value << 1 ^ value >> 63) as u64;
    while bits >= 0x80 {
        out.push(bits as u8 | 0x80);
        bits >>= 7;
    }
    out.push(bits as u8);
}

/// Computes the checksum of zlib and parquet, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| crc >> 1 ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    })
}

pub(super) fn checked(version: WriterVersion) -> (Bytes, Vec<PagePlace>) {
    rebuilt(&encoded(&rows(), small_pages(version)), true, |header, _| header.uncompressed_bytes, None)
}

/// Reads a damaged file, divides it, and checks that both find the same records.
pub(super) fn read_and_divide(file: &Bytes, why: &str) -> Read {
    let one = read_file(file);
    assert_eq!(one.failure, None, "{why}");
    let mut fates = vec![Fate::Kept; one.records as usize];
    for reject in &one.rejects {
        fates[reject.doc.record() as usize] = Fate::Rejected;
    }
    let parts = divide(&pieces(file, 1), fates).unwrap_or_else(|error| panic!("{why}: {error}"));
    // Other columns are copied with any contents, so the parts are not decoded.
    let rows = |part| {
        ParquetMetaDataReader::new().parse_and_finish(&Bytes::from(part)).unwrap().file_metadata().num_rows()
    };
    let copied: i64 = parts.into_iter().map(|(_, part)| rows(part)).sum();
    assert_eq!(copied as usize, one.docs.len(), "{why}");
    one
}

#[test]
fn a_bad_page_costs_its_own_rows_whichever_column_it_is_in() {
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        let second = version == WriterVersion::PARQUET_2_0;
        let (file, pages) = checked(version);
        let whole = read_file(&file);
        assert_eq!((whole.docs.len(), whole.rejects.len()), (60, 0));
        assert!(pages.iter().any(|page| page.dictionary) && pages.len() > 4 * 5 * 3);
        for page in &pages {
            let mut bytes = file.to_vec();
            bytes[page.data.start] ^= 1;
            let name = ["id", "text", "number", "word", "list.list.item"][page.column];
            let why = format!("{version:?}, column {name}, row group {}, page at {}", page.group, page.start);
            let read = read_and_divide(&Bytes::from(bytes.clone()), &why);
            let group = page.group * 15..page.group * 15 + 15;
            // A lost dictionary costs all rows that use it. Pages of the first version do not say how many
            // lists they hold, so they cost the rest of the row group, and the rows in a batch with it.
            let lost = match &page.rows {
                Some(rows) => group.start + rows.start..group.start + rows.end,
                None => group,
            };
            assert_eq!(page.rows.is_some(), !page.dictionary && (page.column < 4 || second), "{why}");
            let left: Vec<_> =
                whole.docs.iter().filter(|(id, _)| !lost.contains(&id.parse().unwrap())).cloned().collect();
            assert_eq!(read.docs, left, "{why}");
            let [reject] = &read.rejects[..] else { panic!("{why}: {:?}", read.rejects) };
            let expected = format!(
                "rows {} to {}, in row group {}: column \"{name}\", page at byte {}: Page CRC checksum mismatch; \
                 the offset is the row's number",
                lost.start,
                lost.end - 1,
                page.group,
                page.start
            );
            assert_eq!((reject.offset as usize, &*reject.reason), (lost.start, &*expected), "{why}");
            for count in [7, 64] {
                let pieces = pieces(&Bytes::from(bytes.clone()), count);
                assert_eq!(super::read(&pieces, &Reading::default()).unwrap(), read, "{why}, {count} pieces");
            }
        }
    }
}

/// Returns the rows without the column of lists, so that row groups are cut.
fn flat_rows() -> RecordBatch {
    rows().project(&[0, 1, 2, 3]).unwrap()
}

#[test]
fn a_loss_that_goes_on_in_other_pieces_is_one_reject() {
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        let file = encoded(&flat_rows(), small_pages(version));
        let (file, pages) = rebuilt(&file, true, |header, _| header.uncompressed_bytes, None);
        let (mut cut, mut losses) = (0, 0);
        for two in pages.windows(2) {
            let [page, next] = [&two[0], &two[1]];
            // Damage of the page, of its header, and of this page and the next one.
            for damaged in [vec![page.data.start], vec![page.start], vec![page.data.start, next.data.start]] {
                let mut bytes = file.to_vec();
                damaged.iter().for_each(|&at| bytes[at] ^= 1);
                let bytes = Bytes::from(bytes);
                let why = format!("{version:?}, damage at {damaged:?}");
                let whole = read_and_divide(&bytes, &why);
                losses += whole.rejects.len();
                for count in [3, 20, 100] {
                    let pieces = super::pieces(&bytes, count);
                    let read = super::read(&pieces, &Reading::default()).unwrap();
                    assert_eq!(read, whole, "{why}, {count} pieces");
                    let files = pieces.iter().map(|piece| File::open(piece, &Reading::default()).unwrap());
                    cut += files.flat_map(|file| file.groups).filter(|group| group.rows.start > 0).count();
                }
            }
        }
        assert!(losses > 100 && cut > 1000, "{losses} {cut}");
    }
}

#[test]
fn with_checksums_no_mutant_gives_another_text_or_loses_a_row_group_that_is_whole() {
    let (file, pages) = checked(WriterVersion::PARQUET_1_0);
    let whole: BTreeMap<_, _> = read_file(&file).docs.into_iter().collect();
    let (mut lost, mut refused, mut unharmed) = (0, 0, 0);
    for (bytes, damage) in mutants(&file, 2000) {
        let why = format!("bytes {damage:?}");
        let bytes = Bytes::from(bytes);
        if PARQUET.open(&pieces(&bytes, 1)[0], &Reading::default()).is_err() {
            assert!(damage.end > pages.last().unwrap().data.end || damage.start < 4, "{why}");
            refused += 1;
            continue;
        }
        let read = read_and_divide(&bytes, &why);
        assert!(read.records <= 60, "{why}");
        for (id, text) in &read.docs {
            let in_footer = damage.start > pages.last().unwrap().data.end;
            // The footer has no checksum, and names the columns.
            assert!(
                whole.get(id) == Some(text) || in_footer && id.contains(".parquet:"),
                "{why}: {id} {text}"
            );
        }
        if let Some(page) = pages.iter().find(|page| page.data.end > damage.start) {
            let others = whole.keys().filter(|id| id.parse::<usize>().unwrap() / 15 != page.group).count();
            assert!(read.docs.len() >= others, "{why}: {:?}", read.rejects);
        }
        match read.docs.len() {
            60 => unharmed += 1,
            _ => lost += 1,
        }
    }
    assert!(lost > 500 && refused > 200 && unharmed > 50, "{lost} {refused} {unharmed}");
}

#[test]
fn without_checksums_no_mutant_panics_or_gives_more_records_than_were_written() {
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        let file = encoded(&rows(), small_pages(version));
        let mut lost = 0;
        for (bytes, damage) in mutants(&file, 1000) {
            let bytes = Bytes::from(bytes);
            if PARQUET.open(&pieces(&bytes, 1)[0], &Reading::default()).is_ok() {
                let read = read_and_divide(&bytes, &format!("{version:?}, bytes {damage:?}"));
                assert!(read.records <= 60, "{version:?}, bytes {damage:?}");
                lost += usize::from(read.docs.len() < 60);
            }
        }
        assert!(lost > 100, "{lost}");
    }
}

#[test]
fn a_page_larger_than_the_bound_is_not_decompressed() {
    let file = encoded(&rows(), small_pages(WriterVersion::PARQUET_1_0));
    let large = |header: &PageHeader, column: usize| match (column, header.is_dictionary()) {
        (2, false) => 1 << 30,
        _ => header.uncompressed_bytes,
    };
    let (file, _) = rebuilt(&file, true, large, None);
    let read = read_and_divide(&file, "");
    assert_eq!((read.docs.len(), read.rejects.len()), (0, 4));
    let expected = "a page of 1073741824 bytes, where at most 268435456 are read";
    assert!(read.rejects.iter().all(|reject| reject.reason.contains(expected)), "{:?}", read.rejects);
}

#[test]
fn a_batch_of_too_many_large_pages_is_read_in_smaller_ones() {
    // The row group claims one byte a row, so that all 40 rows would be one batch.
    let texts = StringArray::from_iter_values((0..40).map(|row| "字".repeat(300_000 + row)));
    let properties = WriterProperties::builder()
        .set_data_page_row_count_limit(1)
        .set_write_batch_size(1)
        .set_dictionary_enabled(false)
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_statistics_enabled(::parquet::file::properties::EnabledStatistics::None)
        .build();
    let file = encoded(&batch_of(vec![("text", Arc::new(texts))]), properties);
    let (file, _) = rebuilt(&file, false, |header, _| header.uncompressed_bytes, Some(1));
    let reading = Reading::default();
    let mut batches = Batches::new(File::open(&pieces(&file, 1)[0], &reading).unwrap(), &reading);
    batches.page_bytes = 1 << 20;
    let mut sizes = Vec::new();
    let mut row = 0;
    while let Some(rows) = batches.next().unwrap() {
        let BatchRows::Batch { first_row, records } = rows else { panic!("rows are lost") };
        assert_eq!(first_row, row);
        row += records.num_rows() as u64;
        sizes.push(records.num_rows());
    }
    // The bound is 1 MiB, and 4 MiB for the one column; a text has 0.9 MB.
    assert!(row == 40 && sizes.iter().all(|&rows| rows <= 5), "{sizes:?}");
}

#[test]
fn rows_behind_damage_are_read_however_long_the_lists_are_that_must_be_passed_over() {
    let texts = StringArray::from_iter_values((0..40).map(|row| format!("text {row}")));
    let lists = ListArray::from_iter_primitive::<arrow_array::types::Int32Type, _, _>(
        (0..40).map(|row| Some((0..50_000).map(move |value| Some(value * row)))),
    );
    let properties = WriterProperties::builder()
        .set_data_page_row_count_limit(1)
        .set_write_batch_size(1)
        .set_dictionary_enabled(false)
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_statistics_enabled(::parquet::file::properties::EnabledStatistics::None)
        .build();
    let batch = batch_of(vec![("text", Arc::new(texts)), ("list", Arc::new(lists))]);
    let (file, pages) =
        rebuilt(&encoded(&batch, properties), true, |header, _| header.uncompressed_bytes, None);
    let bad = pages.iter().find(|page| page.column == 0 && page.rows == Some(3..4)).unwrap();
    let mut bytes = file.to_vec();
    bytes[bad.data.start] ^= 1;

    let reading = Reading::default();
    let mut batches =
        Batches::new(File::open(&pieces(&Bytes::from(bytes), 1)[0], &reading).unwrap(), &reading);
    batches.page_bytes = 1 << 20; // and 8 MiB for two columns; all lists take 24 MB
    let mut read = 0;
    let mut lost = Vec::new();
    while let Some(rows) = batches.next().unwrap() {
        match rows {
            BatchRows::Batch { records, .. } => read += records.num_rows(),
            BatchRows::Lost { first_row, reason } => lost.push((first_row, reason)),
        }
    }
    assert!(read == 39 && lost.len() == 1 && lost[0].0 == 3, "{read} {lost:?}");
}
