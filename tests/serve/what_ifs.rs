//! Tests of what-ifs, and of what a view may take: its memory, an index that another process changes, kills.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::http::{HttpServer, JSON, empty_index};
use super::views::{LIMIT, delete, insert, insert_docs, kept_by_dedup, kept_ids, snapshot, view};
use crate::random::Random;
use crate::support::{Folder, signal, wait_until};

/// Begins a what-if and returns the answer.
fn what_if(server: &HttpServer, body: &Value) -> Value {
    let answer = server.post("/topics/news/view/what-if", &body.to_string());
    assert_eq!(answer.status, 201, "{answer:?}");
    serde_json::from_str(&answer.body).unwrap()
}

/// Returns what a running what-if says.
fn look(server: &HttpServer, number: &Value) -> Value {
    server.ask("GET", &format!("/topics/news/view/what-if/{number}"), &[], "").json()
}

/// Checks the counts of a what-if. `now`: the ids of documents that stay; `then`: of those that would stay.
#[track_caller]
fn check(said: &Value, now: &BTreeSet<String>, then: &BTreeSet<String>) {
    assert_eq!(said["kept"], then.len(), "{said}");
    assert_eq!(said["would_stay"], then.difference(now).count(), "{said}");
    assert_eq!(said["would_go"], now.difference(then).count(), "{said}");
    assert_eq!(said["exact"], true, "{said}");
}

/// Texts of families of up to ten, of which some are more similar than others.
fn insert_families(server: &HttpServer, numbers: impl Iterator<Item = u64>) {
    let docs = numbers.map(|number| {
        let mut random = Random(number + 1);
        let mut text: Vec<char> = Random(number / 10 + 500).text(90).chars().collect();
        for _ in 0..random.below(8) {
            let at = random.below(text.len());
            text[at] = random.text(1).chars().next().unwrap();
        }
        (format!("f{number}"), text.into_iter().collect())
    });
    insert_docs(server, docs);
}

#[test]
fn a_what_if_says_what_rethreshold_and_another_order_would_keep() {
    let here = empty_index("auto");
    let server = HttpServer::start(&here, "--view");
    insert_families(&server, 0..200);
    view(&server, "");
    let high = what_if(&server, &json!({ "threshold": 0.9 }))["what_if"].clone();
    let newest = what_if(&server, &json!({ "policy": "newest" }))["what_if"].clone();
    for round in 0..3 {
        let now = snapshot(&server).1;
        // The lines of the export are in the order of the documents.
        assert_eq!(now, kept_by_dedup(&here, &server, "old-first"));
        here.run("--quiet dedup export.jsonl all --overwrite --pairs all").ends(0);
        here.run("--quiet rethreshold all higher --overwrite --threshold 0.9").ends(0);
        let higher = kept_ids(&here, "higher");
        assert!(higher.len() > now.len(), "the threshold decides: {} {}", higher.len(), now.len());
        check(&look(&server, &high), &now, &higher);
        let other_order = kept_by_dedup(&here, &server, "newest");
        assert_ne!(other_order, now);
        check(&look(&server, &newest), &now, &other_order);
        let before = view(&server, "")["documents"].as_u64().unwrap();
        let first = 200 + 40 * round;
        insert_families(&server, first..first + 40);
        let ids: Vec<String> = (0..25).map(|n| format!("f{}", n * 7 + round)).collect();
        let answer = server.post("/topics/news/delete", &json!({ "ids": ids }).to_string());
        let deleted = answer.json()["deleted"].as_u64().unwrap();
        wait_until("the view has the changes", LIMIT, || {
            view(&server, "")["documents"] == before + 40 - deleted
        });
    }
    assert_eq!(server.end(), Some(0));
}

#[test]
fn later_documents_are_compared_as_those_with_which_a_view_begins() {
    let here = Folder::new();
    here.run("--quiet demo demo --mixture --documents 4000").ends(0);
    let corpus = std::fs::read_to_string(here.path("demo/corpus.jsonl")).unwrap();
    let mut lines: Vec<&str> = corpus.lines().collect();
    // Kinds of documents are one after the other.
    let mut random = Random(5);
    (1..lines.len()).for_each(|at| lines.swap(at, random.below(at + 1)));
    here.write("all.jsonl", lines.join("\n"));
    here.write("first.jsonl", lines[..3000].join("\n"));
    here.run("--quiet dedup all.jsonl out").ends(0);
    here.run("--quiet index build ix first.jsonl --topic news").ends(0);
    let server = HttpServer::start(&here, "--view");
    assert_eq!(view(&server, "")["documents"], 3000);
    for part in lines[3000..].chunks(100) {
        let docs = part.iter().map(|line| {
            let doc: Value = serde_json::from_str(line).unwrap();
            let of = |field: &str| doc[field].as_str().unwrap().to_owned();
            (of("id"), of("text"))
        });
        insert_docs(&server, docs);
    }
    wait_until("the view has all", LIMIT, || view(&server, "")["documents"] == 4000);
    assert_eq!(snapshot(&server).1, kept_ids(&here, "out"));
    assert_eq!(server.end(), Some(0));
}

#[test]
fn documents_that_go_while_a_view_is_made_let_the_others_ask_again() {
    let here = Folder::new();
    here.run("--quiet demo demo --mixture --documents 6000").ends(0);
    here.run("--quiet index build ix demo/corpus.jsonl --topic news").ends(0);
    let kept = here.run("--quiet index view ix --topic news --kept").ends(0).stdout;
    let server = HttpServer::start(&here, "--view");
    assert_eq!(server.ask("GET", "/topics/news/view", &[], "").status, 503);
    // Every fourth page that stays goes before the view is there.
    let pages = kept.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].clone());
    let pages = pages.filter(|id| id.as_str().unwrap().starts_with("page-"));
    let gone: Vec<Value> = pages.step_by(4).collect();
    assert!(gone.len() > 10, "{gone:?}");
    let answer = server.post("/topics/news/delete", &json!({ "ids": gone }).to_string());
    assert_eq!(answer.json()["deleted"], gone.len());
    wait_until("the view has the changes", LIMIT, || view(&server, "")["documents"] == 6000 - gone.len());
    let (_, live) = snapshot(&server);
    assert_eq!(server.end(), Some(0));
    let once = here.run("--quiet index view ix --topic news --kept").ends(0).stdout;
    let id = |line: &str| serde_json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap().to_owned();
    assert_eq!(live, once.lines().map(id).collect());
}

#[test]
fn the_feed_tells_documents_with_one_id_apart() {
    let here = empty_index("auto");
    let server = HttpServer::start(&here, "--view");
    insert(&server, 0..1);
    let (since, _) = snapshot(&server);
    let doc = json!({ "id": "same", "text": Random(77).text(60) }).to_string();
    for _ in 0..2 {
        assert_eq!(server.post("/topics/news/insert", &doc).status, 200);
    }
    wait_until("the view has both", LIMIT, || view(&server, "")["documents"] == 3);
    assert_eq!(server.post("/topics/news/delete", r#"{"ids":["same"]}"#).json()["deleted"], 2);
    wait_until("both have gone", LIMIT, || view(&server, "")["documents"] == 1);
    let mut feed = BufReader::new(server.connect());
    let request = format!("GET /topics/news/view/changes?since={since} HTTP/1.0\r\n\r\n");
    feed.get_mut().write_all(request.as_bytes()).unwrap();
    let lines = feed.lines().map(Result::unwrap).filter(|line| line.starts_with('{')).take(4);
    let changes: Vec<Value> = lines.map(|line| serde_json::from_str(&line).unwrap()).collect();
    let of = |at: usize| (&changes[at]["id"], &changes[at]["change"], &changes[at]["number"]);
    assert_eq!(of(0), (&json!("same"), &json!("kept"), &json!(1)));
    assert_eq!(of(1), (&json!("same"), &json!("removed"), &json!(2)));
    for (at, number) in [(2, 1), (3, 2)] {
        assert_eq!(of(at), (&json!("same"), &json!("deleted"), &json!(number)));
    }
    assert_eq!(server.end(), Some(0));
}

#[test]
fn four_what_ifs_are_kept_at_a_time() {
    let here = empty_index("auto");
    let server = HttpServer::start(&here, "--view");
    insert(&server, 0..300);
    view(&server, "");
    for (body, word) in [
        ("{}", "threshold"),
        (r#"{"threshold":0.1}"#, "none below"),
        (r#"{"threshold":2}"#, "from 0 to 1"),
        (r#"{"policy":"oldest"}"#, "policy"),
        (r#"{"policy":"priority:n"}"#, "keeps no fields"),
    ] {
        let answer = server.post("/topics/news/view/what-if", body);
        assert!(answer.status == 400 && answer.body.contains(word), "{body}: {answer:?}");
    }
    assert!(server.post("/topics/news/view/what-if", r#"{"thresh":0.9}"#).status >= 400);
    let begun: Vec<Value> =
        (0..4).map(|n| what_if(&server, &json!({ "threshold": 0.9 + 0.02 * f64::from(n) }))).collect();
    // Families of hundreds are compared with those alone that stay.
    assert_eq!(begun[0]["exact"], false);
    let fifth = server.post("/topics/news/view/what-if", r#"{"policy":"longest"}"#);
    assert!(fifth.status == 429 && fifth.body.contains("4 what-ifs"), "{fifth:?}");
    let path = format!("/topics/news/view/what-if/{}", begun[1]["what_if"]);
    assert_eq!(server.ask("DELETE", &path, &[], "").status, 204);
    assert_eq!(server.ask("DELETE", &path, &[], "").status, 404);
    assert_eq!(server.ask("GET", &path, &[], "").status, 404);
    assert_eq!(what_if(&server, &json!({ "policy": "longest" }))["policy"], "longest");
    assert_eq!(look(&server, &begun[2]["what_if"])["threshold"], begun[2]["threshold"]);
    assert_eq!(server.end(), Some(0));
}

#[test]
fn a_view_that_takes_too_much_memory_is_refused() {
    let here = empty_index("auto");
    let server = HttpServer::start(&here, "--view --view-memory 50K");
    insert(&server, 0..20);
    view(&server, "");
    insert(&server, 20..2000);
    wait_until("the view is refused", LIMIT, || {
        let answer = server.ask("GET", "/topics/news/view", &[], "");
        answer.status == 409 && answer.body.contains("--view-memory") && answer.body.contains("MB")
    });
    // It is not begun anew at once, and the index goes on.
    assert_eq!(server.ask("GET", "/topics/news/view", &[], "").status, 409);
    insert(&server, 2000..2010);
    assert_eq!(server.end(), Some(0));
}

#[test]
fn a_server_that_only_reads_has_a_view_of_what_another_one_changes() {
    let here = empty_index("auto");
    let writer = HttpServer::start(&here, "");
    insert(&writer, 0..100);
    let reader = HttpServer::start(&here, "--view --read-only");
    let (version, kept) = snapshot(&reader);
    assert_eq!(kept, kept_by_dedup(&here, &writer, "old-first"));
    insert(&writer, 100..200);
    assert_eq!(delete(&writer, 0..30), 30);
    let follow = Duration::from_secs(40);
    wait_until("the reader has the changes", follow, || view(&reader, "")["documents"] == 170);
    let (newer, kept) = snapshot(&reader);
    assert!(newer > version);
    assert_eq!(kept, kept_by_dedup(&here, &writer, "old-first"));
    // A topic that is dropped and begun anew has other documents by the same numbers.
    assert_eq!(writer.ask("DELETE", "/topics/news", &[], "").json()["dropped"], 1);
    insert(&writer, 5000..5250);
    wait_until("the reader has the new topic", follow, || {
        let answer = reader.ask("GET", "/topics/news/view", &[], "");
        answer.status == 200 && answer.json()["documents"] == 250
    });
    assert_eq!(snapshot(&reader).1, kept_by_dedup(&here, &writer, "old-first"));
    assert_eq!(reader.end(), Some(0));
    assert_eq!(writer.end(), Some(0));
}

#[test]
fn a_view_is_right_after_a_kill_at_any_time() {
    let here = empty_index("auto");
    let mut server = HttpServer::start(&here, "--view");
    insert(&server, 0..50);
    for round in 1..5 {
        view(&server, "");
        thread::scope(|scope| {
            for client in 0..4 {
                let server = &server;
                scope.spawn(move || {
                    for part in 0..1000 {
                        let number = round * 10_000 + client * 1000 + part;
                        let text = Random(number % 90).text(60);
                        let doc = json!({ "id": format!("k{number}"), "text": text }).to_string();
                        if server.try_ask("POST", "/topics/news/insert", &[JSON], &doc).is_none() {
                            return;
                        }
                    }
                });
            }
            thread::sleep(Duration::from_millis(150 + 50 * round));
            signal(server.id(), "KILL");
        });
        server = HttpServer::start(&here, "--view");
        let (version, kept) = snapshot(&server);
        assert_eq!(kept, kept_by_dedup(&here, &server, "old-first"), "{round}");
        // Whoever has this version goes on with it when the server is started again.
        signal(server.id(), "KILL");
        server = HttpServer::start(&here, "--view");
        view(&server, "");
        let mut feed = server.connect();
        let request = format!("GET /topics/news/view/changes?since={version} HTTP/1.0\r\n\r\n");
        feed.write_all(request.as_bytes()).unwrap();
        let mut answer = [0; 12];
        std::io::Read::read_exact(&mut feed, &mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.0 200", "{round}");
    }
    assert_eq!(server.end(), Some(0));
}
