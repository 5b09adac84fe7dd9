//! Makes small files that expand to a large content.

use std::io::{Cursor, Write};
use std::sync::Arc;

use arrow_array::{ArrayRef, FixedSizeBinaryArray, RecordBatch, StringArray, StructArray};
use flate2::write::{GzEncoder, ZlibEncoder};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

pub fn gzip(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes.as_ref()).unwrap();
    encoder.finish().unwrap()
}

pub fn bzip2(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
    encoder.write_all(bytes.as_ref()).unwrap();
    encoder.finish().unwrap()
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Returns a frame with a window of `2^window_log` bytes. It holds some bytes as they are, and then `blocks`
/// blocks of 128 KiB of newlines.
///
/// Source: RFC 8878, sections 3.1.1.1 and 3.1.1.2.
pub fn zstd_frame(window_log: u8, bytes: &[u8], blocks: usize) -> Vec<u8> {
    let header = |sort: u32, length: usize, last: bool| {
        (u32::from(last) | sort << 1 | (length as u32) << 3).to_le_bytes()[..3].to_vec()
    };
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, (window_log - 10) << 3];
    frame.extend([header(0, bytes.len(), false), bytes.to_vec()].concat());
    for block in 0..blocks {
        frame.extend(header(1, 128 << 10, block + 1 == blocks));
        frame.push(b'\n');
    }
    frame
}

/// Returns 100 MiB in each of Hadoop's codecs.
pub fn bombs() -> [(&'static str, Vec<u8>); 6] {
    let bytes = vec![b'x'; 100 << 20];
    // The frame and its chunk both announce the full length.
    let announced =
        [&(100_u32 << 20).to_be_bytes()[..], &4_u32.to_be_bytes(), b"\x80\x80\x80\x32", &[0; 1 << 20]];
    [
        ("DefaultCodec", zlib(&bytes)),
        ("GzipCodec", gzip(&bytes)),
        ("BZip2Codec", bzip2(&bytes[..20 << 20])),
        ("SnappyCodec", announced.concat()),
        ("Lz4Codec", announced.concat()),
        ("ZStandardCodec", zstd_frame(22, b"x", 1_600)),
    ]
}

const SYNC: [u8; 16] = *b"a sync marker 16";

fn vint(number: usize) -> Vec<u8> {
    match number {
        0..128 => vec![number as u8],
        _ => {
            let bytes: Vec<u8> = number.to_be_bytes().into_iter().skip_while(|&byte| byte == 0).collect();
            [&[(-112 - bytes.len() as i8) as u8][..], &bytes].concat()
        }
    }
}

fn string(text: &str) -> Vec<u8> {
    [&vint(text.len())[..], text.as_bytes()].concat()
}

fn sequence_head(codec: &str, blocks: bool) -> Vec<u8> {
    let text = string("org.apache.hadoop.io.Text");
    let codec = string(&format!("org.apache.hadoop.io.compress.{codec}"));
    [b"SEQ\x06", &text[..], &text, &[1, u8::from(blocks)], &codec, &[0; 4], &SYNC].concat()
}

/// Returns a SequenceFile of one record, whose value is compressed.
pub fn sequence_of_values(codec: &str, value: &[u8]) -> Vec<u8> {
    let number = |number: usize| (number as u32).to_be_bytes();
    [&sequence_head(codec, false)[..], &number(2 + value.len()), &number(2), b"\x01k", value].concat()
}

/// Returns a SequenceFile of one block of one record, whose values, and whose lengths, are these bytes.
pub fn sequence_of_a_block(codec: &str, values: &[u8]) -> Vec<u8> {
    let part = |bytes: &[u8]| [&vint(bytes.len())[..], bytes].concat();
    let parts = [part(values), part(values), part(values), part(values)].concat();
    [&sequence_head(codec, true)[..], &[0xff; 4], &SYNC, &vint(1), &parts].concat()
}

/// Returns a SequenceFile of `records` empty texts, each with this key.
pub fn sequence_of_keys(key: &str, records: usize) -> Vec<u8> {
    let text = string("org.apache.hadoop.io.Text");
    let number = |number: usize| (number as u32).to_be_bytes();
    let key = string(key);
    let record = [&number(key.len() + 1)[..], &number(key.len()), &key, &[0]].concat();
    [b"SEQ\x06", &text[..], &text, &[0, 0], &[0; 4], &SYNC, &record.repeat(records)].concat()
}

/// Returns a SequenceFile with a metadata entry of `bytes` bytes.
pub fn sequence_with_metadata(bytes: usize) -> Vec<u8> {
    let text = string("org.apache.hadoop.io.Text");
    let entry = [&1_u32.to_be_bytes()[..], &string("k"), &vint(bytes), &vec![b'x'; bytes]].concat();
    [b"SEQ\x06", &text[..], &text, &[0, 0], &entry, &SYNC].concat()
}

fn parquet(columns: Vec<(String, ArrayRef)>, properties: WriterPropertiesBuilder) -> Vec<u8> {
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, column)| (name, column, true)),
    );
    let batch = batch.unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties.build())).unwrap();
    for row in (0..batch.num_rows()).step_by(100) {
        writer.write(&batch.slice(row, 100.min(batch.num_rows() - row))).unwrap();
    }
    writer.into_inner().unwrap()
}

fn texts<T: AsRef<str>>(texts: &[T]) -> (String, ArrayRef) {
    ("text".to_owned(), Arc::new(StringArray::from_iter_values(texts)))
}

/// Returns a file of `rows` copies of one text. `how`: compressed with `zstd`, in a `dictionary`, or each as
/// a `delta` to the one before.
pub fn parquet_of_text(text: &str, rows: usize, how: &str) -> Vec<u8> {
    let properties = WriterProperties::builder().set_dictionary_enabled(how == "dictionary");
    let properties = match how {
        "zstd" => properties.set_compression(Compression::ZSTD(ZstdLevel::default())),
        "delta" => properties.set_encoding(Encoding::DELTA_BYTE_ARRAY),
        _ => properties.set_dictionary_page_size_limit(4 << 20),
    };
    let some = rows.min(20);
    let batch = RecordBatch::try_from_iter([texts(&vec![text; some])]).unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties.build())).unwrap();
    (0..rows / some).for_each(|_| writer.write(&batch).unwrap());
    writer.into_inner().unwrap()
}

/// Returns a file with a column whose values have a length of `bytes` and are all missing.
pub fn parquet_of_nulls(bytes: i32, rows: usize) -> Vec<u8> {
    let some = 10;
    let nulls = FixedSizeBinaryArray::new_null(bytes, some);
    let all: Vec<String> = (0..some).map(|row| row.to_string()).collect();
    let columns = [texts(&all), ("fixed".to_owned(), Arc::new(nulls) as ArrayRef)];
    let batch = RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true)));
    let batch = batch.unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    (0..rows / some).for_each(|_| writer.write(&batch).unwrap());
    writer.into_inner().unwrap()
}

/// Returns a file of one row with `columns` columns.
pub fn parquet_of_columns(columns: usize) -> Vec<u8> {
    let all = (0..columns).map(|at| (format!("column{at}"), texts(&["a"]).1));
    parquet(all.chain([texts(&["a"])]).collect(), WriterProperties::builder())
}

/// Returns a file of one row whose footer has an entry of `bytes` bytes.
pub fn parquet_with_metadata(bytes: usize) -> Vec<u8> {
    let entry = KeyValue::new("k".to_owned(), "x".repeat(bytes));
    let properties = WriterProperties::builder().set_key_value_metadata(Some(vec![entry]));
    parquet(vec![texts(&["a"])], properties)
}

/// Returns a Word document whose body has `bytes` bytes.
pub fn docx_bomb(bytes: usize) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    archive.start_file("word/document.xml", SimpleFileOptions::default()).unwrap();
    archive.write_all(&vec![b' '; bytes]).unwrap();
    archive.finish().unwrap().into_inner()
}

/// Returns a PDF whose page has `mebibytes` MiB of instructions.
pub fn pdf_bomb(mebibytes: usize) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    (0..mebibytes).for_each(|_| encoder.write_all(&[b' '; 1 << 20]).unwrap());
    let page = encoder.finish().unwrap();
    let mut pdf = b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n\
        2 0 obj<</Type/Pages/Count 1/Kids[3 0 R]>>endobj\n\
        3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 4 0 R/Resources<<>>>>endobj\n"
        .to_vec();
    pdf.extend(format!("4 0 obj<</Filter/FlateDecode/Length {}>>stream\n", page.len()).bytes());
    pdf.extend(page);
    pdf.extend(b"\nendstream endobj\ntrailer<</Size 5/Root 1 0 R>>\n%%EOF\n");
    pdf
}

/// Returns a file with the same text in every row of a column within a struct.
pub fn parquet_of_nested_text(text: &str, rows: usize) -> Vec<u8> {
    let (_, inner) = texts(&vec![text; 20]);
    let nested = StructArray::try_from(vec![("inner", inner)]).unwrap();
    let ids: Vec<String> = (0..20).map(|row| row.to_string()).collect();
    let columns = [texts(&ids), ("nested".to_owned(), Arc::new(nested) as ArrayRef)];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let properties = WriterProperties::builder().set_dictionary_page_size_limit(4 << 20).build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
    (0..rows / 20).for_each(|_| writer.write(&batch).unwrap());
    writer.into_inner().unwrap()
}
