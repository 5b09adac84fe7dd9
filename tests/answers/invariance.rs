//! Tests that the answer is the same for any number of workers, any order of the inputs and any size of the
//! splits.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::corpus::of_formats;
use crate::support::{Folder, sorted};

const METHODS: [&str; 8] = [
    "auto",
    "simhash",
    "simhash:features=char:5",
    "exact",
    "jaccard:0.7,features=char:3",
    "contained:0.8,features=char:3",
    "minhash",
    "zhou2017",
];
const FOLDERS: [&str; 2] = ["kept", "removed"];
/// Inputs in shuffled order, some of them twice.
const INPUTS: [&str; 3] = [
    "in",
    "in/f.seq in/c.parquet in/b.jsonl in/e.parquet in/a.jsonl in/d.parquet",
    "in/[bd].* in in/a.jsonl,in/c.parquet",
];

/// Returns the rows of each folder of an output, sorted, whatever part they are in.
fn content(here: &Folder, output: &str) -> BTreeMap<&'static str, Vec<String>> {
    let mut content = BTreeMap::new();
    for folder in FOLDERS {
        let rows = here.rows(&format!("{output}/{folder}")).into_iter().map(|row| row.join("\t"));
        content.insert(folder, rows.chain(here.lines(&format!("{output}/{folder}"), ".jsonl")).collect());
    }
    for table in ["pairs", "clusters"] {
        let rows = here.table(&format!("{output}/{table}")).into_iter();
        content.insert(table, rows.map(|row| row.join("\t")).collect());
    }
    let without_place = |mut reject: Value| {
        assert!(reject.as_object_mut().unwrap().remove("place").is_some());
        reject.to_string()
    };
    let rejects = here.objects(&format!("{output}/rejects"), ".jsonl");
    content.insert("rejects", rejects.into_iter().map(without_place).collect());
    content.into_iter().map(|(table, rows)| (table, sorted(rows))).collect()
}

/// Returns the counters without that of the splits.
fn counters(here: &Folder, output: &str) -> Value {
    let mut counters = here.success(output)["counters"].clone();
    counters["splits"] = Value::Null;
    counters
}

#[test]
fn the_number_of_workers_changes_no_byte() {
    let here = of_formats();
    for method in METHODS {
        for workers in [1, 2, 3, 4, 8] {
            here.run(&format!(
                "dedup in {workers} --workers {workers} --split-size 64K --quiet --method {method}"
            ))
            .ends(3);
        }
        let one = here.output("1");
        assert!(one.keys().filter(|name| name.starts_with("kept/")).count() > 8, "{:?}", one.keys());
        assert!(one.contains_key("rejects/part-00000.jsonl"));
        for workers in ["2", "3", "4", "8"] {
            let more = here.output(workers);
            assert_eq!(
                one.keys().collect::<Vec<_>>(),
                more.keys().collect::<Vec<_>>(),
                "{method}, {workers}"
            );
            for (name, bytes) in &one {
                assert!(*bytes == more[name], "{name} of {method} with {workers} workers");
            }
            assert_eq!(counters(&here, "1"), counters(&here, workers));
            fs::remove_dir_all(here.path(workers)).unwrap();
        }
        fs::remove_dir_all(here.path("1")).unwrap();
    }
}

#[test]
fn the_number_of_workers_changes_no_byte_of_an_input_against_a_reference() {
    let here = of_formats();
    let line =
        "dedup --against in/a.jsonl --against in/d.parquet,in/f.seq in/b.jsonl in/c.parquet in/e.parquet";
    for method in METHODS.into_iter().filter(|method| *method != "zhou2017") {
        for within in ["yes", "no"] {
            for workers in [1, 2, 4] {
                let options = format!("--within {within} --split-size 64K --quiet --method {method}");
                here.run(&format!("{line} {workers} --workers {workers} {options}")).ends(3);
            }
            let one = here.output("1");
            assert!(["2", "4"].iter().all(|more| here.output(more) == one), "{method}, {within}");
            let counters = here.success("1")["counters"].clone();
            assert_eq!(counters["records_read"], 1011, "{method}, {within}");
            assert_eq!((&counters["rejected"], &counters["reference"]["rejected"]), (&11.into(), &11.into()));
            assert_eq!(counters["reference"]["documents"], 1000);
            assert!(counters["removed"].as_u64() > Some(20), "{method}, {within}: {counters}");
            ["1", "2", "4"].iter().for_each(|output| fs::remove_dir_all(here.path(output)).unwrap());
        }
    }
}

#[test]
fn order_of_inputs_and_size_of_splits_change_no_row() {
    let here = of_formats();
    for method in METHODS {
        let mut runs = Vec::new();
        for (split_size, workers) in [("4K", 3), ("64K", 2), ("32M", 1)] {
            for inputs in INPUTS {
                let output = format!("out{}", runs.len());
                let options =
                    format!("--split-size {split_size} --workers {workers} --quiet --method {method}");
                here.run(&format!("dedup {inputs} {output} {options} --overwrite")).ends(3);
                runs.push((
                    content(&here, &output),
                    counters(&here, &output),
                    format!("{method} {inputs} {split_size}"),
                ));
            }
        }
        let (first, counters, _) = &runs[0];
        assert_eq!(counters["records_read"], 2022);
        assert_eq!(first["rejects"].len(), 22);
        assert!(first["removed"].len() > 150 && first["pairs"].len() >= first["removed"].len());
        for (rows, counted, run) in &runs[1..] {
            assert_eq!(counters, counted, "{run}");
            for (table, expected) in first {
                assert!(rows[table] == *expected, "{table} of {run}");
            }
        }
        assert!(
            here.success("out0")["counters"]["splits"].as_u64()
                > here.success("out8")["counters"]["splits"].as_u64()
        );
    }
}

#[test]
fn a_split_may_begin_at_any_byte() {
    let here = Folder::new();
    let lines =
        ["{\"text\":\"新闻\"}\n", "\r\n", "{\"text\":\"b\",\"id\":2}\r\n", "bad\n", "{\"text\":\"c\"}\n"];
    here.write("a.jsonl", lines.concat());
    for split_bytes in 1..=lines.concat().len() {
        here.run(&format!("dedup a.jsonl out --split-size {split_bytes} --method exact --quiet --overwrite"))
            .ends(3);
        let kept = String::from_utf8(here.bytes("out/kept", ".jsonl")).unwrap();
        assert_eq!(kept, [lines[0], lines[2], lines[4]].concat(), "splits of {split_bytes} bytes");
        assert_eq!(here.counter("out", "records_read"), 4);
        let splits = lines.concat().len().div_ceil(split_bytes) as u64;
        assert_eq!(here.counter("out", "splits"), splits);
    }
}
