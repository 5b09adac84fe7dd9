//! JSON arrays, and objects that span lines.

use super::super::array::JSON_ARRAY;
use super::*;

const ARRAY: &str = "\u{feff}[\n  {\n    \"id\": 1,\n    \"text\": \"国家, [统计局]\\n}\"\n  },\n  {\"text\": \"b\", \"id\": \"二\"}, {\"id\":3}\n  , {\n\t\"id\": 4, \"text\": \"d\\\\\"}\n]\n";

#[test]
fn every_element_is_a_record_at_its_place_however_the_file_is_cut() {
    let kept = "{     \"id\": 1,     \"text\": \"国家, [统计局]\\n}\"   }\n{\"text\": \"b\", \"id\": \"二\"}\n{ \t\"id\": 4, \"text\": \"d\\\\\"}\n";
    let records = check_splits(&JSON_ARRAY, "/a.json", ARRAY.as_bytes(), kept.as_bytes());
    let without_text = Record::Reject {
        offset: ARRAY.find("{\"id\":3").unwrap() as u64,
        reason: "no field \"text\"".to_owned(),
    };
    assert_eq!(records, [doc("1", "国家, [统计局]\n}"), doc("二", "b"), without_text, doc("4", "d\\")]);

    let objects = "{\n \"id\": 1,\n \"text\": \"a\"\n}\n{\"id\": 2, \"text\": \"b\"}\n";
    let kept = "{  \"id\": 1,  \"text\": \"a\" }\n{\"id\": 2, \"text\": \"b\"}\n";
    let records = check_splits(&JSON_ARRAY, "/a.json", objects.as_bytes(), kept.as_bytes());
    assert_eq!(records, [doc("1", "a"), doc("2", "b")]);
}

#[test]
fn a_removed_element_says_why() {
    let blob = MemoryBlob::shared("/a.json", ARRAY.as_bytes(), 9);
    let pieces = pieces(&blob, &[]);
    let (records, _) = read(&JSON_ARRAY, &pieces, &Reading::default());
    let (parts, failed) = divide(&JSON_ARRAY, &pieces, &records, |id| match id {
        "1" => Fate::Cut(vec![0..6, 8..9]),
        id => Fate::Removed(removal(id)),
    });
    assert!(failed.is_none(), "{failed:?}");
    assert_eq!(parts.text("kept/0.jsonl"), "{     \"id\": 1,     \"text\": \", 统计局]\\n}\"   }\n");
    let removed = parts.text("removed/0.jsonl");
    assert_eq!(removed.lines().count(), 2);
    assert!(removed.starts_with("{\"text\": \"b\", \"id\": \"二\",\"duplicate_of\":"), "{removed}");
}

#[test]
fn what_is_broken_costs_its_own_element_and_an_array_without_an_end_is_told() {
    let read_array = |text: &str| {
        let blob = MemoryBlob::shared("/a.json", text.as_bytes(), 9);
        let (records, failed) = read(&JSON_ARRAY, &pieces(&blob, &[]), &Reading::default());
        let docs = records.iter().filter(|record| matches!(record, Record::Doc { .. })).count();
        (docs, records.len() - docs, failed.map(|error| error.to_string()))
    };
    let broken = "[\n{\"id\":1,\"text\":\"a\"},\n{\"id\":2,\"text\":\"b},\n{\"id\":3,\"text\":\"c\"},\n7,\n{\"id\":4,\"text\":tru},\n{\"id\":5,\"text\":\"e\"}\n]";
    assert_eq!(read_array(broken), (3, 3, None));
    for cut in [
        "[\n{\"id\":1,\"text\":\"a\"},\n{\"id\":2,\"te",
        "[\n{\"id\":1,\"text\":\"a\"},\n{\"id\":2,\"text\":\"b\"}",
    ] {
        let (docs, rejects, failed) = read_array(cut);
        assert_eq!((docs, rejects), (1, 0), "{cut}");
        assert!(failed.is_some_and(|reason| reason.contains("the JSON array does not end")), "{cut}");
    }
    let gb18030 = encoding_rs::GB18030.encode("[{\"id\":1,\"text\":\"国家统计局发布的新的报告\"}]").0;
    let blob = MemoryBlob::shared("/a.json", &gb18030, 9);
    let refused = JSON_ARRAY.open(&pieces(&blob, &[])[0], &Reading::default()).err();
    assert!(refused.is_some_and(|error| error.to_string().contains("iconv")));
}

#[test]
fn arrays_are_told_from_lines() {
    for (path, text, is_array) in [
        ("/a.json", "[{\"id\":1}]", true),
        ("/a.JSON", "\u{feff} \n[\n", true),
        ("/a.json", "{\n  \"id\": 1\n}", true),
        ("/a.json", "{\r\n", true),
        ("/a.json", "{\"id\":1}\n{\"id\":2}\n", false),
        ("/a.json", "{ \"id\":1}\n", false),
        ("/a.json", "{", false),
        ("/a.json", "", false),
        ("/a.jsonl", "[1]", false),
        ("/a.txt", "[1]", false),
    ] {
        assert_eq!(JSON_ARRAY.recognises(path, text.as_bytes()), is_array, "{path} {text:?}");
    }
    assert!(JSON_ARRAY.recognises("/a.json.gz", &gzip(b"[{}]")));
}
