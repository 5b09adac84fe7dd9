//! The rows of `chunk stats --by` say what would be freed.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use super::store::{snapshots, stats};
use crate::support::{Folder, Random, Tree};

/// Returns the rows of a table by their names.
fn rows(here: &Folder, store: &str, by: &str) -> BTreeMap<String, Value> {
    let printed = here.run(&format!("chunk stats {store} --by {by} --json")).ends(0).stdout;
    let rows = printed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    rows.map(|row| (row["name"].as_str().unwrap().to_owned(), row)).collect()
}

fn number(row: &Value, field: &str) -> u64 {
    row[field].as_u64().unwrap()
}

fn sum(rows: &BTreeMap<String, Value>, field: &str) -> u64 {
    rows.values().map(|row| number(row, field)).sum()
}

/// Puts each of the versions, without the files that lie in `without`.
fn put(here: &Folder, store: &str, versions: &[Tree], without: &str) {
    for version in versions {
        fs::remove_dir_all(here.path("in")).ok();
        fs::create_dir(here.path("in")).unwrap();
        let is_in = |name: &str| name == without || name.starts_with(&format!("{without}/"));
        for (name, bytes) in version.iter().filter(|(name, _)| !is_in(&format!("in/{name}"))) {
            here.write(&format!("in/{name}"), bytes);
        }
        here.run(&format!("chunk put {store} in")).ends(0);
    }
}

#[test]
fn a_file_and_a_folder_own_what_a_store_would_not_have_without_them() {
    let here = Folder::new();
    let mut random = Random(21);
    let names = ["a/x.txt", "a/b/y.md", "a/b/z", "c/x.TXT", "d.txt"];
    let pieces: Vec<String> = (0..12).map(|_| random.text(3000)).collect();
    // Equal pieces are equal chunks often enough.
    let versions: Vec<Tree> = (0..3)
        .map(|_| {
            let mut text = || (0..3).map(|_| pieces[random.below(12)].as_str()).collect::<String>();
            names.iter().map(|name| ((*name).to_owned(), text().into_bytes())).collect()
        })
        .collect();
    put(&here, "store", &versions, "none");
    let all = number(&stats(&here, "store"), "chunk_bytes");
    let (files, folders) = (rows(&here, "store", "file"), rows(&here, "store", "folder"));
    assert!(files.keys().map(String::as_str).eq([
        "in/a/b/y.md",
        "in/a/b/z",
        "in/a/x.txt",
        "in/c/x.TXT",
        "in/d.txt"
    ]));
    assert!(folders.keys().map(String::as_str).eq([".", "in", "in/a", "in/a/b", "in/c"]));
    let some = ["in/a/b/y.md", "in/d.txt"].map(|name| (name, &files[name]));
    for (name, row) in some.into_iter().chain(["in/a", "in/a/b", "in/c"].map(|name| (name, &folders[name]))) {
        let store = name.replace('/', "-");
        put(&here, &store, &versions, name);
        assert_eq!(
            number(row, "own_chunk_bytes"),
            all - number(&stats(&here, &store), "chunk_bytes"),
            "{name}"
        );
    }
    assert!(files.values().any(|row| number(row, "own_chunk_bytes") > 0));
    assert!(number(&folders["in/a"], "own_chunk_bytes") > number(&folders["in/a/b"], "own_chunk_bytes"));
    // All that is new came with something, and all belongs to the whole.
    let kinds = rows(&here, "store", "kind");
    assert!(kinds.keys().map(String::as_str).eq(["md", "other", "txt"]));
    for table in [&files, &kinds, &rows(&here, "store", "snapshot")] {
        assert_eq!(sum(table, "new_chunk_bytes"), all);
        assert_eq!(sum(table, "files"), 15);
    }
    for name in [".", "in"] {
        assert_eq!(number(&folders[name], "own_chunk_bytes"), all);
        assert_eq!(number(&folders[name], "new_chunk_bytes"), all);
        assert_eq!(number(&folders[name], "bytes"), sum(&files, "bytes"));
        let stored = number(&folders[name], "own_stored_bytes");
        let packs = number(&stats(&here, "store"), "pack_bytes");
        assert!(stored < packs && packs < stored + 3000, "{stored} bytes of {packs}");
    }
    let table = here.run("chunk stats store --by folder").ends(0).stdout;
    assert_eq!(table.lines().count(), 6);
    assert!(table.lines().last().unwrap().ends_with("  in/c"), "{table}");
}

#[test]
fn a_snapshot_that_is_forgotten_and_pruned_frees_what_it_owned() {
    let here = Folder::new();
    let mut random = Random(22);
    for version in 0..3 {
        here.write("in/same", "same");
        here.write("in/text", random.text(20_000 * (version + 1)));
        here.run("chunk put store in").ends(0);
    }
    for name in snapshots(&here) {
        let row = rows(&here, "store", "snapshot").remove(&name).unwrap();
        let before = stats(&here, "store");
        here.run(&format!("chunk forget store {name}")).ends(0);
        let unused = number(&stats(&here, "store"), "unused_chunk_bytes");
        assert_eq!(unused, number(&row, "own_chunk_bytes"));
        here.run("chunk prune store").ends(0);
        let freed = number(&before, "pack_bytes") - number(&stats(&here, "store"), "pack_bytes");
        let owned = number(&row, "own_stored_bytes");
        assert!(owned > 0 && freed.abs_diff(owned) < 2000 + owned / 50, "{freed} bytes freed of {owned}");
    }
    assert!(rows(&here, "store", "snapshot").is_empty());
}
