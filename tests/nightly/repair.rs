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
    files.retain(|name, _| !name.ends_with("_SUCCESS"));
    files
}

/// Checks that the state is sound and says what it said, and that the outputs are as they were.
#[track_caller]
fn is_repaired(here: &Folder, before: &(Vec<Exported>, Tree), what: &str) {
    is_sound(here, "state");
    assert!(export(here, "state") == before.0, "{what}");
    assert!(outputs(here) == before.1, "{what}");
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
    let whole = here.contents("state");
    let of_second = whole.keys().find(|name| name.starts_with("runs/00000002/labels")).cloned();
    for file in file_of_each_table(&whole).into_values().chain(of_second) {
        fs::remove_dir_all(here.path("state")).unwrap();
        whole.iter().for_each(|(name, bytes)| here.write(&format!("state/{name}"), bytes));
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
    assert!(run.stderr.contains("version 2 was damaged and is removed"), "{run:?}");
    is_repaired(&here, &before, "the newest manifest");
}

#[test]
fn lost_nights_are_remembered_until_their_input_is_there() {
    let here = two_nights();
    let before = (export(&here, "state"), outputs(&here));
    let of_second = here.contents("state").keys().find(|name| name.starts_with("runs/00000002/")).cloned();
    flip(&here, &format!("state/{}", of_second.unwrap()));
    fs::rename(here.path("second.jsonl"), here.path("away")).unwrap();
    let run = here.run(REPAIR);
    assert!(run.code != Some(0) && run.stderr.contains("the night \"second\" was lost"), "{run:?}");
    let run = here.run("nightly --state state --output next next.jsonl").ends(2);
    assert!(run.stderr.contains("has lost the night \"second\""), "{run:?}");
    let run = here.run("nightly check --state state").ends(1);
    assert!(run.stdout.contains("the night \"second\" was lost"), "{run:?}");
    here.write("second.jsonl", "{\"id\": \"other\", \"text\": \"另外的\"}\n");
    let run = here.run(REPAIR);
    assert!(run.code != Some(0) && run.stderr.contains("has changed since"), "{run:?}");
    fs::rename(here.path("away"), here.path("second.jsonl")).unwrap();
    here.run(REPAIR).ends(0);
    is_repaired(&here, &before, "with its input again");
}

#[test]
fn nights_whose_input_is_gone_are_given_up_by_a_rollback() {
    let here = two_nights();
    let of_second = here.contents("state").keys().find(|name| name.starts_with("runs/00000002/")).cloned();
    flip(&here, &format!("state/{}", of_second.unwrap()));
    fs::remove_file(here.path("second.jsonl")).unwrap();
    here.run(REPAIR);
    here.run("nightly rollback --state state --to first").ends(0);
    is_sound(&here, "state");
    here.run("nightly --quiet --state state --output next next.jsonl").ends(0);
}

#[test]
fn a_killed_repair_goes_on() {
    let here = two_nights();
    let before = (export(&here, "state"), outputs(&here));
    let whole = here.contents("state");
    let file = whole.keys().find(|name| name.starts_with("runs/00000001/keys")).cloned().unwrap();
    for step in ["rename", "remove"] {
        for number in 1.. {
            fs::remove_dir_all(here.path("state")).unwrap();
            whole.iter().for_each(|(name, bytes)| here.write(&format!("state/{name}"), bytes));
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
