//! Tests of what a run survives, with processes that really die: at named points of the program (the feature
//! `faults`), or killed from outside at any time. `scripts/soak` runs more of the kills.

pub mod clock;
mod death;
pub mod kills;
pub mod lock;
mod manifest;
mod stores;
pub mod trouble;

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::corpus::with_bad_line;
use crate::support::Folder;

/// Options that give several splits, of which some workers have more than others.
pub const SPLITS: &str = "--split-size 96K --quiet";

/// Returns the options of a job of `count` processes on this machine, and writes the hosts file that they
/// name. Its ports were free a moment ago.
pub fn processes(here: &Folder, count: usize) -> String {
    if count == 1 {
        return String::new();
    }
    let listeners: Vec<_> = (0..count).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let line = |listener: &TcpListener| format!("{}\n", listener.local_addr().unwrap());
    here.write("hosts", listeners.iter().map(line).collect::<String>());
    "--master hosts:hosts --launcher sh\\ -c".to_owned()
}

/// Returns the program with the arguments of `line`, in which a backslash quotes a space.
pub fn command(here: &Folder, line: &str) -> Command {
    let mut command = here.command("");
    let words = line.replace("\\ ", "\0");
    command.args(words.split_whitespace().map(|word| word.replace('\0', " ")));
    command
}

/// Output as a reader sees it: its files with their contents, and the counters.
#[derive(Debug, PartialEq)]
pub struct Whole {
    pub files: BTreeMap<String, Vec<u8>>,
    counters: Value,
}

impl Whole {
    /// Reads an output; `None` as long as there is no `_SUCCESS`.
    pub fn read(output: &Path) -> Option<Self> {
        let success = fs::read(output.join("_SUCCESS")).ok()?;
        let counters = serde_json::from_slice::<Value>(&success).unwrap()["counters"].take();
        let mut files = BTreeMap::new();
        let mut folders = vec![output.to_owned()];
        while let Some(folder) = folders.pop() {
            // A file that vanishes meanwhile shows as a missing file.
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let (path, name) = (entry.path(), entry.file_name());
                if name.to_string_lossy().starts_with('_') && folder_of(output, &path) {
                    continue;
                }
                if path.is_dir() {
                    folders.push(path);
                } else if let Ok(mut bytes) = fs::read(&path) {
                    let name = path.strip_prefix(output).unwrap().to_str().unwrap();
                    // The page names the times of the run, so only that it is there is compared.
                    bytes.retain(|_| name != "report.html");
                    files.insert(name.to_owned(), bytes);
                }
            }
        }
        Some(Whole { files, counters })
    }

    /// Reads the output `out`, which must be there, and removes it.
    pub fn take(here: &Folder) -> Self {
        let whole = Whole::read(&here.path("out")).expect("there is no output");
        fs::remove_dir_all(here.path("out")).unwrap();
        whole
    }
}

/// Whether a path lies directly in the output.
fn folder_of(output: &Path, path: &Path) -> bool {
    path.parent() == Some(output)
}

#[test]
fn workers_processes_and_surroundings_change_no_byte() {
    let here = with_bad_line();
    for method in ["auto", "simhash", "minhash", "zhou2017"] {
        let run = |processes_of_it: usize, workers: usize, name: &str, value: &str| {
            let options = processes(&here, processes_of_it);
            let all = processes_of_it * workers;
            let line = format!("{options} --workers {all} dedup in.jsonl out --method {method} {SPLITS}");
            let run = crate::support::run(command(&here, &line).env(name, value));
            assert_eq!(run.code, Some(3), "{processes_of_it} processes, {workers} workers: {run:?}");
            Whole::take(&here)
        };
        let one = run(1, 1, "TZ", "UTC");
        assert!(one.files.len() > 20, "{:?}", one.files.keys());
        let processes =
            [1, 2, 4].into_iter().flat_map(|processes| [1, 2, 3, 4, 8].map(|workers| (processes, workers)));
        for (processes, workers) in processes.skip(1) {
            assert!(run(processes, workers, "TZ", "UTC") == one, "{method}: {processes} x {workers}");
        }
        assert!(run(2, 1, "TZ", "Asia/Shanghai") == one, "{method}: time zone");
        assert!(run(1, 2, "LC_ALL", "zh_CN.GB18030") == one, "{method}: locale");
    }
}

#[test]
fn a_killed_run_against_a_reference_goes_on_with_the_same_reference_alone() {
    let here = with_bad_line();
    here.run("demo ref --documents 700 --seed 5").ends(0);
    let line = format!("dedup --against ref/corpus.jsonl in.jsonl out --workers 2 --within no {SPLITS}");
    let whole = || {
        here.run(&line).ends(3);
        Whole::take(&here)
    };
    let killed = |point: &str| {
        let run = crate::support::run(here.command(&line).env("DEDUP_FAULT", point));
        assert_eq!(run.code, None, "{point}: {run:?}");
    };
    let expected = whole();
    assert!(expected.counters["removed"].as_u64() > Some(100), "{}", expected.counters);
    for point in ["0 finish 5 kill", "0 finish 40 kill", "0 rename 3 kill"] {
        killed(point);
        assert!(whole() == expected, "{point}");
    }
    killed("0 finish 40 kill");
    let more = fs::read(here.path("in.jsonl")).unwrap();
    let more = more.split_inclusive(|&byte| byte == b'\n').next().unwrap();
    here.write("ref/corpus.jsonl", [&fs::read(here.path("ref/corpus.jsonl")).unwrap()[..], more].concat());
    let changed = whole();
    assert!(changed.counters["reference"] != expected.counters["reference"]);
    here.run(&line).ends(3);
    assert!(Whole::take(&here) == changed);
}
