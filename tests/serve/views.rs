//! Tests of the views of a served index: at each version the same documents stay as `dedup` of an export keeps, and whoever replays the
//! feed has the same set.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::http::{HttpServer, JSON_LINES, empty_index};
use crate::random::Random;
use crate::support::{Folder, wait_until};

pub const LIMIT: Duration = Duration::from_secs(60);

/// Returns a text that is one of three templates with some characters replaced, or one of its own.
fn text(number: u64) -> String {
    let mut random = Random(number + 1);
    let family = random.below(5);
    if family > 2 {
        return random.text(40 + family);
    }
    let mut text: Vec<char> = Random(family as u64 + 77).text(60).chars().collect();
    for _ in 0..random.below(5) {
        let at = random.below(text.len());
        text[at] = random.text(1).chars().next().unwrap();
    }
    text.into_iter().collect()
}

pub fn insert(server: &HttpServer, numbers: impl Iterator<Item = u64>) {
    insert_docs(server, numbers.map(|number| (format!("d{number}"), text(number))));
}

/// Inserts documents by their ids and texts, in one request.
pub fn insert_docs(server: &HttpServer, docs: impl Iterator<Item = (String, String)>) {
    let line = |(id, text): (String, String)| {
        let priority = id.bytes().map(u64::from).sum::<u64>() % 5;
        json!({ "id": id, "text": text, "priority": priority as f64 - 1.5 }).to_string() + "\n"
    };
    let lines = docs.map(line);
    let answer = server.ask("POST", "/topics/news/insert", &[JSON_LINES], &lines.collect::<String>());
    assert_eq!(answer.status, 200, "{answer:?}");
}

pub fn delete(server: &HttpServer, numbers: impl Iterator<Item = u64>) -> u64 {
    let ids: Vec<String> = numbers.map(|number| format!("d{number}")).collect();
    let answer = server.post("/topics/news/delete", &json!({ "ids": ids }).to_string());
    answer.json()["deleted"].as_u64().unwrap()
}

/// Asks for something of a view until it is made.
pub fn view(server: &HttpServer, path: &str) -> Value {
    let mut answer = None;
    wait_until("the view is made", LIMIT, || {
        let asked = server.ask("GET", &format!("/topics/news/view{path}"), &[], "");
        assert!([200, 503].contains(&asked.status), "{asked:?}");
        answer = (asked.status == 200).then_some(asked.body);
        answer.is_some()
    });
    let body = answer.unwrap();
    serde_json::from_str(&body).unwrap_or(Value::String(body))
}

/// Returns the version and the ids of a snapshot.
pub fn snapshot(server: &HttpServer) -> (u64, BTreeSet<String>) {
    let Value::String(lines) = view(server, "/kept") else { panic!("an empty view") };
    let mut lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let version = lines.next().unwrap()["version"].as_u64().unwrap();
    (version, lines.map(|line| line["id"].as_str().unwrap().to_owned()).collect())
}

/// Returns the ids that `dedup` of an export keeps.
pub fn kept_by_dedup(here: &Folder, server: &HttpServer, policy: &str) -> BTreeSet<String> {
    let export = server.ask("GET", "/topics/news/documents", &[], "").body;
    let mut lines: Vec<&str> = export.lines().collect();
    if policy == "newest" {
        lines.reverse();
    }
    here.write("export.jsonl", lines.join("\n"));
    let keep = match policy {
        "longest" => "longest",
        "priority" => "priority:priority",
        _ => "first",
    };
    here.run(&format!("--quiet dedup export.jsonl deduped --overwrite --keep {keep}")).ends(0);
    kept_ids(here, "deduped")
}

/// Returns the ids that an output keeps.
pub fn kept_ids(here: &Folder, output: &str) -> BTreeSet<String> {
    let rows = here.objects(&format!("{output}/kept"), ".jsonl");
    rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

/// A set that is made of a snapshot and the feed behind it.
struct Replayed {
    version: AtomicU64,
    kept: Mutex<BTreeSet<String>>,
}

impl Replayed {
    /// Reads the feed until the server ends it.
    fn read(&self, server: &HttpServer, since: u64) {
        let mut stream = server.connect();
        let request = format!("GET /topics/news/view/changes?since={since} HTTP/1.0\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut lines =
            BufReader::new(stream).lines().map_while(Result::ok).skip_while(|line| !line.is_empty());
        lines.next();
        for line in lines {
            let change: Value = serde_json::from_str(&line).unwrap();
            let id = change["id"].as_str().unwrap_or_else(|| panic!("{line}")).to_owned();
            let mut kept = self.kept.lock().unwrap();
            let is_right = match change["change"].as_str().unwrap() {
                "kept" | "restored" => kept.insert(id),
                "removed" => {
                    assert!(change["duplicate_of"].is_string(), "{line}");
                    kept.remove(&id);
                    true
                }
                "deleted" => {
                    kept.remove(&id);
                    true
                }
                _ => false,
            };
            assert!(is_right, "{line}");
            drop(kept);
            self.version.store(change["version"].as_u64().unwrap(), Ordering::Release);
        }
    }
}

#[test]
fn views_are_what_dedup_says_and_the_feed_gives_the_same() {
    for policy in ["old-first", "newest", "longest", "priority"] {
        let here = empty_index("auto");
        let mut server = HttpServer::start(&here, &format!("--view --view-policy {policy}"));
        insert(&server, 0..300);
        for round in 1..4 {
            let (since, kept) = snapshot(&server);
            assert_eq!(kept, kept_by_dedup(&here, &server, policy), "{policy} {round}");
            let replayed = Replayed { version: AtomicU64::new(since), kept: Mutex::new(kept) };
            thread::scope(|scope| {
                let reader = scope.spawn(|| replayed.read(&server, since));
                // Clients change the index at the same time.
                let changes: Vec<_> = (0..100)
                    .map(|client| {
                        let server = &server;
                        scope.spawn(move || {
                            let first = round * 1000 + client * 8;
                            for part in 0..4 {
                                insert(server, first + 2 * part..first + 2 * part + 2);
                                delete(server, first - 1000 + part..first - 1000 + part + 1);
                            }
                        })
                    })
                    .collect();
                changes.into_iter().for_each(|change| change.join().unwrap());
                // A last document, which no other one resembles, is the last line of the feed.
                let last = format!("last-{round}");
                insert_docs(&server, [(last.clone(), Random(9_000_000 + round).text(80))].into_iter());
                wait_until("the feed has the last document", LIMIT, || {
                    replayed.kept.lock().unwrap().contains(&last)
                });
                let (version, kept) = snapshot(&server);
                assert_eq!(kept, kept_by_dedup(&here, &server, policy), "{policy} {round}");
                assert_eq!(*replayed.kept.lock().unwrap(), kept, "{policy} {round}");
                assert_eq!(replayed.version.load(Ordering::Acquire), version);
                let numbers = view(&server, "");
                assert_eq!((&numbers["version"], &numbers["kept"]), (&json!(version), &json!(kept.len())));
                assert_eq!((&numbers["behind"], &numbers["cut"]), (&json!(0), &json!(0)));
                crate::support::signal(server.id(), if round % 2 == 0 { "KILL" } else { "TERM" });
                reader.join().unwrap();
            });
            // A view is made again of what the index holds.
            drop(server);
            server = HttpServer::start(&here, &format!("--view --view-policy {policy}"));
        }
    }
}

#[test]
fn a_view_says_where_a_document_is() {
    let here = empty_index("auto");
    let server = HttpServer::start(&here, "--view");
    let page = Random(9).text(60);
    let near: String = page.chars().take(59).chain(['龘']).collect();
    for (id, text) in [("a", &page), ("b", &near), ("c", &page), ("d", &Random(10).text(60))] {
        let doc = json!({ "id": id, "text": text }).to_string();
        assert_eq!(server.post("/topics/news/insert", &doc).status, 200);
    }
    let numbers = view(&server, "");
    assert_eq!(numbers["documents"], 4);
    assert_eq!(
        (&numbers["kept"], &numbers["clusters"], &numbers["largest"]),
        (&json!(2), &json!(1), &json!(3))
    );
    let of = |id: &str| view(&server, &format!("/documents/{id}"))["documents"][0].clone();
    assert_eq!(of("a"), json!({ "kept": true, "cluster": "a", "members": 3 }));
    assert_eq!(of("d"), json!({ "kept": true, "cluster": "d", "members": 1 }));
    let copy = of("c");
    assert_eq!(
        (&copy["kept"], &copy["duplicate_of"], &copy["similarity"]),
        (&json!(false), &json!("a"), &json!(1.0))
    );
    assert!(of("b")["similarity"].as_f64().unwrap() < 1.0);
    let clusters = view(&server, "/clusters?least=2");
    assert_eq!(clusters["clusters"], json!([{ "id": "a", "members": 3 }]));
    assert_eq!(view(&server, "/clusters?least=4")["clusters"], json!([]));
    let cluster = &view(&server, "/clusters/c")["clusters"][0];
    assert_eq!((&cluster["id"], &cluster["members"]), (&json!("a"), &json!(3)));
    // Those that went for a document come back when it goes, and one stays for the others.
    assert_eq!(server.post("/topics/news/delete", r#"{"ids":["a"]}"#).json()["deleted"], 1);
    wait_until("the view has the change", LIMIT, || view(&server, "")["documents"] == 3);
    assert_eq!(of("b"), json!({ "kept": true, "cluster": "b", "members": 2 }));
    assert_eq!(of("c")["duplicate_of"], "b");

    for (path, status) in [
        ("/topics/news/view/documents/a", 404),
        ("/topics/none/view", 404),
        ("/topics/news/view?x=1", 400),
        ("/topics/news/view/clusters?most=1", 400),
        ("/topics/news/view/clusters?limit=2000", 400),
        ("/topics/news/view/changes?since=0", 410),
        ("/topics/news/view/changes?since=1000000", 410),
    ] {
        let answer = server.ask("GET", path, &[], "");
        assert_eq!(answer.status, status, "{path}: {answer:?}");
        assert!(answer.body.contains("\"error\":"), "{answer:?}");
    }
    // A reader who never reads keeps nobody from anything.
    let mut silent = server.connect();
    silent.write_all(b"GET /topics/news/view/changes HTTP/1.0\r\n\r\n").unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            insert(&server, 0..500);
            done.store(true, Ordering::Relaxed);
        });
        wait_until("documents are added", LIMIT, || done.load(Ordering::Relaxed));
    });
    wait_until("the view has them", LIMIT, || view(&server, "")["documents"] == 503);
    silent.shutdown(Shutdown::Both).unwrap();
    assert_eq!(server.ask("DELETE", "/topics/news", &[], "").json()["dropped"], 1);
    assert_eq!(server.ask("GET", "/topics/news/view", &[], "").status, 404);
    assert_eq!(server.end(), Some(0));
}

#[test]
fn a_server_without_views_and_an_index_without_texts_say_so() {
    let here = empty_index("auto");
    let server = HttpServer::start(&here, "");
    insert(&server, 0..1);
    let answer = server.ask("GET", "/topics/news/view", &[], "");
    assert!(answer.status == 404 && answer.body.contains("--view"), "{answer:?}");
    assert_eq!(server.end(), Some(0));
    let here = empty_index("exact");
    let server = HttpServer::start(&here, "--view");
    insert(&server, 0..1);
    wait_until("the server refuses", LIMIT, || {
        let answer = server.ask("GET", "/topics/news/view", &[], "");
        answer.status == 409 && answer.body.contains("keeps no texts")
    });
    let priority = here.run("index serve ix --view --view-policy priority:n");
    priority.fails(2, &["keeps no fields", "priority:n"]);
}
