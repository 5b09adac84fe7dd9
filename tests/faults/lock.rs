//! Tests of several runs on one output: there is one owner at a time, which may die, sleep, or be on another
//! machine.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::corpus::demo;
use crate::support::{Folder, signal};

pub const DEDUP: &str = "dedup demo/corpus.jsonl out -q --workers 1 --method exact";

fn lock(here: &Folder) -> Option<PathBuf> {
    let is_lock = |file: &PathBuf| {
        let name = file.file_name().unwrap().to_str().unwrap();
        name.starts_with("lock-") && !name.ends_with(".beat")
    };
    here.files("out/_temporary").into_iter().find(is_lock)
}

/// Starts a run that stops once it has claimed the output.
pub fn stopped(here: &Folder) -> Child {
    let mut run = here.command(DEDUP).stderr(Stdio::null()).spawn().unwrap();
    while lock(here).is_none() {
        assert!(run.try_wait().unwrap().is_none(), "ended before it claimed its output");
        thread::sleep(Duration::from_millis(1));
    }
    signal(run.id(), "STOP");
    run
}

/// Makes the lock that of a process on another machine.
pub fn move_elsewhere(here: &Folder) {
    let path = lock(here).unwrap();
    let mut owner: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    owner["host"] = "elsewhere".into();
    owner["boot"] = "another".into();
    fs::write(path, owner.to_string()).unwrap();
}

/// Both jobs are started before either has claimed the output. A pair of jobs that came one after the other
/// does not count.
#[test]
fn of_two_jobs_on_one_output_one_goes_on() {
    let here = demo(600, 1);
    here.run(DEDUP).ends(0);
    let expected = here.output("out");
    let mut races = 0;
    for _ in 0..400 {
        fs::remove_dir_all(here.path("out")).unwrap();
        let runs = [(); 2].map(|()| here.command(DEDUP).stderr(Stdio::null()).spawn().unwrap());
        let mut codes = runs.map(|mut run| run.wait().unwrap().code().unwrap());
        codes.sort_unstable();
        assert!(codes == [0, 11] || codes == [0, 2], "{codes:?}");
        assert!(here.output("out") == expected);
        races += u32::from(codes == [0, 11]);
        if races == 200 {
            return;
        }
    }
    panic!("only {races} of 400 pairs met");
}

#[test]
fn the_output_of_a_killed_run_is_taken_over_at_once() {
    let here = demo(6000, 1);
    let mut killed = stopped(&here);
    here.run(DEDUP).fails(11, &["\"out\"", &format!("process {}", killed.id()), "since"]);
    killed.kill().unwrap();
    killed.wait().unwrap();
    let start = Instant::now();
    here.run(DEDUP).ends(0);
    assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
    assert!(!here.path("out/_temporary").exists());
}

#[test]
fn an_owner_elsewhere_is_dead_when_its_beat_stands_still_for_ten_seconds() {
    let here = demo(600, 1);
    let mut killed = stopped(&here);
    killed.kill().unwrap();
    killed.wait().unwrap();
    move_elsewhere(&here);
    let beat = lock(&here).unwrap().with_extension("beat");
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for count in 0.. {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                fs::write(&beat, format!("another {count}")).unwrap();
                thread::sleep(Duration::from_millis(500));
            }
        });
        let run = here.run(DEDUP);
        over.store(true, Ordering::Relaxed);
        run.fails(11, &["elsewhere"]);
    });
    let start = Instant::now();
    here.run(DEDUP).ends(0);
    assert!(start.elapsed() >= Duration::from_secs(10), "{:?}", start.elapsed());
}

#[test]
fn an_owner_that_was_asleep_does_no_harm() {
    let here = demo(6000, 1);
    let mut asleep = stopped(&here);
    move_elsewhere(&here);
    here.run(DEDUP).ends(0);
    let committed = here.bytes("out", "");
    signal(asleep.id(), "CONT");
    assert_eq!(asleep.wait().unwrap().code(), Some(1));
    let kept: Vec<u8> = here.bytes("out/kept", "");
    assert!(!kept.is_empty() && here.path("out/_SUCCESS").exists());
    let left = here.files("out").into_iter().filter(|file| !file.to_str().unwrap().contains("/_temporary/"));
    assert_eq!(left.flat_map(|file| fs::read(file).unwrap()).collect::<Vec<_>>(), committed);
}

/// A file of this machine is first written under a hidden name, which a killed process leaves behind.
#[test]
fn what_a_killed_run_was_writing_of_its_beat_is_removed() {
    let here = demo(50, 1);
    let mut killed = stopped(&here);
    signal(killed.id(), "KILL");
    killed.wait().unwrap();
    for left in [".lock-00000001.tmpa", ".lock-00000001.beat.tmpb"] {
        here.write(&format!("out/_temporary/{left}"), "0");
    }
    here.run(DEDUP).ends(0);
    assert!(!here.path("out/_temporary").exists());
}
