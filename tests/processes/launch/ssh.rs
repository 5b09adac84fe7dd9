//! Tests of the launcher over a real ssh, to a server on loopback. They need `scripts/sshd/build`.

use std::process::{Command, Stdio};

use super::{GONE, Running, accepted, children, gone, processes_in, silent_server, status, wait_until};
use crate::corpus::small;
use crate::servers::sshd::Sshd;
use crate::support::{Folder, run, signal};

/// Returns a job on the server that all tests share. `env`: variables of its processes.
fn job(here: &Folder, env: &[(&str, String)], line: &str) -> Command {
    let mut command = here.command("--master hosts:hosts --launcher");
    command.arg(Sshd::shared().launcher(env)).args(line.split_whitespace());
    command
}

#[test]
#[ignore = "needs scripts/sshd/build"]
fn a_job_over_ssh_writes_what_it_writes_here() {
    let here = small();
    here.write("hosts", "127.0.0.1 2\n");
    here.run("dedup a.jsonl here --workers 2").ends(0);
    let there = run(&mut job(&here, &[], "dedup a.jsonl there"));
    assert!(
        there.code == Some(0) && there.stderr.contains("[0 127.0.0.1]         Kept=2\n"),
        "{there:?}\n{}",
        Sshd::shared().log()
    );
    for folder in ["kept", "removed"] {
        assert_eq!(
            here.bytes(&format!("here/{folder}"), "jsonl"),
            here.bytes(&format!("there/{folder}"), "jsonl")
        );
    }
    run(&mut job(&here, &[], "dedup none there")).ends(2);
}

#[test]
#[ignore = "needs scripts/sshd/build"]
fn nothing_stays_on_a_host_when_the_launcher_or_its_ssh_is_killed() {
    let here = Folder::new();
    here.write("hosts", "127.0.0.1 1\n");
    let (silent, settings) = silent_server();
    for (stopped, of_ssh) in [(false, false), (true, false), (true, true)] {
        let mut job = job(&here, &settings, "dedup s3://bucket/x out");
        let mut launcher = Running(job.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        let connection = accepted(&silent);
        let [process] = processes_in(&here.path(""))[..] else { panic!("not one process") };
        if stopped {
            signal(process, "STOP");
            wait_until("it stops", GONE, || status(process).is_some_and(|(_, state)| state == 'T'));
        }
        let [ssh] = children(launcher.0.id())[..] else { panic!("not one ssh") };
        signal(if of_ssh { ssh } else { launcher.0.id() }, "KILL");
        wait_until("all are gone", GONE, || gone(process) && gone(ssh));
        assert_eq!(launcher.0.wait().unwrap().code(), of_ssh.then_some(1));
        drop(connection);
    }
}

#[test]
#[ignore = "needs scripts/sshd/build"]
fn a_process_that_is_killed_on_a_host_is_named() {
    let here = Folder::new();
    here.write("hosts", "127.0.0.1 1\n");
    let (silent, settings) = silent_server();
    let mut job = job(&here, &settings, "dedup s3://bucket/x out");
    let folder = here.path("");
    let killer = std::thread::spawn(move || {
        let connection = accepted(&silent);
        processes_in(&folder).into_iter().for_each(|process| signal(process, "KILL"));
        connection
    });
    let failed = run(&mut job).ends(1);
    killer.join().unwrap();
    assert_eq!(
        failed.stderr,
        "error: process 0 (127.0.0.1:7117) was killed, or could not be reached (code 255)\n"
    );
}
