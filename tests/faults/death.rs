//! Tests that a process that panics, is killed or is frozen ends the whole job soon, with an error that names
//! it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use super::{SPLITS, command, processes};
use crate::corpus::with_bad_line;
use crate::support::{Folder, children, gone, status, wait_until};

/// Time within which all processes end after a panic or a kill.
const AFTER_DEATH: Duration = Duration::from_secs(3);
/// Time within which all processes end after one has stopped moving.
const AFTER_STOP: Duration = Duration::from_secs(15);

/// Exchanges of each method, and which of those with that name. In each of them a worker of process 1 panics.
/// The first exchange of keys and pairs is that of identical documents.
const SHUFFLES: [(&str, &[&str]); 5] = [
    (
        "auto:search=exact",
        &["Key 1", "Pair 1", "Wait 1", "Sketch 1", "Need 1", "Key 2", "Pair 2", "Features 1"],
    ),
    ("simhash", &["Key 1", "Pair 1", "Key 2", "Pair 2", "Need 1", "Features 1"]),
    ("auto", &["Key 1", "Key 2", "Pair 2", "Features 1"]),
    ("zhou2017", &["Copy 1", "Count 1"]),
    ("exact", &["Matches 1", "LargeStar 1", "SmallStar 1", "ClusterDocs 1", "Decisions 1"]),
];

/// Job of three processes, in which `fault` happens.
struct Job {
    launcher: Child,
    /// Lines of all processes, as they come.
    lines: Receiver<String>,
    said: Vec<String>,
}

impl Job {
    fn start(here: &Folder, method: &str, fault: &str) -> Self {
        let options = processes(here, 3);
        let line = format!("{options} --workers 3 dedup in.jsonl out --method {method} {SPLITS}");
        let mut command = command(here, &line);
        command.env("DEDUP_FAULT", fault).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut launcher = command.spawn().unwrap();
        let (sender, lines) = mpsc::channel();
        let stderr = BufReader::new(launcher.stderr.take().unwrap());
        thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Job { launcher, lines, said: Vec::new() }
    }

    /// Waits for a line that contains `what`.
    fn hear(&mut self, what: &str) {
        let end = Instant::now() + Duration::from_secs(60);
        while !self.said.iter().any(|line| line.contains(what)) {
            let left = end.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left);
            self.said.push(line.unwrap_or_else(|_| panic!("nobody said {what:?}: {:?}", self.said)));
        }
    }

    /// Waits for the end of all processes. Returns the launcher's exit code, and what was said.
    fn end(mut self, children: &[u32], limit: Duration) -> (Option<i32>, String) {
        let start = Instant::now();
        let code = loop {
            let ended = self.launcher.try_wait().unwrap();
            if let Some(status) = ended.filter(|_| children.iter().all(|&child| gone(child))) {
                break status.code();
            }
            assert!(start.elapsed() < limit, "not gone after {limit:?}: {:?}", self.said);
            thread::sleep(Duration::from_millis(10));
        };
        self.said.extend(self.lines.iter());
        (code, self.said.join("\n"))
    }
}

/// Returns the processes that the launcher has started, once all are there.
fn processes_of(job: &Job) -> Vec<u32> {
    wait_until("three processes", Duration::from_secs(60), || children(job.launcher.id()).len() == 3);
    children(job.launcher.id())
}

#[test]
fn a_panic_in_any_shuffle_ends_all_processes() {
    let here = with_bad_line();
    for (method, shuffles) in SHUFFLES {
        for shuffle in shuffles {
            let mut job = Job::start(&here, method, &format!("1 exchange:{shuffle} panic"));
            let processes = processes_of(&job);
            job.hear("panicked");
            let (code, said) = job.end(&processes, AFTER_DEATH);
            assert_eq!(code, Some(1), "{method}, {shuffle}: {said}");
            let told =
                said.lines().any(|line| line.starts_with("[2 ") && line.contains("process 1 (127.0.0.1:"));
            assert!(told && said.contains("the fault at"), "{method}, {shuffle}: {said}");
            assert!(!here.path("out/_SUCCESS").exists());
        }
    }
}

#[test]
fn a_killed_process_ends_all_processes() {
    let here = with_bad_line();
    for (process, point) in
        [(0, "exchange 3"), (1, "finish 4"), (2, "meet 2"), (1, "exchange 6"), (0, "rename 1")]
    {
        let mut job = Job::start(&here, "auto", &format!("{process} {point} kill"));
        let processes = processes_of(&job);
        job.hear("error: ");
        let (code, said) = job.end(&processes, AFTER_DEATH);
        assert_eq!(code, Some(1), "{process}, {point}: {said}");
        let name = format!("process {process} (127.0.0.1:");
        assert!(said.contains(&name) && said.contains("signal 9"), "{process}, {point}: {said}");
    }
}

/// A death after the commit is no failure: process 0 needs nobody any more.
#[test]
fn a_process_that_dies_after_the_commit_fails_nothing() {
    for action in ["kill", "panic", "stop"] {
        let here = with_bad_line();
        let job = Job::start(&here, "auto", &format!("1 leave 1 {action}"));
        let processes = processes_of(&job);
        let (code, said) = job.end(&processes, Duration::from_secs(60));
        assert_eq!(code, Some(3), "{action}: {said}");
        assert!(here.path("out/_SUCCESS").exists() && !here.path("out/_temporary").exists());
        for number in [0, 2] {
            let prefix = format!("[{number} ");
            assert!(!said.lines().any(|line| line.starts_with(&prefix) && line.contains("error")), "{said}");
        }
    }
}

/// Freezes process `process` of a job at `point`, and waits for the end of all.
fn freeze(here: &Folder, process: usize, point: &str) {
    let job = Job::start(here, "auto", &format!("{process} {point} stop"));
    let processes = processes_of(&job);
    let stopped = |&child: &u32| status(child).is_some_and(|(_, state)| state == 'T');
    wait_until(&format!("process {process} stops at {point}"), Duration::from_secs(60), || {
        processes.iter().any(stopped)
    });
    let (code, said) = job.end(&processes, AFTER_STOP);
    assert_eq!(code, Some(1), "{process}, {point}: {said}");
    assert!(said.contains(&format!("process {process} (127.0.0.1:")), "{process}, {point}: {said}");
    assert!(!here.path("out/_SUCCESS").exists());
}

/// Some jobs are frozen at once, since most of the time is spent waiting.
#[test]
fn a_frozen_process_ends_all_processes() {
    let input = with_bad_line();
    let points = ["exchange 1", "exchange 3", "exchange 6", "finish 2", "meet 1", "write 3", "create 4"];
    let cases: Vec<_> = (0..3).flat_map(|process| points.map(|point| (process, point))).take(20).collect();
    for cases in cases.chunks(5) {
        thread::scope(|scope| {
            for &(process, point) in cases {
                let here = Folder::new();
                fs::copy(input.path("in.jsonl"), here.path("in.jsonl")).unwrap();
                scope.spawn(move || freeze(&here, process, point));
            }
        });
    }
}
