//! Tests that documents without text are kept and counted, and are never duplicates, in any job.

use serde_json::Value;

use crate::corpus::{json_line, json_lines};
use crate::support::{Folder, Run};

/// Methods, one of each search, and with each cleaning.
const METHODS: [&str; 9] = [
    "auto",
    "auto:search=exact",
    "exact",
    "jaccard:0.6,features=char:2,clean=none",
    "contained:0.7,features=char:2",
    "minhash",
    "simhash:features=char:2",
    "simhash:features=char:2,clean=weibo",
    "zhou2017",
];
/// Texts of which no cleaning leaves anything.
const EMPTY: [&str; 6] = ["", "", " ", "\u{3000}", " ", "\\t\\n"];
const TEXTS: [(&str, &str); 2] = [
    ("a", "新华社北京电国家统计局十九日发布数据前三季度国内生产总值同比增长百分之五"),
    ("b", "春眠不觉晓处处闻啼鸟夜来风雨声花落知多少床前明月光疑是地上霜举头望明月低头思故乡"),
];

/// Returns the lines of documents without text, and of two equal ones with a text. `name`: begins their ids.
fn corpus(name: &str) -> String {
    let empty = EMPTY.iter().enumerate().map(|(number, text)| (format!("{name}{number}"), text));
    let text = TEXTS.iter().find(|of| of.0 == name).unwrap().1;
    json_lines(empty) + &json_line(format!("{name}x"), text) + &json_line(format!("{name}y"), text)
}

fn ids(here: &Folder, folder: &str) -> Vec<String> {
    let objects = here.objects(folder, ".jsonl");
    objects.iter().map(|object| object["id"].as_str().unwrap().to_owned()).collect()
}

/// Returns the ids of the documents that an index says are new, or of those that match something.
fn answered(run: &Run, is_one: impl Fn(&Value) -> bool) -> Vec<String> {
    let answers = run.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    answers.filter(|of| is_one(of)).map(|of| of["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn every_method_keeps_documents_without_text() {
    let here = Folder::new();
    here.write("in/a.jsonl", corpus("a"));
    here.write("in/b.jsonl", corpus("b"));
    for method in METHODS {
        let job = |workers, options: &str, output: &str| {
            let line = format!("dedup --workers {workers} --overwrite --method {method} {options} {output}");
            here.run(&line).ends(0)
        };
        let run = job(1, "--pairs all in", "one");
        assert_eq!(ids(&here, "one/removed"), ["ay", "by"], "{method}");
        assert_eq!(here.counter("one", "without_text"), 12, "{method}");
        assert!(run.stderr.contains("none of which is a duplicate=12"), "{method}: {}", run.stderr);
        job(3, "--pairs all in", "three");
        for folder in ["kept", "removed", "pairs", "clusters"] {
            assert_eq!(here.contents(&format!("one/{folder}")), here.contents(&format!("three/{folder}")));
        }
        if method != "zhou2017" {
            job(2, "--against in/a.jsonl in/b.jsonl", "against");
            assert_eq!(ids(&here, "against/removed"), ["by"], "{method}");
            assert_eq!(here.success("against")["counters"]["reference"]["without_text"], 6, "{method}");
        }
    }
    let why = here.run("why three a0 b1").ends(0);
    assert!(why.stdout.contains("a document without text is never a duplicate"), "{}", why.stdout);
}

#[test]
fn night_after_night_keeps_them_and_an_index_of_the_state_finds_none() {
    let here = Folder::new();
    here.write("a.jsonl", corpus("a"));
    here.write("b.jsonl", corpus("b"));
    here.write("gone.txt", "a0\na2\n");
    for (number, method) in ["auto", "simhash:features=char:2", "exact"].into_iter().enumerate() {
        let (state, index) = (format!("state{number}"), format!("index{number}"));
        let night = |name: &str, options: &str| {
            here.run(&format!("nightly --state {state} --output {state}-{name} {options}")).ends(0);
            ids(&here, &format!("{state}-{name}/removed"))
        };
        assert_eq!(night("first", &format!("--method {method} a.jsonl")), ["ay"], "{method}");
        assert_eq!(night("second", "--retract gone.txt b.jsonl"), ["by"], "{method}");
        here.run(&format!("nightly compact --state {state}")).ends(0);
        here.run(&format!("nightly check --state {state}")).ends(0);
        here.run(&format!("index build {index} {state}")).ends(0);
        here.run(&format!("index compact {index}")).ends(0);
        asked(&here, &index);
    }
}

#[test]
fn an_index_finds_no_document_without_text() {
    let here = Folder::new();
    here.write("a.jsonl", corpus("a"));
    here.write("b.jsonl", corpus("b"));
    for (number, method) in ["auto", "simhash:features=char:2", "minhash", "exact"].into_iter().enumerate() {
        let index = format!("index{number}");
        here.run(&format!("index build {index} --method {method} a.jsonl")).ends(0);
        let inserted = here.run(&format!("index query --insert {index} b.jsonl")).ends(0);
        let new = answered(&inserted, |of| of["new"] == true);
        assert_eq!(new, ["b0", "b1", "b2", "b3", "b4", "b5", "bx"], "{method}");
        asked(&here, &index);
        here.run(&format!("index compact {index}")).ends(0);
        asked(&here, &index);
    }
}

/// Checks that an index of both files is sound, and finds no document but those with a text.
fn asked(here: &Folder, index: &str) {
    let found = here.run(&format!("index query {index} a.jsonl b.jsonl")).ends(0);
    let matching = answered(&found, |of| of["matches"].as_array().is_some_and(|found| !found.is_empty()));
    assert_eq!(matching, ["ax", "ay", "bx", "by"], "{index}");
    here.run(&format!("index check {index}")).ends(0);
}
