//! Tests of the index in a real HBase: it answers as the index on disk does, of two racing twins one is new, and nothing
//! that was acknowledged is lost, whoever dies. They need `scripts/hbase/build`.

mod answers;
mod article;
mod cut_lines;
mod deaths;
mod figures;
mod races;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use crate::servers::hbase::MiniHBase;
use crate::support::{Folder, Run};

/// Method of the indexes. Within three bits, texts of some hundred characters may differ in a few of them.
const METHOD: &str = "--method simhash:features=char:3 --no-text";

/// Returns the cluster that all tests share in which no server dies.
fn shared() -> &'static MiniHBase {
    static SHARED: OnceLock<MiniHBase> = OnceLock::new();
    SHARED.get_or_init(|| MiniHBase::start(2))
}

/// Makes an empty index, and returns its name.
fn empty_index(here: &Folder, cluster: &MiniHBase) -> String {
    static TABLES: AtomicUsize = AtomicUsize::new(0);
    let index = cluster.table(&format!("index{}", TABLES.fetch_add(1, Ordering::Relaxed)));
    here.write("none.jsonl", "");
    here.run(&format!("--quiet index build {index} {METHOD} none.jsonl")).ends(0);
    index
}

/// Answers by the id that was asked about. A killed process may leave half of a line.
fn answers(run: &Run) -> BTreeMap<String, Value> {
    let answer = |line: &str| {
        let answer: Value = serde_json::from_str(line).ok()?;
        Some((answer["id"].as_str().unwrap().to_owned(), answer))
    };
    run.stdout.lines().filter_map(answer).collect()
}

/// Returns the ids of the matches of an answer.
fn matches(answer: &Value) -> BTreeSet<String> {
    let matches = answer["matches"].as_array().unwrap();
    matches.iter().map(|found| found["id"].as_str().unwrap().to_owned()).collect()
}

/// Returns the ids that a run has acknowledged as new.
fn new_ids(run: &Run) -> BTreeSet<String> {
    answers(run).into_iter().filter(|(_, answer)| answer["new"] == true).map(|(id, _)| id).collect()
}

/// Returns the ids of the documents of an index.
fn ids(here: &Folder, index: &str) -> BTreeSet<String> {
    let export = here.run(&format!("--quiet index export {index}")).ends(0);
    answers(&Run { stdout: export.stdout, ..export }).into_keys().collect()
}

/// Returns the number of documents of an index that are there, and of those that are not decided.
fn documents(here: &Folder, index: &str) -> [u64; 2] {
    let stats = here.run(&format!("--quiet index stats {index} --json")).ends(0);
    let stats: Value = serde_json::from_str(&stats.stdout).unwrap();
    let topic = &stats["topics"]["default"];
    ["documents", "pending"].map(|number| topic[number].as_u64().unwrap_or(0))
}
