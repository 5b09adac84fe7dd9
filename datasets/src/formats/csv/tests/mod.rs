//! CSV files, read and written back: whole, cut and damaged.

mod dialects;

use std::io::Write;
use std::sync::Arc;

use operators::Priority;

use super::*;
use crate::testing::{
    MemoryBlob, MemoryParts, Record, check_damaged_contents, check_splits, corpus_file, divide, doc, mutants,
    pieces, priorities, read,
};
use crate::{Fate, Removal};

const FILE: &str = "id,\"用户\",text\r\n1,u,\"转发, \"\"新\"\"\n第二行\"\r\n\r\n2,u,it is \"so\"\n,u,c";
const KEPT: &str = "id,\"用户\",text\r\n1,u,\"转发, \"\"新\"\"\n第二行\"\r\n2,u,it is \"so\"\n,u,c\n";

fn read_whole(format: &Csv, path: &str, bytes: &[u8]) -> Vec<Record> {
    let blob = MemoryBlob::shared(path, bytes, 1000);
    let (records, failed) = read(format, &pieces(&blob, &[]), &Reading::default());
    assert!(failed.is_none(), "{failed:?}");
    records
}

/// Returns the file in each encoding.
fn encoded(text: &str) -> [Vec<u8>; 3] {
    let utf16 = format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_le_bytes).collect();
    [text.as_bytes().to_vec(), encoding_rs::GB18030.encode(text).0.into_owned(), utf16]
}

#[test]
fn every_record_is_read_and_kept_as_it_was_in_every_encoding() {
    for (file, kept) in encoded(FILE).iter().zip(encoded(KEPT)) {
        let blob = MemoryBlob::shared("/a.csv", file, 7);
        let pieces = pieces(&blob, &[]);
        let records = read(&CSV, &pieces, &Reading::default()).0;
        let Record::Doc { id, .. } = &records[2] else { panic!("{records:?}") };
        assert!(id.starts_with("/a.csv:"), "{id}");
        assert_eq!(records[..2], [doc("1", "转发, \"新\"\n第二行"), doc("2", "it is \"so\"")]);
        assert_eq!(records.len(), 3);
        let (parts, failed) = divide(&CSV, &pieces, &records, |_| Fate::Kept);
        assert!(failed.is_none() && parts.bytes("kept/0.csv") == kept, "{:?}", parts.text("kept/0.csv"));
        assert_eq!(check_splits(&CSV, "/a.csv", file, &kept), records);
    }
}

#[test]
fn damage_of_compressed_contents_is_one_failure_however_they_are_cut() {
    let record = |id: u64| match id % 3 {
        0 => format!("{id},\"{:x}\n第二行\n\"\"新\"\"\"\n", id.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        1 => format!("{id},\"not closed\n"),
        _ => format!("{id},{:x}\n", id.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
    };
    let file = ["id,text\n".to_owned()].into_iter().chain((0..8_000).map(record)).collect::<String>();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(1));
    gzip.write_all(file.as_bytes()).unwrap();
    check_damaged_contents(&CSV, "/a.csv.gz", &gzip.finish().unwrap(), file.len() as u64);
}

#[test]
fn a_large_file_gives_the_same_records_wherever_it_is_cut() {
    let mut file = "id,text\n".to_owned();
    for id in 0..100_000 {
        match id % 5 {
            0 => file.push_str(&format!(
                "{id},\"第{id}条\n{}\n说 \"\"好\"\"\"\r\n",
                "很长的一行,".repeat(id % 40)
            )),
            1 => file.push_str(&format!("{id},\"a quote that is not closed\n")),
            2 => file.push_str("a line of one field\n"),
            _ => file.push_str(&format!("{id},第{id}条\n")),
        }
    }
    let mebibyte = 1 << 20;
    assert!(file.len() > 4 * mebibyte as usize);
    let blob = MemoryBlob::shared("/a.csv", file.as_bytes(), 1 << 16);
    let (whole, _) = read(&CSV, &pieces(&blob, &[]), &Reading::default());
    assert_eq!(whole.iter().filter(|record| matches!(record, Record::Doc { .. })).count(), 60_000);
    for cuts in [
        vec![mebibyte, 2 * mebibyte, 3 * mebibyte],
        vec![mebibyte - 1, 2 * mebibyte + 1],
        (1..40).map(|piece| piece * 123_457).take_while(|&cut| cut < file.len() as u64).collect(),
        vec![2 * mebibyte, file.len() as u64 - 1],
    ] {
        let pieces = pieces(&blob, &cuts);
        let (records, failed) = read(&CSV, &pieces, &Reading::default());
        assert!(failed.is_none() && records == whole, "cut at {cuts:?}");
        // Another process reads a piece without those before it.
        let alone = |piece: &Piece| Piece { shared: Arc::default(), ..piece.clone() };
        let (records, _) = read(&CSV, &pieces.iter().map(alone).collect::<Vec<_>>(), &Reading::default());
        assert!(records == whole, "cut at {cuts:?}, each piece alone");
    }
}

#[test]
fn a_short_field_is_read_as_the_rest_of_its_record_is() {
    // The file begins with enough ASCII to hide the encoding of the file as a whole.
    let ascii = "1,none,nothing but ASCII in this line\n".repeat(3_000);
    let last = encoding_rs::GBK.encode("2,国家统计局十九日发布的数据显示生产总值同比增长,谢谢\n").0;
    let file = [b"id,note,text\n", ascii.as_bytes(), &last].concat();
    let records = read_whole(&CSV, "/a.csv", &file);
    assert_eq!(records.last(), Some(&doc("2", "谢谢")));
}

#[test]
fn a_record_of_an_encoding_that_is_not_read_by_itself_is_a_reject_behind_ascii_too() {
    let ascii = "1,nothing but ASCII in this line\n".repeat(3_000);
    let last = encoding_rs::WINDOWS_1251.encode("2,Это проверка документа и его кодировки\n").0;
    let file = [b"id,text\n", ascii.as_bytes(), &last].concat();
    let records = read_whole(&CSV, "/a.csv", &file);
    let Some(Record::Reject { reason, .. }) = records.last() else { panic!("{:?}", records.last()) };
    assert!(reason.contains("only --encoding can name"), "{reason}");
}

#[test]
fn a_record_of_many_lines_that_is_too_long_is_one_reject_whatever_its_lines_are() {
    let lines = "a line without a comma\n".repeat(20);
    let file = format!("id,text\n1,first\n2,\"{lines}end, of it\"\n3,last\n");
    let reading = Reading { max_record_bytes: 100, ..Reading::default() };
    let blob = MemoryBlob::shared("/a.csv", file.as_bytes(), 50);
    let (records, failed) = read(&CSV, &pieces(&blob, &[]), &reading);
    assert!(failed.is_none());
    let [first, Record::Reject { reason, .. }, last] = &records[..] else { panic!("{records:?}") };
    assert_eq!((first, last), (&doc("1", "first"), &doc("3", "last")));
    assert!(reason.contains("longer than the 100 bytes"), "{reason}");
}

#[test]
fn removed_records_get_four_more_fields() {
    let file = "id,text,cluster\r\n1,a,x\r\n2,\"b\nb\",y";
    let removed = "id,text,cluster,duplicate_of,similarity,cluster_dedup,reason\r\n\
                   1,a,x,\"新,\"\"\",0.875,c,similar\r\n2,\"b\nb\",y,\"新,\"\"\",0.875,c,similar\n";
    // A file of pure ASCII is written as UTF-8, so the GB18030 version is left out.
    let [utf8, _, utf16] = encoded(file);
    let [removed_utf8, _, removed_utf16] = encoded(removed);
    for (file, removed) in [(utf8, removed_utf8), (utf16, removed_utf16)] {
        let blob = MemoryBlob::shared("/a.csv", &file, 7);
        let pieces = pieces(&blob, &[]);
        let records = read(&CSV, &pieces, &Reading::default()).0;
        let (parts, failed) = divide(&CSV, &pieces, &records, |id| {
            let (id, duplicate_of, cluster) = (id.to_owned(), "新,\"".to_owned(), "c".to_owned());
            Fate::Removed(Removal {
                id,
                duplicate_of,
                similarity: Some(0.875),
                cluster,
                reason: "similar".into(),
            })
        });
        assert!(failed.is_none());
        assert!(parts.bytes("removed/0.csv") == removed, "{}", parts.text("removed/0.csv"));
    }
}

#[test]
fn posts_of_weibo_split_at_newlines() {
    let file = "userid,text\r\n0,\"转发, 新\"\r\n0,讯\r\n0,\"two\r\nlines\"\r\n0,末";
    let kept = "userid,text\r\n0,\"转发, 新\"\r\n0,讯\r\n0,末\n";
    for (file, kept) in encoded(file).iter().zip(encoded(kept)) {
        // Each piece of a split has a header of its own; here the parts are one.
        let blob = MemoryBlob::shared("/a.csv", file, 7);
        let whole = pieces(&blob, &[]);
        let records = read(&WEIBO_CSV, &whole, &Reading::default()).0;
        let texts = records.iter().map(|record| match record {
            Record::Doc { text, .. } => text,
            Record::Reject { reason, .. } => reason,
        });
        let expected = [
            "转发, 新",
            "讯",
            "a quoted field does not end on its line (--format csv reads records of several lines)",
            "not as many fields as the header: 1 instead of 2 (--format csv reads records of several lines)",
            "末",
        ];
        assert!(texts.eq(expected), "{records:?}");
        let (parts, _) = divide(&WEIBO_CSV, &whole, &records, |_| Fate::Kept);
        assert!(parts.bytes("kept/0.csv") == kept);
        assert_eq!(check_splits(&WEIBO_CSV, "/a.csv", file, &kept), records);
    }
}

#[test]
fn faulty_quotes_cost_one_line() {
    let file =
        "id,text\n1,\"good\"\n2,\"open\n3,three\n4,\"a\"b\n5,a,b\n6\n7,\"last\nline\"\n8,\"no end\n9,nine";
    let records = read_whole(&CSV, "/a.csv", file.as_bytes());
    let reject = |line: &str, reason: &str| Record::Reject {
        offset: file.find(line).unwrap() as u64,
        reason: reason.to_owned(),
    };
    let open = "a quoted field does not end, or not in a record with as many fields as the header";
    let expected = [
        doc("1", "good"),
        reject("2,", open),
        doc("3", "three"),
        reject(
            "4,",
            "neither a delimiter nor the end of the line behind a closing quote (--escape names a character before quotes)",
        ),
        reject("5,", "not as many fields as the header: 3 instead of 2"),
        reject("6\n", "not as many fields as the header: 1 instead of 2"),
        doc("7", "last\nline"),
        reject("8,", open),
        doc("9", "nine"),
    ];
    assert_eq!(records, expected);
}

#[test]
fn a_quote_that_is_never_closed_holds_no_more_than_a_record_and_costs_one_line() {
    let file = format!("id,text\n1,\"open\n{}", "2,line\n".repeat(100_000));
    let blob = MemoryBlob::shared("/a.csv", file.as_bytes(), 1 << 16);
    let reading = Reading { max_record_bytes: 10_000, ..Reading::default() };
    let (records, failed) = read(&CSV, &pieces(&blob, &[]), &reading);
    assert!(failed.is_none());
    assert!(matches!(records[0], Record::Reject { offset: 8, .. }));
    assert_eq!(records.len(), 100_001);
    assert!(records[1..].iter().all(|record| *record == doc("2", "line")));
}

#[test]
fn a_priority_is_a_field_that_is_a_finite_number() {
    let cells = ["7", "-2.5", "-0", "\"7\"", " 1e3 ", "", "seven", "\"1,5\"", "NaN", "inf", "1e999"];
    let rows: String = cells.iter().map(|cell| format!("{cell},a\n")).collect();
    let refused = Err("no number in the field \"用户\"".to_owned());
    for file in encoded(&format!("用户,text\n{rows}")) {
        let found = priorities(&CSV, MemoryBlob::shared("/a.csv", &file, 7), "用户").unwrap();
        let numbers = [7.0, -2.5, 0.0, 7.0, 1000.0].map(|number| Ok(Priority::new(number).unwrap()));
        assert_eq!(found[..5], numbers);
        assert_eq!(found[5..], [(); 6].map(|()| refused.clone()));
    }
    let missing = priorities(&CSV, MemoryBlob::shared("/a.csv", b"id,text\n1,a\n", 7), "score");
    assert_eq!(missing.unwrap_err().to_string(), "\"/a.csv\" has no field \"score\"; it has id, text");
}

#[test]
fn a_field_that_is_not_there_is_named() {
    let blob = MemoryBlob::shared("/a.csv", b"id,review\n1,a\n", 7);
    let piece = pieces(&blob, &[]).remove(0);
    let error = |reading: &Reading| match CSV.open(&piece, reading) {
        Err(error) => error.to_string(),
        Ok(_) => String::new(),
    };
    assert_eq!(error(&Reading::default()), "\"/a.csv\" has no field \"text\"; it has id, review");
    let text = Some("review".to_owned());
    assert_eq!(error(&Reading { text: text.clone(), ..Reading::default() }), "");
    let id = Some("key".to_owned());
    assert!(error(&Reading { id, text, ..Reading::default() }).contains("\"key\""));
    assert!(read_whole(&CSV, "/empty.csv", b"").is_empty());
    assert!(read_whole(&CSV, "/empty.csv.gz", b"").is_empty());
    assert!(read_whole(&CSV, "/header.csv", b"text\n").is_empty());
}

#[test]
fn a_new_part_begins_where_the_header_or_the_encoding_changes() {
    let parts = MemoryParts::default();
    let mut writer = CSV.writer(&parts, &Reading::default());
    let gbk = encoding_rs::GBK.encode("text\n新华社北京电\n").0.into_owned();
    for bytes in [&b"text\na\n"[..], b"text\nb\n", b"id,text\n1,c\n", "text\n新华社北京电\n".as_bytes(), &gbk]
    {
        let blob = MemoryBlob::shared("/a.csv", bytes, 9);
        writer.divide(&pieces(&blob, &[])[0], &mut std::iter::once(Fate::Kept)).unwrap();
    }
    writer.finish().unwrap();
    assert_eq!(parts.names(), ["kept/0.csv", "kept/1.csv", "kept/2.csv", "kept/3.csv"]);
    assert_eq!(parts.text("kept/0.csv"), "text\na\nb\n");
    assert_eq!(parts.bytes("kept/3.csv"), gbk);
}

#[test]
fn files_are_recognised_by_their_names_and_posts_of_weibo_by_their_header() {
    let header = b"userid,text\r\n0,a\r\n";
    assert!(WEIBO_CSV.recognises("/2.14.csv", header) && !WEIBO_CSV.recognises("/2.14.txt", header));
    assert!(!WEIBO_CSV.recognises("/a.csv", b"id,text\n"));
    for (rest, is_post) in [
        ("0,\"a, b\"\r\n0,\"cut", true),
        ("0,a\"b\r\n0,\"a\" b\r\n", true),
        ("1,\"first\nsecond\"\n", false),
        ("1,a\r\n2,\"first, \"\"\r\n\r\nsecond\"\r\n", false),
    ] {
        let file = format!("userid,text\r\n{rest}");
        assert_eq!(WEIBO_CSV.recognises("/a.csv", file.as_bytes()), is_post, "{rest}");
    }
    assert!(
        CSV.recognises("/a.CSV", b"") && CSV.recognises("/a.csv.bz2", b"") && !CSV.recognises("/csv", b"")
    );
}

#[test]
fn damage_costs_the_record_that_it_hits() {
    let mut file = "id,text\n".to_owned();
    let mut ends = Vec::new();
    for id in 0..60 {
        match id % 4 {
            0 => file.push_str(&format!("{id},\"第{id}条, 新\"\n")),
            1 => file.push_str(&format!("{id},\"第{id}条\n说 \"\"好\"\"\"\r\n")),
            _ => file.push_str(&format!("{id},第{id}条\n")),
        }
        ends.push(file.len());
    }
    let whole = read_whole(&CSV, "/a.csv", file.as_bytes());
    assert_eq!(whole.len(), 60);
    for (mutant, damage) in mutants(file.as_bytes(), 2000) {
        if damage.start < 8 {
            continue; // the header names the fields of all records
        }
        let blob = MemoryBlob::shared("/a.csv", &mutant, 1000);
        let pieces = pieces(&blob, &[]);
        let (records, failed) = read(&CSV, &pieces, &Reading::default());
        assert!(failed.is_none());
        let docs = records.iter().filter(|record| matches!(record, Record::Doc { .. })).count();
        assert!(docs <= 60 + 1, "{docs} documents");
        // A damaged newline takes the next record with it.
        let hit = ends.partition_point(|&end| end <= damage.start);
        let last = if damage.len() == 1 { ends.partition_point(|&end| end < damage.end + 1) } else { 59 };
        for (number, record) in whole.iter().enumerate().filter(|(number, _)| *number < hit || *number > last)
        {
            assert!(records.contains(record), "record {number} is lost by damage at {damage:?}: {records:?}");
        }
        let (_, failed) = divide(&CSV, &pieces, &records, |_| Fate::Kept);
        assert!(failed.is_none());
    }
}

#[test]
fn shared_posts_of_weibo_give_their_known_counts() {
    for (name, docs, rejects) in [("1.20", 581, 0), ("2.14", 10_885, 0)] {
        let Some(bytes) = corpus_file(&format!("corpora/weibo-gb18030-{name}.csv")) else { return };
        let whole = read_whole(&WEIBO_CSV, name, &bytes);
        let found = whole.iter().filter(|record| matches!(record, Record::Doc { .. })).count();
        let rejected: Vec<_> =
            whole.iter().filter(|record| matches!(record, Record::Reject { .. })).collect();
        assert_eq!((found, rejected.len()), (docs, rejects), "{rejected:?}");
        assert!(read_whole(&CSV, name, &bytes) == whole);
        let blob = MemoryBlob::shared(name, &bytes, 4096);
        for count in [7, 64] {
            let cuts: Vec<u64> = (1..count).map(|i| blob.bytes() * i / count).collect();
            assert!(
                read(&WEIBO_CSV, &pieces(&blob, &cuts), &Reading::default()).0 == whole,
                "{name} differs"
            );
        }
    }
}

#[test]
fn half_a_character_at_the_end_of_utf_16_is_a_reject() {
    let mut file: Vec<u8> = "\u{feff}id,text\n1,一\n2,二".encode_utf16().flat_map(u16::to_le_bytes).collect();
    file.push(0x4e);
    let blob = MemoryBlob::shared("/a.csv", &file, 100);
    let (records, failed) = read(&CSV, &pieces(&blob, &[]), &Reading::default());
    assert!(failed.is_none(), "{failed:?}");
    let [Record::Doc { text, .. }, Record::Reject { reason, .. }] = &records[..] else {
        panic!("{records:?}");
    };
    assert!(text == "一" && reason.contains("not valid UTF-16LE"), "{reason}");
}
