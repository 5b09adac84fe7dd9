//! Tests of a served index: it answers as the command line does, takes changes that last, refuses what it must, and ends
//! when it is told to.

mod browser;
mod crashes;
pub mod http;
mod limits;
mod places;
mod turns;
mod views;
mod what_ifs;

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use self::http::{HttpServer, JSON_LINES, empty_index};
use crate::corpus::demo;
use crate::support::{Random, wait_until};

#[test]
fn the_server_answers_as_the_command_line_does() {
    let here = demo(300, 4);
    let corpus = fs::read_to_string(here.path("demo/corpus.jsonl")).unwrap();
    for method in ["auto", "simhash:features=char:3,hamming=10 --no-text", "exact"] {
        here.run(&format!("--quiet index build ix demo/corpus.jsonl --method {method}")).ends(0);
        let expected = here.run("--quiet index query --limit 3 ix demo/corpus.jsonl").ends(0).stdout;
        let without_age = |lines: &str| -> Vec<Value> {
            let mut answers: Vec<Value> =
                lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            for found in answers.iter_mut().flat_map(|answer| answer["matches"].as_array_mut().unwrap()) {
                found["age"] = Value::Null;
            }
            answers
        };
        let server = HttpServer::start(&here, "");
        let batch = server.ask("POST", "/topics/default/query?limit=3", &[JSON_LINES], &corpus);
        assert_eq!(without_age(&batch.body), without_age(&expected), "{method}");
        assert_eq!(without_age(&expected).len(), 300);
        for line in corpus.lines().take(20) {
            let one = server.post("/topics/default/query?limit=3", line);
            let asked: Value = serde_json::from_str(line).unwrap();
            let answer = without_age(&one.body);
            assert_eq!(answer[0]["id"], asked["id"]);
            assert!(without_age(&expected).contains(&answer[0]), "{method}: {answer:?}");
        }
        assert_eq!(server.end(), Some(0));
        fs::remove_dir_all(here.path("ix")).unwrap();
    }
}

#[test]
fn changes_over_http_survive_a_restart_of_the_server() {
    let here = empty_index("auto");
    let server = HttpServer::start(&here, "");
    let doc = |id: &str, text: &str| json!({ "id": id, "text": text }).to_string();
    let news = "春眠不觉晓，处处闻啼鸟。夜来风雨声，花落知多少。";
    assert_eq!(server.post("/topics/news/query-insert", &doc("a", news)).json()["new"], true);
    let again = server.post("/topics/news/query-insert", &doc("b", news)).json();
    assert_eq!((&again["new"], &again["matches"][0]["id"]), (&json!(false), &json!("a")));
    // Another topic knows nothing of it.
    assert_eq!(server.post("/topics/forum/query", &doc("c", news)).matches(), [[""; 0]]);
    assert_eq!(server.post("/topics/forum/insert", &doc("c", news)).json()["inserted"], 1);
    let lines = [doc("d", "甲乙丙丁戊己庚辛"), doc("e", "子丑寅卯辰巳午未")].join("\n");
    let inserted = server.ask("POST", "/topics/news/insert", &[JSON_LINES], &lines).json();
    assert_eq!(inserted["inserted"], 2);
    assert_eq!(server.post("/topics/news/delete", r#"{"ids":["a","z"]}"#).json()["deleted"], 1);
    assert_eq!(server.post("/topics/forum/expire", r#"{"older_than":1000}"#).status, 204);
    assert_eq!(server.ask("DELETE", "/topics/gone", &[], "").json()["dropped"], 0);
    let ids = |body: &str| -> BTreeSet<String> {
        let line =
            |line: &str| serde_json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap().to_owned();
        body.lines().map(line).collect()
    };
    let check = |server: &HttpServer, news: &[&str], forum: &[&str]| {
        for (topic, expected) in [("news", news), ("forum", forum)] {
            let documents = server.ask("GET", &format!("/topics/{topic}/documents"), &[], "");
            let expected: BTreeSet<String> = expected.iter().map(|&id| id.to_owned()).collect();
            assert_eq!(ids(&documents.body), expected, "{documents:?}");
        }
    };
    check(&server, &["d", "e"], &["c"]);
    let topics = server.ask("GET", "/topics", &[], "").json();
    assert_eq!(topics["topics"].as_array().unwrap().len(), 2);
    // Nobody else changes the index meanwhile, and a reader sees what the server has made durable.
    here.run("index insert ix none.jsonl").ends(11);
    assert_eq!(ids(&here.run("index export ix --topic news").ends(0).stdout).len(), 2);
    assert_eq!(server.end(), Some(0));

    let server = HttpServer::start(&here, "");
    check(&server, &["d", "e"], &["c"]);
    assert_eq!(server.ask("DELETE", "/topics/news", &[], "").json()["dropped"], 1);
    assert_eq!(server.ask("GET", "/topics/news/documents", &[], "").status, 404);
    let metrics = server.ask("GET", "/metrics", &[], "").body;
    assert!(metrics.contains("dedup_index_topics 1\n"), "{metrics}");
    assert!(metrics.contains("dedup_index_requests_total{status=\"4xx\"} 1\n"), "{metrics}");
    let described: Value = server.ask("GET", "/openapi.json", &[], "").json();
    let paths: Vec<&String> = described["paths"].as_object().unwrap().keys().collect();
    assert_eq!(paths.len(), 19, "{paths:?}");
    assert_eq!(server.end(), Some(0));
    here.run("index check ix").ends(0);
}

#[test]
fn a_read_only_server_follows_the_index() {
    let here = empty_index("exact");
    let server = HttpServer::start(&here, "--read-only");
    let line = r#"{"id":"a","text":"春眠不觉晓"}"#;
    assert_eq!(server.post("/topics/default/insert", line).status, 405);
    here.write("a.jsonl", line);
    here.run("--quiet index insert ix a.jsonl").ends(0);
    wait_until("the server has seen the document", Duration::from_secs(60), || {
        thread::sleep(Duration::from_millis(200));
        server.post("/topics/default/query", line).matches() == [["a"]]
    });
    assert_eq!(server.end(), Some(0));
}

#[test]
fn a_snapshot_has_what_was_acknowledged_before_it() {
    let here = empty_index("auto");
    let server = HttpServer::start(&here, "");
    let insert = |id: usize| {
        let text = Random(id as u64 + 7).text(50);
        let doc = json!({ "id": id.to_string(), "text": text }).to_string();
        assert_eq!(server.post("/topics/default/insert", &doc).status, 200);
    };
    let (next, done) = (AtomicUsize::new(0), AtomicBool::new(false));
    let mut least = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                insert(next.load(Ordering::Relaxed));
                next.fetch_add(1, Ordering::Relaxed);
            }
        });
        for number in 0..5 {
            thread::sleep(Duration::from_millis(200));
            least.push(next.load(Ordering::Relaxed));
            here.run(&format!("--quiet index snapshot ix copy-{number}")).ends(0);
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(server.end(), Some(0));
    assert!(least[4] > 20, "{least:?}");
    for (number, least) in least.iter().enumerate() {
        let copy = format!("copy-{number}");
        here.run(&format!("index check {copy}")).ends(0);
        let documents = here.run(&format!("--quiet index export {copy}")).ends(0).stdout.lines().count();
        assert!((*least..=next.load(Ordering::Relaxed)).contains(&documents), "{documents} {least}");
    }
    // The copy goes on by itself, though segments are shared, and the index does not see that.
    here.run("--quiet index compact ix").ends(0);
    here.run("--quiet index snapshot ix last").ends(0);
    here.run("--quiet index drop last --topic default").ends(0);
    here.run("index check ix").ends(0);
    here.run("index snapshot ix last").fails(2, &["no empty folder"]);
    here.run("index snapshot none last").fails(2, &["is no index"]);
    for inside in ["ix", "ix/copy", "last/../ix/topics/copy"] {
        here.run(&format!("index snapshot ix {inside}")).fails(2, &["lies in the index"]);
    }
    here.run("index check ix").ends(0);
}

#[test]
fn a_server_ends_though_clients_stay() {
    let here = empty_index("exact");
    let server = HttpServer::start(&here, "--grace 1");
    let idle = server.connect();
    let mut halfway = server.connect();
    halfway.write_all(b"POST /topics/default/insert HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{").unwrap();
    thread::sleep(Duration::from_millis(200));
    assert_eq!(server.end(), Some(0));
    drop((idle, halfway));
    here.run("--quiet index insert ix none.jsonl").ends(0);
}
