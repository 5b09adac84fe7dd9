//! Tests of many clients of a server that is killed again and again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use std::{env, fs};

use serde_json::{Value, json};

use super::http::{HttpServer, JSON, empty_index};
use crate::support::{Folder, Random, children, gone, signal, unshare, wait_until};

/// Number of clients at a time.
const CLIENTS: usize = 64;

/// Returns a text that resembles no other.
fn text(number: usize) -> String {
    Random((number as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)).text(60)
}

/// Returns how many documents of the index have each text, by the number of the text.
fn copies(here: &Folder) -> BTreeMap<usize, usize> {
    let mut copies = BTreeMap::new();
    for line in here.run("--quiet index export ix").ends(0).stdout.lines() {
        let doc: Value = serde_json::from_str(line).unwrap();
        let (number, _) = doc["id"].as_str().unwrap().split_once('-').unwrap();
        *copies.entry(number.parse().unwrap()).or_default() += 1;
    }
    copies
}

/// Each text is asked about by two clients at about the same time, and asked about again until there is an answer.
/// `DEDUP_KILLS` is the number of kills.
#[test]
fn what_was_acknowledged_is_found_and_no_twin_is_new_twice() {
    let here = empty_index("auto");
    let kills: u64 = env::var("DEDUP_KILLS").map_or(5, |kills| kills.parse().unwrap());
    let new = Mutex::new(BTreeMap::<usize, usize>::new());
    let mut next = 0;
    for round in 0..=kills {
        let server = HttpServer::start(&here, "");
        let stop = AtomicBool::new(false);
        let numbers: Vec<usize> = (next..next + 2000).collect();
        next += 2000;
        thread::scope(|scope| {
            for client in 0..CLIENTS {
                let (server, new, stop, numbers) = (&server, &new, &stop, &numbers);
                scope.spawn(move || {
                    // Clients 0 and 1 are twins, and so on.
                    for number in numbers.iter().skip(client / 2).step_by(CLIENTS / 2) {
                        let body =
                            json!({ "id": format!("{number}-{client}"), "text": text(*number) }).to_string();
                        let answer = server.try_ask("POST", "/topics/default/query-insert", &[JSON], &body);
                        if stop.load(Ordering::Relaxed) && answer.is_none() {
                            return;
                        }
                        let Some(answer) = answer.filter(|answer| answer.status == 200) else { continue };
                        let Ok(answer) = serde_json::from_str::<Value>(&answer.body) else { continue };
                        if answer["new"] == true {
                            *new.lock()
                                .unwrap_or_else(PoisonError::into_inner)
                                .entry(*number)
                                .or_default() += 1;
                        }
                    }
                });
            }
            if round < kills {
                thread::sleep(Duration::from_millis(300 + 150 * (round % 5)));
                stop.store(true, Ordering::Relaxed);
                signal(server.id(), "KILL");
            }
        });
        drop(server);
        // All documents are looked at some twenty times.
        if round % kills.div_ceil(20) != 0 && round < kills {
            continue;
        }
        here.run("--quiet index check ix");
        let copies = copies(&here);
        let acknowledged = new.lock().unwrap();
        for (number, times) in acknowledged.iter() {
            assert_eq!(*times, 1, "text {number} was new twice");
            assert_eq!(copies.get(number), Some(&1), "text {number}");
        }
        let more: BTreeSet<&usize> = copies.values().filter(|copies| **copies > 1).collect();
        assert!(more.is_empty(), "{more:?}");
    }
    let acknowledged = new.lock().unwrap().len();
    println!("{kills} kills, {acknowledged} documents were acknowledged as new");
    assert!(acknowledged > 2500, "{acknowledged}");
}

#[test]
fn a_server_whose_disk_is_full_says_so_and_loses_nothing() {
    let here = empty_index("auto");
    fs::create_dir(here.path("small")).unwrap();
    // Fails here, with what is missing, on a machine without namespaces.
    drop(unshare(&["--mount"]));
    let script = "mount -t tmpfs -o size=400k none small && cp -r ix small && { \
                  dedup-job --quiet index serve small/ix --address 127.0.0.1:0; dedup-job index export small/ix >after; }";
    let server = HttpServer::of(&mut here.shell(&format!("exec unshare --mount sh -c '{script}'")));
    let doc = |id: usize| json!({ "id": id.to_string(), "text": text(id).repeat(200) }).to_string();
    let statuses: Vec<u16> =
        (0..60).map(|id| server.post("/topics/default/insert", &doc(id)).status).collect();
    let done = statuses.iter().take_while(|status| **status == 200).count();
    assert!((5..55).contains(&done), "{statuses:?}");
    assert!(statuses[done..].iter().all(|status| *status == 500), "{statuses:?}");
    assert_eq!(server.ask("GET", "/readyz", &[], "").status, 503);
    assert_eq!(server.post("/topics/default/query", &doc(0)).matches(), [["0"]]);
    // What was refused is not found, and does not come back.
    for refused in done..60 {
        assert_eq!(server.post("/topics/default/query", &doc(refused)).matches(), [[""; 0]]);
    }
    let documents = server.ask("GET", "/topics/default/documents", &[], "").body;
    assert_eq!(documents.lines().count(), done);
    signal(children(server.id())[0], "TERM");
    wait_until("the index is exported", Duration::from_secs(30), || gone(server.id()));
    let after = fs::read_to_string(here.path("after")).unwrap();
    assert_eq!(after.lines().count(), done);
}
