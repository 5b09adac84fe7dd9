//! Tests of damaged and missing files of a state: `nightly check` finds them, and a night that would need them ends
//! before it commits anything.

use std::collections::BTreeMap;
use std::fs;

use super::ledger::is_sound;
use crate::corpus::json_lines;
use crate::support::{Folder, Random, Tree};

/// Night that reads every table: it has copies and edits of all documents, and withdraws some.
const NIGHT: &str = "nightly --quiet --workers 2 --state state --output next --retract gone.txt next.jsonl";
/// Tables of a state.
const TABLES: [&str; 9] =
    ["identities", "keys", "sketches", "texts", "documents", "ids", "parents", "members", "withdrawn"];

/// Makes a state of two nights, of which the second has withdrawn a document.
pub fn two_nights() -> Folder {
    let here = Folder::new();
    let mut random = Random(3);
    let texts = [(); 8].map(|()| random.text(50));
    let edited = |text: &String| text.chars().take(48).chain("改了".chars()).collect::<String>();
    let docs = |night: &str, texts: &[String]| {
        json_lines(texts.iter().enumerate().map(|(number, text)| (format!("{night}{number}"), text.clone())))
    };
    here.write("first.jsonl", docs("first", &texts));
    let more: Vec<_> = texts.iter().map(edited).chain(texts.iter().take(2).cloned()).collect();
    here.write("second.jsonl", docs("second", &more));
    let edited = |text: &String| "新的".chars().chain(text.chars().skip(2)).collect::<String>();
    let next: Vec<_> = texts.iter().cloned().chain(texts.iter().map(edited)).chain(more.clone()).collect();
    here.write("next.jsonl", docs("next", &next));
    here.write("first.txt", "first7\n");
    here.write("gone.txt", "first0\nsecond1\n");
    let night = "nightly --quiet --workers 1 --state state";
    here.run(&format!("{night} --output first first.jsonl")).ends(0);
    here.run(&format!("{night} --output second --retract first.txt second.jsonl")).ends(0);
    here
}

/// Returns a file of each table, by its path in the folder of the state.
pub fn file_of_each_table(state: &Tree) -> BTreeMap<&str, String> {
    let of = |table: &str| {
        let mut files = state.keys().filter(|name| name.starts_with("runs/"));
        files.find(|name| name.contains(&format!("/{table}-"))).cloned()
    };
    TABLES.map(|table| (table, of(table).unwrap_or_else(|| panic!("no file of {table}")))).into()
}

/// Checks that `check` finds fault with this file, and says so on stdout or as an error.
#[track_caller]
fn check_names(here: &Folder, file: &str, what: &str) {
    let run = here.run("nightly check --state state").ends(1);
    assert!(run.stdout.contains(file) || run.stderr.contains(file), "{what}: {run:?}");
}

/// Checks that a night ends with an error that names the file, and changes nothing.
#[track_caller]
fn night_names(here: &Folder, file: &str, what: &str) {
    // What a failed night has written goes when the next one claims the state.
    let state = || {
        let mut files = here.contents("state");
        files.retain(|name, _| !name.starts_with("runs/00000003/"));
        files
    };
    let before = state();
    let run = here.run(NIGHT);
    assert_eq!(run.code, Some(1), "{what}: {run:?}");
    assert!(run.stderr.contains(file), "{what}: {run:?}");
    assert!(!here.path("next/_SUCCESS").exists(), "{what}");
    let now = state();
    assert!(now == before, "{what}: {:?}", now.keys());
}

#[test]
fn a_flipped_bit_in_any_table_is_found() {
    let here = two_nights();
    let state = here.contents("state");
    for (table, file) in file_of_each_table(&state) {
        let bytes = &state[&file];
        for at in [0, bytes.len() / 3, bytes.len() / 2, bytes.len() - 1] {
            let what = format!("{table}, byte {at}");
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            here.write(&format!("state/{file}"), &damaged);
            check_names(&here, &file, &what);
            night_names(&here, &file, &what);
        }
        here.write(&format!("state/{file}"), bytes);
    }
    is_sound(&here, "state");
    here.run(NIGHT).ends(0);
    is_sound(&here, "state");
}

#[test]
fn a_short_or_missing_file_of_any_table_is_found() {
    let here = two_nights();
    let state = here.contents("state");
    for (table, file) in file_of_each_table(&state) {
        let path = format!("state/{file}");
        let bytes = &state[&file];
        here.write(&path, &bytes[..bytes.len() - 1]);
        check_names(&here, &file, &format!("a short file of {table}"));
        night_names(&here, &file, &format!("a short file of {table}"));
        fs::remove_file(here.path(&path)).unwrap();
        check_names(&here, &file, &format!("no file of {table}"));
        night_names(&here, &file, &format!("no file of {table}"));
        here.write(&path, bytes);
    }
    is_sound(&here, "state");
}

/// A night reads the newest version to go on from, and the others to know which files are theirs.
#[test]
fn a_damaged_version_is_found() {
    let here = two_nights();
    let state = here.contents("state");
    for version in ["versions/00000001.json", "versions/00000002.json"] {
        let path = format!("state/{version}");
        let bytes = &state[version];
        for at in [0, bytes.len() / 2, bytes.len() - 2] {
            let what = format!("{version}, byte {at}");
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            here.write(&path, &damaged);
            check_names(&here, version, &what);
            night_names(&here, version, &what);
        }
        here.write(&path, bytes);
    }
    is_sound(&here, "state");
}

#[test]
fn damaged_statistics_are_found() {
    let here = two_nights();
    fs::remove_dir_all(here.path("state")).unwrap();
    let options = "--method simhash:features=char:2,weights=tfidf";
    let night = |name: &str| {
        format!("nightly --quiet --workers 1 --state state --output {name}-w {options} {name}.jsonl")
    };
    here.run(&night("first")).ends(0);
    let state = here.contents("state");
    let file = state.keys().find(|name| name.starts_with("runs/00000001/statistics")).unwrap();
    for at in [0, state[file].len() / 2, state[file].len() - 1] {
        let mut damaged = state[file].clone();
        damaged[at] ^= 1 << (at % 8);
        here.write(&format!("state/{file}"), &damaged);
        check_names(&here, file, &format!("byte {at}"));
        let run = here.run(&night("second"));
        assert!(run.code == Some(1) && run.stderr.contains(file), "{run:?}");
    }
    fs::remove_file(here.path(&format!("state/{file}"))).unwrap();
    check_names(&here, file, "no file");
    let run = here.run(&night("second"));
    assert!(run.code == Some(1) && run.stderr.contains(file), "{run:?}");
    here.write(&format!("state/{file}"), &state[file]);
    here.run(&night("second")).ends(0);
    is_sound(&here, "state");
}
