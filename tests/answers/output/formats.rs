//! Tests that kept records are those of the input, byte for byte and column for column; removed ones too,
//! with the reason of their removal.

use std::fs::File;
use std::io::{Read, Write};
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};

use super::{METHOD, check_tables, decisions, float, reasons, removal_members, sample};
use crate::answers::brute::{Decision, Doc};
use crate::corpus::json_line;
use crate::records::sequence;
use crate::support::{Folder, Run, sorted};

const SOME_SPLITS: &str = "--split-size 5K --workers 3";

fn dedup(here: &Folder, line: &str) -> Run {
    here.run(&format!("dedup {line} --method {METHOD} --quiet")).ends(0)
}

/// Returns the records of kept documents and of removed ones, in order.
fn divided<R: Clone>(docs: &[Doc], records: &[R]) -> (Vec<R>, Vec<R>) {
    let all = decisions(docs).into_iter().zip(records.iter().cloned());
    let (kept, removed): (Vec<_>, Vec<_>) = all.partition(|(decision, _)| *decision == Decision::Kept);
    let records = |divided: Vec<(Decision, R)>| divided.into_iter().map(|(_, record)| record).collect();
    (records(kept), records(removed))
}

/// Returns JSON lines as people write them: with other members, spaces, escapes, and line ends of DOS.
fn odd_lines(docs: &[Doc]) -> Vec<String> {
    let line = |(i, Doc { id, text }): (usize, &Doc)| match i % 4 {
        0 => format!("{{\"id\":\"{id}\",\"text\":\"{text}\"}}\n"),
        1 => format!(" {{ \"x\": [1, {{\"text\": null}}],\t\"text\" : \"{text}\",\"id\":\"{id}\" }} \r\n"),
        2 => format!("{{\"text\":\"{}\",\"id\":\"{id}\",\"n\":1.50e3}}\n", escaped(text)),
        _ => format!("{{\"id\":\"z\",\"id\":\"{id}\",\"text\":\"{text}\",\"t\":\"\u{2028}}}\"}}\n"),
    };
    docs.iter().enumerate().map(line).collect()
}

fn escaped(text: &str) -> String {
    text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect()
}

fn check_lines(docs: &[Doc], lines: &[String], kept: &str, removed: &str) {
    let (kept_lines, _) = divided(docs, lines);
    assert_eq!(kept, kept_lines.concat());
    let line = |(line, decision): (&String, &Decision)| {
        let (object, end) = line.split_at(line.rfind('}').unwrap());
        Some(format!("{object},{}{end}", removal_members(docs, decision)?))
    };
    assert_eq!(removed, lines.iter().zip(&decisions(docs)).filter_map(line).collect::<String>());
}

#[test]
fn json_lines_stay_byte_for_byte() {
    let here = Folder::new();
    let docs = sample();
    let lines = odd_lines(&docs);
    here.write("a.jsonl", lines.concat());
    for (output, options) in [("out", ""), ("pieces", SOME_SPLITS)] {
        dedup(&here, &format!("a.jsonl {output} {options}"));
        let text = |folder: &str| here.lines(&format!("{output}/{folder}"), ".jsonl").join("\n") + "\n";
        let raw =
            |folder: &str| String::from_utf8(here.bytes(&format!("{output}/{folder}"), ".jsonl")).unwrap();
        check_lines(&docs, &lines, &raw("kept"), &raw("removed"));
        assert!(text("removed").lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()));
        check_tables(&here, output, &docs);
    }
    assert_eq!(here.files("out/kept").len(), 1);
    assert!(here.files("pieces/kept").len() > 2);
}

#[test]
fn compressed_json_lines_stay_byte_for_byte_and_compressed() {
    let here = Folder::new();
    let docs = sample();
    let lines = odd_lines(&docs);
    let (gzip, zstd) = lines.split_at(10);
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(gzip.concat().as_bytes()).unwrap();
    here.write("a.jsonl.gz", encoder.finish().unwrap());
    here.write("b.jsonl.zst", zstd::encode_all(zstd.concat().as_bytes(), 3).unwrap());
    dedup(&here, "b.jsonl.zst a.jsonl.gz out --workers 2");
    let text = |folder: &str| {
        let mut text = String::new();
        let (gzip, zstd) = (here.bytes(folder, ".jsonl.gz"), here.bytes(folder, ".jsonl.zst"));
        assert!(!gzip.is_empty() && !zstd.is_empty());
        MultiGzDecoder::new(&gzip[..]).read_to_string(&mut text).unwrap();
        zstd::Decoder::new(&zstd[..]).unwrap().read_to_string(&mut text).unwrap();
        text
    };
    check_lines(&docs, &lines, &text("out/kept"), &text("out/removed"));
    check_tables(&here, "out", &docs);
}

#[test]
fn parquet_stays_column_for_column() {
    let here = Folder::new();
    let docs = sample();
    let text =
        |of: fn(&Doc) -> &str| -> ArrayRef { Arc::new(StringArray::from_iter_values(docs.iter().map(of))) };
    let numbers = (0..docs.len() as i64).map(|n| (n % 3 > 0).then_some(n << 40));
    let scores = (0..docs.len()).map(|n| (n % 4 > 0).then_some(n as f64 / 7.0));
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("n", Arc::new(Int64Array::from_iter(numbers)) as ArrayRef, true),
        ("text", text(|doc| &doc.text), false),
        ("score", Arc::new(Float64Array::from_iter(scores)), true),
        ("id", text(|doc| &doc.id), false),
        ("similarity", text(|_| "of the input"), true),
    ])
    .unwrap();
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY);
    let properties = properties.set_max_row_group_row_count(Some(5)).build();
    let file = File::create(here.path("a.parquet")).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();

    for (output, options) in [("out", ""), ("pieces", SOME_SPLITS)] {
        dedup(&here, &format!("a.parquet {output} {options}"));
        let (kept, removed) = divided(&docs, &here.rows("a.parquet"));
        assert_eq!(here.rows(&format!("{output}/kept")), kept);
        let decisions = decisions(&docs).into_iter();
        let more = decisions.filter_map(|decision| match decision {
            Decision::Kept => None,
            Decision::Removed(of, similarity, reason) => {
                let of = docs[of].id.clone();
                Some(vec![of.clone(), float(similarity.unwrap()), of, reason.to_owned()])
            }
        });
        let removed: Vec<_> = removed.into_iter().zip(more).map(|(row, more)| [row, more].concat()).collect();
        assert_eq!(here.rows(&format!("{output}/removed")), removed);
        check_tables(&here, output, &docs);
        for part in here.files(&format!("{output}/kept")) {
            let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(&part).unwrap()).unwrap();
            assert_eq!(*builder.schema(), batch.schema());
            let reader = SerializedFileReader::new(File::open(&part).unwrap()).unwrap();
            assert_eq!(reader.metadata().row_group(0).column(1).compression(), Compression::SNAPPY);
        }
    }
    assert!(here.files("pieces/kept").len() > 2);
    let part = SerializedFileReader::new(File::open(&here.files("out/removed")[0]).unwrap()).unwrap();
    let columns = part.metadata().file_metadata().schema().get_fields().iter().map(|f| f.name().to_owned());
    let columns: Vec<_> = columns.collect();
    assert_eq!(columns[..5], ["n", "text", "score", "id", "similarity"]);
    assert_eq!(
        (columns[5].as_str(), columns[7].as_str(), columns[8].as_str()),
        ("duplicate_of", "cluster", "reason")
    );
    assert!(columns[6].starts_with("similarity") && columns[6] != "similarity", "{columns:?}");
}

#[test]
fn sequence_files_keep_keys_and_values() {
    let here = Folder::new();
    let docs = sample();
    let records: Vec<_> = docs.iter().map(|doc| (doc.id.clone(), doc.text.clone())).collect();
    here.write("a.seq", sequence::written(&records, 6));
    for (output, options) in [("out", ""), ("pieces", SOME_SPLITS)] {
        dedup(&here, &format!("a.seq {output} {options}"));
        let read = |folder: &str| -> Vec<_> {
            let parts = here.files(&format!("{output}/{folder}")).into_iter();
            let parts = parts.filter(|part| part.extension().unwrap() == "seq");
            parts.flat_map(|part| sequence::read(&std::fs::read(part).unwrap())).collect()
        };
        assert_eq!((read("kept"), read("removed")), divided(&docs, &records));
        assert_eq!(here.lines(&format!("{output}/removed/_reasons"), ".jsonl"), reasons(&docs));
        check_tables(&here, output, &docs);
    }
    assert!(here.files("pieces/kept").len() > 2);
}

#[test]
fn sogou_documents_stay_byte_for_byte() {
    let here = Folder::new();
    let docs = sample();
    let element = |Doc { id, text }: &Doc| {
        let (title, content) = text.split_once(['，', ',']).unwrap();
        format!(
            "<doc>\n<url>http://news.example/{id}</url>\n<docno>{id}</docno>\n\
             <contenttitle>{title}</contenttitle>\n<content>{content}</content>\n</doc>\n"
        )
    };
    let elements: Vec<Vec<u8>> =
        docs.iter().map(|doc| encoding_rs::GB18030.encode(&element(doc)).0.into_owned()).collect();
    here.write("a.dat", elements.concat());
    // A newline stands where the first comma was.
    let title_is_text = |doc: &Doc| Doc::new(&doc.id, doc.text.replacen(['，', ','], "\n", 1));
    let docs: Vec<Doc> = docs.iter().map(title_is_text).collect();
    for (output, options) in [("out", ""), ("pieces", SOME_SPLITS)] {
        dedup(&here, &format!("a.dat {output} {options}"));
        let (kept, removed) = divided(&docs, &elements);
        assert!(here.bytes(&format!("{output}/kept"), ".dat") == kept.concat());
        assert!(here.bytes(&format!("{output}/removed"), ".dat") == removed.concat());
        assert_eq!(here.lines(&format!("{output}/removed/_reasons"), ".jsonl"), reasons(&docs));
        check_tables(&here, output, &docs);
    }
}

/// Writes a tree of files like TanCorp's. Returns the documents in the order of their paths, and the bytes of
/// the files.
fn tree(here: &Folder, root: &str) -> (Vec<Doc>, Vec<Vec<u8>>) {
    let mut docs: Vec<Doc> = sample();
    for (i, doc) in docs.iter_mut().enumerate() {
        doc.id = format!("{}/{}.txt", ["艺术", "Law", "Law/上海"][i % 3], doc.id);
    }
    docs.sort_by(|a, b| a.id.cmp(&b.id));
    let gbk = |text: &str| encoding_rs::GBK.encode(text).0.into_owned();
    let bytes: Vec<_> = docs.iter().map(|doc| gbk(&doc.text)).collect();
    docs.iter().zip(&bytes).for_each(|(doc, bytes)| here.write(&format!("{root}/{}", doc.id), bytes));
    (docs, bytes)
}

#[test]
fn files_of_a_tree_stay_as_they_are_in_their_folders() {
    let here = Folder::new();
    let (docs, bytes) = tree(&here, "tree");
    for (output, options) in [("out", ""), ("pieces", SOME_SPLITS)] {
        dedup(&here, &format!("tree {output} {options}"));
        let (kept, removed) = divided(&docs, &docs.iter().zip(&bytes).collect::<Vec<_>>());
        for (folder, docs) in [("kept", kept), ("removed", removed)] {
            for (doc, bytes) in &docs {
                let path = here.path(&format!("{output}/{folder}/{}", doc.id));
                assert!(std::fs::read(&path).unwrap() == **bytes, "{path:?}");
            }
            let files = here.files(&format!("{output}/{folder}"));
            assert_eq!(files.iter().filter(|file| file.extension().unwrap() == "txt").count(), docs.len());
        }
        assert_eq!(here.lines(&format!("{output}/removed/_reasons"), ".jsonl"), reasons(&docs));
        check_tables(&here, output, &docs);
    }
}

#[test]
fn files_of_one_name_in_two_inputs_are_two_documents() {
    let here = Folder::new();
    here.write("a/Art/1.txt", "第一个文件的内容");
    here.write("b/Art/1.txt", "另一个文件有别的内容");
    here.write("b/Law/1.txt", "第一个文件的内容");
    for inputs in ["a b", "b a", "a,b", "a/Art b/Art b/Law", "b/Law a/Art a/Art/1.txt b a"] {
        dedup(&here, &format!("{inputs} out --overwrite"));
        assert_eq!((here.counter("out", "kept"), here.counter("out", "removed")), (2, 1), "{inputs}");
        let bytes: Vec<_> =
            here.files("out/kept").iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
        assert_eq!(sorted(bytes), ["另一个文件有别的内容", "第一个文件的内容"], "{inputs}");
        let rows = here.rows("out/pairs");
        assert!(rows.len() == 1 && rows[0][0] != rows[0][1], "{inputs}: {rows:?}");
    }
}

#[test]
fn a_mixture_of_formats_is_one_corpus() {
    let here = Folder::new();
    let docs = sample();
    let (lines, rest) = docs.split_at(15);
    here.write("in/a.jsonl", Doc::json_lines(lines));
    let records: Vec<_> = rest.iter().map(|doc| (doc.id.clone(), doc.text.clone())).collect();
    here.write("in/b", sequence::written(&records, 3));
    dedup(&here, "in out");
    check_tables(&here, "out", &docs);
    assert_eq!(here.files("out/kept").len(), 2);
}

#[test]
fn a_corpus_of_which_nothing_is_kept_leaves_a_kept_part_of_its_format() {
    let here = Folder::new();
    here.write("empty.jsonl", "");
    here.write("blank.jsonl.gz", GzEncoder::new(Vec::new(), flate2::Compression::fast()).finish().unwrap());
    here.write("empty.csv", "id,text,more\r\n");
    here.write("bad.jsonl", "no object\n");
    here.write("empty.parquet", "");
    let schema =
        "message m { required binary id (STRING); required binary text (STRING); optional int64 n; }";
    let schema = parquet::schema::parser::parse_message_type(schema).unwrap();
    let file = File::create(here.path("empty.parquet")).unwrap();
    let writer = parquet::file::writer::SerializedFileWriter::new(file, Arc::new(schema), Arc::default());
    writer.unwrap().close().unwrap();
    for (input, part, contents) in [
        ("empty.jsonl", "part-00000.jsonl", Some("")),
        ("blank.jsonl.gz", "part-00000.jsonl.gz", None),
        ("empty.csv", "part-00000.csv", Some("id,text,more\r\n")),
        ("empty.parquet", "part-00000.parquet", None),
    ] {
        here.run(&format!("dedup {input} out-{input}/ --quiet --workers 2")).ends(0);
        let kept = here.files(&format!("out-{input}/kept"));
        assert_eq!(kept, [here.path(&format!("out-{input}/kept/{part}"))], "{input}");
        if let Some(contents) = contents {
            assert_eq!(std::fs::read_to_string(&kept[0]).unwrap(), contents, "{input}");
        }
        here.run(&format!("dedup out-{input}/kept again-{input}/ --quiet")).ends(0);
        assert_eq!(here.counter(&format!("again-{input}"), "records_read"), 0, "{input}");
    }
    let [of_input, of_kept] = ["empty.parquet", "out-empty.parquet/kept/part-00000.parquet"].map(|file| {
        let reader = SerializedFileReader::new(File::open(here.path(file)).unwrap()).unwrap();
        reader.metadata().file_metadata().schema().clone()
    });
    assert_eq!(of_kept, of_input);
    // Files that are one record each have no empty file of their format.
    here.write("ref.jsonl", json_line("r", "今天天气很好"));
    here.write("tree/Art/1.txt", "今天天气很好");
    here.run("dedup --against ref.jsonl tree out-tree --quiet").ends(0);
    assert_eq!(here.files("out-tree/kept"), [here.path("out-tree/kept/_empty")]);
    // With many splits, of which some keep a record, no empty part is needed.
    here.write("good.jsonl", json_line("a", "text"));
    here.run("dedup bad.jsonl good.jsonl out --split-size 10 --quiet").ends(3);
    assert_eq!(here.files("out/kept").len(), 1);
}
