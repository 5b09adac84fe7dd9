//! A store on HDFS and in a bucket does what one of this machine does. These tests need `scripts/hadoop/build` and
//! `scripts/s3/build`.

use std::collections::BTreeMap;
use std::fs;
use std::iter;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::store::docx;
use crate::stores::Both;
use crate::support::{Folder, Random, Run, Tree, signal, wait_until_stopped};

/// Returns a command on the store, which has the settings of its server.
fn command(both: &Both, line: &str) -> Command {
    let mut command = both.here.command(&line.replace('@', &both.uri));
    command.envs(both.settings.clone());
    command
}

fn run_with_fault(both: &Both, line: &str, fault: &str) -> Run {
    crate::support::run(command(both, line).env("DEDUP_FAULT", fault))
}

fn start(both: &Both, line: &str) -> Child {
    command(both, line).stdout(Stdio::null()).spawn().unwrap()
}

fn stats(both: &Both) -> Value {
    serde_json::from_str(&both.run("chunk stats @/store --json").ends(0).stdout).unwrap()
}

/// Returns the names of the snapshots, the oldest first. Nothing may be told to be damaged.
#[track_caller]
fn snapshots(both: &Both) -> Vec<String> {
    let listed = both.run("chunk ls @/store --json").ends(0);
    assert_eq!(listed.stderr, "");
    let name = |line: &str| serde_json::from_str::<Value>(line).unwrap()["name"].as_str().unwrap().to_owned();
    listed.stdout.lines().map(name).collect()
}

/// Restores a snapshot into a folder of this machine, and returns its files.
#[track_caller]
fn restored(both: &Both, snapshot: &str) -> Tree {
    let folder = both.here.path("restored");
    if folder.exists() {
        fs::remove_dir_all(&folder).unwrap();
    }
    both.run(&format!("chunk restore @/store restored --snapshot {snapshot}")).ends(0);
    both.here.contents("restored")
}

/// Returns the files of a folder of this machine by their names in a snapshot.
fn put_files(both: &Both, folder: &str) -> Tree {
    let files = both.here.contents(folder).into_iter();
    files.map(|(name, bytes)| (format!("{folder}/{name}"), bytes)).collect()
}

/// Writes files of several kinds. Each file has text of its own.
fn write_files(here: &Folder, folder: &str, seed: u64) {
    let mut random = Random(seed);
    let texts: Vec<String> = (0..60).map(|_| random.text(60)).collect();
    here.write(&format!("{folder}/a.docx"), docx(&texts));
    here.write(&format!("{folder}/b/论文 1.txt"), random.text(20_000));
    here.write(&format!("{folder}/b/random.bin"), random.bytes(60_000));
    here.write(&format!("{folder}/empty"), "");
}

fn everything_works(both: &Both) {
    let here = &both.here;
    write_files(here, "in", 1);
    both.run("chunk ls @/store").fails(2, &["no store"]);
    both.run("chunk put @/store in").ends(0);
    let mut known = BTreeMap::from([(snapshots(both)[0].clone(), put_files(both, "in"))]);
    // The second snapshot wants a part of the pack of the first one, and something new.
    fs::remove_file(here.path("in/b/random.bin")).unwrap();
    here.write("in/c.txt", Random(9).text(5000));
    both.run("chunk put @/store in").ends(0);
    known.insert(snapshots(both)[1].clone(), put_files(both, "in"));
    for (name, files) in &known {
        assert!(restored(both, name) == *files, "{name}");
    }
    assert_eq!(both.run("chunk ls @/store latest --json").ends(0).stdout.lines().count(), 4);
    let printed = both.run("chunk restore @/store --name in/c.txt").ends(0).stdout;
    assert!(printed.as_bytes() == known.last_key_value().unwrap().1["in/c.txt"]);
    let before = stats(both);
    assert_eq!(before["snapshots"].as_array().unwrap().len(), 2);
    both.run("chunk check @/store --read-data").ends(0);

    // The pack of the first snapshot is written again, in its own place.
    let first = known.pop_first().unwrap();
    both.run(&format!("chunk forget @/store {}", first.0)).ends(0);
    both.run("chunk prune @/store").ends(0);
    let after = stats(both);
    assert_eq!(after["packs"], before["packs"]);
    assert!(after["bytes"].as_u64().unwrap() + 50_000 < before["bytes"].as_u64().unwrap(), "{after}");
    both.run("chunk check @/store --read-data").ends(0);
    let (latest, files) = known.first_key_value().unwrap();
    assert_eq!(snapshots(both), [latest.as_str()]);
    assert!(restored(both, latest) == *files);

    // Chunks that are gone are stored again, and the input may lie there too.
    both.write("in/b/random.bin", &first.1["in/b/random.bin"]);
    both.run("chunk put @/store @/in").ends(0);
    assert!(
        restored(both, "latest")
            == BTreeMap::from([first
                .1
                .get_key_value("in/b/random.bin")
                .map(|(name, bytes)| (name.clone(), bytes.clone()))
                .unwrap()])
    );
    both.run("chunk forget @/store --keep-last 0").ends(0);
    both.run("chunk prune @/store").ends(0);
    assert_eq!(stats(both)["packs"], 0);
    let left = both.store.everything(&both.path("store")).unwrap();
    let left: Vec<_> = left.into_iter().map(|entry| entry.path).collect();
    assert!(left.iter().all(|path| path.ends_with("chunks.json") || path.contains("/index/")), "{left:?}");
}

/// A put, a forget and a prune die at some of their requests, one after the other.
fn whatever_dies_the_snapshots_are_what_was_put(both: &Both) {
    let here = &both.here;
    write_files(here, "in", 2);
    both.run("chunk put @/store in").ends(0);
    let mut known = BTreeMap::from([(snapshots(both)[0].clone(), put_files(both, "in"))]);
    let mut deaths = [0; 3];
    let mut is_over = [false; 3];
    // A store takes longer than a disk for each request, so few of them are tried.
    for request in iter::successors(Some(1), |request| Some(request * 3 / 2 + 1)) {
        for (at, tool) in ["put", "forget", "prune"].into_iter().enumerate() {
            if is_over[at] {
                continue;
            }
            let mut line = format!("chunk {tool} @/store");
            match tool {
                "put" => {
                    write_files(here, "in", 100 + request);
                    line += " in";
                }
                "forget" => {
                    // Another snapshot that has only a part of the pack of the first one.
                    write_files(here, "in", 1000 + request);
                    both.run("chunk put @/store in").ends(0);
                    line = format!("{line} {}", snapshots(both).last().unwrap());
                    fs::remove_file(here.path("in/b/random.bin")).unwrap();
                    both.run("chunk put @/store in").ends(0);
                    known.insert(snapshots(both).last().unwrap().clone(), put_files(both, "in"));
                }
                _ => {}
            }
            let run = run_with_fault(both, &line, &format!("0 request {request} kill"));
            assert!(matches!(run.code, None | Some(0)), "{line} at request {request}: {run:?}");
            is_over[at] = run.code.is_some();
            deaths[at] += usize::from(run.code.is_none());
            let mut listed = snapshots(both);
            if let Some(left) = listed.iter().find(|name| line.ends_with(*name)) {
                // A forget that died too early is done again.
                both.run(&format!("chunk forget @/store {left}")).ends(0);
                listed = snapshots(both);
                assert!(!listed.iter().any(|name| line.ends_with(name)), "{line} at request {request}");
            }
            if let Some(new) = listed.iter().find(|name| !known.contains_key(*name)).filter(|_| tool == "put")
            {
                known.insert(new.clone(), put_files(both, "in"));
            }
            assert!(known.keys().all(|name| listed.contains(name)), "lost by {line} at request {request}");
            both.run("chunk check @/store").ends(0);
            let (name, files) = known.last_key_value().unwrap();
            assert!(restored(both, name) == *files, "{name} after {line} at request {request}");
        }
        if is_over == [true; 3] {
            break;
        }
    }
    println!("deaths of put, forget and prune: {deaths:?}");
    assert!(deaths.iter().zip([5, 2, 5]).all(|(deaths, least)| *deaths >= least), "{deaths:?}");
    both.run("chunk prune @/store").ends(0);
    both.run("chunk check @/store --read-data").ends(0);
    for (name, files) in known.iter().rev().step_by(3) {
        assert!(restored(both, name) == *files, "{name}");
    }
    // What the dead ones have left goes with the last snapshot.
    both.run("chunk forget @/store --keep-last 0").ends(0);
    both.run("chunk prune @/store").ends(0);
    assert_eq!(stats(both)["packs"], 0);
    let left = both.store.everything(&both.path("store")).unwrap();
    // A claim without a name may be one that is being written, so it stays for an hour.
    let is_left = |path: &str| path.contains("/.") && !path.contains("/claims/.");
    let hidden: Vec<_> = left.iter().filter(|entry| is_left(&entry.path)).collect();
    assert!(hidden.is_empty(), "{hidden:?}");
}

/// Puts at the same time, from the first one of a new store on, with prunes and listings beside them.
fn two_puts_at_a_time_are_two_snapshots(both: &Both) {
    let here = &both.here;
    for round in 0..4 {
        let mut puts: Vec<Child> = ["one", "two"]
            .into_iter()
            .map(|folder| {
                write_files(here, folder, round);
                here.write(&format!("{folder}/own.txt"), Random(round * 2 + folder.len() as u64).text(4000));
                start(both, &format!("chunk put @/store {folder}"))
            })
            .collect();
        while puts.iter_mut().any(|put| put.try_wait().unwrap().is_none()) {
            if round > 0 {
                both.run("chunk prune @/store").ends(0);
                snapshots(both);
            }
        }
        assert!(puts.iter_mut().all(|put| put.wait().unwrap().success()), "round {round}");
        let names = snapshots(both);
        assert_eq!(names.len(), 2);
        let mut found: Vec<Tree> = names.iter().map(|name| restored(both, name)).collect();
        if found[0].contains_key("two/empty") {
            found.reverse();
        }
        assert!(found == [put_files(both, "one"), put_files(both, "two")], "round {round}");
        both.run("chunk check @/store --read-data").ends(0);
        both.run("chunk forget @/store --keep-last 0").ends(0);
    }
}

/// A put is stopped at some of its requests, and meanwhile everything is forgotten and pruned.
fn a_prune_takes_nothing_from_a_put(both: &Both) {
    write_files(&both.here, "in", 3);
    let mut stops = 0;
    for request in (2..).step_by(7) {
        both.run("chunk put @/store in").ends(0);
        let first = snapshots(both).join(" ");
        let mut put = command(both, "chunk put @/store in");
        put.env("DEDUP_FAULT", format!("0 request {request} stop")).stdout(Stdio::null());
        let mut put = put.spawn().unwrap();
        wait_until_stopped(put.id());
        if put.try_wait().unwrap().is_some() {
            break;
        }
        both.run(&format!("chunk forget @/store {first}")).ends(0);
        both.run("chunk prune @/store").ends(0);
        signal(put.id(), "CONT");
        assert!(put.wait().unwrap().success(), "stopped at request {request}");
        both.run("chunk prune @/store").ends(0);
        both.run("chunk check @/store --read-data").ends(0);
        assert!(restored(both, "latest") == put_files(both, "in"), "stopped at request {request}");
        stops += 1;
    }
    assert!(stops > 2, "the put was stopped {stops} times");
}

#[test]
#[ignore = "needs scripts/hadoop/build"]
fn a_store_on_hdfs_is_as_one_of_this_machine() {
    everything_works(&Both::hdfs("/chunks", Folder::new()));
}

#[test]
#[ignore = "needs scripts/s3/build"]
fn a_store_in_a_bucket_is_as_one_of_this_machine() {
    everything_works(&Both::s3("chunks", Folder::new()));
}

#[test]
#[ignore = "needs scripts/hadoop/build"]
fn tools_that_die_on_hdfs_lose_nothing() {
    whatever_dies_the_snapshots_are_what_was_put(&Both::hdfs("/chunk-deaths", Folder::new()));
}

#[test]
#[ignore = "needs scripts/s3/build"]
fn tools_that_die_on_a_bucket_lose_nothing() {
    whatever_dies_the_snapshots_are_what_was_put(&Both::s3("chunk-deaths", Folder::new()));
}

#[test]
#[ignore = "needs scripts/hadoop/build"]
fn two_puts_on_hdfs_are_two_snapshots() {
    two_puts_at_a_time_are_two_snapshots(&Both::hdfs("/chunk-puts", Folder::new()));
}

#[test]
#[ignore = "needs scripts/s3/build"]
fn two_puts_in_a_bucket_are_two_snapshots() {
    two_puts_at_a_time_are_two_snapshots(&Both::s3("chunk-puts", Folder::new()));
}

#[test]
#[ignore = "needs scripts/hadoop/build"]
fn a_prune_on_hdfs_takes_nothing_from_a_put() {
    a_prune_takes_nothing_from_a_put(&Both::hdfs("/chunk-prunes", Folder::new()));
}

#[test]
#[ignore = "needs scripts/s3/build"]
fn a_prune_in_a_bucket_takes_nothing_from_a_put() {
    a_prune_takes_nothing_from_a_put(&Both::s3("chunk-prunes", Folder::new()));
}
