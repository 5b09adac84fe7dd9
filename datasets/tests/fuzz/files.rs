//! The parsers, and the valid files that their inputs are made from.

use std::io::{Cursor, Write};
use std::sync::{Arc, Mutex};

use arrow_array::builder::{FixedSizeBinaryBuilder, ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use datasets::{Codec, Container, Content, FORMATS, Format, PartOutput};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding};
use parquet::file::properties::{WriterProperties, WriterVersion};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::mutate::Random;

/// A format, or the part of a format that its inputs reach.
pub struct Parser {
    pub name: &'static str,
    format: &'static str,
    /// Name of the file, by which some formats are recognised.
    pub path: &'static str,
    /// Creates the valid files.
    pub files: fn() -> Vec<Vec<u8>>,
    /// Final step for a damaged file. It may compress the file, so that the damage is inside.
    pub finish: fn(Vec<u8>, &mut Random) -> Vec<u8>,
    /// Allocation limit in bytes, if it differs from the usual one. The decoders of PDF and ZIP are bounded
    /// by the process that they run in.
    pub most_allocated: Option<usize>,
}

impl Parser {
    pub fn format(&self) -> &'static dyn Format {
        *FORMATS.iter().find(|format| format.name() == self.format).unwrap()
    }
}

const fn parser(
    name: &'static str,
    format: &'static str,
    path: &'static str,
    files: fn() -> Vec<Vec<u8>>,
) -> Parser {
    Parser { name, format, path, files, finish: as_is, most_allocated: None }
}

pub const PARSERS: &[Parser] = &[
    parser("jsonl", "jsonl", "/a.jsonl", jsonl),
    parser("jsonl-encodings", "jsonl", "/a.jsonl", || {
        jsonl().iter().flat_map(|text| encoded(text)).collect()
    }),
    parser("gzip", "jsonl", "/a.jsonl.gz", || jsonl().iter().map(|text| gzip(text)).collect()),
    parser("zstd", "jsonl", "/a.jsonl.zst", || {
        jsonl().iter().map(|text| zstd::encode_all(&text[..], 3).unwrap()).collect()
    }),
    parser("bzip2", "jsonl", "/a.jsonl.bz2", || jsonl().iter().map(|text| bzip2(text)).collect()),
    Parser { finish: |bytes, _| gzip(&bytes), ..parser("in-gzip", "jsonl", "/a.jsonl.gz", jsonl) },
    parser("csv", "csv", "/a.csv", csv),
    parser("csv-encodings", "csv", "/a.csv", || csv().iter().flat_map(|text| encoded(text)).collect()),
    parser("weibo-csv", "weibo-csv", "/a.csv", || {
        vec![b"userid,text\r\n1,\"a, b\"\r\n2,\xd0\xc2\xce\xc5\r\n".repeat(5)]
    }),
    parser("sogoucs", "sogoucs", "/a.dat", sogou),
    parser("warc", "warc", "/a.warc", || vec![warc()]),
    parser("tancorp", "tancorp", "/class/a.txt", || {
        encoded("新华社北京电 国家统计局\n".repeat(20).as_bytes())
    }),
    parser("lines", "lines", "/a.txt", || encoded("新华社北京电\n国家统计局\n\nabc\n".repeat(20).as_bytes())),
    parser("sequencefile", "sequencefile", "/a.seq", sequence_files),
    parser("parquet", "parquet", "/a.parquet", parquet_files),
    parser("parquet-footer", "parquet", "/a.parquet", parquet_of_little),
    Parser {
        finish: zipped,
        most_allocated: Some(128 << 20),
        ..parser("docx-xml", "office", "/a.docx", || vec![docx_xml()])
    },
    Parser {
        most_allocated: Some(128 << 20),
        ..parser("docx", "office", "/a.docx", || vec![zip(&docx_xml())])
    },
    Parser { most_allocated: Some(512 << 20), ..parser("pdf", "office", "/a.pdf", || vec![pdf()]) },
];

fn as_is(bytes: Vec<u8>, _: &mut Random) -> Vec<u8> {
    bytes
}

const TEXT: &str = "新华社北京电 国家统计局十九日发布数据,前三季度国内生产总值同比增长百分之五点二。";

fn jsonl() -> Vec<Vec<u8>> {
    let lines: String = (0..40)
        .map(|at| format!("{{\"id\":\"{at}\",\"text\":\"{TEXT}{at}\\n\\u65b0\\ud83d\\ude00\",\"x\":[1,{{\"y\":null}}]}}\n"))
        .collect();
    let numbers = "{\"id\":-1.5e7,\"text\":\"a\",\"text\":\"b\",\"reason\":1,\"reason_dedup\":2}\r\n\n";
    vec![lines.into_bytes(), numbers.repeat(30).into_bytes()]
}

fn csv() -> Vec<Vec<u8>> {
    let rows: String = (0..40).map(|at| format!("{at},\"{TEXT}\n\"\"{at}\"\"\",x\r\n")).collect();
    vec![format!("id,text,\"more, \"\r\n{rows}").into_bytes(), b"text\na\nb\n\nc".repeat(9)]
}

fn sogou() -> Vec<Vec<u8>> {
    let doc = |at: usize| {
        format!(
            "<doc>\n<url>http://a.b/{at}</url>\n<docno>{at}</docno>\n<contenttitle>{TEXT}</contenttitle>\n\
             <content>{TEXT}{at}</content>\n</doc>\n"
        )
    };
    let docs: String = (0..20).map(doc).collect();
    [docs.clone().into_bytes(), format!("<docs>\n{docs}</docs>\n").into_bytes()]
        .into_iter()
        .flat_map(|text| encoded(&text))
        .collect()
}

fn warc() -> Vec<u8> {
    let record = |at: usize| {
        let text = format!("{TEXT}\r\n\r\nWARC/1.0\r\n{at}");
        let length = text.len();
        format!(
            "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Record-ID: <{at}>\r\nContent-Length: {length}\r\n\r\n{text}\r\n\r\n"
        )
    };
    let response = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    let length = response.len();
    let crawled = format!(
        "WARC/1.1\r\nWARC-Type: response\r\nContent-Type: application/http\r\nContent-Length: {length}\r\n\r\n{response}\r\n\r\n"
    );
    [(0..10).map(record).collect::<String>(), crawled.repeat(3)].concat().into_bytes()
}

/// Returns the text in each encoding, with a byte order mark where the encoding needs one.
fn encoded(text: &[u8]) -> Vec<Vec<u8>> {
    let text = String::from_utf8_lossy(text);
    let utf16 = |mark: char| -> Vec<u16> {
        mark.encode_utf16(&mut [0; 1]).iter().copied().chain(text.encode_utf16()).collect()
    };
    let units = utf16('\u{feff}');
    vec![
        text.as_bytes().to_vec(),
        encoding_rs::GB18030.encode(&text).0.into_owned(),
        encoding_rs::BIG5.encode(&text).0.into_owned(),
        units.iter().flat_map(|unit| unit.to_le_bytes()).collect(),
        units.iter().flat_map(|unit| unit.to_be_bytes()).collect(),
    ]
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Output file whose bytes its creator can read.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl PartOutput for Kept {
    fn finish(self: Box<Self>, _records: u64) -> Result<(), cluster::Error> {
        Ok(())
    }
}

/// Returns SequenceFiles in blocks by each codec, uncompressed, and with each value compressed.
fn sequence_files() -> Vec<Vec<u8>> {
    let codecs = [Codec::Zlib, Codec::Gzip, Codec::Bzip2, Codec::Snappy, Codec::Lz4, Codec::Zstd];
    let mut files: Vec<Vec<u8>> = codecs
        .iter()
        .map(|&codec| {
            let kept = Kept::default();
            let output: Box<dyn PartOutput> = Box::new(kept.clone());
            let mut writer = Container::SequenceFile(codec).create(output, Content::Text, "seed").unwrap();
            (0..30).for_each(|at| writer.append(&at.to_string(), TEXT.repeat(at).as_bytes()).unwrap());
            writer.finish().unwrap();
            kept.0.lock().unwrap().clone()
        })
        .collect();
    let string = |text: &str| [&[text.len() as u8][..], text.as_bytes()].concat();
    let class = string("org.apache.hadoop.io.Text");
    let codec = string("org.apache.hadoop.io.compress.DefaultCodec");
    let record = |key: &str, value: &[u8]| {
        let key = string(key);
        let lengths = [key.len() + value.len(), key.len()].map(|length| (length as u32).to_be_bytes());
        [&lengths[0][..], &lengths[1], &key, value].concat()
    };
    let mut deflated = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    deflated.write_all(&string("a value that is compressed")).unwrap();
    let plain = record("key", &string("a value"));
    let deflated = record("key", &deflated.finish().unwrap());
    let sync = *b"a sync marker 16";
    let marker = [&[0xff; 4][..], &sync].concat();
    files.push(
        [b"SEQ\x06", &class[..], &class, &[0, 0], &[0; 4], &sync, &plain, &marker, &plain.repeat(9)].concat(),
    );
    files.push(
        [
            b"SEQ\x06",
            &class[..],
            &class,
            &[1, 0],
            &codec,
            &[0; 4],
            &sync,
            &deflated.repeat(9),
            &marker,
            &deflated,
        ]
        .concat(),
    );
    files
}

/// Returns Parquet files with lists, missing values, dictionaries, both versions of pages, and several
/// codecs.
fn parquet_files() -> Vec<Vec<u8>> {
    let texts: Vec<String> = (0..60).map(|at| format!("{TEXT}{}", at % 7)).collect();
    let mut list = ListBuilder::new(StringBuilder::new());
    let mut fixed = FixedSizeBinaryBuilder::new(6);
    for at in 0..60 {
        (0..at % 4).for_each(|value| list.values().append_value(value.to_string()));
        list.append(at % 5 != 0);
        if at % 3 == 0 { fixed.append_null() } else { fixed.append_value([at as u8; 6]).unwrap() }
    }
    let columns: [(&str, ArrayRef); 4] = [
        ("id", Arc::new(Int64Array::from_iter((0..60).map(|at| (at % 9 != 0).then_some(at))))),
        ("text", Arc::new(StringArray::from_iter_values(&texts))),
        ("list", Arc::new(list.finish())),
        ("fixed", Arc::new(fixed.finish())),
    ];
    let batch =
        RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap();
    let properties =
        || WriterProperties::builder().set_data_page_row_count_limit(20).set_write_batch_size(10);
    [
        properties(),
        properties().set_writer_version(WriterVersion::PARQUET_2_0).set_compression(Compression::SNAPPY),
        properties()
            .set_dictionary_enabled(false)
            .set_compression(Compression::LZ4_RAW)
            .set_max_row_group_row_count(Some(25)),
        properties()
            .set_dictionary_enabled(false)
            .set_column_encoding("text".into(), Encoding::DELTA_BYTE_ARRAY),
    ]
    // Row groups without lists are cut.
    .into_iter()
    .flat_map(|properties| {
        let properties = properties.build();
        let flat = batch.project(&[0, 1, 3]).unwrap();
        [written(&batch, properties.clone()), written(&flat, properties)]
    })
    .collect()
}

/// Returns files that consist mostly of their footer.
fn parquet_of_little() -> Vec<Vec<u8>> {
    let column: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
    let batch = RecordBatch::try_from_iter(
        (0..6).map(|at| (format!("t{at}"), column.clone())).chain([("text".to_owned(), column.clone())]),
    );
    vec![written(&batch.unwrap(), WriterProperties::default())]
}

fn written(batch: &RecordBatch, properties: WriterProperties) -> Vec<u8> {
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.into_inner().unwrap()
}

fn docx_xml() -> Vec<u8> {
    let name = "http://schemas.openxmlformats.org/wordprocessingml/2006/main";
    let paragraph = format!(
        "<w:p><w:pPr><w:jc w:val=\"x\"/></w:pPr><w:r><w:t>{TEXT} &amp; &#x4E00;</w:t><w:tab/></w:r></w:p>"
    );
    let table = format!("<w:tbl><w:tr><w:tc>{paragraph}</w:tc></w:tr></w:tbl><w:del>{paragraph}</w:del>");
    let body = format!("{paragraph}{table}").repeat(5);
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?><w:document xmlns:w=\"{name}\"><w:body>{body}</w:body></w:document>").into_bytes()
}

fn zip(xml: &[u8]) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in [("[Content_Types].xml", &b"<Types/>"[..]), ("word/document.xml", xml)] {
        archive.start_file(name, SimpleFileOptions::default()).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

fn zipped(xml: Vec<u8>, _: &mut Random) -> Vec<u8> {
    zip(&xml)
}

fn pdf() -> Vec<u8> {
    let page = b"BT /F 12 Tf 50 800 Td (hello dev, this is a page) Tj 0 -20 Td [(and) -200 (more)] TJ ET";
    let objects = [
        b"<</Type/Catalog/Pages 2 0 R>>".to_vec(),
        b"<</Type/Pages/Count 1/Kids[3 0 R]>>".to_vec(),
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 4 0 R/Resources<</Font<</F<</Type/Font\
          /Subtype/Type1/BaseFont/Helvetica>>>>>>>>"
            .to_vec(),
        [format!("<</Length {}>>stream\n", page.len()).as_bytes(), page, b"\nendstream"].concat(),
    ];
    let mut bytes = b"%PDF-1.4\n".to_vec();
    let mut table = format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
    for (object, number) in objects.iter().zip(1..) {
        table += &format!("{:010} 00000 n \n", bytes.len());
        bytes.extend([format!("{number} 0 obj").as_bytes(), object, b"\nendobj\n"].concat());
    }
    let start = bytes.len();
    table += &format!("trailer<</Size {}/Root 1 0 R>>\nstartxref\n{start}\n%%EOF\n", objects.len() + 1);
    [bytes, table.into_bytes()].concat()
}
