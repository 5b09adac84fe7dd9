//! Tests that the same documents of an index stay as `dedup` of its export keeps.

use std::collections::BTreeSet;

use serde_json::Value;

use super::families::corpus;
use crate::support::{Folder, Random, sorted};

fn ids(lines: &str) -> Vec<String> {
    let id = |line: &str| serde_json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap().to_owned();
    lines.lines().map(id).collect()
}

/// Returns the ids that `dedup` keeps of the documents of an index. The newest of documents is the first of their reversed order.
fn kept_by_dedup(here: &Folder, method: &str, policy: &str) -> BTreeSet<String> {
    let export = here.run("--quiet index export ix").ends(0).stdout;
    let mut lines: Vec<&str> = export.lines().collect();
    let keep = match policy {
        "longest" => "longest",
        "priority" => "priority:priority",
        _ => "first",
    };
    if policy == "newest" {
        lines.reverse();
    }
    here.write("export.jsonl", lines.join("\n"));
    let options = format!("--overwrite --method {method} --keep {keep} --quiet");
    here.run(&format!("dedup export.jsonl deduped {options}")).ends(0);
    here.objects("deduped/kept", ".jsonl").iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_view_keeps_what_dedup_of_the_export_keeps() {
    let characters = "simhash:features=char:2,hamming=8";
    for (seed, method) in (0..).zip(["auto", characters, "minhash"]) {
        let here = Folder::new();
        let mut random = Random(seed + 1);
        corpus(&here, seed, 60);
        let all =
            sorted(ids(&[here.lines(".", "one.jsonl"), here.lines(".", "other.jsonl")].concat().join("\n")));
        here.run(&format!("--quiet index build ix one.jsonl --priority-field date --method {method}"))
            .ends(0);
        // Some texts are there twice, in other segments too.
        here.run("--quiet index insert ix other.jsonl --priority-field date").ends(0);
        here.run("--quiet index compact ix").ends(0);
        here.run("--quiet index insert ix one.jsonl --priority-field date").ends(0);
        for deleted in [0, 20, 60] {
            let gone: Vec<String> = (0..deleted).map(|_| all[random.below(all.len())].clone()).collect();
            here.write("gone.txt", gone.join("\n"));
            here.run("--quiet index delete ix gone.txt").ends(0);
            for policy in ["old-first", "newest", "longest", "priority"] {
                let expected = kept_by_dedup(&here, method, policy);
                let seen = here.run(&format!("--quiet index view ix --kept --policy {policy}")).ends(0);
                let seen: BTreeSet<String> = ids(&seen.stdout).into_iter().collect();
                let missing: Vec<_> = expected.symmetric_difference(&seen).collect();
                assert!(missing.is_empty(), "{method} {policy} {deleted}: {missing:?} of {}", expected.len());
                let exported = here.run(&format!("--quiet index export ix --kept --policy {policy}")).ends(0);
                assert_eq!(ids(&exported.stdout).into_iter().collect::<BTreeSet<_>>(), expected);
            }
        }
    }
}

#[test]
fn a_view_has_counters_and_its_largest_clusters() {
    let here = Folder::new();
    here.run("--quiet demo demo --documents 300").ends(0);
    here.run("--quiet index build ix demo/corpus.jsonl").ends(0);
    here.run("--quiet dedup demo/corpus.jsonl out").ends(0);
    let view: Value =
        serde_json::from_str(&here.run("index view ix --json --clusters 1000").ends(0).stdout).unwrap();
    assert_eq!(view["documents"], 300);
    assert_eq!(view["kept"], here.counter("out", "kept"));
    assert_eq!(view["clusters"], here.counter("out", "clusters"));
    let clusters = view["largest_clusters"].as_array().unwrap();
    assert_eq!(view["clusters"], clusters.len());
    let sizes: Vec<usize> = clusters.iter().map(|of| of["removed"].as_array().unwrap().len() + 1).collect();
    assert!(sizes.is_sorted_by(|one, other| one >= other) && view["largest"] == sizes[0], "{sizes:?}");
    let removed: usize = sizes.iter().map(|size| size - 1).sum();
    assert_eq!(removed as u64, here.counter("out", "removed"));
    let said = here.run("index view ix --clusters 1").ends(0).stdout;
    let largest = clusters[0]["id"].as_str().unwrap();
    assert!(said.contains(&format!("    {largest} stays, {} go: ", sizes[0] - 1)), "{said}");
    assert_eq!(said.lines().count(), 2);
}

#[test]
fn a_view_knows_what_was_cleaned_away_of_posts() {
    let here = Folder::new();
    here.run("--quiet demo demo --mixture --documents 4000").ends(0);
    here.run("--quiet index build ix demo/corpus.jsonl").ends(0);
    here.run("--quiet dedup demo/corpus.jsonl out").ends(0);
    let kept: BTreeSet<String> = ids(&here.run("index view ix --kept").ends(0).stdout).into_iter().collect();
    let of_dedup = here.objects("out/kept", ".jsonl");
    assert_eq!(kept, of_dedup.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect());
}

#[test]
fn a_view_that_cannot_be_is_refused() {
    let here = Folder::new();
    here.write("in.jsonl", "{\"id\":\"a\",\"text\":\"一二三四五六七八九十\"}\n");
    here.run("--quiet index build ix in.jsonl").ends(0);
    here.run("index view ix --topic other").fails(2, &["no topic \"other\""]);
    here.run("index view ix --policy priority:n").fails(2, &["keeps no fields", "priority:n"]);
    here.run("index view ix --policy oldest").fails(2, &["old-first, newest"]);
    here.run("--quiet index build bare in.jsonl --no-text").ends(0);
    for tool in ["view bare", "export bare --kept"] {
        here.run(&format!("index {tool}")).fails(2, &["keeps no texts", "auto", "fingerprint of 64 bits"]);
    }
    here.run("--quiet index build exact in.jsonl --method exact").ends(0);
    here.run("index view exact --policy longest").fails(2, &["keeps no texts", "longest"]);
}

/// An index without texts has no export that could be deduplicated, so the corpus is, without the documents that were deleted.
#[test]
fn a_view_of_an_index_without_texts_is_what_dedup_of_the_corpus_keeps() {
    let tables = "simhash:features=char:2,hamming=5,blocks=7";
    // Fingerprints within 3 bits have a file of their own.
    let methods = ["exact", "simhash:features=char:1", "simhash:features=char:2,hamming=8", tables];
    for (seed, method) in (0..).zip(methods) {
        let here = Folder::new();
        let mut random = Random(seed + 1);
        corpus(&here, seed, 60);
        // Some texts are there twice, in other segments too.
        let copy = |line: &String| line.replacen("\"id\":\"", "\"id\":\"copy-", 1);
        let mut other = here.lines(".", "other.jsonl");
        other.extend(here.lines(".", "one.jsonl").iter().step_by(3).map(copy));
        here.write("other.jsonl", other.join("\n"));
        let lines = [here.lines(".", "one.jsonl"), other].concat();
        here.run(&format!("--quiet index build ix one.jsonl --method {method} --no-text")).ends(0);
        here.run("--quiet index compact ix").ends(0);
        // These are in the log alone, and then in another segment.
        here.run("--quiet index insert ix other.jsonl").ends(0);
        let all = sorted(ids(&lines.join("\n")));
        let mut gone = BTreeSet::new();
        for deleted in [0, 20, 60] {
            gone.extend((0..deleted).map(|_| all[random.below(all.len())].clone()));
            here.write("gone.txt", gone.iter().cloned().collect::<Vec<_>>().join("\n"));
            here.run("--quiet index delete ix gone.txt").ends(0);
            for policy in ["old-first", "newest"] {
                let mut left: Vec<&str> = lines.iter().map(String::as_str).collect();
                left.retain(|line| !gone.contains(&ids(line)[0]));
                if policy == "newest" {
                    left.reverse();
                }
                here.write("left.jsonl", left.join("\n"));
                let verify = if method == "exact" { "" } else { "--verify none" };
                here.run(&format!("--quiet dedup left.jsonl deduped --overwrite --method {method} {verify}"))
                    .ends(0);
                let expected = here.objects("deduped/kept", ".jsonl");
                let expected: BTreeSet<String> =
                    expected.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect();
                let seen = here.run(&format!("--quiet index view ix --kept --policy {policy}")).ends(0);
                let seen: BTreeSet<String> = ids(&seen.stdout).into_iter().collect();
                let missing: Vec<_> = expected.symmetric_difference(&seen).collect();
                assert!(missing.is_empty(), "{method} {policy} {deleted}: {missing:?} of {}", expected.len());
                assert!(expected.len() < left.len(), "{method}: nothing goes");
            }
            if deleted == 20 {
                here.run("--quiet index compact ix").ends(0);
            }
        }
        let said = here.run("index view ix").ends(0).stdout;
        assert_eq!(said.contains("unverified"), method != "exact", "{said}");
    }
}
