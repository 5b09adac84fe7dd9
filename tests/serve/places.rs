//! A served index whose folder goes away.

use std::time::Duration;
use std::{fs, thread};

use serde_json::{Value, json};

use super::http::{HttpServer, JSON_LINES, empty_index};
use crate::support::{Folder, wait_until};

/// Inserts documents until one is refused. Returns the ids of those that were acknowledged, and the refusal.
fn insert(server: &HttpServer, prefix: &str, count: usize) -> (Vec<String>, Option<String>) {
    let mut acknowledged = Vec::new();
    for number in 0..count {
        let docs = (0..5).map(|doc| {
            let id = format!("{prefix}{number}-{doc}");
            json!({ "id": id, "text": id }).to_string()
        });
        let lines: Vec<String> = docs.collect();
        let answer = server.ask("POST", "/topics/default/insert", &[JSON_LINES], &lines.join("\n"));
        if answer.status != 200 {
            return (acknowledged, Some(answer.body));
        }
        acknowledged.extend((0..5).map(|doc| format!("{prefix}{number}-{doc}")));
    }
    (acknowledged, None)
}

fn ids(here: &Folder, index: &str) -> Vec<String> {
    let lines = here.run(&format!("--quiet index export {index}")).ends(0).stdout;
    let id = |line: &str| serde_json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap().to_owned();
    lines.lines().map(id).collect()
}

#[test]
fn a_renamed_index_acknowledges_nothing_and_leaves_its_successor_alone() {
    let here = empty_index("exact");
    here.write("one.jsonl", json!({ "id": "one", "text": "one" }).to_string());
    here.run("--quiet index build next one.jsonl --method exact").ends(0);
    let server = HttpServer::start(&here, "");
    let (acknowledged, refusal) = insert(&server, "a", 4);
    assert_eq!((acknowledged.len(), refusal), (20, None));
    fs::rename(here.path("ix"), here.path("old")).unwrap();
    fs::rename(here.path("next"), here.path("ix")).unwrap();
    let ready = server.ask("GET", "/readyz", &[], "");
    assert!(ready.status == 503 && ready.body.contains("moved, removed or replaced"), "{ready:?}");
    let (none, refusal) = insert(&server, "b", 1);
    assert_eq!(none, [""; 0]);
    assert!(refusal.as_ref().is_some_and(|line| line.contains("moved, removed or replaced")), "{refusal:?}");
    // What was acknowledged is still found, and what was refused is not.
    let query = |text: &str| {
        server.post("/topics/default/query", &json!({ "text": text }).to_string()).matches().remove(0)
    };
    assert_eq!((query("a0-0"), query("b0-0")), (vec!["a0-0".to_owned()], Vec::new()));
    assert_eq!(server.end(), Some(0));
    for index in ["ix", "old"] {
        here.run(&format!("index check {index}")).ends(0);
    }
    assert_eq!((ids(&here, "ix"), ids(&here, "old")), (vec!["one".to_owned()], acknowledged));
}

#[test]
fn a_removed_index_acknowledges_nothing() {
    let here = empty_index("exact");
    let server = HttpServer::start(&here, "");
    assert_eq!(insert(&server, "a", 1).0.len(), 5);
    fs::remove_dir_all(here.path("ix")).unwrap();
    let (acknowledged, refusal) = insert(&server, "b", 1);
    assert!(acknowledged.is_empty() && refusal.is_some(), "{acknowledged:?}");
    assert_eq!(server.ask("GET", "/readyz", &[], "").status, 503);
    assert_eq!(server.end(), Some(0));
    assert!(!here.path("ix").exists());
}

/// The successor has other settings, and so other keys of the same text.
#[test]
fn a_read_only_server_follows_to_the_index_that_takes_its_place() {
    let here = empty_index("exact");
    let doc = json!({ "id": "one", "text": "one" }).to_string();
    here.write("one.jsonl", &doc);
    here.run("--quiet index build next one.jsonl --method simhash").ends(0);
    let server = HttpServer::start(&here, "--read-only");
    assert_eq!(server.post("/topics/default/query", &doc).matches(), [[""; 0]]);
    fs::rename(here.path("ix"), here.path("old")).unwrap();
    fs::rename(here.path("next"), here.path("ix")).unwrap();
    wait_until("the server has seen the successor", Duration::from_secs(60), || {
        thread::sleep(Duration::from_millis(200));
        server.post("/topics/default/query", &doc).matches() == [["one"]]
    });
    assert_eq!(server.end(), Some(0));
}
