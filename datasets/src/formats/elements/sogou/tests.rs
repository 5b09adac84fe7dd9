//! The format of SogouCS.

use super::*;
use crate::testing::{MemoryBlob, Record, check_splits, corpus_file, divide, doc, mutants, pieces, read};
use crate::{Fate, Format, Removal};

fn page(docno: &str, title: &str, content: &str) -> String {
    format!(
        "<doc>\n<url>http://x/</url>\n<docno>{docno}</docno>\n<contenttitle>{title}</contenttitle>\n\
         <content>{content}</content>\n</doc>\n"
    )
}

#[test]
fn every_split_gives_every_document_once_in_both_encodings() {
    let pages = [page("1", "标题", "内容 a & b"), page("2", "", ""), page("3", "", "只有内容")];
    let file = format!("<docs>\r\n{}\n{}between\n{}</docs>\n", pages[0], pages[1], pages[2]);
    let text = Record::Reject { offset: 0, reason: "text outside of any <doc>".to_owned() };
    let expected = [doc("1", "标题\n内容 a & b"), doc("2", ""), text, doc("3", "只有内容")];
    // The offset of the text between the documents depends on the encoding.
    let check_splits = |file: &[u8], kept: &[u8]| {
        let mut records = check_splits(&SOGOUCS, "/a.dat", file, kept);
        if let Some(Record::Reject { offset, .. }) = records.get_mut(2) {
            assert!(file[*offset as usize..].starts_with(b"between"));
            *offset = 0;
        }
        records
    };
    let kept = pages.concat();
    assert_eq!(check_splits(file.as_bytes(), kept.as_bytes()), expected);
    let encode = |text: &str| encoding_rs::GB18030.encode(text).0.into_owned();
    assert_eq!(check_splits(&encode(&file), &encode(&kept)), expected);
    let windows = |text: &str| encode(&text.replace('\n', "\r\n"));
    assert_eq!(check_splits(&windows(&file), &windows(&kept)), expected);
}

#[test]
fn a_broken_document_costs_itself_alone() {
    let unclosed = "<doc>\n<docno>2</docno>\n<content>never closed\n";
    let nameless = "<doc>\n<content>x</content>\n</doc>\n";
    let no_end = "<doc>\n<docno>4</docno>\n<content>four</content>\n";
    let cut = "<doc>\n<docno>6</docno>\n<content>six</content>\n</d";
    let (first, fifth) = (page("1", "t", "one"), page("5", "", "five"));
    let file = [&first, unclosed, nameless, no_end, &fifth, cut].concat();
    let kept = [&first, no_end, &fifth, cut, "\n"].concat();
    let records = check_splits(&SOGOUCS, "/a", file.as_bytes(), kept.as_bytes());
    let reject = |before: &[&str], reason: &str| Record::Reject {
        offset: before.concat().len() as u64,
        reason: reason.to_owned(),
    };
    let expected = [
        doc("1", "t\none"),
        reject(&[&first], "<content> is not closed"),
        reject(&[&first, unclosed], "the document has no <docno>"),
        doc("4", "four"),
        doc("5", "five"),
        doc("6", "six"),
    ];
    assert_eq!(records, expected);
}

#[test]
fn the_url_is_the_id_where_it_is_named_so() {
    let unaddressed = "<doc>\n<docno>2</docno>\n<content>two</content>\n</doc>\n";
    let file = [&page("1", "", "one"), unaddressed].concat();
    let blob = MemoryBlob::shared("/a", file.as_bytes(), 9);
    let ids = |field: &str| {
        let reading = Reading { id: Some(field.to_owned()), ..Reading::default() };
        read(&SOGOUCS, &pieces(&blob, &[]), &reading).0
    };
    let at = page("1", "", "one").len() as u64;
    let reject = Record::Reject { offset: at, reason: "the document has no <url>".to_owned() };
    assert_eq!(ids("url"), [doc("http://x/", "one"), reject]);
    assert_eq!(ids("docno"), [doc("1", "one"), doc("2", "two")]);
}

#[test]
fn an_illegal_byte_is_named_by_its_offset_in_the_file() {
    let mut file = [page("1", "", "一"), page("2", "", "xx")].concat().into_bytes();
    let at = file.len() - "x</content>\n</doc>\n".len();
    file[at] = 0xff;
    let blob = MemoryBlob::shared("/a", &file, 9);
    let (records, _) = read(&SOGOUCS, &pieces(&blob, &[]), &Reading::default());
    assert!(matches!(&records[1], Record::Reject { offset, .. } if *offset == at as u64), "{records:?}");
}

#[test]
fn removed_documents_are_copied_with_their_reasons_beside_them() {
    let file = [page("1", "", "a"), page("2", "", "b"), page("3", "", "c")].concat();
    let blob = MemoryBlob::shared("/a", file.as_bytes(), 9);
    let pieces = pieces(&blob, &[20, 100]);
    let (records, _) = read(&SOGOUCS, &pieces, &Reading::default());
    let (parts, _) = divide(&SOGOUCS, &pieces, &records, |id| match id {
        "2" => Fate::Kept,
        id => Fate::Removed(Removal {
            id: id.to_owned(),
            duplicate_of: "2".to_owned(),
            similarity: None,
            cluster: "1".to_owned(),
            reason: "similar".into(),
        }),
    });
    assert_eq!(parts.text("kept/0.dat"), page("2", "", "b"));
    assert_eq!(parts.text("removed/0.dat"), page("1", "", "a") + &page("3", "", "c"));
    let reasons = parts.text("removed/_reasons/0.jsonl");
    let ids: Vec<&str> = reasons.lines().filter_map(|line| line.get(..9)).collect();
    assert_eq!(ids, ["{\"id\":\"1\"", "{\"id\":\"3\""]);
}

#[test]
fn every_encoding_is_read_and_written_as_it_was() {
    let file = format!("<docs>\n{}\n{}</docs>\n", page("1", "标题", "内容"), page("2", "", "\u{0a0a}讯"));
    let kept = page("1", "标题", "内容") + &page("2", "", "\u{0a0a}讯");
    let encode = |text: &str| {
        let text = format!("\u{feff}{text}");
        text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>()
    };
    let expected = [doc("1", "标题\n内容"), doc("2", "\u{0a0a}讯")];
    assert_eq!(check_splits(&SOGOUCS, "/a.dat", &encode(&file), &encode(&kept)), expected);
    assert!(SOGOUCS.recognises("/a.dat", &encode(&file)[..200]));
}

#[test]
fn a_document_longer_than_a_record_may_be_is_one_reject() {
    let file = [page("1", "", "a"), page("2", "", &"长\n".repeat(1000)), page("3", "", "c")].concat();
    let blob = MemoryBlob::shared("/a", file.as_bytes(), 100);
    let reading = Reading { max_record_bytes: 1000, ..Reading::default() };
    for cuts in [&[][..], &[300], &[2000, 3000]] {
        let (records, failed) = read(&SOGOUCS, &pieces(&blob, cuts), &reading);
        assert!(failed.is_none());
        let offset = page("1", "", "a").len() as u64;
        let reason = "longer than the 1000 bytes that a record may have".to_owned();
        assert_eq!(records, [doc("1", "a"), Record::Reject { offset, reason }, doc("3", "c")]);
    }
}

#[test]
fn damage_costs_the_document_that_it_hits() {
    let pages: Vec<String> = (0..40).map(|id| page(&id.to_string(), "标题", &format!("第{id}条"))).collect();
    let file = encoding_rs::GB18030.encode(&pages.concat()).0.into_owned();
    let encoded = |page: &String| encoding_rs::GB18030.encode(page).0.len();
    let mut ends = Vec::new();
    pages.iter().for_each(|page| ends.push(ends.last().unwrap_or(&0) + encoded(page)));
    let records_of = |bytes: &[u8]| {
        let blob = MemoryBlob::shared("/a", bytes, 1000);
        let (records, failed) = read(&SOGOUCS, &pieces(&blob, &[]), &Reading::default());
        assert!(failed.is_none());
        records
    };
    let whole = records_of(&file);
    assert_eq!(whole.len(), 40);
    for (mutant, damage) in mutants(&file, 2000) {
        let records = records_of(&mutant);
        let docs: Vec<_> = records.iter().filter(|record| matches!(record, Record::Doc { .. })).collect();
        assert!(docs.len() <= 40, "{} documents", docs.len());
        // A damaged end of a document may take the next one with it.
        let hit = ends.partition_point(|&end| end <= damage.start);
        let last = if damage.len() > 1 { 40 } else { hit + 1 };
        for (number, record) in whole.iter().enumerate().filter(|(n, _)| *n < hit || *n > last) {
            assert!(docs.contains(&record), "document {number} is lost by damage at {damage:?}");
        }
        // A cut may fall between two documents, which leaves no trace.
        let silent = docs.len() < 40 && docs.len() == records.len();
        assert!(damage.len() > 1 || !silent, "a document is lost in silence by damage at {damage:?}");
    }
}

#[test]
fn files_are_recognised_by_their_first_line() {
    for head in ["<doc>\n<url>", "\u{feff}<doc>\r\n", "<docs>\r\n<doc>\r\n"] {
        assert!(SOGOUCS.recognises("/a.txt", head.as_bytes()), "{head}");
    }
    for head in ["", "<document>\n", "<docs>\n<page>", "text <doc>"] {
        assert!(!SOGOUCS.recognises("/a.dat", head.as_bytes()), "{head}");
    }
}

#[test]
fn shared_corpora_give_their_known_counts() {
    for (name, docs, rejects) in [
        ("corpora/news_sohusite_xml.smarty.dat", 200, 0),
        ("corpora/SogouCS.mini.txt", 10, 0),
        ("hostile/text/sogou_broken.xml", 4, 1),
    ] {
        let Some(bytes) = corpus_file(name) else { return };
        assert!(SOGOUCS.recognises(name, &bytes[..bytes.len().min(4096)]));
        let blob = MemoryBlob::shared(name, &bytes, 4096);
        let whole = read(&SOGOUCS, &pieces(&blob, &[]), &Reading::default()).0;
        let found = whole.iter().filter(|record| matches!(record, Record::Doc { .. })).count();
        assert_eq!((found, whole.len() - found), (docs, rejects), "{name}: {whole:?}");
        let cuts: Vec<u64> = (1..64).map(|i| blob.bytes() * i / 64).collect();
        assert!(read(&SOGOUCS, &pieces(&blob, &cuts), &Reading::default()).0 == whole, "{name} differs");
    }
}
