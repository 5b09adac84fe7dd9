//! Tests of `nightly` on a real HDFS and on S3. They need `scripts/hadoop/build` and `scripts/s3/build`.

use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::json;

use super::ledger::{exported, removals, removed_in};
use crate::corpus::demo;
use crate::stores::Both;
use crate::support::{Run, run, test_data};

/// Number of nights, among which the documents are divided by the hash of their ids.
const NIGHTS: usize = 30;
/// Largest number of documents of a night.
const MOST_DOCUMENTS: usize = 3000;
/// Night that withdraws documents of the earlier ones as well.
const TAKEDOWN: usize = 10;
/// Night to which the state goes back after night 20; the nights between run again.
const BACK_TO: usize = 17;
/// One of so many documents of the nights before the takedown is withdrawn.
const WITHDRAWN: u64 = 25;

/// Document with the line that holds it.
struct Doc {
    id: String,
    line: String,
}

fn hash_of(id: &str, seed: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    (seed, id).hash(&mut hasher);
    hasher.finish()
}

/// Returns the documents of each night.
fn divided(docs: Vec<Doc>) -> Vec<Vec<Doc>> {
    let mut nights: Vec<Vec<Doc>> = (0..NIGHTS).map(|_| Vec::new()).collect();
    for doc in docs {
        let night = &mut nights[(hash_of(&doc.id, 0) % NIGHTS as u64) as usize];
        if night.len() < MOST_DOCUMENTS {
            night.push(doc);
        }
    }
    nights
}

/// Runs `nightly` with the arguments of `line`, in which `@` is the folder of the store.
fn nightly(both: &Both, line: &str) -> Run {
    both.run(&format!("nightly {line} --quiet"))
}

/// Runs a night, which must end well.
fn night(both: &Both, number: usize, options: &str) {
    nightly(
        both,
        &format!("--workers 2 --state @/state --output @/out/n{number} {options} @/in/n{number}.jsonl"),
    )
    .ends(0);
}

/// Checks that what the state says is what one batch over the documents that are left says.
fn the_state_says_what_a_batch_says(both: &Both, left: &[&Doc]) {
    nightly(both, "check --state @/state").ends(0);
    nightly(both, "export --state @/state export.parquet --overwrite").ends(0);
    let here = &both.here;
    let documents = exported(&here.path("export.parquet"));
    let ids: Vec<&String> = documents.iter().map(|doc| &doc.id).collect();
    assert!(ids.iter().copied().eq(left.iter().map(|doc| &doc.id)), "{} and {}", ids.len(), left.len());
    here.write("all.jsonl", left.iter().map(|doc| format!("{}\n", doc.line)).collect::<String>());
    here.run("--workers 2 --quiet dedup all.jsonl batch --overwrite --method auto:search=minhash").ends(0);
    let now = removals(&documents);
    let batch = removed_in(here, "batch");
    assert!(!batch.is_empty() && now.keys().eq(batch.keys()), "{} and {}", now.len(), batch.len());
    assert!(now == batch);
}

/// Takes a corpus in thirty nights, with a takedown and a rollback on the way.
fn thirty_nights(both: &Both, docs: Vec<Doc>) {
    let nights = divided(docs);
    let is_withdrawn =
        |number: usize, doc: &Doc| number < TAKEDOWN && hash_of(&doc.id, 1).is_multiple_of(WITHDRAWN);
    let numbered =
        || nights.iter().enumerate().flat_map(|(number, docs)| docs.iter().map(move |doc| (number, doc)));
    let withdrawn = numbered().filter(|&(number, doc)| is_withdrawn(number, doc));
    let ids: String = withdrawn.map(|(_, doc)| format!("{}\n", doc.id)).collect();
    assert!(ids.lines().count() > 3);
    both.here.write("gone.txt", ids);
    for (number, docs) in nights.iter().enumerate() {
        let lines: String = docs.iter().map(|doc| format!("{}\n", doc.line)).collect();
        both.write(&format!("in/n{number}.jsonl"), lines.as_bytes());
        night(both, number, if number == TAKEDOWN { "--retract gone.txt" } else { "" });
        if number == 20 {
            nightly(both, &format!("rollback --state @/state --to n{BACK_TO}")).ends(0);
            (BACK_TO + 1..=number).for_each(|again| night(both, again, "--overwrite"));
        }
    }
    let left: Vec<&Doc> =
        numbered().filter(|&(number, doc)| !is_withdrawn(number, doc)).map(|(_, doc)| doc).collect();
    the_state_says_what_a_batch_says(both, &left);
    nightly(both, "compact --state @/state").ends(0);
    nightly(both, "check --state @/state --erased gone.txt").ends(0);
    the_state_says_what_a_batch_says(both, &left);
    assert!(!both.exists("state/_temporary"));
}

#[test]
#[ignore = "needs scripts/hadoop/build"]
fn thirty_nights_on_hdfs_are_one_batch() {
    let here = demo(4000, 9);
    let lines = here.lines("demo", "corpus.jsonl").into_iter();
    let ids = here.objects("demo", "corpus.jsonl");
    let docs = lines.zip(ids).map(|(line, doc)| Doc { id: doc["id"].as_str().unwrap().to_owned(), line });
    thirty_nights(&Both::hdfs("/nightly", here), docs.collect());
}

#[test]
#[ignore = "needs scripts/hadoop/build"]
fn thirty_nights_of_real_texts_on_hdfs_are_one_batch() {
    let Some(file) = test_data("corpora/mixed.parquet") else { return };
    let reader = SerializedFileReader::new(File::open(file).unwrap()).unwrap();
    let text = |field: &Field| match field {
        Field::Str(text) => text.clone(),
        other => panic!("{other}"),
    };
    let rows = reader.get_row_iter(None).unwrap().take(NIGHTS * MOST_DOCUMENTS);
    let docs = rows.map(|row| {
        let row = row.unwrap();
        let of = |name: &str| row.get_column_iter().find(|(of, _)| *of == name).map(|(_, field)| text(field));
        let (id, text) = (of("id").unwrap(), of("text").unwrap());
        Doc { line: json!({ "id": id, "text": text }).to_string(), id }
    });
    thirty_nights(&Both::hdfs("/nightly-mixed", demo(1, 1)), docs.collect());
}

/// The second night is killed at each of these requests, and runs again.
#[test]
#[ignore = "needs scripts/s3/build"]
fn a_killed_night_on_s3_goes_on() {
    let here = demo(300, 9);
    let lines = here.lines("demo", "corpus.jsonl");
    let ids = here.objects("demo", "corpus.jsonl");
    let docs: Vec<Doc> = lines
        .into_iter()
        .zip(ids)
        .map(|(line, doc)| Doc { id: doc["id"].as_str().unwrap().to_owned(), line })
        .collect();
    let both = Both::s3("nightly", here);
    for (number, docs) in docs.chunks(100).enumerate() {
        let lines: String = docs.iter().map(|doc| format!("{}\n", doc.line)).collect();
        both.write(&format!("in/n{number}.jsonl"), lines.as_bytes());
    }
    night(&both, 0, "");
    let mut deaths = 0;
    for request in (10..).step_by(17) {
        let line = format!(
            "nightly --workers 2 --quiet --state {0}/state --output {0}/out/n1 {0}/in/n1.jsonl",
            both.uri
        );
        let mut command = both.here.command(&line);
        command.envs(both.settings.clone()).env("DEDUP_FAULT", format!("0 request {request} kill"));
        if run(&mut command).code == Some(0) {
            break;
        }
        deaths += 1;
    }
    assert!(deaths > 3, "only {deaths} deaths");
    night(&both, 1, "");
    night(&both, 2, "");
    the_state_says_what_a_batch_says(&both, &docs.iter().collect::<Vec<_>>());
}
