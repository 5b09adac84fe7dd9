//! Tests of `nightly --since last`, which finds the nights by itself.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use super::ledger::export;
use crate::corpus::json_lines;
use crate::support::{Folder, signal, wait_until};

const SINCE: &str = "nightly --since last --workers 1 --state state --output clean crawl";

/// Makes a partition of one document. `is_complete`: whether it has a `_SUCCESS`.
fn partition(here: &Folder, name: &str, is_complete: bool) {
    here.write(&format!("crawl/{name}/part-0.jsonl"), json_lines([(name, "今天")]));
    if is_complete {
        here.write(&format!("crawl/{name}/_SUCCESS"), "");
    }
}

/// Returns the nights of the state, in order. Each has one document.
fn nights(here: &Folder) -> Vec<String> {
    export(here, "state").into_iter().map(|doc| doc.night).collect()
}

/// Asks a server for its metrics.
fn metrics(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("Content-Type: text/plain; version=0.0.4"), "{answer}");
    answer
}

#[test]
fn complete_partitions_are_taken_in_the_order_of_their_names() {
    let here = Folder::new();
    for (name, is_complete) in [("dt=3", true), ("dt=1", true), ("dt=2", false), ("day=0", true)] {
        partition(&here, name, is_complete);
    }
    here.run(SINCE).ends(0);
    assert_eq!(nights(&here), ["dt=1", "dt=3"]);
    assert_eq!(here.counter("clean/dt=1", "kept"), 1);
    assert_eq!(here.counter("clean/dt=3", "removed"), 1);

    let before = here.contents("");
    let again = here.run(SINCE).ends(0);
    assert!(again.stderr.contains("nothing is new"), "{again:?}");
    here.run(&format!("{SINCE} --method minhash")).fails(2, &["the method", "minhash"]);
    here.run(&format!("{SINCE} --metrics-file nothing.prom")).ends(0);
    let said = fs::read_to_string(here.path("nothing.prom")).unwrap();
    assert!(said.contains("dedup_job_running 0") && said.contains("dedup_job_failures_total 0"), "{said}");
    let mut now = here.contents("");
    now.remove("nothing.prom");
    now.remove("export.parquet");
    assert!(now == before.into_iter().filter(|(name, _)| name != "export.parquet").collect());

    here.write("crawl/dt=2/_SUCCESS", "");
    here.write("crawl/dt=4/_SUCCESS", "");
    here.run(SINCE).ends(0);
    assert_eq!(nights(&here), ["dt=1", "dt=3", "dt=2"]);
    // A partition without files is a night without documents.
    assert_eq!(here.counter("clean/dt=4", "kept"), 0);
    here.run(&format!("{SINCE} --partition day")).ends(0);
    assert_eq!(nights(&here), ["dt=1", "dt=3", "dt=2", "day=0"]);
}

#[test]
fn a_folder_without_partitions_is_refused() {
    let here = Folder::new();
    partition(&here, "day=0", true);
    here.write("ids.txt", "a");
    here.run(SINCE).fails(2, &["\"crawl\"", "dt=", "--partition"]);
    for option in ["--night x", "--retract ids.txt"] {
        here.run(&format!("{SINCE} --partition day {option}")).fails(2, &["--night", "--retract"]);
    }
    assert!(!here.path("state").exists());
}

#[test]
fn a_following_job_takes_new_partitions_until_it_is_told_to_end() {
    let here = Folder::new();
    partition(&here, "dt=1", true);
    let follow = format!("{SINCE} --progress none --follow --poll 1 --metrics-address 127.0.0.1:0");
    let mut follows = here.command(&follow).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(follows.stderr.take().unwrap());
    let mut first = String::new();
    said.read_line(&mut first).unwrap();
    let address =
        first.trim().strip_prefix("metrics are at http://").and_then(|at| at.strip_suffix("/metrics"));
    let address = address.unwrap_or_else(|| panic!("{first}")).to_owned();
    // What it says later must not fill the pipe.
    let rest = thread::spawn(move || drop(io::copy(&mut said, &mut io::sink())));
    let limit = Duration::from_secs(60);
    wait_until("the first night", limit, || here.path("clean/dt=1/_SUCCESS").exists());
    partition(&here, "dt=2", true);
    wait_until("the second night", limit, || here.path("clean/dt=2/_SUCCESS").exists());
    wait_until("the metrics of two nights", limit, || {
        metrics(&address).contains("\ndedup_job_runs_total 2\n")
    });
    assert!(metrics(&address).contains("output=\"clean/dt=2\""), "{}", metrics(&address));
    signal(follows.id(), "TERM");
    assert_eq!(follows.wait().unwrap().code(), Some(0));
    rest.join().unwrap();
    assert_eq!(nights(&here), ["dt=1", "dt=2"]);
    assert!(!here.path("state/_temporary").exists());
}

/// A pause that no clock can tell lasts until the signal comes.
#[test]
fn the_longest_pause_between_two_looks_is_no_panic() {
    let here = Folder::new();
    partition(&here, "dt=1", true);
    let follow = format!("{SINCE} --progress none --follow --poll {}", u64::MAX);
    let mut follows = here.command(&follow).stderr(Stdio::null()).spawn().unwrap();
    wait_until("the night", Duration::from_secs(60), || {
        here.path("clean/dt=1/_SUCCESS").exists() && !here.path("state/_temporary").exists()
    });
    thread::sleep(Duration::from_millis(500));
    signal(follows.id(), "TERM");
    assert_eq!(follows.wait().unwrap().code(), Some(0));
}
