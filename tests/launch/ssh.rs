//! Tests of the launcher over a real ssh, to a server on loopback. They need `scripts/sshd/build`.

use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::{GONE, Running, accepted, children, gone, processes_in, silent_server, status, wait_until};
use crate::support::{Folder, json_line, run, signal};

/// Server whose sessions have these environment variables.
struct Sshd {
    _process: Running,
    launcher: String,
}

impl Sshd {
    fn start(here: &Folder, env: &[(&str, String)]) -> Self {
        let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/sshd/target");
        let programs = [target.join("usr/sbin/sshd"), "/usr/sbin/sshd".into()];
        let program = programs.iter().find(|program| program.exists()).expect("run scripts/sshd/build");
        for key in ["host", "user"] {
            let mut keygen = Command::new("ssh-keygen");
            keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(here.path(key));
            assert_eq!(run(&mut keygen).code, Some(0));
        }
        fs::copy(here.path("user.pub"), here.path("authorized")).unwrap();
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let path = |name: &str| here.path(name).display().to_string();
        let mut config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nPidFile none\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\n\
             UsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\nSetEnv",
            path("host"),
            path("authorized")
        );
        for (name, value) in env.iter().chain(&[("TESTED", "yes".to_owned())]) {
            config.push_str(&format!(" {name}={value}"));
        }
        // Since version 9.8 the server has more programs.
        for (option, name) in [("SshdSessionPath", "sshd-session"), ("SshdAuthPath", "sshd-auth")] {
            let program = target.join("usr/lib/openssh").join(name);
            if program.exists() {
                config.push_str(&format!("\n{option} {}", program.display()));
            }
        }
        here.write("sshd_config", config + "\n");
        let libraries = fs::read_dir(target.join("usr/lib")).into_iter().flatten();
        let libraries: Vec<_> = libraries.map(|entry| entry.unwrap().path().display().to_string()).collect();
        let log = fs::File::create(here.path("sshd.log")).unwrap();
        let process = Command::new(program)
            .args(["-D", "-e", "-f"])
            .arg(here.path("sshd_config"))
            .env("LD_LIBRARY_PATH", libraries.join(":"))
            .stdin(Stdio::null())
            .stderr(log)
            .spawn();
        let process = Running(process.unwrap());
        wait_until("the server listens", Duration::from_secs(20), || {
            TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
        });
        // The launcher ends with the last words of the default, so that these are tested too.
        let launcher = format!(
            "ssh -p {port} -i '{}' -F none -o IdentitiesOnly=yes -o StrictHostKeyChecking=accept-new \
             -o 'UserKnownHostsFile=\"{}\"' -o LogLevel=ERROR -o BatchMode=yes {{host}}",
            path("user"),
            path("known")
        );
        Sshd { _process: process, launcher }
    }

    fn job(&self, here: &Folder, line: &str) -> Command {
        let mut command = here.command("--master hosts:hosts --launcher");
        command.arg(&self.launcher).args(line.split_whitespace());
        command
    }
}

#[test]
#[ignore = "needs scripts/sshd/build"]
fn a_job_over_ssh_writes_what_it_writes_here() {
    let here = Folder::new();
    here.write(
        "a.jsonl",
        [("a", "今天"), ("b", "明天"), ("c", "今天")].map(|(i, t)| json_line(i, t)).concat(),
    );
    here.write("hosts", "127.0.0.1 2\n");
    here.run("dedup a.jsonl here --workers 2").ends(0);
    let server = Sshd::start(&here, &[]);
    let there = run(&mut server.job(&here, "dedup a.jsonl there"));
    let log = fs::read_to_string(here.path("sshd.log")).unwrap();
    assert!(
        there.code == Some(0) && there.stderr.contains("[0 127.0.0.1]         Kept=2\n"),
        "{there:?}\n{log}"
    );
    for folder in ["kept", "removed"] {
        assert_eq!(
            here.bytes(&format!("here/{folder}"), "jsonl"),
            here.bytes(&format!("there/{folder}"), "jsonl")
        );
    }
    run(&mut server.job(&here, "dedup none there")).ends(2);
}

#[test]
#[ignore = "needs scripts/sshd/build"]
fn nothing_stays_on_a_host_when_the_launcher_or_its_ssh_is_killed() {
    let here = Folder::new();
    here.write("hosts", "127.0.0.1 1\n");
    let (silent, settings) = silent_server();
    let server = Sshd::start(&here, &settings);
    for (stopped, of_ssh) in [(false, false), (true, false), (true, true)] {
        let mut job = server.job(&here, "dedup s3://bucket/x out");
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
    let server = Sshd::start(&here, &settings);
    let mut job = server.job(&here, "dedup s3://bucket/x out");
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
