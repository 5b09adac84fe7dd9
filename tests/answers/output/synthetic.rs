//! Tests on the corpus of `dedup-job demo`: its known duplicates are removed, and nothing else is.

use std::collections::HashMap;
use std::fs;

use serde_json::Value;

use crate::answers::brute::{Doc, candidates};
use crate::support::Folder;

const DOCUMENTS: usize = 3000;

/// Makes the demo corpus. Returns the original of each duplicate, and how the duplicate was made.
fn demo() -> (Folder, Vec<Doc>, HashMap<String, (String, String)>) {
    let here = Folder::new();
    let run = here.run(&format!("demo demo --documents {DOCUMENTS} --seed 7")).ends(0);
    let docs = here.objects("demo", "corpus.jsonl");
    let docs: Vec<Doc> = docs.iter().map(|doc| Doc::new(str(&doc["id"]), str(&doc["text"]))).collect();
    let truth = fs::read_to_string(here.path("demo/truth.tsv")).unwrap();
    let truth: HashMap<_, _> = truth
        .lines()
        .map(|line| {
            let [doc, original, how] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
            (doc.to_owned(), (original.to_owned(), how.to_owned()))
        })
        .collect();
    assert_eq!((docs.len(), run.stderr.as_str()), (DOCUMENTS, ""));
    let numbers = format!("{DOCUMENTS} documents, {} of them duplicates", truth.len());
    assert!(run.stdout.starts_with(&numbers), "{run:?}");
    (here, docs, truth)
}

fn str(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// Returns the removed documents with the documents that they duplicate. Checks that this is sound and
/// complete: each removed document matches a kept one, and no two candidates that match are both kept.
fn check(here: &Folder, docs: &[Doc], method: &str) -> HashMap<String, Value> {
    here.run(&format!("dedup demo/corpus.jsonl out --method {method} --overwrite --quiet")).ends(0);
    let removed: HashMap<String, Value> = here
        .objects("out/removed", ".jsonl")
        .into_iter()
        .map(|doc| (str(&doc["id"]).to_owned(), doc))
        .collect();
    let places: HashMap<&str, usize> = docs.iter().enumerate().map(|(i, doc)| (doc.id.as_str(), i)).collect();
    let candidates = candidates(method, docs);
    let similarities: HashMap<_, _> =
        candidates.iter().map(|pair| ((pair.low, pair.high), pair.millionths)).collect();
    for (id, doc) in &removed {
        let of = str(&doc["duplicate_of"]);
        assert!(!removed.contains_key(of), "{id} duplicates {of}, which is removed too");
        let a = places[id.as_str()];
        let b = places[of];
        let millionths = similarities[&(a.min(b), a.max(b))];
        assert!(millionths >= 800_000, "{id} {of} {millionths}");
        assert_eq!(doc["similarity"].as_f64().unwrap(), millionths as f64 / 1e6);
        assert_eq!(doc["reason"] == "identical", millionths == 1_000_000 && doc["reason"] != "similar");
    }
    for pair in candidates.iter().filter(|pair| pair.millionths >= 800_000) {
        let [low, high] = [pair.low, pair.high].map(|doc| &docs[doc].id);
        assert!(removed.contains_key(low) || removed.contains_key(high), "{low} and {high} are both kept");
    }
    removed
}

#[test]
fn words_know_every_copy_in_other_widths_and_spaces() {
    let (here, docs, truth) = demo();
    let removed = check(&here, &docs, "simhash");
    for (doc, (original, how)) in &truth {
        // Cleaning removes differences of width, and spaces and punctuation are no words. So these copies
        // have the same words.
        assert!(how == "edited" || removed.contains_key(doc), "{doc}, {how} copy of {original}, is kept");
    }
    // Two decoys made of one text have the same words in other orders, so they are the same text by words.
    let strangers = removed.keys().filter(|doc| !truth.contains_key(*doc)).count();
    assert!(strangers * 1000 <= DOCUMENTS, "{strangers} documents without duplicate are removed");
}

#[test]
fn grams_know_every_identical_copy_and_nearly_every_edited_one() {
    let (here, docs, truth) = demo();
    let removed = check(&here, &docs, "simhash:features=char:5,hamming=15");
    let of = |wanted: &str| {
        let docs: Vec<_> = truth.iter().filter(|(_, (_, how))| how == wanted).map(|(doc, _)| doc).collect();
        let found = docs.iter().filter(|doc| removed.contains_key(**doc)).count();
        (found, docs.len())
    };
    let (found, all) = of("identical");
    assert!(found == all && all > DOCUMENTS / 20, "{found} of {all}");
    // Spaces are characters, so a copy with many of them is no near-duplicate by grams. 15 bits of 64 are not
    // enough for every short text. A candidate that matches is never missed: see `check`.
    let (found, all) = of("edited");
    println!("{found} of {all} edited copies, {:?} with other spaces", of("whitespace"));
    assert!(found * 10 >= all * 9 && all > DOCUMENTS / 20, "{found} of {all}");
    assert!(removed.keys().all(|doc| truth.contains_key(doc)), "a document without duplicate is removed");
}

#[test]
fn the_corpus_is_the_same_for_any_number_of_workers() {
    let here = Folder::new();
    for mixture in ["", "--mixture"] {
        // Three blocks of 20,000 documents, which workers make beside each other.
        let files = |workers: usize| {
            let folder = format!("demo-{workers}{mixture}");
            here.run(&format!("--workers {workers} demo {folder} {mixture} --documents 45000")).ends(0);
            let read = |file: &str| fs::read(here.path(&format!("{folder}/{file}"))).unwrap();
            ["corpus.jsonl", "truth.tsv", "clusters.tsv"].map(read)
        };
        let one = files(1);
        assert_eq!(one[0].iter().filter(|&&byte| byte == b'\n').count(), 45_000);
        assert!(one == files(2) && one == files(7), "{mixture}");
    }
}
