//! Tests of what `nightly` refuses, of runs that meet, and of the tools for a state.

use std::process::Stdio;
use std::time::Duration;

use super::ledger::{export, is_sound, removals};
use crate::corpus::{json_lines, small};
use crate::faults::{Whole, command, processes};
use crate::support::{Folder, Random, run, signal, status, wait_until};

const NIGHT: &str = "nightly --quiet --workers 1 --state state";

/// Makes a state of the night `out`, whose documents are those of `small`.
fn one_night(options: &str) -> Folder {
    let here = small();
    here.run(&format!("{NIGHT} --output out {options} a.jsonl")).ends(0);
    here
}

/// Runs a night that is refused with exit code 2 and changes nothing.
#[track_caller]
fn refused(here: &Folder, line: &str, words: &[&str]) {
    let before = here.contents("");
    here.run(line).fails(2, words);
    assert!(here.contents("") == before, "{line}");
}

#[test]
fn a_night_of_another_configuration_is_refused_and_the_difference_named() {
    let here = one_night("--method simhash:features=char:2 --policy longest");
    for (options, words) in [
        ("--method auto", ["the method", "features=char:2", "auto"]),
        ("--policy old-first", ["--policy", "longest", "old-first"]),
        ("--verify none", ["--verify", "jaccard", "none"]),
    ] {
        refused(&here, &format!("{NIGHT} --output next {options} a.jsonl"), &words);
    }
    let here = one_night("--method simhash:features=jieba");
    here.write("words.txt", "今天\n");
    let line =
        format!("{NIGHT} --output next --method simhash:features=jieba --stop-words words.txt a.jsonl");
    refused(&here, &line, &["stop words"]);
}

#[test]
fn the_field_of_a_policy_is_that_of_all_nights_and_every_format_has_it() {
    let here = Folder::new();
    here.write("a.jsonl", "{\"text\":\"今天\",\"n\":1}\n{\"text\":\"今天\",\"n\":2,\"m\":1}\n");
    here.run(&format!("{NIGHT} --output out a.jsonl --policy priority:n")).ends(0);
    assert_eq!(here.success("out")["configuration"]["policy"], "priority:n");
    let next = format!("{NIGHT} --output next a.jsonl --policy");
    refused(&here, &format!("{next} priority:m"), &["--policy", "\"priority:n\"", "\"priority:m\""]);
    refused(&here, &format!("{next} first"), &["old-first, newest, longest or priority:FIELD"]);
    let lines = format!("{next} priority:n --format lines");
    refused(&here, &lines, &["a.jsonl", "lines", "no fields", "priority:n"]);
    here.write("b.jsonl", json_lines([("d", "后天")]));
    let run = here.run(&format!("{NIGHT} --output next b.jsonl --policy priority:n"));
    run.fails(2, &["b.jsonl", "no field \"n\"", "id, text"]);
    assert_eq!(export(&here, "state").len(), 2);
}

#[test]
fn a_state_of_an_earlier_format_is_refused() {
    let here = one_night("");
    let file = "state/versions/00000001.json";
    let manifest = std::fs::read_to_string(here.path(file)).unwrap();
    let (body, _) = manifest.trim_end().rsplit_once('\n').unwrap();
    let earlier = body.replace("\"format\":5", "\"format\":4").replace("\"format\": 5", "\"format\": 4");
    assert_ne!(earlier, body);
    here.write(file, format!("{earlier}\n{}\n", blake3::hash(earlier.as_bytes()).to_hex()));
    let before = here.contents("state");
    for line in [&format!("{NIGHT} --output next a.jsonl"), "nightly check --state state --repair"] {
        here.run(line).fails(1, &[file, "has format 4", "this program knows 5"]);
        assert!(here.contents("state") == before, "{line}");
    }
}

#[test]
fn a_name_of_a_night_stands_for_one_input() {
    let here = one_night("");
    here.write("b.jsonl", json_lines([("d", "后天")]));
    here.write("gone.txt", "a\n");
    for line in
        ["--output out b.jsonl", "--output next --night out a.jsonl", "--output out --retract gone.txt"]
    {
        refused(&here, &format!("{NIGHT} {line}"), &["a night \"out\" already", "--night", "roll back"]);
    }
}

#[test]
fn the_same_night_again_changes_nothing_and_says_so() {
    let here = one_night("");
    let before = here.contents("");
    for workers in [1, 3] {
        let run =
            here.run(&format!("nightly --state state --output out a.jsonl --workers {workers}")).ends(0);
        assert!(run.stderr.contains("has the night \"out\" already: nothing was done"), "{run:?}");
        assert!(here.contents("") == before);
    }
}

#[test]
fn a_folder_that_holds_other_files_is_no_state() {
    let here = small();
    here.write("state/readme.txt", "mine");
    refused(&here, &format!("{NIGHT} --output out a.jsonl"), &["\"state\"", "readme.txt", "no state"]);
}

#[test]
fn state_input_and_output_lie_apart() {
    let here = one_night("");
    here.write("state/runs/b.jsonl", json_lines([("d", "后天")]));
    refused(&here, &format!("{NIGHT} --output next state/runs/b.jsonl"), &["b.jsonl", "lies in the state"]);
    refused(&here, &format!("{NIGHT} --output state/next a.jsonl"), &["state/next", "lies in the state"]);
    refused(&here, &format!("{NIGHT} --output state a.jsonl"), &["\"state\"", "lies in the state"]);
    refused(
        &here,
        "nightly --quiet --state next/state --output next a.jsonl",
        &["next/state", "lies in the output"],
    );
    refused(&here, "nightly --quiet --state a.jsonl --output next a.jsonl", &["a.jsonl"]);
}

#[test]
fn methods_without_keys_are_refused() {
    let here = small();
    for method in ["jaccard", "zhou2017", "auto:revisions", "auto:search=exact"] {
        let words = [method.split(':').next().unwrap(), "no keys that a state can keep"];
        refused(&here, &format!("{NIGHT} --output out --method {method} a.jsonl"), &words);
    }
}

#[test]
fn a_night_without_input_withdraws_something() {
    let here = one_night("");
    refused(&here, &format!("{NIGHT} --output next"), &["INPUT", "--retract"]);
    refused(&here, &format!("{NIGHT} --output next --retract none.txt"), &["none.txt"]);
}

#[test]
fn an_id_of_no_document_is_a_warning_and_of_several_means_all() {
    let here = one_night("");
    here.write("b.jsonl", json_lines([("a", "后天"), ("e", "后天")]));
    here.write("gone.txt", "a\n\nnobody\na\n");
    here.run(&format!("{NIGHT} --output next b.jsonl")).ends(0);
    let run = here.run("nightly --state state --output last --retract gone.txt b.jsonl").ends(0);
    assert!(run.stderr.contains("warning: 1 of the ids") && run.stderr.contains("\"nobody\""), "{run:?}");
    let documents = export(&here, "state");
    // Documents of the night itself are not withdrawn, whatever their ids.
    let ids: Vec<_> = documents.iter().map(|doc| (&*doc.id, &*doc.night)).collect();
    assert_eq!(ids, [("b", "out"), ("c", "out"), ("e", "next"), ("a", "last"), ("e", "last")]);
    assert_eq!(removals(&documents).into_iter().collect::<Vec<_>>(), [("a", "e"), ("e", "e")].map(owned));
    is_sound(&here, "state");
}

fn owned((a, b): (&str, &str)) -> (String, String) {
    (a.to_owned(), b.to_owned())
}

#[test]
fn of_two_nights_at_once_the_second_is_told_or_waits() {
    let here = small();
    here.write("b.jsonl", json_lines([("d", "后天"), ("e", "今天")]));
    let mut first = here.command(&format!("{NIGHT} --output out a.jsonl"));
    first.env("DEDUP_FAULT", "0 settle 1 stop").stderr(Stdio::null());
    let first = first.spawn().unwrap();
    let is_stopped = || status(first.id()).is_some_and(|(_, state)| state == 'T');
    wait_until("the first night stops", Duration::from_secs(60), is_stopped);
    let next = format!("{NIGHT} --output next b.jsonl");
    here.run(&next).fails(11, &["state \"state\"", &format!("process {}", first.id())]);
    here.run(&format!("{next} --wait 1")).fails(11, &["waited for 1 s"]);
    for tool in ["compact", "rollback --to out"] {
        here.run(&format!("nightly {tool} --state state --quiet")).fails(2, &["no state"]);
    }
    let waiting = here.command(&format!("{next} --wait 30")).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(2));
    signal(first.id(), "CONT");
    let codes = [first, waiting].map(|mut night| night.wait().unwrap().code());
    assert_eq!(codes, [Some(0), Some(0)]);
    let documents = export(&here, "state");
    let nights: Vec<_> = documents.iter().map(|doc| &*doc.night).collect();
    assert_eq!(nights, ["out", "out", "out", "next", "next"]);
}

#[test]
fn a_night_that_a_guard_stops_commits_nothing() {
    let here = one_night("");
    here.write("b.jsonl", json_lines([("d", "后天"), ("e", "今天")]) + "bad\n");
    let next = format!("{NIGHT} --output next b.jsonl");
    let before = here.contents("state/versions");
    for guard in ["--max-rejects 0", "--max-removed 10%"] {
        here.run(&format!("{next} {guard}")).fails(4, &[&guard[..13]]);
        assert!(here.contents("state/versions") == before && !here.path("next/_SUCCESS").exists());
    }
    here.run(&next).ends(3);
    assert_eq!(export(&here, "state").len(), 5);
    is_sound(&here, "state");
}

#[test]
fn tools_name_a_state_that_is_not_there() {
    let here = small();
    for tool in ["stats", "check", "compact", "export x.parquet", "rollback --to out"] {
        refused(&here, &format!("nightly {tool} --state none"), &["no state in \"none\""]);
    }
    let here = one_night("");
    refused(&here, "nightly rollback --state state --to never", &["no night \"never\"", "out"]);
}

#[test]
fn what_was_withdrawn_is_erased_by_a_compaction_from_all_versions() {
    let here = small();
    here.write(
        "a.jsonl",
        json_lines([("gone-1", "独一无二的文字在此"), ("b", "明天"), ("gone-2", "明天"), ("c", "明天")]),
    );
    here.write("gone.txt", "gone-1\ngone-2\n");
    here.run(&format!("{NIGHT} --output out a.jsonl")).ends(0);
    here.run(&format!("{NIGHT} --output next --retract gone.txt")).ends(0);
    let check = || here.run("nightly check --state state --erased gone.txt");
    let found = check().ends(1);
    assert!(found.stdout.contains("\"documents\"") && found.stdout.contains("still has the id"), "{found:?}");
    let holds = |words: &str| {
        let files = here.contents("state");
        files.values().any(|bytes| bytes.windows(words.len()).any(|window| window == words.as_bytes()))
    };
    assert!(holds("gone-1") && holds("gone-2") && holds("独一无二"));
    let before = export(&here, "state");
    here.run("nightly compact --state state --quiet").ends(0);
    check().ends(0);
    assert!(!holds("gone-1") && !holds("gone-2") && !holds("独一无二") && holds("明天"));
    assert_eq!(export(&here, "state"), before);
    refused(&here, "nightly rollback --state state --to out", &["no longer kept"]);
}

#[test]
fn two_processes_leave_what_one_leaves() {
    let here = Folder::new();
    let mut random = Random(7);
    let templates = [(); 8].map(|()| random.text(60));
    for night in 0..3 {
        let docs = (0..60).map(|number| {
            let mut text: Vec<char> = templates[random.below(8)].chars().take(57 + random.below(4)).collect();
            (0..random.below(3)).for_each(|_| text[random.below(57)] = '改');
            (format!("d{night}-{number}"), text.into_iter().collect::<String>())
        });
        here.write(&format!("in{night}.jsonl"), json_lines(docs.collect::<Vec<_>>()));
        here.write(
            &format!("gone{night}.txt"),
            (0..8).map(|number| format!("d0-{number}\n")).collect::<String>(),
        );
    }
    let nights = |count: usize| {
        let wholes = [0, 1, 2].map(|night| {
            let options = processes(&here, count);
            let line = format!(
                "{options} --workers 4 nightly --quiet --state state --output out --night n{night} --policy longest \
                 --split-size 4K --retract gone{night}.txt in{night}.jsonl"
            );
            let run = run(&mut command(&here, &line));
            assert_eq!(run.code, Some(0), "{run:?}");
            Whole::take(&here)
        });
        let documents = export(&here, "state");
        is_sound(&here, "state");
        std::fs::remove_dir_all(here.path("state")).unwrap();
        (wholes, documents)
    };
    let one = nights(1);
    let corrected = one.0.iter().flat_map(|whole| whole.files.keys());
    assert!(corrected.filter(|name| name.starts_with("corrections/")).count() > 0);
    assert!(nights(2) == one);
}
