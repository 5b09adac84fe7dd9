//! Tests every file of the shared hostile data. Its MANIFEST.tsv says what each file tests. The tables of
//! this folder say what the program does with it: one table for each folder of files, one row for each file.
//!
//! | column | content |
//! |---|---|
//! | `file` | name of the file |
//! | `exit` | exit code of `dedup` on that file alone |
//! | `docs` | number of kept and removed documents together |
//! | `rejected` | number of rejected records |
//! | `options` | options, `-` for none; with `{file}`, the value of an option, the input is two posts |
//! | `reason` | text in one line of `rejects/`, or of stderr if nothing was committed |

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::corpus::json_lines;
use crate::support::{Folder, Run, run, test_data};

/// Folders that have a table.
const FOLDERS: [&str; 8] = ["dict", "docx", "jsonl", "parquet", "pdf", "sequencefile", "text", "zip"];
const MAX_MEMORY_BYTES: u64 = 600 << 20;
const MAX_TIME: Duration = Duration::from_secs(60);

struct Expected<'a> {
    exit: i32,
    docs: u64,
    rejected: u64,
    options: &'a str,
    reason: &'a str,
}

#[test]
fn every_hostile_file_does_what_its_row_says() {
    let Some(data) = test_data("hostile") else { return };
    let manifest = fs::read_to_string(data.join("MANIFEST.tsv")).unwrap();
    let mut failed = Vec::new();
    for folder in FOLDERS {
        let table = format!("{}/tests/hostile/{folder}.tsv", env!("CARGO_MANIFEST_DIR"));
        let table = fs::read_to_string(table).unwrap();
        let expected: BTreeMap<&str, Expected> = table.lines().skip(1).map(row).collect();
        let files = manifest.lines().filter_map(|line| line.split('\t').next()?.strip_prefix(folder));
        let files: Vec<_> = files.filter_map(|file| file.strip_prefix('/')).collect();
        assert_eq!(expected.len(), files.len(), "rows of {folder} and files there");
        for file in files {
            let expected = expected.get(file).unwrap_or_else(|| panic!("no row for {folder}/{file}"));
            if let Err(difference) = check(&data.join(folder).join(file), expected) {
                failed.push(format!("{folder}/{file}: {difference}"));
            }
        }
    }
    assert!(failed.is_empty(), "{} files did otherwise:\n{}", failed.len(), failed.join("\n"));
}

fn row(line: &str) -> (&str, Expected<'_>) {
    let [file, exit, docs, rejected, options, reason] = line.split('\t').collect::<Vec<_>>()[..] else {
        panic!("not six columns: {line}");
    };
    let number = |text: &str| text.parse::<u64>().unwrap_or_else(|_| panic!("no number {text}: {line}"));
    let exit = number(exit) as i32;
    let docs = number(docs);
    let rejected = number(rejected);
    (file, Expected { exit, docs, rejected, options: if options == "-" { "" } else { options }, reason })
}

fn check(file: &Path, expected: &Expected) -> Result<(), String> {
    let folder = Folder::new();
    let start = Instant::now();
    let method = if expected.options.contains("--method") { "" } else { "--method exact" };
    let options = expected.options.replace("{file}", file.to_str().unwrap());
    let input = if options == expected.options { file.to_owned() } else { folder.path("posts.jsonl") };
    folder.write("posts.jsonl", json_lines([("a", "新闻的讯"), ("b", "别的")]));
    let line = format!("dedup --workers 1 --progress none {method} {options}");
    let Run { code, stdout: _, stderr } = run(folder.command(&line).arg("--").arg(input).arg("out"));
    let took = start.elapsed();
    if code != Some(expected.exit) {
        return Err(format!("exit code {code:?} instead of {}: {stderr}", expected.exit));
    }
    if took > MAX_TIME {
        return Err(format!("took {took:?}"));
    }
    let rejects = folder.lines("out/rejects", "jsonl");
    if !expected.reason.is_empty()
        && !rejects.iter().chain([&stderr]).any(|line| line.contains(expected.reason))
    {
        return Err(format!("nothing says \"{}\": {rejects:?} {stderr}", expected.reason));
    }
    if !folder.path("out/_SUCCESS").exists() {
        return Ok(());
    }
    let counted =
        (folder.counter("out", "kept") + folder.counter("out", "removed"), folder.counter("out", "rejected"));
    if counted != (expected.docs, expected.rejected) {
        let expected = (expected.docs, expected.rejected);
        return Err(format!("(documents, rejected) are {counted:?} instead of {expected:?}: {rejects:?}"));
    }
    let memory = folder.success("out")["process"]["peak_memory_bytes"].as_u64().unwrap_or(0);
    if memory > MAX_MEMORY_BYTES {
        return Err(format!("took {memory} bytes of memory"));
    }
    Ok(())
}
