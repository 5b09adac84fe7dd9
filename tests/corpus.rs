//! Makes the corpora that several tests use.

use std::fmt::Display;
use std::fs::{self, File};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray, UInt32Array};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use serde_json::Value;

use crate::support::Folder;

/// Returns a JSON line of an id and a text that need no escapes.
pub fn json_line(id: impl Display, text: impl Display) -> String {
    format!("{{\"id\":\"{id}\",\"text\":\"{text}\"}}\n")
}

/// Returns such lines.
pub fn json_lines<I: Display, T: Display>(docs: impl IntoIterator<Item = (I, T)>) -> String {
    docs.into_iter().map(|(id, text)| json_line(id, text)).collect()
}

/// Makes three documents in `a.jsonl`, of which the last equals the first.
pub fn small() -> Folder {
    let here = Folder::new();
    here.write("a.jsonl", json_lines([("a", "今天"), ("b", "明天"), ("c", "今天")]));
    here
}

/// Makes the demo corpus in the folder `demo`.
pub fn demo(documents: u32, seed: u64) -> Folder {
    let here = Folder::new();
    here.run(&format!("demo demo --documents {documents} --seed {seed}")).ends(0);
    here
}

/// Writes the demo corpus of 3,000 documents into a file `in.jsonl`, and a bad line.
pub fn with_bad_line() -> Folder {
    let here = demo(3000, 5);
    let lines = fs::read(here.path("demo/corpus.jsonl")).unwrap();
    here.write("in.jsonl", [&lines[..], b"bad\n"].concat());
    here
}

/// Writes 2,000 documents of the demo corpus in two files of JSON lines and two of Parquet, and 20 bad lines.
pub fn of_formats() -> Folder {
    let here = demo(2000, 3);
    let lines = here.lines("demo", "corpus.jsonl");
    let quarter = |number: usize| &lines[500 * number..500 * (number + 1)];
    let with_bad_lines = |lines: &[String]| {
        let bad = ["bad", "{\"id\":\"bad\"}", "\n{", "{\"text\":1}", "[]"].into_iter().cycle();
        let fifties = lines.chunks(50).zip(bad).map(|(lines, bad)| format!("{bad}\n{}", lines.join("\n")));
        fifties.collect::<Vec<_>>().join("\n")
    };
    here.write("in/a.jsonl", with_bad_lines(quarter(0)));
    here.write("in/b.jsonl", with_bad_lines(quarter(1)));
    write_parquet(&here, "in/c.parquet", quarter(2));
    write_parquet(&here, "in/d.parquet", quarter(3));
    // Each file that cannot be opened is one rejected record, however many splits it has.
    here.write("in/e.parquet", [&[0; 9000], &b"PAR1"[..]].concat());
    here.write("in/f.seq", [b"SEQ\x06".as_slice(), &[0xFF; 9000]].concat());
    here
}

/// Writes Parquet in row groups of 64 rows, so that small splits have some each.
pub fn write_parquet(here: &Folder, name: &str, lines: &[String]) {
    let docs: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let column = |name: &str| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(docs.iter().map(|doc| doc[name].as_str().unwrap())))
    };
    let numbers: ArrayRef =
        Arc::new(UInt32Array::from_iter((0..docs.len() as u32).map(|n| Some(n).filter(|n| n % 5 > 0))));
    let columns = [("text", column("text"), false), ("n", numbers, true), ("id", column("id"), false)];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(64)).build();
    let file = File::create(here.path(name)).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}
