//! A request whose work takes very long: it ends in time and says what it has done, and keeps no other topic waiting.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::http::{Answered, HttpServer, JSON_LINES, empty_index};
use crate::support::{Folder, Random, signal, wait_until};

/// Number of documents that resemble each other.
const FAMILY: usize = 3000;

/// Returns lines of documents that resemble each other and are not equal.
fn family(first: usize, count: usize) -> String {
    let base = Random(5).text(400);
    let doc =
        |number: usize| json!({ "id": number.to_string(), "text": format!("{base}{number}") }).to_string();
    (first..first + count).map(doc).collect::<Vec<_>>().join("\n")
}

/// Serves an index in which a query for a document of the family takes long.
fn slow_index(options: &str) -> (Folder, HttpServer) {
    let here = empty_index("minhash");
    let server = HttpServer::start(&here, options);
    let inserted = server.ask("POST", "/topics/slow/insert", &[JSON_LINES], &family(0, FAMILY)).json();
    assert_eq!(inserted["inserted"], FAMILY);
    (here, server)
}

/// Returns lines of which the first three documents are new, and the others take long.
fn slow_batch() -> String {
    let new = |number: u64| {
        json!({ "id": format!("new-{number}"), "text": Random(number + 77).text(100) }).to_string()
    };
    format!("{}\n{}", (0..3).map(new).collect::<Vec<_>>().join("\n"), family(FAMILY, 3000))
}

fn query_insert(server: &HttpServer) -> Answered {
    server.ask("POST", "/topics/slow/query-insert", &[JSON_LINES], &slow_batch())
}

#[test]
fn a_batch_that_takes_too_long_says_what_it_did_and_keeps_no_other_topic_waiting() {
    let (_here, server) = slow_index("--timeout 8 --max-requests 3");
    let (batch, others) = thread::scope(|scope| {
        let batch = scope.spawn(|| (query_insert(&server), Instant::now()));
        let queued = scope.spawn(|| {
            thread::sleep(Duration::from_millis(500));
            server.post("/topics/slow/insert", r#"{"id":"queued","text":"床前明月光"}"#)
        });
        thread::sleep(Duration::from_secs(1));
        let mut others = Vec::new();
        for number in 0..3 {
            let doc = json!({ "id": number.to_string(), "text": "明" }).to_string();
            assert_eq!(server.post("/topics/other/insert", &doc).json()["inserted"], 1);
            assert_eq!(server.post("/topics/other/query", &doc).matches()[0].len(), number + 1);
            others.push(Instant::now());
        }
        // Those two and a third one take all places.
        let third = scope.spawn(|| server.ask("POST", "/topics/slow/query", &[JSON_LINES], &family(0, 3000)));
        let mut refused = server.post("/topics/other/query", r#"{"text":"明"}"#);
        wait_until("a request is refused", Duration::from_secs(2), || {
            refused = server.post("/topics/other/query", r#"{"text":"明"}"#);
            refused.status == 503
        });
        assert!(refused.head.to_lowercase().contains("retry-after: 1"), "{refused:?}");
        assert_eq!(server.ask("GET", "/healthz", &[], "").status, 200);
        assert_eq!(third.join().unwrap().status, 408);
        // It waited for the batch, which is of the same topic, and was begun or not.
        assert!([200, 408].contains(&queued.join().unwrap().status));
        (batch.join().unwrap(), others)
    });
    let (answer, ended) = batch;
    assert!(others.iter().all(|other| *other < ended), "another topic has waited");
    assert_eq!(answer.status, 408, "{answer:?}");
    let body: Value = serde_json::from_str(&answer.body).unwrap();
    let answers = body["answers"].as_array().unwrap();
    assert!((3..3003).contains(&answers.len()), "{body}");
    assert!(body["error"].as_str().unwrap().contains(&format!("behind the first {}", answers.len())));
    let new: Vec<&str> = answers
        .iter()
        .filter(|answer| answer["new"] == true)
        .map(|answer| answer["id"].as_str().unwrap())
        .collect();
    assert_eq!(new, ["new-0", "new-1", "new-2"]);
    let documents = server.ask("GET", "/topics/slow/documents", &[], "").body;
    let added = documents.lines().filter(|line| line.contains("\"new-")).count();
    assert_eq!(added, 3);
    assert_eq!(server.end(), Some(0));
}

#[test]
fn the_grace_holds_for_a_batch_that_takes_long() {
    let (here, server) = slow_index("--grace 2");
    thread::scope(|scope| {
        let batch = scope.spawn(|| query_insert(&server));
        thread::sleep(Duration::from_millis(700));
        signal(server.id(), "TERM");
        let began = Instant::now();
        let answer = batch.join().unwrap();
        assert_eq!(answer.status, 408, "{answer:?}");
        // A minute would be needed for the whole batch.
        assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    });
    assert_eq!(server.end(), Some(0));
    let exported = here.run("--quiet index export ix --topic slow").ends(0).stdout;
    assert_eq!(exported.lines().count(), FAMILY + 3);
}
