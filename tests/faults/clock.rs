//! Tests with clocks that are off by a day: those of all processes, of one of two, and of a run that resumes
//! a killed one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;

use super::{SPLITS, Whole, command, processes};
use crate::corpus::{demo, with_bad_line};
use crate::faults::lock;
use crate::support::{Folder, run};

const DAY: i64 = 24 * 60 * 60;
const SEEN: &str = "--events events.jsonl";

/// Returns a library that sets the clocks of programs that load it first, and can make them list folders slowly.
pub fn library(here: &Folder) -> PathBuf {
    let sources = ["clock.c", "listing.c"];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults");
    let library = here.path("clock.so");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-Wall", "-Werror", "-o"]).arg(&library);
    cc.args(sources.map(|source| folder.join(source))).arg("-ldl");
    assert!(cc.status().unwrap().success());
    library
}

/// Sets the clocks of a command, and of what it starts, `seconds` ahead.
pub fn ahead<'a>(command: &'a mut Command, library: &Path, seconds: i64) -> &'a mut Command {
    command.env("LD_PRELOAD", library).env("CLOCK_AHEAD", seconds.to_string())
}

/// Returns how many seconds the clock was ahead when the last of these events was written.
fn was_ahead(here: &Folder, events: &str) -> i64 {
    let events = fs::read_to_string(here.path(events)).unwrap();
    let event: Value = serde_json::from_str(events.lines().last().unwrap()).unwrap();
    let time = humantime::parse_rfc3339(event["time"].as_str().unwrap()).unwrap();
    let since_1970 = |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs() as i64;
    since_1970(time) - since_1970(SystemTime::now())
}

/// Whether two times agree within an hour, which no test takes.
fn is_about(seconds: i64, expected: i64) -> bool {
    (seconds - expected).abs() < 3600
}

#[test]
fn a_clock_that_is_off_by_a_day_changes_no_byte() {
    let here = with_bad_line();
    let library = library(&here);
    let line = |options: &str| format!("{options} --workers 2 dedup in.jsonl out {SEEN} {SPLITS}");
    run(&mut command(&here, &line(""))).ends(3);
    assert!(is_about(was_ahead(&here, "events.jsonl"), 0));
    let usual = Whole::take(&here);
    for seconds in [DAY, -DAY] {
        run(ahead(&mut command(&here, &line("")), &library, seconds)).ends(3);
        assert!(is_about(was_ahead(&here, "events.jsonl"), seconds));
        assert!(Whole::take(&here) == usual, "{seconds} seconds");
    }
    // With two processes, only one has the wrong clock.
    for (number, seconds) in [(0, DAY), (1, DAY), (1, -DAY)] {
        here.write(
            "start",
            format!(
                "case \"$1\" in *' --process {number} '*) export LD_PRELOAD={};; esac\nexec sh -c \"$1\"",
                library.display()
            ),
        );
        let options = processes(&here, 2).replace("sh\\ -c", "sh\\ start");
        let mut command = command(&here, &line(&options));
        run(command.env("CLOCK_AHEAD", seconds.to_string())).ends(3);
        let of_process =
            |process: i64| was_ahead(&here, ["events.jsonl", "events.jsonl.1"][process as usize]);
        assert!(is_about(of_process(number), seconds) && is_about(of_process(1 - number), 0));
        assert!(Whole::take(&here) == usual, "{seconds} seconds in process {number}");
    }
}

#[test]
fn a_run_goes_on_from_what_is_dated_tomorrow() {
    let here = with_bad_line();
    let library = library(&here);
    let line = format!("--workers 2 dedup in.jsonl out {SEEN} {SPLITS}");
    here.run(&line).ends(3);
    let usual = Whole::take(&here);
    // A process sees the output whose clock is a day behind, and one whose clock is right.
    for (first, second) in [(0, -DAY), (DAY, 0)] {
        let mut killed = command(&here, &line);
        killed.env("DEDUP_FAULT", "0 exchange 1 kill");
        assert_eq!(run(ahead(&mut killed, &library, first)).code, None);
        assert!(here.path("out/_temporary").exists());
        let start = Instant::now();
        run(ahead(&mut command(&here, &line), &library, second)).ends(3);
        assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
        assert!(is_about(was_ahead(&here, "events.jsonl"), second));
        assert!(Whole::read(&here.path("out")).unwrap() == usual, "{first}, {second}");
        let success = here.success("out");
        let stages = success["stages"].as_array().unwrap();
        let map = stages.iter().find(|stage| stage["stage"] == "map").unwrap();
        assert!(map["records"].as_u64().unwrap() < 1500, "most was mapped: {map}");
        fs::remove_dir_all(here.path("out")).unwrap();
    }
}

#[test]
fn an_owner_is_neither_dead_nor_alive_by_the_clock() {
    let here = demo(6000, 1);
    let library = library(&here);
    let other = |seconds: i64| run(ahead(&mut here.command(lock::DEDUP), &library, seconds));
    let mut killed = lock::stopped(&here);
    // The process is alive, whatever the time is.
    other(DAY).fails(11, &["\"out\"", &format!("process {}", killed.id())]);
    killed.kill().unwrap();
    killed.wait().unwrap();
    // On another machine the owner is dead all the same, and it takes the same time to see that, when its
    // beat is of tomorrow.
    lock::move_elsewhere(&here);
    let start = Instant::now();
    other(-DAY).ends(0);
    assert!((10..60).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
}
