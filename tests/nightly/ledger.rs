//! The decisions of the outputs of several nights together, of a state, and of one batch.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::support::{Folder, Run, rows};

/// Documents that are removed, each with the document that stays in its place.
pub type Removals = BTreeMap<String, String>;

/// Ids of the documents that are removed, as a reader knows them who follows the outputs of all nights and
/// never asks the state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger(pub BTreeSet<String>);

/// Document of a state, as `export` writes it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Exported {
    pub id: String,
    pub night: String,
    /// Document that stays in its place; `None` if the document is kept.
    pub duplicate_of: Option<String>,
}

impl Ledger {
    /// Takes in the output of a night. `withdrawn`: the ids that the night has withdrawn.
    #[track_caller]
    pub fn add(&mut self, here: &Folder, output: &str, withdrawn: &[String]) {
        self.0.retain(|id| !withdrawn.contains(id));
        for (id, _) in removed_in(here, output) {
            assert!(self.0.insert(id.clone()), "{output} removes \"{id}\", which is removed already");
        }
        for row in here.rows(&format!("{output}/corrections")) {
            let [id, _, change, ..] = &row[..] else { panic!("{row:?}") };
            let changes = match change.as_str() {
                "removed" => self.0.insert(id.clone()),
                "restored" => self.0.remove(id),
                other => panic!("{other}"),
            };
            assert!(changes, "a correction of {output} changes nothing: {row:?}");
        }
    }
}

/// Returns the removed documents of an output, whose input is JSON lines.
pub fn removed_in(here: &Folder, output: &str) -> Removals {
    let lines = here.objects(&format!("{output}/removed"), ".jsonl");
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    lines.iter().map(|line| (text(&line["id"]), text(&line["duplicate_of"]))).collect()
}

/// Returns all documents of a state, in the order of nights.
#[track_caller]
pub fn export(here: &Folder, state: &str) -> Vec<Exported> {
    here.run(&format!("nightly export --state {state} export.parquet --overwrite --quiet")).ends(0);
    exported(&here.path("export.parquet"))
}

/// Reads a file that `export` has written.
pub fn exported(file: &Path) -> Vec<Exported> {
    let document = |row: Vec<String>| {
        let [id, night, kept, duplicate_of, ..] = &row[..] else { panic!("{row:?}") };
        let duplicate_of = (kept == "false").then(|| duplicate_of.clone());
        Exported { id: id.clone(), night: night.clone(), duplicate_of }
    };
    rows(file).into_iter().map(document).collect()
}

/// Returns the removed ones of some documents.
pub fn removals(documents: &[Exported]) -> Removals {
    let removed = documents.iter().filter_map(|doc| Some((doc.id.clone(), doc.duplicate_of.clone()?)));
    removed.collect()
}

/// Checks that `nightly check` finds nothing.
#[track_caller]
pub fn is_sound(here: &Folder, state: &str) {
    let Run { code, stdout, stderr } = here.run(&format!("nightly check --state {state}"));
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{stdout}");
    assert!(stdout.contains("all as they were written"), "{stdout}");
}
