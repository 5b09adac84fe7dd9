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

use super::http::{HttpServer, JSON, JSON_LINES, empty_index};
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

/// Returns a text that no other one resembles.
fn last_text(number: u64) -> String {
    Random(9_000_000 + number).text(80)
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

/// Returns the ids that `dedup` of an export keeps by the method `auto`.
pub fn kept_by_dedup(here: &Folder, server: &HttpServer, policy: &str) -> BTreeSet<String> {
    kept_by_method(here, server, policy, "auto")
}

/// Returns the ids that `dedup` of an export keeps. Where the index keeps no texts, they are made again.
fn kept_by_method(here: &Folder, server: &HttpServer, policy: &str, method: &str) -> BTreeSet<String> {
    let export = server.ask("GET", "/topics/news/documents", &[], "").body;
    let with_text = |line: &str| {
        let mut doc: Value = serde_json::from_str(line).unwrap();
        if doc["text"].is_null() {
            let id = doc["id"].as_str().unwrap();
            let number = |prefix: &str| id.strip_prefix(prefix).map(|number| number.parse::<u64>().unwrap());
            doc["text"] = json!(number("d").map_or_else(|| last_text(number("last-").unwrap()), text));
        }
        doc.to_string()
    };
    let mut lines: Vec<String> = export.lines().map(with_text).collect();
    if policy == "newest" {
        lines.reverse();
    }
    here.write("export.jsonl", lines.join("\n"));
    let keep = match policy {
        "longest" => "longest",
        "priority" => "priority:priority",
        _ => "first",
    };
    let verify = if method.starts_with("simhash") { "--verify none" } else { "" };
    let options = format!("--overwrite --keep {keep} --method {method} {verify}");
    here.run(&format!("--quiet dedup export.jsonl deduped {options}")).ends(0);
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
        let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
        let status = lines.next().unwrap();
        assert!(status.contains(" 200 "), "{status}");
        let mut lines = lines.skip_while(|line| !line.is_empty());
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
    let characters = "simhash:features=char:1,hamming=8";
    let of_auto = ["old-first", "newest", "longest", "priority"].map(|policy| (policy, "auto"));
    let others =
        [("priority", "minhash"), ("old-first", characters), ("newest", characters), ("priority", "exact")];
    for (policy, method) in of_auto.into_iter().chain(others) {
        let texts = if method == characters { "--no-text" } else { "" };
        let here = empty_index(&format!("{method} {texts}"));
        let mut server = HttpServer::start(&here, &format!("--view --view-policy {policy}"));
        insert(&server, 0..300);
        for round in 1..4 {
            let (since, kept) = snapshot(&server);
            assert_eq!(kept, kept_by_method(&here, &server, policy, method), "{policy} {method} {round}");
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
                insert_docs(&server, [(last.clone(), last_text(round))].into_iter());
                wait_until("the feed has the last document", LIMIT, || {
                    replayed.kept.lock().unwrap().contains(&last)
                });
                let (version, kept) = snapshot(&server);
                assert_eq!(kept, kept_by_method(&here, &server, policy, method), "{policy} {method} {round}");
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

/// A server is killed when a group is durable and no reader has seen it, and the view that is made of what is left tells a client that
/// has an earlier version of all that it lacks.
#[test]
fn a_client_goes_on_where_it_was_when_a_server_is_killed_between_a_commit_and_its_version() {
    for method in ["auto", "simhash:features=char:1,hamming=8 --no-text"] {
        let here = empty_index(method);
        let method = method.split(' ').next().unwrap();
        let line = "--quiet --workers 2 index serve ix --address 127.0.0.1:0 --view --view-policy newest";
        let mut server = HttpServer::of(here.command(line).env("DEDUP_FAULT", "0 synced 40 kill"));
        let (mut next, mut acknowledged) = (0, 0);
        let mut add = |server: &HttpServer| {
            let doc = json!({ "id": format!("d{next}"), "text": text(next) }).to_string();
            next += 1;
            let answer = server.try_ask("POST", "/topics/news/insert", &[JSON], &doc);
            acknowledged += u64::from(answer.is_some_and(|answer| answer.status == 200));
            (next, acknowledged)
        };
        (0..8).for_each(|_| _ = add(&server));
        let (since, kept) = snapshot(&server);
        let replayed = Replayed { version: AtomicU64::new(since), kept: Mutex::new(kept) };
        let lost = thread::scope(|scope| {
            let reader = scope.spawn(|| replayed.read(&server, since));
            let lost = loop {
                let (sent, acknowledged) = add(&server);
                assert!(sent < 100, "the server was not killed");
                if acknowledged < sent {
                    break sent - 1;
                }
            };
            reader.join().unwrap();
            lost
        });
        drop(server);
        server = HttpServer::start(&here, "--view --view-policy newest");
        // What is durable is there, although nobody was told.
        assert_eq!(view(&server, &format!("/documents/d{lost}"))["documents"].as_array().unwrap().len(), 1);
        let version = view(&server, "")["version"].as_u64().unwrap();
        let since = replayed.version.load(Ordering::Acquire);
        assert!(since < version, "{since} {version}");
        thread::scope(|scope| {
            let reader = scope.spawn(|| replayed.read(&server, since));
            wait_until("the feed has it", LIMIT, || replayed.version.load(Ordering::Acquire) == version);
            let (of_snapshot, kept) = snapshot(&server);
            assert_eq!(of_snapshot, version);
            assert_eq!(*replayed.kept.lock().unwrap(), kept);
            assert_eq!(kept, kept_by_method(&here, &server, "newest", method));
            // Before the last removal not all is known.
            assert_eq!(delete(&server, lost..lost + 1), 1);
            crate::support::signal(server.id(), "TERM");
            reader.join().unwrap();
        });
        drop(server);
        server = HttpServer::start(&here, "--view --view-policy newest");
        let after = view(&server, "")["version"].as_u64().unwrap();
        for (since, status) in [(version, 410), (after - 1, 410), (after + 1, 410)] {
            let path = format!("/topics/news/view/changes?since={since}");
            assert_eq!(server.ask("GET", &path, &[], "").status, status, "{since} of {after}");
        }
        insert_docs(&server, [("last-1".to_owned(), last_text(1))].into_iter());
        wait_until("the view has it", LIMIT, || view(&server, "")["version"].as_u64().unwrap() > after);
        drop(server);
        let server = HttpServer::start(&here, "--view --view-policy newest");
        view(&server, "");
        let replayed = Replayed { version: AtomicU64::new(after), kept: Mutex::default() };
        thread::scope(|scope| {
            let reader = scope.spawn(|| replayed.read(&server, after));
            wait_until("the feed has it", LIMIT, || replayed.kept.lock().unwrap().contains("last-1"));
            assert_eq!(replayed.kept.lock().unwrap().len(), 1);
            crate::support::signal(server.id(), "TERM");
            reader.join().unwrap();
        });
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
    for (method, policy) in [("auto --no-text", "newest"), ("exact", "longest")] {
        let here = empty_index(method);
        let server = HttpServer::start(&here, &format!("--view --view-policy {policy}"));
        insert(&server, 0..1);
        wait_until("the server refuses", LIMIT, || {
            let answer = server.ask("GET", "/topics/news/view", &[], "");
            answer.status == 409 && answer.body.contains("keeps no texts")
        });
    }
    let priority = here.run("index serve ix --view --view-policy priority:n");
    priority.fails(2, &["keeps no fields", "priority:n"]);
}
