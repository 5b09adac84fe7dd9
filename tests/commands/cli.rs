//! Tests of wrong use and exit codes.

use std::fs::{self, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use parquet::arrow::ArrowWriter;

use crate::corpus::{json_line, json_lines, small};
use crate::support::{Folder, Random, run};

fn nothing_left(here: &Folder, output: &str) {
    assert!(here.files(output).is_empty(), "{:?}", here.files(output));
}

#[test]
fn an_input_that_is_not_there_is_named() {
    let here = small();
    let missing = here.path("none.jsonl");
    here.run("dedup none.jsonl out").fails(2, &[missing.to_str().unwrap(), "does not exist"]);
    here.run("dedup a.jsonl,none.jsonl out").fails(2, &["none.jsonl"]);
    here.run("dedup *.gz out").fails(2, &["*.gz"]);
    here.run("dedup {b,c}.jsonl out").fails(2, &["{b,c}.jsonl"]);
    here.run("dedup a.jsonl ftp://host/x").fails(2, &["ftp", "hdfs"]);
    here.write("_only/_hidden", "");
    here.run("dedup _only out").fails(2, &["_only", "no files"]);
    nothing_left(&here, "out");
}

#[test]
fn an_option_that_is_wrong_names_what_was_expected() {
    let here = small();
    for (options, words) in [
        ("--method simhsah", ["--method", "simhash, manku2007"]),
        ("--method simhash:bits=48", ["bits", "32, 64 or 128"]),
        ("--method simhash:hamming=16", ["hamming", "0 to 15"]),
        ("--method simhash:features=char:0", ["features", "char:N"]),
        ("--method exact:hamming=1", ["exact", "no parameter \"hamming\""]),
        ("--verify cosine:0.8", ["--verify", "jaccard:T or none"]),
        ("--verify jaccard:1.5", ["--verify", "from 0 to 1"]),
        ("--verify jaccard:NaN", ["--verify", "from 0 to 1"]),
        ("--split-size 1.5M", ["--split-size", "500K, 32M or 1G"]),
        ("--split-size 0", ["--split-size", "500K, 32M or 1G"]),
        ("--split-size 99999999999G", ["--split-size", "500K, 32M or 1G"]),
        ("--resolve some", ["--resolve", "greedy or components"]),
        ("--keep last", ["--keep", "first, longest"]),
        ("--pairs none", ["--pairs", "firsts, all"]),
        ("--progress loud", ["--progress", "auto, plain, none"]),
        ("--workers 0", ["--workers", "1..=1024"]),
        ("--workers 2000", ["--workers", "1..=1024"]),
        ("--max-rejects -1", ["-1", "unexpected"]),
        ("--max-rejects x", ["--max-rejects", "invalid"]),
        ("--max-removed x", ["--max-removed", "30%"]),
        ("--max-removed 101%", ["--max-removed", "30%"]),
        ("--max-removed-per-source 30%", ["--max-removed-per-source", "source:30%"]),
        ("--max-removed-per-source source:", ["--max-removed-per-source", "30%"]),
        ("--max-cluster few", ["--max-cluster", "invalid"]),
        ("--overwrit", ["--overwrit", "unexpected"]),
        ("--format xls", ["xls", "there are parquet, sequencefile, "]),
        ("--method simhash --stop-words none.txt", ["none.txt", "could not read"]),
        ("--method simhash --user-dict none.txt", ["none.txt", "could not read"]),
        ("--stop-words none.txt", ["--stop-words", "features=jieba"]),
    ] {
        here.run(&format!("dedup a.jsonl out {options}")).fails(2, &words);
        nothing_left(&here, "out");
    }
}

#[test]
fn arguments_that_are_missing_are_named() {
    let here = small();
    here.run("dedup").fails(2, &["<INPUT> <OUTPUT>"]);
    here.run("dedup a.jsonl").fails(2, &["<INPUT> <OUTPUT>"]);
    here.run("dedup --workers 2 a.jsonl --quiet").fails(2, &["<INPUT> <OUTPUT>"]);
    assert_eq!(here.files("").len(), 1);
    here.run("dedup a.jsonl out --method").fails(2, &["--method"]);
    here.run("demo").fails(2, &["<FOLDER>"]);
    assert!(here.run("").ends(0).stdout.contains("\n  dedup "));
    here.run("dedupe a.jsonl out").fails(2, &["dedupe"]);
    here.run("--quiet").fails(2, &["dedup", "demo"]);
}

#[test]
fn a_bad_line_of_a_user_dictionary_is_wrong_use() {
    let here = small();
    here.write("words", "石墨烯 9 n\n石墨 x y z\n");
    here.run("dedup a.jsonl out --method simhash --user-dict words").fails(2, &["dictionary", "line 2"]);
    nothing_left(&here, "out");
}

#[test]
fn a_field_that_parquet_does_not_have_names_those_there_are() {
    let here = Folder::new();
    let column = || -> ArrayRef { Arc::new(StringArray::from(vec!["x"])) };
    let batch = RecordBatch::try_from_iter([("url", column()), ("body", column())]).unwrap();
    let file = fs::File::create(here.path("a.parquet")).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    here.run("dedup a.parquet out").fails(2, &["a.parquet", "\"text\"", "url", "body"]);
    here.run("dedup a.parquet out --text-field body --id-field nr").fails(2, &["\"nr\"", "url", "body"]);
    nothing_left(&here, "out");
    here.run("dedup a.parquet out --text-field body --id-field url").ends(0);
}

#[test]
fn json_lines_without_the_text_field_are_rejects() {
    let here = small();
    here.write("b.jsonl", "{\"body\":\"another\"}\n");
    let run = here.run("dedup a.jsonl b.jsonl out --text-field body").ends(3);
    assert!(run.stderr.contains("    Rejected=3\n"), "{run:?}");
    assert_eq!((here.counter("out", "rejected"), here.counter("out", "kept")), (3, 1));
    let rejects = here.objects("out/rejects", ".jsonl");
    assert_eq!(rejects.len(), 3);
    assert_eq!(rejects[0]["uri"], here.path("a.jsonl").to_str().unwrap());
    assert_eq!(
        (&rejects[1]["offset"], &rejects[1]["reason"]),
        (&27.into(), &"line 2: no field \"body\"".into())
    );
    assert!(rejects[2]["head"].as_str().unwrap().starts_with("{\"id\":\"c\""));
}

#[test]
fn an_output_that_holds_the_input_is_refused_by_any_name() {
    let here = small();
    here.run("dedup a.jsonl out").ends(0);
    std::os::unix::fs::symlink("out", here.path("link")).unwrap();
    let before = here.bytes("out", "");
    for output in ["out", "out/kept/..", "link", "out/kept", "out/kept/x/.."] {
        here.run(&format!("dedup out/kept {output} --overwrite")).fails(2, &["lies in the output"]);
    }
    here.run("dedup a.jsonl other --summary-json a.jsonl").fails(2, &["summary", "a.jsonl"]);
    assert_eq!(here.bytes("out", ""), before);
    assert_eq!(here.lines("a.jsonl", "").len(), 3);
}

#[test]
fn an_output_that_exists_is_refused_until_it_may_be_replaced() {
    let here = small();
    here.run("dedup a.jsonl out").ends(0);
    let before = here.bytes("out", "");
    here.run("dedup a.jsonl out").fails(2, &["\"out\"", "--overwrite"]);
    assert_eq!(here.bytes("out", ""), before);

    here.write("b.jsonl", format!("{}{{bad\n", json_line("z", "后天")));
    here.run("dedup b.jsonl out --overwrite").ends(3);
    assert_eq!(here.lines("out/kept", ".jsonl"), [json_line("z", "后天").trim_end()]);
    assert!(here.files("out/removed").is_empty() && here.files("out/_temporary").is_empty());
    // Files of an older run that this one does not have are removed too.
    here.run("dedup a.jsonl out --overwrite").ends(0);
    assert!(here.files("out/rejects").is_empty());

    here.write("other/mine.txt", "x");
    here.run("dedup a.jsonl other").fails(2, &["\"other\"", "--overwrite"]);
    // A folder that is no output of the program is not replaced, and nothing of it goes.
    here.write("other/report.html", "mine");
    here.write("spark/_SUCCESS", "");
    here.write("writing/_temporary/0/part-0", "of Spark");
    for (output, word) in
        [("other", "is no output"), ("spark", "is no output"), ("writing", "another program")]
    {
        let before = here.bytes(output, "");
        here.run(&format!("dedup a.jsonl {output} --overwrite")).fails(2, &[word]);
        assert_eq!(here.bytes(output, ""), before);
    }
    here.write("file", "x");
    here.run("dedup a.jsonl file").fails(2, &["\"file\""]);
    fs::create_dir(here.path("empty")).unwrap();
    here.run("dedup a.jsonl empty").ends(0);
    // Files of a killed run are no output.
    here.write("killed/_temporary/00000001-0123456789abcdef/parts/kept/part-00007.jsonl", "half");
    here.run("dedup a.jsonl killed").ends(0);
    assert_eq!(here.lines("killed/kept", "").len(), 2);
}

#[test]
fn a_file_of_no_known_format_is_wrong_use() {
    let here = Folder::new();
    here.write("a.rows", "1,今天\n");
    here.run("dedup a.rows out").fails(2, &["a.rows", "no format known", "--format"]);
    // Among known files it costs only itself.
    here.write("a.jsonl", json_line("1", "text"));
    here.run("dedup a.rows a.jsonl some").ends(3);
    assert_eq!((here.counter("some", "kept"), here.counter("some", "rejected")), (1, 1));
    assert!(here.lines("some/rejects", "jsonl")[0].contains("no format known"));
    nothing_left(&here, "out");
    here.run("dedup a.rows out --format tancorp").ends(0);
}

#[test]
fn what_may_not_be_read_or_written_fails_the_job() {
    let here = small();
    let open = |name: &str, mode| fs::set_permissions(here.path(name), Permissions::from_mode(mode)).unwrap();
    here.write("secret.jsonl", json_line("a", "x"));
    here.write("closed/out/x", "");
    fs::copy(env!("CARGO_BIN_EXE_dedup-job"), here.path("dedup-job")).unwrap();
    open("", 0o755);
    open("dedup-job", 0o755);
    open("secret.jsonl", 0);
    open("closed", 0o555);
    let root = run(Command::new("id").arg("-u")).stdout.trim() == "0";
    let unprivileged = |line: &str| {
        let mut command = Command::new(if root { "setpriv" } else { "./dedup-job" });
        if root {
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "./dedup-job"]);
        }
        run(command.args(line.split_whitespace()).current_dir(here.path("")))
    };
    unprivileged("dedup secret.jsonl closed/new").fails(1, &["secret.jsonl", "no permission"]);
    unprivileged("dedup secret.jsonl closed/new --format jsonl").fails(1, &["no permission"]);
    unprivileged("dedup a.jsonl closed/new").fails(1, &["closed/new", "no permission"]);
    assert!(!here.path("closed/new").exists());
    // Nobody may write below a file.
    here.run("dedup a.jsonl a.jsonl/out").fails(1, &["a.jsonl/out"]);
    open("closed", 0o755);
}

#[test]
fn a_summary_that_cannot_be_written_stops_a_run_before_it_begins_but_spoils_no_output() {
    let here = small();
    here.write("folder/other", "");
    for file in ["none/s.json", "a.jsonl/s.json", "folder"] {
        let line = format!("dedup a.jsonl out --summary-json {file}");
        // Only the folder that is not there is the user's word.
        let code = if file.starts_with("none") { 2 } else { 1 };
        here.run(&line).fails(code, &["could not write", file]);
        assert!(!here.path("out").exists());
    }
    // The summary may lie inside the output, whose folder the run makes; nobody reads there what is not
    // committed.
    here.run("dedup a.jsonl out --summary-json out/s.json --quiet").ends(0);
    assert_eq!(fs::read(here.path("out/s.json")).unwrap(), fs::read(here.path("out/_SUCCESS")).unwrap());
    // This name becomes that of a folder only once the output is there.
    let run = here.run("dedup a.jsonl new --summary-json new/kept").ends(0);
    assert!(run.stderr.contains("warning: could not write \"new/kept\""), "{run:?}");
    assert_eq!(here.lines("new/kept", ".jsonl"), here.lines("out/kept", ".jsonl"));
    assert!(here.files("new").iter().all(|file| !file.to_string_lossy().contains(".dedup-job.")));
}

#[test]
fn reports_are_not_led_elsewhere_by_a_link_beside_them() {
    let here = small();
    here.write("labels.tsv", "1\t2\t1\n");
    here.write("victim", "mine");
    let lines = [
        "dedup a.jsonl out --quiet --metrics-file report",
        "dedup a.jsonl other --quiet --summary-json report",
        "eval out labels.tsv --json report",
        "eval out labels.tsv --list missed --list-to report",
        "tune a.jsonl --method jaccard:0.8 --sample 2 --tsv report",
        "tune a.jsonl --method jaccard:0.8 --sample 2 --svg report",
        "explain --method jaccard:0.8 --svg report",
    ];
    for line in lines {
        for link in ["report", "report.tmp"] {
            std::os::unix::fs::symlink("victim", here.path(link)).unwrap();
        }
        here.run(line).ends(0);
        assert_eq!(fs::read_to_string(here.path("victim")).unwrap(), "mine", "{line}");
        assert!(fs::symlink_metadata(here.path("report")).unwrap().is_file(), "{line}");
        for name in ["report", "report.tmp"] {
            fs::remove_file(here.path(name)).unwrap();
        }
        let run = here.run(&line.replace(" report", " none/report"));
        assert!(matches!(run.code, Some(1 | 2)) && run.stderr.contains("none/report"), "{run:?}");
    }
}

#[test]
fn more_rejects_than_allowed_stop_the_job_before_anything_is_committed() {
    let here = small();
    here.write("b.jsonl", "{bad\n{\"id\":1}\n");
    here.run("dedup a.jsonl b.jsonl out --max-rejects 1")
        .fails(4, &["2 records", "--max-rejects 1", "b.jsonl"]);
    nothing_left(&here, "out");
    here.run("dedup a.jsonl b.jsonl out --max-rejects 2 --quiet").ends(3);
    assert_eq!(here.objects("out/rejects", ".jsonl").len(), 2);
    // An older output stays as it was.
    let before = here.bytes("out", "");
    here.run("dedup b.jsonl out --overwrite --max-rejects 0").fails(4, &["2 records"]);
    assert_eq!(here.bytes("out", ""), before);
}

#[test]
fn of_a_gzip_file_that_breaks_off_all_before_the_damage_is_there() {
    let here = small();
    let mut random = Random(5);
    let lines = json_lines((0..3000).map(|i| (format!("d{i}"), random.text(60))));
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(lines.as_bytes()).unwrap();
    let mut gzip = encoder.finish().unwrap();
    gzip.truncate(gzip.len() * 2 / 3);
    here.write("b.jsonl.gz", &gzip);

    // One byte at a time, so that no partly filled buffer hides any.
    let mut decoded = Vec::new();
    let mut decoder = GzDecoder::new(&gzip[..]);
    let mut byte = [0];
    let broken = loop {
        match decoder.read(&mut byte) {
            Ok(read) => decoded.extend_from_slice(&byte[..read]),
            Err(error) => break error,
        }
    };
    assert_eq!(broken.kind(), ErrorKind::UnexpectedEof);
    assert!(lines.as_bytes().starts_with(&decoded));
    let whole = decoded.iter().rposition(|&byte| byte == b'\n').unwrap() + 1;
    assert!(whole > lines.len() / 2);

    here.run("dedup a.jsonl b.jsonl.gz out").ends(3);
    let mut kept = Vec::new();
    for part in here.files("out/kept").iter().filter(|part| part.extension().unwrap() == "gz") {
        GzDecoder::new(fs::File::open(part).unwrap()).read_to_end(&mut kept).unwrap();
    }
    assert_eq!(kept.len(), whole);
    assert!(kept == lines.as_bytes()[..whole]);
    let documents = lines[..whole].lines().count() as u64;
    let counter = |name| here.counter("out", name);
    assert_eq!((counter("rejected"), counter("records_read")), (1, 3 + documents + 1));
    assert_eq!((counter("kept"), counter("removed")), (2 + documents, 1));
    let rejects = here.objects("out/rejects", ".jsonl");
    assert!(rejects[0]["uri"].as_str().unwrap().ends_with("b.jsonl.gz"), "{rejects:?}");
}

#[test]
fn a_field_that_no_record_has_is_wrong_use_in_every_format_and_the_old_output_stays() {
    let here = Folder::new();
    here.write("a.jsonl", json_lines([("1", "一"), ("2", "二")]) + "{bad\n");
    here.write("b.jsonl", "{\"body\":\"三\",\"id\":\"3\"}\n");
    here.write("a.csv", "id,text\n1,一\n");
    here.run("dedup a.jsonl out --quiet").ends(3);
    let before = here.bytes("out", "");
    for input in ["a.jsonl", "a.csv"] {
        for option in ["--text-field wrong", "--id-field wrong"] {
            let run = here.run(&format!("dedup {input} out --overwrite {option}"));
            run.fails(2, &[input, "no field \"wrong\"", "id, text"]);
            assert_eq!(here.bytes("out", ""), before);
        }
    }
    // A field that only some records have is not the user's fault, nor is a damaged line.
    here.run("dedup a.jsonl b.jsonl out --overwrite --quiet --text-field body").ends(3);
    assert_eq!((here.counter("out", "kept"), here.counter("out", "rejected")), (1, 3));
    here.write("c.jsonl", "{bad\n");
    here.run("dedup c.jsonl out --overwrite --text-field body").fails(1, &["every record was rejected"]);
}
