//! A night or a tool falls asleep just before any of its steps, as on a host that is suspended. Others take the state
//! over, and then it wakes: it must change nothing of theirs.

use std::fs;
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::kills::{COMPACT, FRIDAY, ROLLBACK, Trials};
use super::ledger::is_sound;
use crate::faults::Whole;
use crate::support::{Tree, run, signal};

/// Steps of the local store that change something.
const STEPS: [&str; 4] = ["create", "finish", "rename", "remove"];
/// A night with few files.
const NIGHT: &str =
    "nightly --quiet --workers 1 --state state --output thursday --retract thursday.txt thursday.jsonl";

/// Waits until a process is stopped, and returns `false` if it ends instead.
fn stops(process: &mut Child) -> bool {
    loop {
        if process.try_wait().unwrap().is_some() {
            return false;
        }
        let stat = fs::read_to_string(format!("/proc/{}/stat", process.id())).unwrap_or_default();
        if stat.rsplit(") ").next().is_some_and(|fields| fields.starts_with('T')) {
            return true;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Makes all locks in a folder those of processes on another machine.
fn move_elsewhere(trials: &Trials, folder: &str) {
    for file in trials.here.files(&format!("{folder}/_temporary")) {
        let name = file.file_name().unwrap().to_str().unwrap();
        if name.starts_with("lock-") && !name.ends_with(".beat") {
            let mut owner: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
            owner["boot"] = "another".into();
            fs::write(file, owner.to_string()).unwrap();
        }
    }
}

/// Lets a run fall asleep before a step that comes for the `number`th time, and wakes it when others have taken over.
/// Returns `false` if it ends before.
fn sleeps(trials: &Trials, line: &str, step: &str, number: usize) -> bool {
    trials.restore();
    let here = &trials.here;
    let what = format!("{step} {number} of {line}");
    let mut command = here.command(line);
    command.env("DEDUP_FAULT", format!("0 {step} {number} stop"));
    let mut sleeper = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    if !stops(&mut sleeper) {
        assert!(sleeper.wait().unwrap().success(), "{what}");
        return false;
    }
    let files = |folder: &str| -> Tree { here.contents(folder) };
    let had_lock = files("state").keys().any(|name| name.starts_with("_temporary/lock-"));
    ["state", "thursday"].iter().for_each(|folder| move_elsewhere(trials, folder));
    for other in [FRIDAY, COMPACT] {
        run(here.command(other).env("DEDUP_FAULT_LOOK_MS", "1")).ends(0);
    }
    let (state, friday) = (files("state"), files("friday"));
    signal(sleeper.id(), "CONT");
    let ended = sleeper.wait_with_output().unwrap();
    let error = String::from_utf8_lossy(&ended.stderr);
    let after = files("state");
    if ended.status.success() || !had_lock {
        // It takes the lock only now, or had nothing left to do.
        is_sound(here, "state");
    } else {
        assert_eq!(ended.status.code(), Some(1), "{what}: {error}");
        assert!(error.contains("has taken over") || error.contains("has written version"), "{what}: {error}");
        // It may leave a file under a name that no other run gives, which goes with the next claim.
        let changed: Vec<_> = state.iter().filter(|(name, bytes)| after.get(*name) != Some(*bytes)).collect();
        assert!(changed.is_empty(), "{what}: {error} {changed:?}");
        let is_own = |name: &str| {
            name.starts_with("runs/") || name.starts_with("_temporary/") || name.ends_with(".prepared")
        };
        let more: Vec<_> = after.keys().filter(|name| !state.contains_key(*name)).collect();
        assert!(more.iter().all(|name| is_own(name)), "{what}: {error} {more:?}");
        if !more.is_empty() {
            here.run(COMPACT).ends(0);
            is_sound(here, "state");
            assert!(!here.path("state/_temporary").exists(), "{what}: {error}");
        }
    }
    assert!(files("friday") == friday && Whole::read(&here.path("friday")).is_some(), "{what}: {error}");
    let history = String::from_utf8_lossy(&after["history.jsonl"]).into_owned();
    let has_thursday = history.contains("\"made_by\":\"thursday\"");
    assert_eq!(has_thursday, line == NIGHT && trials.is_done("thursday"), "{what}: {error} {history}");
    true
}

fn a_run_that_was_asleep_harms_no_other(line: &'static str) {
    thread::scope(|scope| {
        for step in STEPS {
            scope.spawn(move || {
                let trials = Trials::new();
                // All that readers see is renamed. Not all of the many other steps are tried.
                let apart = if step == "rename" { 1 } else { 3 };
                let numbers = (1..).step_by(apart);
                let count = numbers.take_while(|&number| sleeps(&trials, line, step, number)).count();
                println!("{count} sleeps at {step} of {line}");
            });
        }
    });
}

#[test]
fn a_night_that_was_asleep_harms_no_other() {
    a_run_that_was_asleep_harms_no_other(NIGHT);
}

#[test]
fn a_tool_that_was_asleep_harms_no_night() {
    a_run_that_was_asleep_harms_no_other(COMPACT);
    a_run_that_was_asleep_harms_no_other(ROLLBACK);
}
