//! Records of WARC files: their texts, their places, and damage.

use std::io::Write;

use flate2::Compression as Level;
use flate2::write::GzEncoder;

use super::*;
use crate::Fate;
use crate::testing::{
    MemoryBlob, Record, check_damaged_contents, check_splits, divide, doc, mutants, pieces,
    pieces_of_contents, priorities, read, read_file,
};

/// Returns a record. `headers`: those besides the id and the length.
fn record(id: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "WARC/1.0\r\n{headers}WARC-Record-ID: <urn:uuid:{id}>\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body, b"\r\n\r\n"].concat()
}

fn converted(id: &str, text: &str) -> Vec<u8> {
    let headers =
        format!("WARC-Type: conversion\r\nWARC-Target-URI: http://x/{id}\r\nContent-Type: text/plain\r\n");
    record(id, &headers, text.as_bytes())
}

fn response(id: &str, head: &str, body: &[u8]) -> Vec<u8> {
    response_of("HTTP/1.1 200 OK", id, head, body)
}

fn response_of(status: &str, id: &str, head: &str, body: &[u8]) -> Vec<u8> {
    let response = [status.as_bytes(), b"\r\n", head.as_bytes(), b"\r\n", body].concat();
    record(id, "WARC-Type: response\r\nContent-Type: application/http; msgtype=response\r\n", &response)
}

fn info() -> Vec<u8> {
    record("0", "WARC-Type: warcinfo\r\nContent-Type: application/warc-fields\r\n", b"software: x\r\n")
}

fn id(name: &str) -> String {
    format!("<urn:uuid:{name}>")
}

fn zipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Level::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn every_split_gives_every_record_once() {
    // The second text looks like a record itself.
    let quoted = "一\r\n\r\nWARC/1.0\r\nContent-Length: 3\r\n\r\nabc\r\n\r\nWARC/1.0\r\n";
    let records =
        [info(), converted("1", "正文\n第二行"), converted("2", quoted), converted("3", ""), info()];
    let file = records.concat();
    let (empty, first) = (doc(&id("0"), ""), doc(&id("1"), "正文\n第二行"));
    let expected = [empty.clone(), first, doc(&id("2"), quoted), doc(&id("3"), ""), empty];
    assert_eq!(check_splits(&WARC, "/a.warc.wet", &file, &file), expected);
    let by_url = Reading { id: Some("warc-target-uri".to_owned()), ..Reading::default() };
    let records = read_file(&WARC, "/a.wet", &file, &by_url);
    assert_eq!(records[1], doc("http://x/1", "正文\n第二行"));
    assert_eq!(records[0], doc(&id("0"), ""), "a record without text needs no header");
    let by_another = Reading { id: Some("url".to_owned()), ..Reading::default() };
    let blob = MemoryBlob::shared("/a.wet", &file, 50);
    let mut reader = WARC.open(&pieces(&blob, &[])[0], &by_another).unwrap();
    let mut batch = DocBatch::new(0, 0);
    reader.fill(&mut batch).unwrap();
    assert_eq!(batch.docs().len(), 2);
    assert_eq!(batch.take_rejects().len(), 3);
    assert!(reader.without_field().unwrap().found.contains(&"WARC-Target-URI".to_owned()));
    let lengths = priorities(&WARC, blob, "content-length").unwrap();
    assert_eq!(
        (&lengths[1], &lengths[3]),
        (&Ok(Priority::of_text("16").unwrap()), &Ok(Priority::of_text("0").unwrap()))
    );
    assert!(WARC.recognises("/a", b"WARC/1.1\r\n") && WARC.recognises("/a.warc.gz", b""));
    assert!(WARC.recognises("/a", &zipped(b"WARC/1.0\r\n")) && !WARC.recognises("/a.gz", b"WARN"));
}

#[test]
fn each_kind_of_record_has_its_text() {
    let page = |text: &str| format!("<html><body><p>{text}</p></body></html>");
    let gbk = encoding_rs::GBK.encode("编码由首部给出").0.into_owned();
    let chunks = format!("3\r\n{}\r\n0\r\n\r\n", "abc");
    let cases = [
        response("1", "Content-Type: text/html\r\n", page("网页").as_bytes()),
        response("2", "Content-Type: text/plain; charset=GBK\r\n", &gbk),
        response("3", "content-type : text/plain\r\nTransfer-Encoding: chunked\r\n", chunks.as_bytes()),
        response("4", "Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n", b"already apart"),
        response("5", "Content-Type: text/plain\r\nContent-Encoding: gzip\r\n", &zipped(b"packed")),
        response("6", "Content-Type: text/plain\r\nContent-Encoding: gzip\r\n", b"unpacked"),
        response("7", "Content-Type: image/png\r\n", b"\x89PNG\r\n"),
        response("8", "Content-Type: text/html\r\n", b""),
        response("9", "Content-Type: text/html; charset=gbk\r\n", &[b"<html><p>", &gbk[..]].concat()),
        record("10", "WARC-Type: resource\r\nContent-Type: text/html\r\n", page("资源").as_bytes()),
        record("11", "WARC-Type: request\r\nContent-Type: application/http\r\n", b"GET / HTTP/1.1\r\n\r\n"),
        record("12", "WARC-Type: conversion\r\nX-Folded: a\r\n b\r\nno colon\r\n", b"untyped"),
        response("13", "Content-Type: text/html\r\n", b"no tags"),
        response_of("HTTP/2 200", "14", "Content-Type: text/plain\r\n", b"of HTTP/2"),
        record("15", "WARC-Type: response\r\nContent-Type: application/http\r\n", b""),
        response("16", "Content-Type: text/html; charset=iso-8859-1\r\n", page("不是西文").as_bytes()),
        response("17", "Content-Type: text/html\r\n", b"<html><body><script>x</script></body></html>"),
    ];
    let texts = [
        "网页",
        "编码由首部给出",
        "abc",
        "already apart",
        "packed",
        "unpacked",
        "",
        "",
        "编码由首部给出",
        "资源",
        "",
        "untyped",
        "no tags",
        "of HTTP/2",
        "",
        "不是西文",
        "",
    ];
    for (number, (case, text)) in cases.iter().zip(texts).enumerate() {
        let records = read_file(&WARC, "/a.warc", case, &Reading::default());
        let [Record::Doc { id: found, text: read }] = &records[..] else { panic!("{number}: {records:?}") };
        assert_eq!((found.as_str(), read.trim()), (id(&(number + 1).to_string()).as_str(), text), "{number}");
    }
}

#[test]
fn a_payload_that_cannot_be_read_is_a_reject() {
    for (case, reason) in [
        (
            response("1", "Content-Type: text/plain\r\nContent-Encoding: gzip\r\n", &zipped(b"abc")[..12]),
            "damaged as gzip",
        ),
        (response("1", "Content-Type: text/plain\r\nContent-Encoding: lzw\r\n", b"abc"), "coded as lzw"),
        (response("1", "Content-Type: text/html; charset=utf-8\r\n", b"ab\xff"), "UTF-8"),
        (
            record("1", "WARC-Type: response\r\nContent-Type: application/http\r\n", b"no response"),
            "the HTTP response",
        ),
        (
            converted("1", "x").into_iter().map(|byte| if byte == b'x' { 0xff } else { byte }).collect(),
            "UTF-8",
        ),
    ] {
        let records = read_file(&WARC, "/a.warc", &case, &Reading::default());
        let [Record::Reject { reason: said, .. }] = &records[..] else { panic!("{records:?}") };
        assert!(said.contains(reason), "\"{reason}\" is not in \"{said}\"");
    }
    let bomb =
        response("1", "Content-Type: text/plain\r\nContent-Encoding: gzip\r\n", &zipped(&[b'a'; 50_000]));
    let reading = Reading { max_record_bytes: 20_000, ..Reading::default() };
    let records = read_file(&WARC, "/a.warc", &bomb, &reading);
    assert!(
        matches!(&records[..], [Record::Reject { reason, .. }] if reason.contains("longer than")),
        "{records:?}"
    );
}

#[test]
fn damage_costs_the_record_that_it_hits() {
    let good = [converted("1", "one"), converted("2", "two\n"), converted("3", "three")];
    let replaced = |at: usize, from: &str, to: &str| {
        let mut records = good.clone();
        records[at] = String::from_utf8(records[at].clone()).unwrap().replacen(from, to, 1).into_bytes();
        records.concat()
    };
    for (file, reason) in [
        (replaced(1, "Content-Length: 4", "Content-Length: 2"), "its Content-Length is wrong"),
        (replaced(1, "Content-Length: 4", "Content-Length: 100"), "its Content-Length is wrong"),
        (replaced(1, "Content-Length: 4", "Content-Length: 99999999999"), "longer than"),
        (replaced(1, "Content-Length: 4", "Content-Length: 18446744073709551615"), "longer than"),
        (replaced(1, "Content-Length: 4", "Content-Lengt: 4"), "no Content-Length"),
        (replaced(1, "WARC/1.0", "XARC/1.0"), "no record begins here"),
    ] {
        let records = read_file(&WARC, "/a.warc", &file, &Reading::default());
        let [first, Record::Reject { reason: said, .. }, last] = &records[..] else { panic!("{records:?}") };
        assert!(said.contains(reason), "\"{reason}\" is not in \"{said}\"");
        assert_eq!((first, last), (&doc(&id("1"), "one"), &doc(&id("3"), "three")));
    }
    let file = good.concat();
    for (end, reason) in [(file.len() - 6, "cut short: 3 of 5"), (file.len() - 40, "cut short in its header")]
    {
        let records = read_file(&WARC, "/a.warc", &file[..end], &Reading::default());
        assert!(
            matches!(&records[2..], [Record::Reject { reason: said, .. }] if said.contains(reason)),
            "{records:?}"
        );
    }
    // Another record may begin in the line in which one is cut short.
    let short = &good[0][..good[0].len() - 6];
    let records = read_file(&WARC, "/a.warc", &[short, &good[1]].concat(), &Reading::default());
    let [Record::Reject { reason, .. }, second] = &records[..] else { panic!("{records:?}") };
    assert!(reason.contains("Content-Length is wrong"), "{reason}");
    assert_eq!(second, &doc(&id("2"), "two\n"));
    // The end of a record may lack its blank lines.
    let records = read_file(&WARC, "/a.warc", &file[..file.len() - 4], &Reading::default());
    assert_eq!(records[2], doc(&id("3"), "three"));
}

#[test]
fn damaged_files_give_the_same_records_however_they_are_cut() {
    let file = [info(), converted("1", "正文"), converted("2", "ab\ncd"), converted("3", "e")].concat();
    for (mutant, _) in mutants(&file, 300) {
        let blob = MemoryBlob::shared("/a.warc", &mutant, 50);
        let (whole, _) = read(&WARC, &pieces(&blob, &[]), &Reading::default());
        for cuts in [vec![mutant.len() as u64 / 2], (0..mutant.len() as u64).step_by(7).collect()] {
            let pieces = pieces(&blob, &cuts);
            let (records, failed) = read(&WARC, &pieces, &Reading::default());
            assert!(failed.is_none() && records == whole, "{cuts:?}");
            let (_, failed) = divide(&WARC, &pieces, &records, |_| Fate::Kept);
            assert!(failed.is_none(), "{failed:?}");
        }
    }
    check_damaged_contents(&WARC, "/a.warc.gz", &zipped(&file), file.len() as u64);
}

#[test]
fn each_record_of_a_compressed_part_is_compressed_by_itself() {
    let records = [converted("1", "one"), converted("2", "two")];
    let file: Vec<u8> = records.iter().flat_map(|record| zipped(record)).collect();
    let blob = MemoryBlob::shared("/a.warc.gz", &file, 100);
    let (read, _) = read(&WARC, &pieces_of_contents(&blob, &[]), &Reading::default());
    let (parts, _) = divide(&WARC, &pieces_of_contents(&blob, &[]), &read, |_| Fate::Kept);
    assert_eq!(parts.names(), ["kept/0.warc.gz"]);
    let part = parts.bytes("kept/0.warc.gz");
    let mut first = Vec::new();
    let mut member = flate2::bufread::GzDecoder::new(&part[..]);
    std::io::Read::read_to_end(&mut member, &mut first).unwrap();
    assert_eq!(first, records[0], "the first member holds the first record alone");
    let rest = member.into_inner();
    let mut second = Vec::new();
    std::io::Read::read_to_end(&mut flate2::bufread::GzDecoder::new(rest), &mut second).unwrap();
    assert_eq!(second, records[1]);
}
