//! Tests of region servers that die, and of connections that the gateway drops.

use std::fs::File;
use std::time::Duration;
use std::{fs, thread};

use super::{answers, documents, empty_index, ids, matches, new_ids, shared};
use crate::corpus::demo;
use crate::servers::hbase::{IDLE_MS, MiniHBase};
use crate::support::{Run, Running, signal, wait_until};

#[test]
#[ignore = "needs scripts/hbase/build"]
fn a_region_server_that_is_killed_loses_nothing_acknowledged() {
    let cluster = MiniHBase::start(3);
    let here = demo(6000, 9);
    let index = empty_index(&here, &cluster);
    let table = index.rsplit('/').next().unwrap();
    let (out, err) = (here.path("answers.jsonl"), here.path("errors"));
    let mut command =
        here.command(&format!("--quiet --workers 1 index query --insert {index} demo/corpus.jsonl"));
    command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
    let mut writer = Running(command.spawn().unwrap());
    let lines = || fs::read_to_string(&out).unwrap().lines().count();
    wait_until("some answers", Duration::from_secs(300), || lines() > 0);
    cluster.tell(&format!("kill {table}"));
    let killed_at = lines();
    let code = writer.0.wait().unwrap().code();
    let acknowledged =
        Run { code, stdout: fs::read_to_string(&out).unwrap(), stderr: fs::read_to_string(&err).unwrap() };
    let acknowledged = acknowledged.ends(0);
    assert!(killed_at < 6000, "the server was killed too late");
    assert_eq!(answers(&acknowledged).len(), 6000);
    let new = new_ids(&acknowledged);
    assert_eq!(new, ids(&here, &index));
    assert_eq!(documents(&here, &index), [new.len() as u64, 0]);
    let found = answers(&here.run(&format!("--quiet index query {index} demo/corpus.jsonl")).ends(0));
    for id in &new {
        assert!(matches(&found[id]).contains(id), "{id} is lost");
    }
}

#[test]
#[ignore = "needs scripts/hbase/build"]
fn connections_that_the_gateway_drops_are_made_again() {
    let here = demo(4000, 9);
    let index = empty_index(&here, shared());
    let out = here.path("answers.jsonl");
    let mut command =
        here.command(&format!("--quiet --workers 1 index query --insert {index} demo/corpus.jsonl"));
    let mut writer = Running(command.stdout(File::create(&out).unwrap()).spawn().unwrap());
    let lines = || fs::read_to_string(&out).unwrap().lines().count();
    wait_until("some answers", Duration::from_secs(300), || lines() > 0);
    signal(writer.0.id(), "STOP");
    let idle = Duration::from_millis(IDLE_MS.parse::<u64>().unwrap());
    thread::sleep(idle + Duration::from_secs(2));
    let stopped_at = lines();
    signal(writer.0.id(), "CONT");
    assert_eq!(writer.0.wait().unwrap().code(), Some(0));
    assert!(stopped_at < 4000, "the process was stopped too late");
    assert_eq!(lines(), 4000);
    let run = Run { code: Some(0), stdout: fs::read_to_string(&out).unwrap(), stderr: String::new() };
    assert_eq!(new_ids(&run), ids(&here, &index));
}
