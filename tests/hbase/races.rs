//! Tests of processes that add documents at the same time.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::Duration;

use hbase::{GatewayLimits, HBaseAddress, HBaseTable};

use super::{METHOD, answers, documents, empty_index, ids, matches, new_ids, shared};
use crate::corpus::json_lines;
use crate::faults::clock;
use crate::support::{Folder, Random, Run, Running, run, signal, wait_until};

/// Returns texts, and near copies of them that differ in a few characters.
fn twins(count: usize, seed: u64) -> Vec<[String; 2]> {
    let mut random = Random(seed);
    let twin = |text: String| {
        let end = text.char_indices().nth(398).unwrap().0;
        [text.clone(), format!("{}改改", &text[..end])]
    };
    (0..count).map(|_| twin(random.text(400))).collect()
}

/// Checks that of documents that match each other one is new, and that the others say which.
fn one_of_each_is_new(here: &Folder, index: &str, runs: &[Run]) {
    let new: Vec<BTreeSet<String>> = runs.iter().map(new_ids).collect();
    let all: BTreeSet<String> = new.iter().flatten().cloned().collect();
    assert_eq!(all, ids(here, index), "what is new is kept, and nothing else");
    assert_eq!(documents(here, index), [all.len() as u64, 0], "nothing is left undecided");
    // Whoever is there finds itself alone.
    let found = answers(&here.run(&format!("--quiet index query {index} all.jsonl")).ends(0));
    for (id, answer) in &found {
        let matches = matches(answer);
        match all.contains(id) {
            true => assert_eq!(matches, BTreeSet::from([id.clone()]), "two of near documents are new"),
            false => assert!(!matches.is_empty(), "{id} is not new, and nothing matches it"),
        }
    }
    for (id, answer) in runs.iter().flat_map(answers) {
        let matches = matches(&answer);
        assert_eq!(answer["new"] == true, matches.is_empty(), "{id}");
        assert!(matches.is_subset(&all), "{id} matches what is not there");
    }
}

#[test]
#[ignore = "needs scripts/hbase/build"]
fn of_racing_twins_one_is_new_whatever_the_clocks_say() {
    let here = Folder::new();
    let library = clock::library(&here);
    let twins = twins(400, 7);
    // The second process has the other text of each pair and the order of the third is the reverse.
    let doc = |process: usize, at: usize| (format!("{process}-{at}"), &twins[at][process % 2]);
    let docs = [
        json_lines((0..400).map(|at| doc(0, at))),
        json_lines((0..400).map(|at| doc(1, at))),
        json_lines((0..400).rev().map(|at| doc(2, at))),
    ];
    docs.iter().enumerate().for_each(|(process, docs)| here.write(&format!("{process}.jsonl"), docs));
    here.write("all.jsonl", docs.concat());
    let mut new_of_process = BTreeMap::new();
    for ahead in [[0, 0, 0], [0, 3600, -3600], [-3600, 0, 3600]] {
        let index = empty_index(&here, shared());
        let runs: Vec<Run> = thread::scope(|scope| {
            let start = |(process, ahead): (usize, i64)| {
                let line = format!("--quiet --workers 1 index query --insert {index} {process}.jsonl");
                let mut command = here.command(&line);
                if ahead != 0 {
                    clock::ahead(&mut command, &library, ahead);
                }
                scope.spawn(move || run(&mut command).ends(0))
            };
            let threads: Vec<_> = ahead.into_iter().enumerate().map(start).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        one_of_each_is_new(&here, &index, &runs);
        for (process, run) in runs.iter().enumerate() {
            *new_of_process.entry(process).or_insert(0) += new_ids(run).len();
        }
    }
    // They have raced: each was the first at times.
    assert!(new_of_process.values().all(|&new| new > 0), "{new_of_process:?}");
}

#[test]
#[ignore = "needs scripts/hbase/build"]
fn a_build_that_is_killed_is_begun_anew() {
    let here = Folder::new();
    let docs = twins(3000, 6);
    here.write("all.jsonl", json_lines(docs.iter().enumerate().map(|(at, [text, _])| (at, text))));
    let index = shared().table("killed_build");
    let line = format!("--quiet index build {index} {METHOD} all.jsonl");
    let building = Running(here.command(&line).spawn().unwrap());
    // The table is there from the first moment on, and no index before the end.
    let query = format!("--quiet index query {index} all.jsonl");
    let address = HBaseAddress::parse(&index).unwrap().unwrap();
    let table = HBaseTable::new(&address, GatewayLimits::default());
    let has_rows = || table.exists().unwrap() && !table.scan(&[]..&[64], None, 1).unwrap().is_empty();
    wait_until("something is written", Duration::from_secs(300), has_rows);
    here.run(&query).fails(2, &["killed_build", "no index"]);
    signal(building.0.id(), "KILL");
    drop(building);
    here.run(&query).fails(2, &["killed_build", "no index"]);
    here.run(&line).ends(0);
    assert_eq!(documents(&here, &index), [3000, 0]);
}

#[test]
#[ignore = "needs scripts/hbase/build"]
fn what_a_killed_process_has_left_undecided_is_given_up() {
    let here = Folder::new();
    let twins = twins(600, 8);
    here.write("all.jsonl", json_lines(twins.iter().enumerate().map(|(at, [text, _])| (at, text))));
    let index = empty_index(&here, shared());
    let line = format!("--quiet --workers 1 index query --insert {index} all.jsonl");
    let killed = Running(here.command(&line).stdout(std::process::Stdio::null()).spawn().unwrap());
    wait_until("something is pending", Duration::from_secs(300), || documents(&here, &index)[1] > 0);
    signal(killed.0.id(), "KILL");
    drop(killed);
    let [kept, pending] = documents(&here, &index);
    assert!(pending > 0, "the process was killed too late");
    // A query believes nothing that is pending.
    let asked = answers(&here.run(&format!("--quiet index query {index} all.jsonl")).ends(0));
    let found = asked.values().filter(|answer| !matches(answer).is_empty()).count();
    assert_eq!(found as u64, kept);
    let again = here.run(&line).ends(0);
    assert_eq!(documents(&here, &index), [600, 0]);
    assert_eq!(new_ids(&again).len() as u64, 600 - kept);
}
