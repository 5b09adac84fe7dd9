//! Tests of Parquet from end to end: what damage and missing columns cost, and that other readers read what
//! the program writes.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use crate::support::{Folder, rows, run, sorted, test_data};

/// Writes a file of string columns.
fn write(path: &Path, columns: &[(&str, &[&str])]) {
    let columns = columns.iter().map(|(name, texts)| {
        let column: ArrayRef = Arc::new(StringArray::from_iter_values(texts.iter()));
        (name.to_string(), column)
    });
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

#[test]
fn a_file_without_the_text_column_costs_itself_unless_no_file_has_it() {
    let here = Folder::new();
    write(&here.path("in/a.parquet"), &[("body", &["one"])]);
    write(&here.path("in/b.parquet"), &[("text", &["two", "three"])]);
    for workers in [1, 2] {
        let done = here.run(&format!("dedup --workers {workers} --method exact --overwrite in out"));
        assert_eq!(done.code, Some(3), "{}", done.stderr);
        assert_eq!((here.counter("out", "kept"), here.counter("out", "rejected")), (2, 1));
        let rejects = here.lines("out/rejects", "jsonl");
        assert!(
            rejects[0].contains("a.parquet") && rejects[0].contains("no field \\\"text\\\"; it has body")
        );
    }
    let done = here.run("dedup --method exact --text-field txet --overwrite in out");
    assert_eq!(done.code, Some(2));
    assert!(done.stderr.contains("a.parquet\" has no field \"txet\"; it has body"), "{}", done.stderr);
}

#[test]
fn columns_of_any_name_can_be_the_text() {
    let here = Folder::new();
    let names = ["te.xt", "text ", "", "正文", "back\\slash"];
    let columns: Vec<_> = names.iter().map(|name| (*name, &["same", "same"][..])).collect();
    write(&here.path("in.parquet"), &columns);
    for name in names.into_iter().chain(["te\\.xt", "back\\\\slash"]) {
        let mut command = here.command("dedup --method exact --overwrite --text-field");
        let done = run(command.args([name, "in.parquet", "out"]));
        assert_eq!(done.code, Some(0), "{name}: {}", done.stderr);
        assert_eq!(here.counter("out", "removed"), 1, "{name}");
    }
}

#[test]
fn a_page_that_would_explode_costs_its_rows_and_no_memory() {
    let here = Folder::new();
    let large = "0".repeat(150 << 20);
    let columns = [("text", ["one", "two", "three"]), ("blob", ["-", &large, "-"])];
    let columns: Vec<_> = columns
        .iter()
        .map(|(name, texts)| (*name, Arc::new(StringArray::from_iter_values(texts)) as ArrayRef))
        .collect();
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(1))
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_statistics_enabled(EnabledStatistics::None)
        .set_dictionary_enabled(false)
        .build();
    let file = std::fs::File::create(here.path("in.parquet")).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    assert!(std::fs::metadata(here.path("in.parquet")).unwrap().len() < 1 << 20);

    let done = here.run("dedup --workers 1 --method exact --max-record-bytes 1M in.parquet out");
    assert_eq!(done.code, Some(3), "{}", done.stderr);
    assert_eq!((here.counter("out", "kept"), here.counter("out", "rejected")), (2, 1));
    let rejects = here.lines("out/rejects", "jsonl");
    let expected = "row 1, in row group 1: column \\\"blob\\\", page at byte";
    assert!(
        rejects[0].contains(expected) && rejects[0].contains("at most 135266304 are read"),
        "{rejects:?}"
    );
    let memory = here.success("out")["process"]["peak_memory_bytes"].as_u64().unwrap();
    assert!(memory < 100 << 20, "{memory} bytes");
}

#[test]
fn what_damaged_copies_of_a_file_still_give_is_what_the_whole_one_gives() {
    let Some(data) = test_data("hostile/parquet") else { return };
    let whole = rows(&data.join("ok_zstd.parquet"));
    let mut damaged = 0;
    for number in 0..8 {
        let here = Folder::new();
        let file = data.join(format!("flip_{number}.parquet"));
        let done = run(here.command("dedup --method exact --workers 1").arg(file).arg("out"));
        let (kept, removed) = (here.rows("out/kept"), here.rows("out/removed"));
        let read = kept.len() + removed.len();
        damaged += usize::from(read < 181);
        assert!(read <= 181 && (done.code, read) != (Some(0), 181), "flip_{number}: {}", done.stderr);
        for row in kept.iter().chain(&removed) {
            assert!(whole.contains(&row[..2].to_vec()), "flip_{number}: {row:?}");
        }
    }
    assert!(damaged > 4, "{damaged}");
}

#[test]
fn one_text_in_all_rows_is_one_cluster() {
    let Some(file) = test_data("hostile/parquet/one_text_100k.parquet") else { return };
    let here = Folder::new();
    let done = run(here.command("dedup --workers 2").arg(file).arg("out"));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert_eq!((here.counter("out", "kept"), here.counter("out", "removed")), (1, 99_999));
}

#[test]
fn pyarrow_and_duckdb_read_what_we_write_as_it_was() {
    let here = Folder::new();
    let folder = here.path("corpora");
    std::fs::create_dir(&folder).unwrap();
    peer(Command::new("").arg("write").arg(&folder));
    let corpora: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(corpora.len(), 12);
    for corpus in sorted(corpora) {
        for split in ["32M", "4K"] {
            let line = format!("dedup --workers 2 --method exact --overwrite --split-size {split}");
            let done = run(here.command(&line).arg(&corpus).arg("out"));
            assert_eq!(done.code, Some(0), "{corpus:?}: {}", done.stderr);
            peer(Command::new("").arg("compare").arg(&corpus).arg(here.path("out")));
        }
    }
}

/// Runs scripts/peers/parquet.py with the arguments of `command`.
#[track_caller]
fn peer(command: &Command) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = root.join("target/peers/bin/python");
    assert!(python.exists(), "pyarrow is not there; run scripts/peers/build");
    let mut peer = Command::new(python);
    let done = run(peer.arg(root.join("scripts/peers/parquet.py")).args(command.get_args()));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
}
