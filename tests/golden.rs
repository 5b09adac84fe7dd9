//! Tests of every command as a user sees it: what it prints, how it exits and which files it leaves.
//!
//! A case is a folder of `tests/golden/`. Its file `cmd` has a shell command on each line. They run one after
//! the other in a new folder that holds the other files of the case. `stdout`, `stderr` and `files` hold the
//! results. With `UPDATE=1` they are written anew. What differs from run to run, such as seconds, is shown as
//! `*`.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, fs, thread};

use crate::support::{Folder, Run, run};

/// Number of cases that run at a time.
const AT_ONCE: usize = 2;
/// File of a case with its commands.
const CMD: &str = "cmd";
/// Files of a case with its results.
const RESULTS: [&str; 3] = ["stdout", "stderr", "files"];
/// Beginnings of lines whose numbers differ from run to run.
const VOLATILE: [&str; 11] = [
    "\"report.html\":",
    "CPU milliseconds=",
    "Peak bytes of memory=",
    "Bytes spilled to disk=",
    "\"cpu_milliseconds\":",
    "\"peak_memory_bytes\":",
    "\"spilled_bytes\":",
    "\"directory\":",
    "\"run\":",
    "\"most_rows_of_a_worker\":",
    "\"most_compared_by_a_worker\":",
];

/// Beginnings of blocks of JSON that differ from run to run.
const VOLATILE_BLOCKS: [&str; 2] = ["\"seconds\": {", "\"stages\": ["];

/// Results of a case, in the order of [`RESULTS`].
type Results = [String; 3];

#[test]
fn every_command_prints_and_leaves_what_it_did() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut cases: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|case| case.unwrap().path()).collect();
    cases.sort();
    assert!(cases.len() > 50, "{}", cases.len());
    let next = AtomicUsize::new(0);
    let differences = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    differences.lock().unwrap().extend(differences_of(case));
                }
            });
        }
    });
    let differences = differences.into_inner().unwrap();
    assert!(differences.is_empty(), "UPDATE=1 accepts:\n{}", differences.join("\n"));
}

/// Runs a case. Compares its results with those in its folder, or writes them anew.
fn differences_of(case: &Path) -> Vec<String> {
    let results = results(case);
    let mut differences = Vec::new();
    for (name, now) in RESULTS.iter().zip(results) {
        let file = case.join(name);
        let title = format!("{}/{name}", case.file_name().unwrap().display());
        if env::var_os("UPDATE").is_some() {
            if now.is_empty() {
                drop(fs::remove_file(file))
            } else {
                fs::write(file, now).unwrap()
            }
            continue;
        }
        let before = fs::read_to_string(file).unwrap_or_default();
        if before != now {
            differences.push(format!("{title}\n{}", lines_that_differ(&before, &now)));
        }
    }
    differences
}

/// Returns the lines in which two texts differ, with `-` or `+` before each.
fn lines_that_differ(before: &str, now: &str) -> String {
    let only = |sign, one: &str, other: &str| -> String {
        let other: Vec<_> = other.lines().collect();
        let only = one.lines().filter(|line| !other.contains(line));
        only.map(|line| format!("{sign} {line}\n")).collect()
    };
    only('-', before, now) + &only('+', now, before)
}

fn results(case: &Path) -> Results {
    let folder = Folder::new();
    let inputs = copy(case, &folder.path(""));
    let commands = fs::read_to_string(case.join(CMD)).unwrap();
    let [mut stdout, mut stderr] = [const { String::new() }; 2];
    for line in commands.lines() {
        let Run { code, stdout: out, stderr: err } = run(&mut folder.shell(line));
        let title = format!("$ {line}\n");
        if !out.is_empty() {
            stdout.push_str(&(title.clone() + &stable(&out, &folder)));
        }
        stderr.push_str(&(title + &stable(&err, &folder)));
        if code != Some(0) {
            stderr.push_str(&format!("[exit code {}]\n", code.unwrap_or(-1)));
        }
    }
    let mut files = String::new();
    for path in folder.files("") {
        let name = path.strip_prefix(folder.path("")).unwrap().display().to_string();
        if name.ends_with("report.html") {
            // It has the times of the run.
            files.push_str(&format!("{name}\n"));
        } else if !inputs.contains(&name) {
            let mut contents = fs::read(&path).unwrap();
            contents = String::from_utf8(contents)
                .map_or_else(|binary| binary.into_bytes(), |text| stable(&text, &folder).into_bytes());
            let hash = blake3::hash(&contents).to_hex();
            files.push_str(&format!("{name} {} {}\n", contents.len(), &hash[..16]));
        }
    }
    [stdout, stderr, files]
}

/// Copies the input of a case, and returns its names.
fn copy(from: &Path, to: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.as_ref().unwrap().path();
        let name = entry.unwrap().file_name().into_string().unwrap();
        if path.is_dir() {
            fs::create_dir(to.join(&name)).unwrap();
            names.extend(copy(&path, &to.join(&name)).into_iter().map(|below| format!("{name}/{below}")));
        } else if name != CMD && !RESULTS.contains(&name.as_str()) {
            fs::copy(path, to.join(&name)).unwrap();
            names.push(name);
        }
    }
    names
}

/// Stages, whose names are the progress of a job that has no records in them yet.
const STAGES: [&str; 13] = [
    "start", "census", "count", "read", "map", "compare", "verify", "resolve", "write", "report", "pack",
    "unpack", "commit",
];

/// Returns the text without the random ends of the names of temporary files and folders.
fn without_random_names(text: &str) -> String {
    let mut text = text.to_owned();
    for begin in ["/dedup-job-", "/.dedup-job."] {
        let mut parts = text.split(begin);
        let first = parts.next().unwrap_or_default().to_owned();
        text = parts.fold(first, |text, part| {
            text + begin + "*" + part.trim_start_matches(|c: char| c.is_ascii_alphanumeric())
        });
    }
    text
}

/// Returns the text without what differs from run to run.
fn stable(text: &str, folder: &Folder) -> String {
    let text = text.replace(folder.path("").display().to_string().trim_end_matches('/'), "DIR");
    let text = without_random_names(&text);
    let (mut in_table, mut block_end) = (false, None);
    let line = |line: &str| {
        let begin = line.trim_start();
        let indent = line.len() - begin.len();
        if let Some(end) = block_end {
            if (indent, begin.starts_with([']', '}'])) == (end, true) {
                block_end = None;
            }
            return String::new();
        }
        if VOLATILE_BLOCKS.iter().any(|block| begin.starts_with(block)) && !begin.contains([']', '}']) {
            block_end = Some(indent);
        }
        // Only the names are left of the table of stages.
        in_table = begin.starts_with("stage ") || (in_table && !begin.is_empty() && line.starts_with("    "));
        if in_table {
            let name = begin.split_whitespace().next().unwrap_or_default();
            // The start is listed only where it takes long.
            return if name == "start" { String::new() } else { format!("    {name}\n") };
        }
        // How often progress is shown depends on the machine.
        if line.ends_with(" s left") || line.ends_with(" MB/s") || STAGES.contains(&line) {
            return String::new();
        }
        // The line that ends a run has its time.
        if let Some((done, rest)) = line.rsplit_once(" in ")
            && let Some((_, place)) = rest.split_once(" s → ")
        {
            return format!("{done} in * s → {place}\n");
        }
        // The page of a run is one of the files.
        if let Some((files, rest)) = line.split_once(" files, ")
            && let Some((_, checked)) = rest.split_once(" bytes, all read")
        {
            return format!("{files} files, * bytes, all read{checked}\n");
        }
        match VOLATILE.iter().find(|volatile| begin.starts_with(**volatile)) {
            Some(volatile) => format!("{}{volatile} *\n", &line[..indent]),
            None => format!("{line}\n"),
        }
    };
    text.lines().map(line).collect()
}
