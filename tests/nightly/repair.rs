//! Tests of `nightly check --repair`: a state with damage becomes what it was, from the inputs of its nights.

use std::fs;

use super::damage::{file_of_each_table, two_nights};
use super::ledger::{Exported, export, is_sound};
use crate::support::{Folder, Tree, run};

const REPAIR: &str = "nightly check --state state --repair";

/// Returns the outputs of both nights, without what says when and how fast they were made.
fn outputs(here: &Folder) -> Tree {
    let of = |name: &'static str| {
        here.contents(name).into_iter().map(move |(file, bytes)| (format!("{name}/{file}"), bytes))
    };
    let mut files: Tree = of("first").chain(of("second")).collect();
    files.retain(|name, _| !name.ends_with("_SUCCESS") && !name.ends_with("report.html"));
    files
}

/// Checks that the state is sound and says what it said, and that the outputs are as they were.
#[track_caller]
fn is_repaired(here: &Folder, before: &(Vec<Exported>, Tree), what: &str) {
    is_sound(here, "state");
    assert!(export(here, "state") == before.0, "{what}");
    assert!(outputs(here) == before.1, "{what}");
}

/// Puts the state and the outputs back as they were.
fn restore(here: &Folder, whole: &Tree) {
    for folder in ["state", "first", "second"] {
        fs::remove_dir_all(here.path(folder)).unwrap();
    }
    let folders = |name: &str| ["state/", "first/", "second/"].iter().any(|folder| name.starts_with(folder));
    whole.iter().filter(|(name, _)| folders(name)).for_each(|(name, bytes)| here.write(name, bytes));
}

fn flip(here: &Folder, file: &str) {
    let mut bytes = fs::read(here.path(file)).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    here.write(file, bytes);
}

#[test]
fn nights_with_a_damaged_or_missing_file_are_run_again() {
    let here = two_nights();
    let before = (export(&here, "state"), outputs(&here));
    let (whole, all) = (here.contents("state"), here.contents(""));
    let of_second = whole.keys().find(|name| name.starts_with("runs/00000002/labels")).cloned();
    for file in file_of_each_table(&whole).into_values().chain(of_second) {
        restore(&here, &all);
        let lost = format!("state/{file}");
        flip(&here, &lost);
        let run = here.run(REPAIR).ends(0);
        assert!(run.stderr.contains("running the night \"second\" again"), "{file}: {run:?}");
        assert_eq!(
            run.stderr.contains("running the night \"first\" again"),
            file.contains("/00000001/"),
            "{file}: {run:?}"
        );
        is_repaired(&here, &before, &file);
        let newest = here.contents("state").keys().rfind(|name| name.starts_with("runs/")).cloned().unwrap();
        fs::remove_file(here.path(&format!("state/{newest}"))).unwrap();
        here.run(REPAIR).ends(0);
        is_repaired(&here, &before, &newest);
    }
    let repaired = here.contents("state");
    here.run(REPAIR).ends(0);
    assert!(here.contents("state") == repaired, "a state that is whole was changed");
}

#[test]
fn damage_in_earlier_versions_or_in_a_manifest_is_taken_out() {
    let here = two_nights();
    let before = (export(&here, "state"), outputs(&here));
    flip(&here, "state/versions/00000001.json");
    here.run("nightly check --state state").ends(1);
    here.run(REPAIR).ends(0);
    is_repaired(&here, &before, "an earlier manifest");
    let only = here.contents("state").keys().rfind(|name| name.starts_with("versions/")).cloned().unwrap();
    flip(&here, &format!("state/{only}"));
    here.run(REPAIR).fails(2, &["no version of the state"]);
    assert!(here.path(&format!("state/{only}")).exists());

    let here = two_nights();
    flip(&here, "state/versions/00000002.json");
    let run = here.run(REPAIR).ends(0);
    assert!(run.stderr.contains("running the night \"second\" again"), "{run:?}");
    is_repaired(&here, &before, "the newest manifest");
}

/// Returns the path of a file of the second night.
fn of_second(here: &Folder) -> String {
    let state = here.contents("state");
    format!("state/{}", state.keys().find(|name| name.starts_with("runs/00000002/")).unwrap())
}

#[test]
fn nothing_is_taken_back_before_every_lost_night_can_be_run_again() {
    let here = two_nights();
    let before = (export(&here, "state"), outputs(&here));
    flip(&here, &of_second(&here));
    let damaged = here.contents("state");
    fs::rename(here.path("second.jsonl"), here.path("away")).unwrap();
    let unchanged = |words: &[&str]| {
        here.run(REPAIR).fails(2, words);
        assert!(here.contents("state") == damaged, "{words:?}");
    };
    unchanged(&["the night \"second\" is lost", "second.jsonl"]);
    here.write("second.jsonl", "{\"id\": \"other\", \"text\": \"另外的\"}\n");
    unchanged(&["the night \"second\" is lost", "has changed since"]);
    fs::rename(here.path("away"), here.path("second.jsonl")).unwrap();
    fs::rename(here.path("second"), here.path("elsewhere")).unwrap();
    unchanged(&["its output", "is gone, or of another state"]);
    fs::rename(here.path("elsewhere"), here.path("second")).unwrap();
    let history = here.contents("state")["history.jsonl"].clone();
    here.write("state/history.jsonl", b"");
    flip(&here, "state/versions/00000002.json");
    let run = here.run(REPAIR);
    run.fails(2, &["version 2 cannot be read", "history.jsonl does not tell"]);
    here.write("state/history.jsonl", history);
    here.run(REPAIR).ends(0);
    is_repaired(&here, &before, "with all that it needs");
}

/// Its nights have outputs that belong to the state it was copied from.
#[test]
fn a_copied_state_leaves_the_outputs_of_the_other_one_alone() {
    let here = two_nights();
    let outputs = outputs(&here);
    for (name, bytes) in here.contents("state") {
        here.write(&format!("copy/{name}"), bytes);
    }
    flip(&here, &of_second(&here).replace("state/", "copy/"));
    here.run("nightly check --state copy --repair").fails(2, &["of another state"]);
    assert!(self::outputs(&here) == outputs);
    here.run("nightly --quiet --workers 1 --state state --output second --retract first.txt second.jsonl")
        .ends(0);
}

#[test]
fn what_was_erased_is_erased_again() {
    let here = two_nights();
    let erased = "nightly check --state state --erased first.txt";
    here.run("nightly compact --state state --quiet").ends(0);
    here.run(erased).ends(0);
    here.run("nightly --quiet --workers 1 --state state --output next next.jsonl").ends(0);
    let state = here.contents("state");
    flip(&here, &format!("state/{}", state.keys().find(|name| name.starts_with("runs/00000003/")).unwrap()));
    here.run(REPAIR).ends(0);
    here.run(erased).ends(0);
    is_sound(&here, "state");
}

#[test]
fn nights_whose_input_is_gone_are_given_up_by_a_rollback() {
    let here = two_nights();
    flip(&here, &of_second(&here));
    fs::remove_file(here.path("second.jsonl")).unwrap();
    here.run(REPAIR).fails(2, &["rollback"]);
    here.run("nightly rollback --state state --to first").ends(0);
    here.run(REPAIR).ends(0);
    is_sound(&here, "state");
    here.run("nightly --quiet --state state --output next next.jsonl").ends(0);
}

#[test]
fn a_killed_repair_goes_on() {
    let here = two_nights();
    let before = (export(&here, "state"), outputs(&here));
    let (whole, all) = (here.contents("state"), here.contents(""));
    let file = whole.keys().find(|name| name.starts_with("runs/00000001/keys")).cloned().unwrap();
    for step in ["rename", "remove"] {
        for number in 1.. {
            restore(&here, &all);
            flip(&here, &format!("state/{file}"));
            let killed = run(here.command(REPAIR).env("DEDUP_FAULT", format!("0 {step} {number} kill")));
            assert!(matches!(killed.code, None | Some(0)), "{step} {number}: {killed:?}");
            here.run(REPAIR).ends(0);
            is_repaired(&here, &before, &format!("{step} {number}"));
            if killed.code.is_some() {
                assert!(number > 1, "{step}");
                break;
            }
        }
    }
}
