//! Tests of text formats: other programs read what is written; encodings, illegal bytes and line numbers.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::corpus::json_lines;
use crate::support::Folder;

/// Returns what a shell command prints; it must succeed.
fn shell(here: &Folder, command: &str) -> String {
    let mut shell = Command::new("bash");
    shell.args(["-o", "pipefail", "-c", command]).current_dir(here.path("")).stdin(Stdio::null());
    let output = shell.output().unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Writes `text` in an encoding that iconv knows.
fn encoded(here: &Folder, name: &str, encoding: &str, text: &str) {
    here.write("utf-8", text);
    shell(here, &format!("iconv -f utf-8 -t {encoding} utf-8 > {name}; rm utf-8"));
}

#[test]
fn what_is_written_is_read_back_by_zcat_and_jq() {
    let here = Folder::new();
    let lines = json_lines((0..300).map(|id| (id, format!("新闻\\\"第{}条", id % 200))));
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(lines.as_bytes()).unwrap();
    here.write("a.jsonl.gz", gzip.finish().unwrap());
    here.run("dedup a.jsonl.gz out --method exact --quiet").ends(0);
    assert_eq!(shell(&here, "zcat out/kept/*.gz | jq -s length").trim(), "200");
    assert_eq!(shell(&here, "zcat out/removed/*.gz | jq -s length").trim(), "100");
    let query =
        "select(.duplicate_of == \"7\" and .reason == \"identical\" and .text == \"新闻\\\"第7条\") | .id";
    assert_eq!(shell(&here, &format!("zcat out/removed/*.gz | jq -r '{query}'")).trim(), "207");
}

#[test]
fn bzip2_itself_reads_what_is_written_as_bzip2() {
    let here = Folder::new();
    here.write("a.jsonl", json_lines([("a", "新闻"), ("b", "新闻"), ("c", "讯")]));
    shell(&here, "bzip2 a.jsonl");
    here.run("dedup a.jsonl.bz2 out --method exact --quiet").ends(0);
    assert_eq!(shell(&here, "bunzip2 -c out/kept/*.bz2 | jq -r .id"), "a\nc\n");
}

#[test]
fn one_text_in_every_encoding_is_one_document() {
    let here = Folder::new();
    let text = "臺灣大學校長表示,將於下週公布名單。";
    for encoding in ["utf-8", "gb18030", "big5", "utf-16"] {
        here.write(&format!("in/{encoding}.txt"), "");
        encoded(&here, &format!("in/{encoding}.txt"), encoding, text);
    }
    here.run("dedup in out --method exact --quiet").ends(0);
    assert_eq!((here.counter("out", "kept"), here.counter("out", "removed")), (1, 3));
    // An encoding that is named is believed.
    here.run("dedup in/big5.txt out --overwrite --method exact --quiet --encoding BIG5").ends(0);
    let named = here.run("dedup in/big5.txt out --overwrite --encoding utf-8").ends(1);
    assert!(named.stderr.contains("not valid UTF-8: "), "{named:?}");
    here.run("dedup in out --encoding latin1").fails(2, &["latin1", "big5"]);
}

#[test]
fn illegal_bytes_are_rejected_or_replaced_and_counted_either_way() {
    let here = Folder::new();
    here.write("a.txt", b"\xd0\xc2\xce\xc5\n\xd0\xc2\xff\xce\xc5\n\xd0\xc2\xff\xce\xc5\n");
    here.run("dedup a.txt out --format lines --method exact --quiet").ends(3);
    assert_eq!((here.counter("out", "kept"), here.counter("out", "rejected")), (1, 2));
    here.run("dedup a.txt out --format lines --method exact --quiet --overwrite --on-bad-text replace")
        .ends(0);
    let counters = ["kept", "removed", "rejected", "replaced"].map(|name| here.counter("out", name));
    assert_eq!(counters, [2, 1, 0, 2]);
    assert_eq!(here.bytes("out/removed", ".txt"), b"\xd0\xc2\xff\xce\xc5\n");
}

#[test]
fn the_line_of_a_reject_does_not_depend_on_the_splits() {
    let here = Folder::new();
    let good = json_lines((0..500).map(|id| (id, "讯")));
    here.write("a.jsonl", format!("{good}bad\n{good}\n\n{{\"id\":1}}\n"));
    here.write("b.jsonl", "{}\n");
    let mut before = None;
    for options in ["--split-size 1K --workers 2", "--split-size 7K", "--split-size 1M"] {
        here.run(&format!("dedup a.jsonl b.jsonl out --method exact --quiet --overwrite {options}")).ends(3);
        let rejects = here.objects("out/rejects", ".jsonl");
        let reasons: Vec<&str> = rejects.iter().map(|reject| reject["reason"].as_str().unwrap()).collect();
        let expected = [
            "line 501: not a JSON object at byte 0 of the line",
            "line 1004: no field \"text\"",
            "line 1: no field \"text\"",
        ];
        assert_eq!(reasons, expected, "{options}");
        // The position of a record names its split.
        let without_place = |mut reject: Value| {
            reject["place"] = Value::Null;
            reject
        };
        let rejects: Vec<Value> = rejects.into_iter().map(without_place).collect();
        assert_eq!(*before.get_or_insert(rejects.clone()), rejects);
    }
}

#[test]
fn a_file_without_documents_named_as_sogoucs_is_a_reject() {
    let here = Folder::new();
    here.write("a.txt", "no document\n".repeat(1000));
    for split_size in ["1K", "1M"] {
        let line = format!("dedup a.txt out --format sogoucs --overwrite --quiet --split-size {split_size}");
        here.run(&line).fails(1, &["every record was rejected (1)", "line 1: text outside of any <doc>"]);
    }
}

#[test]
fn a_record_may_be_as_long_as_the_user_says() {
    let here = Folder::new();
    here.write("a.jsonl", json_lines([("a", "长".repeat(1000)), ("b", "短".to_owned())]));
    here.run("dedup a.jsonl out --method exact --quiet --max-record-bytes 1K").ends(3);
    assert!(here.lines("out/rejects", "jsonl")[0].contains("line 1: longer than the 1024 bytes"));
    here.run("dedup a.jsonl out --method exact --quiet --max-record-bytes 4K --overwrite").ends(0);
}

#[test]
fn csv_goes_out_as_it_came_in() {
    let here = Folder::new();
    here.write("in/a.csv", "id,text\r\n1,\"新, \"\"闻\"\"\n讯\"\r\n2,讯\r\n");
    here.write("in/b.csv", "id,text\r\n3,讯\r\n");
    here.run("dedup in out --method exact --quiet").ends(0);
    assert_eq!(here.bytes("out/kept", ".csv"), "id,text\r\n1,\"新, \"\"闻\"\"\n讯\"\r\n2,讯\r\n".as_bytes());
    let removed = "id,text,duplicate_of,similarity,cluster,reason\r\n3,讯,2,,2,identical\r\n";
    assert_eq!(here.bytes("out/removed", ".csv"), removed.as_bytes());
    here.run("dedup in out --overwrite --text-field body").fails(2, &["body", "text"]);
}

#[test]
fn a_blank_line_is_no_stop_word_and_a_bad_one_is_named() {
    let here = Folder::new();
    here.write("a.jsonl", json_lines([("a", "新闻的讯"), ("b", "新闻讯")]));
    here.write("stop", "\u{feff}的\n\n \n");
    here.run("dedup a.jsonl out --quiet --method simhash --stop-words stop").ends(0);
    assert_eq!(here.counter("out", "removed"), 1);
    here.write("gbk", b"a\n\xb5\xc4\n");
    here.run("dedup a.jsonl out --overwrite --method simhash --stop-words gbk").fails(2, &["gbk", "line 2"]);
}
