//! Tests of indexes that are made of a state: they answer as indexes of the documents that the state has.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::corpus::demo;
use crate::support::Folder;

const NIGHT: &str = "nightly --progress none --workers 2 --state state";

/// Answers without ages, by line. They are cut, so that they count the documents that they do not list.
fn answers(here: &Folder, index: &str) -> Vec<Value> {
    let run = here.run(&format!("--quiet index query --limit 3 {index} demo/corpus.jsonl")).ends(0);
    let answer = |line: &str| {
        let mut answer: Value = serde_json::from_str(line).unwrap();
        let matches = answer["matches"].as_array_mut().unwrap();
        matches.iter_mut().for_each(|found| {
            found.as_object_mut().unwrap().remove("age");
        });
        answer
    };
    run.stdout.lines().map(answer).collect()
}

fn ids(here: &Folder, index: &str) -> Vec<String> {
    let export = here.run(&format!("index export {index}")).ends(0);
    let id = |line: &str| serde_json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap().to_owned();
    export.stdout.lines().map(id).collect()
}

/// Returns the length of the file of texts; 0 if the index keeps none.
fn bytes_of_texts(here: &Folder, index: &str) -> u64 {
    let segments = fs::read_dir(here.path(index).join("topics/default")).unwrap();
    let texts = segments.map(|segment| segment.unwrap().path().join("texts.run"));
    texts.filter_map(|path| fs::metadata(path).ok()).map(|file| file.len()).sum()
}

/// Makes a state of three nights. The second withdraws each seventh document of the first, the third each ninth of the
/// second. Returns the documents that are left, in order.
fn three_nights(here: &Folder, options: &str) -> BTreeSet<String> {
    let corpus = fs::read_to_string(here.path("demo/corpus.jsonl")).unwrap();
    let lines: Vec<&str> = corpus.lines().collect();
    let id = |line: &&str| serde_json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap().to_owned();
    let mut left: BTreeSet<String> = BTreeSet::new();
    // Near documents follow each other, so each night takes some of everywhere.
    for night in 0..3 {
        let of_night: Vec<&str> = lines.iter().skip(night).step_by(3).copied().collect();
        here.write(&format!("{night}.jsonl"), &(of_night.join("\n") + "\n"));
        let before: Vec<&str> = lines
            .iter()
            .skip(night.wrapping_sub(1))
            .step_by(if night == 1 { 21 } else { 27 })
            .copied()
            .collect();
        let gone: Vec<String> = if night == 0 { Vec::new() } else { before.iter().map(id).collect() };
        here.write("gone.txt", gone.join("\n"));
        let retract = if gone.is_empty() { "" } else { "--retract gone.txt" };
        here.run(&format!("{NIGHT} --overwrite --output out{night} {options} {retract} {night}.jsonl"))
            .ends(0);
        gone.iter().for_each(|id| {
            left.remove(id);
        });
        left.extend(of_night.iter().map(id));
    }
    let living = lines.iter().filter(|line| left.contains(&id(line))).copied();
    let in_order = |night: usize| lines.iter().skip(night).step_by(3).filter(|line| left.contains(&id(line)));
    let ordered: Vec<&str> = (0..3).flat_map(in_order).copied().collect();
    assert_eq!(ordered.len(), living.count());
    here.write("living.jsonl", &(ordered.join("\n") + "\n"));
    left
}

#[test]
fn an_index_of_a_state_answers_as_one_of_its_documents() {
    let here = demo(450, 3);
    for options in [
        "--method auto",
        "--method simhash:features=char:3",
        "--method simhash:features=char:3 --verify none",
        "--method simhash:features=char:3,bits=128,hamming=9 --verify none",
        "--method exact",
    ] {
        let left = three_nights(&here, options);
        here.run(&format!("--quiet index build of-docs {options} living.jsonl")).ends(0);
        let expected = answers(&here, "of-docs");
        assert!(
            expected.iter().filter(|answer| answer["matches"].as_array().unwrap().len() > 1).count() > 40
        );
        let mut texts = None;
        for compacted in [false, true] {
            here.run("--quiet index build of-state state").ends(0);
            here.run("index check of-state").ends(0);
            assert_eq!(ids(&here, "of-state").into_iter().collect::<BTreeSet<_>>(), left, "{options}");
            assert_eq!(ids(&here, "of-state"), ids(&here, "of-docs"), "{options}");
            assert_eq!(answers(&here, "of-state"), expected, "{options}, compacted: {compacted}");
            // A compaction erases the texts all of whose documents are withdrawn. They were left out before, too.
            let bytes = bytes_of_texts(&here, "of-state");
            assert_eq!(*texts.get_or_insert(bytes), bytes, "{options}");
            if compacted {
                continue;
            }
            // Later changes find the documents of the state.
            here.write("some.txt", left.iter().step_by(5).cloned().collect::<Vec<_>>().join("\n"));
            for index in ["of-docs", "of-state"] {
                here.run(&format!("--quiet index delete {index} some.txt")).ends(0);
                here.run(&format!("--quiet index insert {index} 0.jsonl")).ends(0);
                here.run(&format!("--quiet index compact {index}")).ends(0);
                here.run(&format!("index check {index}")).ends(0);
            }
            assert_eq!(answers(&here, "of-state"), answers(&here, "of-docs"), "{options}");
            for index in ["of-docs", "of-state"] {
                fs::remove_dir_all(here.path(index)).unwrap();
            }
            here.run(&format!("--quiet index build of-docs {options} living.jsonl")).ends(0);
            here.run("nightly compact --state state").ends(0);
        }
        // Whatever was the name of a text, nothing is left once all documents are gone.
        here.run("--quiet index build of-all state").ends(0);
        here.write("all.txt", left.iter().cloned().collect::<Vec<_>>().join("\n"));
        here.run("--quiet index delete of-all all.txt").ends(0);
        here.run("--quiet index compact of-all").ends(0);
        assert_eq!((ids(&here, "of-all").len(), bytes_of_texts(&here, "of-all")), (0, 0), "{options}");
        for folder in ["state", "of-docs", "of-state", "of-all"] {
            fs::remove_dir_all(here.path(folder)).unwrap();
        }
    }
}

#[test]
fn the_documents_of_a_state_have_the_age_of_their_night() {
    let here = demo(90, 3);
    three_nights(&here, "--method simhash:features=char:3");
    let history = fs::read_to_string(here.path("state/history.jsonl")).unwrap();
    let first = history.lines().next().unwrap();
    let mut line: Value = serde_json::from_str(first).unwrap();
    line["finished"] = "2020-01-01T00:00:00Z".into();
    fs::write(here.path("state/history.jsonl"), history.replace(first, &line.to_string())).unwrap();
    here.run("--quiet index build ix state --topic of-state").ends(0);
    let before = here.run("index export ix --topic of-state").ends(0).stdout.lines().count();
    here.run("--quiet index expire ix --older-than 365d").ends(0);
    let after = here.run("index export ix --topic of-state").ends(0).stdout;
    let later = fs::read_to_string(here.path("1.jsonl")).unwrap().lines().count()
        + fs::read_to_string(here.path("2.jsonl")).unwrap().lines().count();
    assert!(before > later && after.lines().count() < later + 1, "{before}, {after}");
    assert!(after.lines().count() > later / 2);
    here.run("--quiet index insert ix 0.jsonl --topic of-state").ends(0);
}

#[test]
fn an_index_of_a_state_has_the_method_of_the_state() {
    let here = demo(60, 3);
    three_nights(&here, "--method simhash:features=char:3");
    here.run("index build ix state --method auto").fails(2, &["leave --method"]);
    here.run("index build ix state --verify none").fails(2, &["leave --method"]);
    here.run("index build ix state 0.jsonl").fails(2, &["\"state\" is a nightly state"]);
    here.run("index build hbase://127.0.0.1:1/ix state").fails(2, &["is a folder"]);
    here.run("index build ix 0.jsonl,state").fails(2, &["\"state\" is a nightly state"]);
    here.run("index build ix sta*").fails(2, &["belongs to a nightly state"]);
    // A refusal leaves the state as it was.
    here.run("index build state/sub state").fails(2, &["lies in the state"]);
    here.run("index build state state").fails(2, &["lies in the state"]);
    here.run("index build state 0.jsonl").fails(2, &["name an empty folder"]);
    here.run(&format!("{NIGHT} --output later 0.jsonl --night later")).ends(0);
    here.run("index build ix state --no-text").ends(0);
    here.run("index insert ix state").fails(2, &["belongs to a nightly state"]);
    here.run("index build ix 0.jsonl").fails(2, &["is an index"]);
    let said = here.run("index stats ix").ends(0);
    assert!(said.stdout.contains("texts not kept") && said.stdout.contains("char:3"), "{said:?}");
    let answer = here.run("--quiet index query ix 0.jsonl").ends(0).stdout;
    assert!(answer.lines().all(|line| line.contains("\"unverified\":true")));
}
