//! JSON lines, read and written back: whole, compressed, cut and damaged.

mod arrays;
mod damage;

use std::io::{Read as _, Write as _};

use operators::Priority;

use super::*;
use crate::testing::{
    MemoryBlob, MemoryParts, Random, Record, check_splits, corpus_file, divide, doc, mutants, pieces,
    priorities, read,
};
use crate::{Fate, Removal};

type Encode = fn(&str) -> Vec<u8>;

fn read_bytes(path: &str, bytes: &[u8]) -> (Vec<Record>, Option<Error>) {
    let blob = MemoryBlob::shared(path, bytes, 1000);
    read(&JSONL, &pieces(&blob, &[]), &Reading::default())
}

fn removal(id: &str) -> Removal {
    let (id, duplicate_of, cluster) = (id.to_owned(), "\"新\"".to_owned(), "c".to_owned());
    Removal { id, duplicate_of, similarity: Some(0.875), cluster, reason: "similar".into() }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(1));
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn unpacked(compression: Compression, bytes: Vec<u8>) -> Vec<u8> {
    let mut text = Vec::new();
    compression.decode(std::io::Cursor::new(bytes), 27).unwrap().read_to_end(&mut text).unwrap();
    text
}

/// Returns lines that compress badly, so that they fill many blocks.
fn many_lines() -> Vec<u8> {
    let mut random = Random(1);
    let mut lines = String::new();
    for id in 0..5000 {
        let text: String = (0..4).map(|_| format!("{:08x}", random.next() << 1)).collect();
        lines.push_str(&format!("{{\"id\":{id},\"text\":\"{text}\"}}\n"));
    }
    lines.into_bytes()
}

#[test]
fn every_split_gives_every_line_once() {
    let file = "\u{feff}{\"id\":\"a\",\"text\":\"新\"}\r\n\r\n \t\n{\"text\":\"b\",\"id\":7}\n\n{bad\n{\"text\":\"c\"}";
    let kept = "{\"id\":\"a\",\"text\":\"新\"}\r\n{\"text\":\"b\",\"id\":7}\n{\"text\":\"c\"}\n";
    let records = check_splits(&JSONL, "/a.jsonl", file.as_bytes(), kept.as_bytes());
    assert_eq!(records[..2], [doc("a", "新"), doc("7", "b")]);
    assert!(matches!(&records[2], Record::Reject { offset: 54, reason } if reason.contains("at byte 1 of")));
    assert_eq!(records[3..], [doc("/a.jsonl:59", "c")]);
}

#[test]
fn any_mixture_of_lines_is_read_as_the_dumbest_reader_does() {
    let fragments =
        ["{\"id\":\"x\",\"text\":\"新闻\"}", "\n", "\n", "\r\n", " ", "{\"text\":\"\"}", "{", "\u{feff}"];
    let mut random = Random(7);
    for _ in 0..60 {
        let mut file = String::new();
        for _ in 0..12 {
            file.push_str(fragments[random.below(fragments.len())]);
        }
        let lines = file.strip_prefix('\u{feff}').unwrap_or(&file).split('\n');
        let lines: Vec<&str> = lines.filter(|line| !line.trim_ascii().is_empty()).collect();
        let good = |line: &&&str| serde_json::from_str::<serde_json::Value>(line).is_ok();
        let kept: String = lines.iter().filter(good).map(|line| format!("{line}\n")).collect();
        assert_eq!(check_splits(&JSONL, "/a", file.as_bytes(), kept.as_bytes()).len(), lines.len());
    }
}

#[test]
fn a_line_that_is_no_document_is_one_reject_with_its_reason() {
    let deep = format!("{{\"id\":1,\"text\":\"x\",\"m\":{}{}}}", "[".repeat(9999), "]".repeat(9999));
    for (line, reason) in [
        ("{\"text\":null}", "null in the field \"text\", which --null-text keep takes for an empty text"),
        ("{\"text\":12}", "expected a string in the field \"text\""),
        ("{\"text\":[\"a\"]}", "expected a string in the field \"text\""),
        ("{\"id\":1}", "no field \"text\""),
        ("{\"id\":1,\"text\":\"x\",}", "trailing comma at byte 19 of the line"),
        ("{\"text\":\"a\"}{\"text\":\"b\"}", "trailing characters at byte 12 of the line"),
        ("{\"text\":\"a", "EOF while parsing a string"),
        ("{\"text\":\"a\tb\"}", "control character"),
        ("{\"text\":\"\\ud800\"}", "hex escape"),
        ("\"text\"", "not a JSON object"),
        ("[{\"text\":\"a\"}]", "a JSON array, where each line must be a JSON object"),
        ("\0\0", "not a JSON object"),
        (&deep, "nested deeper than 128"),
    ] {
        let file = format!("{line}\n{{\"id\":2,\"text\":\"good\"}}\n");
        let (records, failed) = read_bytes("/a.jsonl", file.as_bytes());
        assert!(failed.is_none());
        assert!(
            matches!(&records[0], Record::Reject { offset: 0, reason: r } if r.contains(reason)),
            "{line}: {records:?}"
        );
        assert_eq!(records[1..], [doc("2", "good")], "{line}");
    }
    let (records, _) = read_bytes("/a.jsonl", b"\n{\"text\":\"\xff\"}");
    assert!(
        matches!(&records[..], [Record::Reject { offset: 1, reason }] if reason.contains("at byte 9 of")),
        "{records:?}"
    );
}

#[test]
fn brackets_in_a_text_are_not_depth() {
    let text = "[哈哈]\\\"{".repeat(500);
    let (records, _) = read_bytes("/a", format!("{{\"id\":\"a\",\"text\":\"{text}\"}}").as_bytes());
    assert_eq!(records, [doc("a", &text.replace('\\', ""))]);
}

#[test]
fn an_id_is_a_string_or_a_number_as_it_is_written() {
    let file = r#"{"id":18446744073709551617,"text":"a"}
{"id":-1.50,"text":"b"}
{"id":"\u65b0\n","text":"c"}
{"id":null,"text":"d"}
{"id":{"x":1},"text":"e"}
{"id":"first","id":"last","text":"f","text":"\u65b0"}"#;
    let (records, _) = read_bytes("/d/a.jsonl", file.as_bytes());
    let expected = [
        doc("18446744073709551617", "a"),
        doc("-1.50", "b"),
        doc("新\n", "c"),
        doc("/d/a.jsonl:92", "d"),
        doc("/d/a.jsonl:115", "e"),
        doc("last", "新"),
    ];
    assert_eq!(records, expected);
}

#[test]
fn without_the_id_field_that_was_asked_for_a_line_is_a_reject() {
    let blob = MemoryBlob::shared("/a", b"{\"id\":1,\"t\":\"x\"}\n{\"no\":2,\"t\":\"y\"}", 9);
    let reading = Reading { id: Some("no".into()), text: Some("t".into()), ..Reading::default() };
    let (records, _) = read(&JSONL, &pieces(&blob, &[]), &reading);
    assert!(matches!(&records[0], Record::Reject { reason, .. } if reason.contains("\"no\"")));
    assert_eq!(records[1], doc("2", "y"));
}

#[test]
fn a_priority_is_a_finite_number_or_a_string_that_is_one() {
    let priority = |members: &str, field: &str| {
        let line = format!("{{\"text\":\"17\",\"id\":\"a\"{members}}}");
        let blob = MemoryBlob::shared("/a.jsonl", line.as_bytes(), 9);
        priorities(&JSONL, blob, field).unwrap().remove(0)
    };
    for (value, number) in [
        ("7", 7.0),
        ("-2.5", -2.5),
        ("-0", 0.0),
        ("1e3", 1000.0),
        ("18446744073709551616", 2f64.powi(64)),
        ("\"7\"", 7.0),
        ("\" -2.5 \"", -2.5),
        ("\"\\u0037\"", 7.0),
        ("null,\"score\":7", 7.0),
    ] {
        let found = priority(&format!(",\"score\":{value}"), "score");
        assert_eq!(found.ok(), Priority::new(number), "{value}");
    }
    for value in [
        "null",
        "true",
        "[7]",
        "{}",
        "\"\"",
        "\"seven\"",
        "\"NaN\"",
        "\"-Infinity\"",
        "1e999",
        "7,\"score\":null",
    ] {
        let found = priority(&format!(",\"score\":{value}"), "score");
        assert_eq!(found, Err("no number in the field \"score\"".to_owned()), "{value}");
    }
    assert_eq!(priority(",\"id\":7", "score"), Err("no field \"score\"".to_owned()));
    assert_eq!(priority(",\"id\":7", "id").ok(), Priority::new(7.0));
    assert_eq!(priority("", "text").ok(), Priority::new(17.0));
}

#[test]
fn a_removed_line_says_why_in_its_last_members() {
    let file = b"{\"id\":\"a\",\"text\":\"x\"}\n{\"id\":\"b\",\"text\":\"y\",\"n\":{}} \r\n{\"id\":\"c\",\"text\":\"z\"}";
    let blob = MemoryBlob::shared("/a.jsonl", file, 9);
    let pieces = pieces(&blob, &[]);
    let (records, _) = read(&JSONL, &pieces, &Reading::default());
    let fate = |id: &str| if id == "a" { Fate::Kept } else { Fate::Removed(removal(id)) };
    let (parts, _) = divide(&JSONL, &pieces, &records, fate);
    assert_eq!(parts.text("kept/0.jsonl"), "{\"id\":\"a\",\"text\":\"x\"}\n");
    let members = r#","duplicate_of":"\"新\"","similarity":0.875,"cluster":"c","reason":"similar"}"#;
    let b = format!("{{\"id\":\"b\",\"text\":\"y\",\"n\":{{}}{members} \r\n");
    let c = format!("{{\"id\":\"c\",\"text\":\"z\"{members}\n");
    assert_eq!(parts.text("removed/0.jsonl"), b + &c);
}

#[test]
fn compressed_files_of_several_members_are_one_piece() {
    let lines = many_lines();
    let (first, second) = lines.split_at(70_001); // within a line
    let (plain, _) = read_bytes("/a.jsonl", &lines);
    assert_eq!(plain.len(), 5000);
    for (path, bytes) in [
        ("/a.jsonl.gz", [gzip(first), gzip(second)].concat()),
        ("/a.json.zst", [zstd(first), zstd(second)].concat()),
        ("/a.ndjson.bz2", [bzip2(first), bzip2(second)].concat()),
        ("/bzip2-by-magic", bzip2(&lines)),
        ("/gzip-by-magic", gzip(&lines)),
        ("/zstd-by-magic", zstd(&lines)),
    ] {
        let blob = MemoryBlob::shared(path, &bytes, 999);
        for cuts in [&[][..], &[1], &[5000, 5001]] {
            let pieces = pieces(&blob, cuts);
            let (records, failed) = read(&JSONL, &pieces, &Reading::default());
            assert!(failed.is_none(), "{failed:?}");
            assert!(records == plain, "{path} differs");
            let (parts, failed) = divide(&JSONL, &pieces, &records, |_| Fate::Kept);
            assert!(failed.is_none(), "{failed:?}");
            let compression = Compression::of(path, &bytes);
            let kept = parts.bytes(&format!("kept/0.jsonl{}", compression.suffix()));
            assert!(unpacked(compression, kept) == lines, "{path} differs");
        }
    }
}

#[test]
fn damage_costs_what_lies_behind_it_and_nothing_before() {
    let lines = many_lines();
    let (plain, _) = read_bytes("/a.jsonl", &lines);
    for (path, bytes) in
        [("/a.jsonl.gz", gzip(&lines)), ("/a.jsonl.zst", zstd(&lines)), ("/a.bz2", bzip2(&lines))]
    {
        let mut least = 0;
        for length in [1, 100, bytes.len() / 2, bytes.len() - 200, bytes.len() - 1] {
            let blob = MemoryBlob::shared(path, &bytes[..length], 999);
            let pieces = pieces(&blob, &[]);
            let (records, failed) = read(&JSONL, &pieces, &Reading::default());
            assert!(failed.is_some_and(|error| error.is_data()), "{path} cut to {length}");
            assert!(records.len() >= least && plain.starts_with(&records), "{path} cut to {length}");
            least = records.len();
            let (parts, failed) = divide(&JSONL, &pieces, &records, |_| Fate::Kept);
            assert!(failed.is_some_and(|error| error.is_data()), "{path} cut to {length}");
            if let Some(name) = parts.names().first() {
                let kept = unpacked(Compression::of(path, &bytes), parts.bytes(name));
                assert!(lines.starts_with(&kept) && kept.iter().filter(|&&b| b == b'\n').count() == least);
            }
        }
        assert!(least > 1000, "{path}: only {least} documents before the damage");
    }
}

#[test]
fn bytes_behind_the_last_member_are_not_passed_over_in_silence() {
    let line = b"{\"id\":1,\"text\":\"a\"}\n";
    for (path, mut bytes) in [("/a.gz", gzip(line)), ("/a.zst", zstd(line)), ("/a.bz2", bzip2(line))] {
        bytes.extend_from_slice(b"GARBAGE");
        let (records, failed) = read_bytes(path, &bytes);
        assert_eq!(records, [doc("1", "a")]);
        assert!(failed.is_some_and(|error| error.is_data()), "{path}");
    }
}

#[test]
fn a_new_part_begins_where_the_compression_changes() {
    let line = b"{\"id\":1,\"text\":\"a\"}";
    let parts = MemoryParts::default();
    let mut writer = JSONL.writer(&parts, &Reading::default());
    for (path, bytes) in
        [("/a.jsonl", &line[..]), ("/b.jsonl", line), ("/c.gz", &gzip(line)), ("/d.jsonl", line)]
    {
        let blob = MemoryBlob::shared(path, bytes, 9);
        writer.divide(&pieces(&blob, &[])[0], &mut std::iter::once(Fate::Kept)).unwrap();
    }
    writer.finish().unwrap();
    assert_eq!(parts.names(), ["kept/0.jsonl", "kept/0.jsonl.gz", "kept/1.jsonl"]);
    assert_eq!(parts.text("kept/0.jsonl").lines().count(), 2);
}

#[test]
fn a_file_that_changed_between_the_readings_is_no_rejected_record() {
    let blob = MemoryBlob::shared("/a", b"{\"text\":\"a\"}\n{\"text\":\"b\"}", 9);
    let parts = MemoryParts::default();
    let mut writer = JSONL.writer(&parts, &Reading::default());
    let error = writer.divide(&pieces(&blob, &[])[0], &mut std::iter::once(Fate::Kept)).unwrap_err();
    assert!(!error.is_data());
}

#[test]
fn every_encoding_is_read_and_written_as_it_was() {
    let file = "{\"id\":\"甲\",\"text\":\"新华社北京电\"}\n\n{\"id\":\"a\",\"text\":\"\u{0a0a}讯\"}";
    let gb18030: Encode = |text| encoding_rs::GB18030.encode(text).0.into_owned();
    let utf16: Encode = |text| format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_le_bytes).collect();
    let kept = "{\"id\":\"甲\",\"text\":\"新华社北京电\"}\n{\"id\":\"a\",\"text\":\"\u{0a0a}讯\"}\n";
    let expected = [doc("甲", "新华社北京电"), doc("a", "\u{0a0a}讯")];
    for encode in [gb18030, utf16] {
        assert_eq!(check_splits(&JSONL, "/a.jsonl", &encode(file), &encode(kept)), expected);
        // Removed lines are read back in the same encoding, with the new members.
        let blob = MemoryBlob::shared("/a.jsonl", &encode(file), 9);
        let pieces = pieces(&blob, &[]);
        let (parts, failed) = divide(&JSONL, &pieces, &expected, |id| Fate::Removed(removal(id)));
        assert!(failed.is_none());
        let reading = Reading { text: Some("duplicate_of".into()), ..Reading::default() };
        let blob = MemoryBlob::shared("/b.jsonl", &parts.bytes("removed/0.jsonl"), 9);
        let (records, _) = read(&JSONL, &crate::testing::pieces(&blob, &[]), &reading);
        assert_eq!(records, [doc("甲", "\"新\""), doc("a", "\"新\"")]);
    }
}

#[test]
fn illegal_bytes_are_replaced_in_the_text_and_kept_in_the_record() {
    let file = b"{\"id\":1,\"text\":\"a\xffb\"}\n{\"id\":2,\"text\":\"c\"}\n";
    let blob = MemoryBlob::shared("/a.jsonl", file, 9);
    let reading = Reading { bad_text: BadText::Replace, ..Reading::default() };
    let mut batch = DocBatch::new(0, 0);
    JSONL.open(&pieces(&blob, &[])[0], &reading).unwrap().fill(&mut batch).unwrap();
    let texts: Vec<&str> = batch.docs().map(|doc| doc.text).collect();
    assert_eq!((texts, batch.replaced()), (vec!["a\u{fffd}b", "c"], 1));
    let parts = MemoryParts::default();
    let mut writer = JSONL.writer(&parts, &reading);
    writer.divide(&pieces(&blob, &[])[0], &mut [Fate::Kept, Fate::Kept].into_iter()).unwrap();
    writer.finish().unwrap();
    assert_eq!(parts.bytes("kept/0.jsonl"), file);
}

#[test]
fn a_member_that_has_our_name_is_not_doubled() {
    let file = b"{\"id\":\"a\",\"text\":\"x\",\"cluster\":3,\"reason\":1,\"reason_dedup\":2}";
    let blob = MemoryBlob::shared("/a.jsonl", file, 9);
    let pieces = pieces(&blob, &[]);
    let (records, _) = read(&JSONL, &pieces, &Reading::default());
    let (parts, _) = divide(&JSONL, &pieces, &records, |id| Fate::Removed(removal(id)));
    let removed: serde_json::Value = serde_json::from_slice(&parts.bytes("removed/0.jsonl")).unwrap();
    assert_eq!((&removed["cluster"], &removed["cluster_dedup"]), (&3.into(), &"c".into()));
    assert_eq!((&removed["reason_dedup"], &removed["reason_dedup_dedup"]), (&2.into(), &"similar".into()));
    assert_eq!(removed["duplicate_of"], "\"新\"");
}

#[test]
fn a_line_longer_than_a_record_may_be_is_one_reject() {
    let file = format!("{{\"text\":\"{}\"}}\n{{\"text\":\"b\"}}\n", "x".repeat(5000));
    for (path, bytes) in [("/a.jsonl", file.clone().into_bytes()), ("/a.jsonl.gz", gzip(file.as_bytes()))] {
        let blob = MemoryBlob::shared(path, &bytes, 900);
        let reading = Reading { max_record_bytes: 1000, ..Reading::default() };
        let (records, failed) = read(&JSONL, &pieces(&blob, &[]), &reading);
        let reason = "longer than the 1000 bytes that a record may have".to_owned();
        assert_eq!(records, [Record::Reject { offset: 0, reason }, doc(&format!("{path}:5012"), "b")]);
        assert!(failed.is_none());
    }
}

#[test]
fn files_are_recognised_by_name_or_content() {
    let text = b" \n{ \"text\": \"a\"}\n";
    for (path, head) in [
        ("/a.JSONL", &b""[..]),
        ("/a.ndjson.gz", b""),
        ("/a.json.zst", b""),
        ("/part-00000", text),
        ("/part-00000.gz", &gzip(text)),
        ("/part-00000", &gzip(&many_lines())[..4096]),
        ("/part-00000", &zstd(text)),
    ] {
        assert!(JSONL.recognises(path, head), "{path}");
    }
    for (path, head) in [("/a.txt", &b"{curly}"[..]), ("/a.gz", &gzip(b"text")), ("/a.gz", b"{\"text\":1}")] {
        assert!(!JSONL.recognises(path, head), "{path}");
    }
    assert_eq!(
        ["/a.json", "/a.json.GZ", "/a.zst"].map(|path| JSONL.cuts(path)),
        [Cuts::File, Cuts::Contents, Cuts::Contents]
    );
}
