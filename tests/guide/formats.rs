//! docs/formats.md is checked against what the program writes: it names every member of every JSON file, every column of every
//! table, every event and every metric.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;

use parquet::file::reader::{FileReader, SerializedFileReader};
use serde_json::Value;

use crate::support::Folder;

/// Members whose own members are names or values of the user's data.
const OF_DATA: [&str; 9] = [
    "configuration",
    "cluster_sizes",
    "files",
    "pairs_by_distance",
    "pairs_by_similarity",
    "pinned",
    "sample_pairs",
    "largest_clusters",
    "kinds",
];

/// Adds the names of the members of a value.
fn members(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(of_value) => {
            for (name, value) in of_value {
                names.insert(name.clone());
                if !OF_DATA.contains(&name.as_str()) {
                    members(value, names);
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| members(value, names)),
        _ => {}
    }
}

/// Returns the JSON that a file holds, which may have its hash behind it on a last line.
fn whole(text: &str) -> Option<Value> {
    let sealed = text.trim_end().rsplit_once('\n').map_or("", |(sealed, _)| sealed);
    serde_json::from_str(text).or_else(|_| serde_json::from_str(sealed)).ok()
}

/// Adds the names in all files below a folder: members of JSON, columns of Parquet, events, metrics.
fn written(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            written(&path, names);
            continue;
        }
        let name = path.file_name().unwrap().to_str().unwrap();
        // Records of the corpus have the fields of the user.
        let of_user = path.components().any(|part| part.as_os_str() == "kept");
        if name.ends_with(".parquet") && !of_user {
            let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
            let columns = reader.metadata().file_metadata().schema_descr().columns();
            names.extend(columns.iter().map(|column| column.name().to_owned()));
            continue;
        }
        let Ok(text) = fs::read_to_string(&path) else { continue };
        if name.ends_with(".prom") {
            let metrics = text.lines().filter(|line| !line.starts_with('#'));
            names.extend(metrics.map(|line| line.split(['{', ' ']).next().unwrap().to_owned()));
        } else if let Some(value) = whole(&text) {
            members(&value, names);
        } else if !of_user {
            for value in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
                names.extend(value.get("event").and_then(Value::as_str).map(str::to_owned));
                members(&value, names);
            }
        }
    }
}

#[test]
fn the_page_about_files_names_all_that_is_written() {
    let here = Folder::new();
    here.run("demo in --documents 600").ends(0);
    let corpus = "in/corpus.jsonl";
    here.run(&format!("dedup {corpus} out --events out.jsonl --metrics-file out.prom")).ends(0);
    here.run(&format!("dedup {corpus} annotated --annotate --pairs all")).ends(0);
    here.run(&format!("dedup {corpus} ids --only ids --method minhash")).ends(0);
    here.run(&format!("nightly --state state --output night-1 {corpus}")).ends(0);
    here.run(&format!("nightly --state state --output night-2 {corpus}")).ends(0);
    here.run(&format!("index build index {corpus}")).ends(0);
    here.run(&format!("chunk put store {corpus}")).ends(0);
    here.run(&format!("chunk clean {corpus} cleaned --unit sentence")).ends(0);
    let mut names = BTreeSet::new();
    written(&here.path("."), &mut names);
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/formats.md")).unwrap();
    let words: BTreeSet<&str> = page.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let missing: Vec<_> = names.iter().filter(|name| !words.contains(name.as_str())).collect();
    assert!(names.len() > 150, "{} names: {names:?}", names.len());
    assert_eq!(missing, [""; 0]);
}
