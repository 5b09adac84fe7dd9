//! Tests of every tool, one process at a time.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{METHOD, answers, documents, empty_index, ids, matches, new_ids, shared};
use crate::corpus::{demo, json_lines};
use crate::support::Folder;

#[test]
#[ignore = "needs scripts/hbase/build"]
fn an_index_in_hbase_answers_as_the_batch_job_and_the_index_on_disk() {
    let here = demo(500, 3);
    let method = "simhash:features=char:3";
    here.run(&format!("--quiet dedup --pairs all --method {method} --verify none demo/corpus.jsonl out"))
        .ends(0);
    let mut expected = BTreeMap::<String, BTreeSet<String>>::new();
    for row in here.rows("out/pairs") {
        for (a, b) in [(0, 1), (1, 0)] {
            expected.entry(row[a].clone()).or_default().insert(row[b].clone());
        }
    }
    assert!(expected.len() > 50, "{}", expected.len());
    let index = shared().table("answers");
    for index in ["ix", &index] {
        here.run(&format!("--quiet index build {index} {METHOD} demo/corpus.jsonl")).ends(0);
    }
    for within in [3, 2, 1, 0] {
        let query = |index: &str| {
            let line =
                format!("--quiet index query --limit 1000 --within {within} {index} demo/corpus.jsonl");
            let mut answers = answers(&here.run(&line).ends(0));
            for answer in answers.values_mut() {
                let matches = answer["matches"].as_array_mut().unwrap();
                matches.iter_mut().for_each(|found| found["age"] = Value::Null);
                // Documents of one command may have one time, so equally near ones come in the order of their ids.
                matches.sort_by_key(|found| (found["distance"].as_u64(), found["id"].to_string()));
            }
            answers
        };
        let found = query(&index);
        assert_eq!(found, query("ix"), "within {within}");
        if within == 3 {
            for (id, answer) in &found {
                let mut matches = matches(answer);
                assert!(matches.remove(id), "{id} does not find itself");
                assert_eq!(matches, expected.get(id).cloned().unwrap_or_default(), "{id}");
            }
        }
    }
    // Asking and adding one by one takes what the index on disk takes.
    let table = empty_index(&here, shared());
    here.run(&format!("--quiet index build empty {METHOD} none.jsonl")).ends(0);
    let [disk, hbase] = ["empty", &table].map(|index| {
        here.run(&format!("--quiet index query --insert --limit 1000 {index} demo/corpus.jsonl")).ends(0)
    });
    assert_eq!(new_ids(&disk), new_ids(&hbase));
    assert!(new_ids(&disk).len() > 300);
    for (id, answer) in answers(&hbase) {
        assert_eq!(matches(&answer), matches(&answers(&disk)[&id]), "{id}");
    }
    assert_eq!(new_ids(&hbase), ids(&here, &table));
    assert_eq!(documents(&here, &table), [new_ids(&hbase).len() as u64, 0]);
}

#[test]
#[ignore = "needs scripts/hbase/build"]
fn documents_of_any_id_are_deleted_and_expire() {
    let here = Folder::new();
    let index = empty_index(&here, shared());
    let long = "长".repeat(20_000);
    let strange = ["", "a'b", "\u{1}\u{7f}", "p", "k", "id with spaces", &long];
    let line = |id: &&str| format!("{}\n", json!({ "id": id, "text": "春眠不觉晓处处闻啼鸟" }));
    here.write("a.jsonl", strange.iter().map(line).collect::<String>());
    here.write("b.jsonl", json_lines([("a'b", "床前明月光疑是地上霜"), ("b", "床前明月光疑是地上霜")]));
    let run = |line: &str| here.run(&format!("--quiet index {line}")).ends(0);
    run(&format!("insert {index} a.jsonl"));
    run(&format!("insert {index} b.jsonl"));
    run(&format!("insert {index} b.jsonl --topic other"));
    // An id may have several documents, and one document may be there twice, as in an index on disk.
    run(&format!("insert {index} b.jsonl"));
    assert_eq!(documents(&here, &index), [11, 0]);
    assert_eq!(ids(&here, &index).len(), 8);
    let found = answers(&run(&format!("query {index} a.jsonl")));
    let all: BTreeSet<String> = strange.iter().map(|&id| id.to_owned()).collect();
    assert!(strange.iter().all(|&id| matches(&found[id]) == all));
    here.write("gone.txt", format!("a'b\nmissing\n{long}\n"));
    let told = here.run(&format!("index delete {index} gone.txt")).ends(0);
    assert!(told.stderr.contains("4 documents of 3 ids deleted"), "{told:?}");
    assert_eq!(documents(&here, &index), [7, 0]);
    let found = answers(&run(&format!("query {index} b.jsonl")));
    assert_eq!(found["b"]["matches"].as_array().unwrap().len(), 2);
    assert_eq!(matches(&found["b"]), BTreeSet::from(["b".to_owned()]));
    // What was deleted may come again.
    run(&format!("insert {index} b.jsonl"));
    assert_eq!(documents(&here, &index), [9, 0]);
    run(&format!("expire {index} --older-than 1h"));
    assert_eq!(documents(&here, &index), [9, 0]);
    run(&format!("expire {index} --older-than 0s --topic default"));
    assert_eq!(documents(&here, &index), [0, 0]);
    assert!(matches(&answers(&run(&format!("query {index} b.jsonl")))["b"]).is_empty());
    let other = answers(&run(&format!("query {index} b.jsonl --topic other")));
    assert_eq!(matches(&other["b"]).len(), 2);
    run(&format!("drop {index} --topic other"));
    assert!(matches(&answers(&run(&format!("query {index} b.jsonl --topic other")))["b"]).is_empty());
    let none = here.run(&format!("index drop {index} --topic other")).ends(0);
    assert!(none.stderr.contains("no topic \"other\""), "{none:?}");
}

#[test]
#[ignore = "needs scripts/hbase/build"]
fn an_answer_has_a_limit_and_long_rows_are_read_to_their_end() {
    let here = Folder::new();
    let index = empty_index(&here, shared());
    // More cells of one row than are read at once.
    here.write("a.jsonl", json_lines((0..10_050).map(|number| (number, "春眠不觉晓处处闻啼鸟"))));
    here.write("ask.jsonl", json_lines([("ask", "春眠不觉晓处处闻啼鸟")]));
    here.run(&format!("--quiet index insert {index} a.jsonl")).ends(0);
    let run = here.run(&format!("--quiet index query --limit 4 {index} ask.jsonl")).ends(0);
    let answer: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((answer["matches"].as_array().unwrap().len(), &answer["more"]), (4, &Value::from(9996)));
    assert_eq!((&answer["cut"], &answer["unverified"]), (&Value::Bool(true), &Value::Bool(true)));
    // The one that comes last in the rows is found once the others are gone.
    let others: String =
        (0..10_050).filter(|number| *number != 10_049).map(|number| format!("{number}\n")).collect();
    here.write("others.txt", others);
    here.run(&format!("--quiet index delete {index} others.txt")).ends(0);
    let run = here.run(&format!("--quiet index query {index} ask.jsonl")).ends(0);
    assert_eq!(matches(&answers(&run)["ask"]), BTreeSet::from(["10049".to_owned()]));
}

#[test]
#[ignore = "needs scripts/hbase/build"]
fn what_an_index_in_hbase_cannot_do_is_refused() {
    let here = demo(20, 4);
    let index = shared().table("refused");
    here.run(&format!("index query {index} demo/corpus.jsonl"))
        .fails(2, &["refused", "no index", "index build"]);
    for method in ["auto --no-text", "simhash", "simhash:hamming=4 --no-text", "simhash:bits=128 --no-text"] {
        let line = format!("index build {index} demo/corpus.jsonl --method {method}");
        here.run(&line).fails(2, &["64 bits within 3", "--no-text"]);
    }
    here.run(&format!("--quiet index build {index} demo/corpus.jsonl {METHOD}")).ends(0);
    here.run(&format!("index build {index} demo/corpus.jsonl {METHOD}"))
        .fails(2, &["refused", "no empty table", "index insert"]);
    here.write("stop.txt", "的\n");
    here.run(&format!("index insert {index} demo/corpus.jsonl --stop-words stop.txt"))
        .fails(2, &["refused", "other --stop-words"]);
    here.run(&format!("index check {index}")).fails(2, &["HBase"]);
    here.run(&format!("index compact {index}")).fails(2, &["HBase"]);
    here.run("index stats hbase://127.0.0.1/refused").fails(2, &["hbase://HOST:PORT/TABLE"]);
    // A wrong port is said at once.
    here.run("index stats hbase://127.0.0.1:1/refused").fails(1, &["hbase://127.0.0.1:1/refused"]);
    assert_eq!(documents(&here, &index), [20, 0]);
}
