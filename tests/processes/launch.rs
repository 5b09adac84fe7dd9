//! Tests of the launcher: what it starts, shows, ends and starts again. Most of its processes are scripts,
//! which do what ours do only when something goes wrong.

mod schedulers;
mod ssh;

use std::collections::HashSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::corpus::small;
use crate::support::{Folder, Run, Running, children, gone, run, signal, status, wait_until};

/// Time within which everything has ended after a death.
const GONE: Duration = Duration::from_secs(20);

/// Makes a folder with a small input, and a launcher that runs `script` for each process: `$1` is its host,
/// `$2` what would start the real process there. The hosts are `a`, `b` and so on.
fn scripted(hosts: usize, script: &str) -> Folder {
    let here = small();
    here.write("hosts", ["a\n", "b\n", "c\n", "d\n"][..hosts].concat());
    here.write("script", script);
    here
}

fn launcher(here: &Folder, options: &str) -> Command {
    let mut command = here.command("--master hosts:hosts dedup a.jsonl out");
    command.args(["--launcher", "sh script {host}"]).args(options.split_whitespace());
    command
}

fn launch(here: &Folder, options: &str) -> Run {
    run(&mut launcher(here, options))
}

/// Returns the process whose number a script has written to a file of this name.
fn process_of(here: &Folder, name: &str) -> u32 {
    let mut process = None;
    wait_until(name, Duration::from_secs(60), || {
        let text = fs::read_to_string(here.path(name)).unwrap_or_default();
        process = text.strip_suffix('\n').and_then(|text| text.parse().ok());
        process.is_some()
    });
    process.unwrap()
}

#[test]
fn the_lines_of_all_processes_are_shown_whole() {
    let script = "i=0; while [ $i -lt 300 ]; do
                    printf '%s out %s ' $1 $i; echo end
                    printf '%s err %s ' $1 $i >&2; echo end >&2
                    i=$((i+1))
                  done; printf last";
    let here = scripted(4, script);
    let run = launch(&here, "").ends(0);
    for (text, stream, last) in [(&run.stdout, "out", 1), (&run.stderr, "err", 0)] {
        assert!(text.ends_with('\n'));
        for (index, host) in ["a", "b", "c", "d"].into_iter().enumerate() {
            let prefix = format!("[{index} {host}] ");
            let lines: Vec<_> = text.lines().filter_map(|line| line.strip_prefix(&prefix)).collect();
            let mut expected: Vec<_> = (0..300).map(|i| format!("{host} {stream} {i} end")).collect();
            expected.extend((0..last).map(|_| "last".to_owned()));
            assert_eq!(lines, expected);
        }
        assert_eq!(text.lines().count(), 4 * (300 + last));
    }
}

#[test]
fn when_one_is_killed_the_others_are_ended_and_it_is_named() {
    let here = scripted(3, "echo $$ > $1; if [ $1 = b ]; then sleep 1; kill -9 $$; fi; exec sleep 600");
    let start = Instant::now();
    let run = launch(&here, "").ends(1);
    assert!(start.elapsed() < GONE + Duration::from_secs(5), "{:?}", start.elapsed());
    assert!(run.stderr.contains("\nerror: process 1 (b:7117) was killed by signal 9\n"), "{run:?}");
    assert!(
        run.stderr.contains("warning: process 0 (a:7117) did not end with the others: killed"),
        "{run:?}"
    );
    assert!(["a", "b", "c"].iter().all(|host| gone(process_of(&here, host))));
}

#[test]
fn a_frozen_one_is_killed_once_another_has_ended() {
    let here = scripted(
        2,
        "echo $$ > $1; if [ $1 = b ]; then kill -STOP $$; fi; sleep 1; echo b is silent >&2; exit 1",
    );
    let start = Instant::now();
    let run = launch(&here, "").ends(1);
    assert!(start.elapsed() < GONE + Duration::from_secs(5), "{:?}", start.elapsed());
    assert_eq!(
        run.stderr,
        "[0 a] b is silent\nwarning: process 1 (b:7117) did not end with the others: killed\n\
         error: process 0 (a:7117) ended with code 1\n"
    );
    assert!(gone(process_of(&here, "b")));
}

#[test]
fn a_process_that_outlives_the_first_is_killed_and_nothing_starts_again() {
    let here = scripted(2, "echo $$ > $1; echo >> starts; [ $1 = a ] || exec sleep 600");
    let run = launch(&here, "--retries 2").ends(0);
    let killed = "warning: process 1 (b:7117) was killed by signal 9; the output was complete by then\n";
    assert!(run.stderr.ends_with(killed), "{run:?}");
    assert_eq!(fs::read(here.path("starts")).unwrap().len(), 2);
    assert!(gone(process_of(&here, "b")));
}

#[test]
fn the_code_is_that_of_the_first_process_where_it_says_more() {
    for (a, b, expected) in [
        (0, 0, 0),
        (3, 0, 3),
        (0, 3, 0),
        (2, 1, 2),
        (4, 1, 4),
        (11, 1, 11),
        (1, 1, 1),
        (0, 1, 0),
        (3, 1, 3),
        (0, 7, 0),
        (255, 0, 1),
    ] {
        let here = scripted(2, &format!("[ $1 = a ] && exit {a}; exit {b}"));
        let run = launch(&here, "");
        assert_eq!(run.code, Some(expected), "{a}, {b}: {run:?}");
        // The scripts do not print the error that a process with such a code has printed.
        assert_eq!(run.stderr.contains("error: "), expected == 1, "{a}, {b}: {run:?}");
        let warned = run.stderr.contains("; the output was complete by then\n");
        assert_eq!(warned, [0, 3].contains(&a) && ![0, 3].contains(&b), "{a}, {b}: {run:?}");
    }
}

#[test]
fn a_job_whose_process_died_starts_again_as_often_as_retries_says() {
    let script = "echo $1 >> starts.$1
                  [ $(wc -l < starts.$1) -lt 3 ] || exit 0
                  [ $1 = a ] || kill -9 $$
                  exec sleep 600";
    let here = scripted(2, script);
    let run = launch(&here, "--retries 2").ends(0);
    for again in 1..=2 {
        let line = format!("process 1 (b:7117) was killed by signal 9; starting again ({again} of 2)\n");
        assert!(run.stderr.contains(&format!("warning: {line}")), "{run:?}");
    }
    assert!(!run.stderr.contains("error:"), "{run:?}");

    let run = launch(&scripted(2, script), "--retries 1 --quiet").ends(1);
    assert!(run.stderr.ends_with("error: process 1 (b:7117) was killed by signal 9\n"), "{run:?}");
    assert!(!run.stderr.contains("starting again"), "{run:?}");
}

#[test]
fn a_job_that_would_fail_again_does_not_start_again() {
    for code in [2, 4, 11] {
        let here = scripted(2, &format!("echo >> starts.$1; [ $1 = b ] || exit {code}; sleep 1; exit 1"));
        launch(&here, "--retries 3").ends(code);
        assert_eq!(fs::read(here.path("starts.a")).unwrap().len(), 1);
    }
}

#[test]
fn nothing_stays_when_the_launcher_is_killed() {
    let stays = "echo $$ > $1; if [ $1 = b ]; then kill -STOP $$; fi; exec sleep 600";
    for (name, number) in [("KILL", 9), ("TERM", 15), ("INT", 2)] {
        let here = scripted(2, stays);
        let mut launcher = Running(launcher(&here, "").stdin(Stdio::null()).spawn().unwrap());
        let processes = ["a", "b"].map(|host| process_of(&here, host));
        wait_until("b stops", GONE, || status(processes[1]).is_some_and(|(_, state)| state == 'T'));
        signal(launcher.0.id(), name);
        wait_until("all are gone", GONE, || processes.into_iter().all(gone));
        let status = launcher.0.wait().unwrap();
        assert_eq!(status.signal(), Some(number));
    }
}

#[test]
fn every_attempt_has_a_token_of_its_own_that_nobody_sees() {
    let script = "head -n 1 >> handed.$1; printf %s \"$2\" > command.$1; [ $(wc -l < handed.a) -ge 2 ]";
    let here = scripted(2, script);
    let run = launch(&here, "--retries 1");
    let handed = ["a", "b"].map(|host| here.objects(&format!("handed.{host}"), ""));
    assert_eq!(handed[0][0], handed[1][0]);
    assert_eq!(handed[0][0]["addresses"], serde_json::json!(["a:7117", "b:7117"]));
    let tokens: HashSet<_> = handed[0].iter().map(|line| line["token"].as_str().unwrap()).collect();
    assert_eq!(tokens.len(), 2);
    let command = fs::read_to_string(here.path("command.b")).unwrap();
    assert!(command.starts_with("cd ") && command.contains("--process 1 --lifeline --master"), "{command}");
    for token in tokens {
        assert!(token.len() == 64 && token.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert!(![&command, &run.stdout, &run.stderr].iter().any(|text| text.contains(token)));
    }
}

#[test]
fn a_real_process_does_the_job_in_this_folder_whatever_its_names() {
    let here = scripted(0, "");
    fs::rename(here.path("a.jsonl"), here.path("it's $HOME\n.jsonl")).unwrap();
    here.write("hosts", "a 3\n");
    let mut command = here.command("--launcher");
    let run = run(command.args(["sh -c", "--master", "hosts:hosts", "dedup", "it's $HOME\n.jsonl", "out"]));
    assert!(run.stderr.starts_with("[0 a] Counters\n[0 a]     Input\n"), "{run:?}");
    assert_eq!((run.code, here.counter("out", "removed")), (Some(0), 1));
    assert_eq!(here.success("out")["configuration"]["workers"], "3");
}

#[test]
fn a_launcher_that_is_not_there_is_named() {
    let here = scripted(1, "");
    let run = run(here.command("--master hosts:hosts dedup a.jsonl out").args(["--launcher", "no-such-ssh"]));
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.starts_with("[0 a] error: could not start \"no-such-ssh\": No such file"), "{run:?}");
}

#[test]
fn only_dedup_runs_in_several_processes() {
    let here = scripted(2, "");
    here.run("--master hosts:hosts show out").fails(2, &["only dedup"]);
    here.run("show out --process 1 --hosts hosts").fails(2, &["only dedup"]);
}

/// Returns a server that never answers, and the variables with which a job that reads from `s3://` waits for
/// it.
fn silent_server() -> (TcpListener, [(&'static str, String); 5]) {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", server.local_addr().unwrap());
    let settings = [
        ("AWS_ENDPOINT_URL", &*endpoint),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_ACCESS_KEY_ID", "id"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_REGION", "none"),
    ];
    (server, settings.map(|(name, value)| (name, value.to_owned())))
}

/// Returns the next connection to such a server: its process is then at work, and not still on its way there.
fn accepted(server: &TcpListener) -> TcpStream {
    server.set_nonblocking(true).unwrap();
    let mut connection = None;
    wait_until("a job asks the server", Duration::from_secs(60), || {
        connection = server.accept().ok();
        connection.is_some()
    });
    connection.unwrap().0
}

/// Returns a job that waits for such a server.
fn waiting(here: &Folder, line: &str) -> (TcpListener, Command) {
    let (server, settings) = silent_server();
    let mut command = here.command(line);
    command.envs(settings);
    (server, command)
}

#[test]
fn a_local_job_that_is_killed_starts_again() {
    let here = scripted(0, "");
    let (server, mut command) = waiting(&here, "dedup s3://bucket/x out --retries 1");
    let mut launcher = Running(command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
    for _ in 0..2 {
        let connection = accepted(&server);
        let [process] = children(launcher.0.id())[..] else { panic!("not one process") };
        signal(process, "KILL");
        wait_until("it is gone", GONE, || gone(process));
        drop(connection);
    }
    let mut stderr = String::new();
    launcher.0.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!(launcher.0.wait().unwrap().code(), Some(1));
    let died = "the job's process was killed by signal 9";
    assert_eq!(stderr, format!("warning: {died}; starting again (1 of 1)\nerror: {died}\n"));
}

#[test]
fn a_local_job_that_ends_is_what_it_is_without_a_launcher() {
    let here = scripted(0, "");
    let alone = here.run("dedup a.jsonl out --workers 2").ends(0);
    let again = here.run("dedup a.jsonl again --workers 2 --retries 2").ends(0);
    assert_eq!(again.stderr.lines().count(), alone.stderr.lines().count());
    assert!(again.stderr.starts_with("Counters\n"), "{again:?}");
    assert_eq!(here.bytes("out/kept", "jsonl"), here.bytes("again/kept", "jsonl"));
    here.run("dedup none.jsonl new --retries 2").fails(2, &["none.jsonl"]);
}

#[test]
fn a_process_ends_when_its_launcher_is_gone_or_silent() {
    const PLACE: &[u8] = b"{\"addresses\":[],\"workers\":1,\"token\":\"\"}\n";
    for (silent, words) in [(false, "is gone"), (true, "was silent for 10 s")] {
        let here = scripted(0, "");
        let (server, mut command) = waiting(&here, "--process 0 --lifeline dedup s3://bucket/x out");
        let mut process = Running(command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
        let mut stdin = process.0.stdin.take().unwrap();
        stdin.write_all(PLACE).unwrap();
        let connection = accepted(&server);
        let start = Instant::now();
        let stdin = silent.then_some(stdin);
        wait_until("it ends", Duration::from_secs(15), || process.0.try_wait().unwrap().is_some());
        assert_eq!(start.elapsed() > Duration::from_secs(8), silent, "{:?}", start.elapsed());
        drop((stdin, connection));
        let mut stderr = String::new();
        process.0.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        assert_eq!(process.0.wait().unwrap().code(), Some(1));
        assert_eq!(stderr, format!("error: the launcher of this process {words}\n"));
    }
}

/// Returns the processes of this program below `folder` that a launcher has started.
fn processes_in(folder: &Path) -> Vec<u32> {
    let program = fs::canonicalize(env!("CARGO_BIN_EXE_dedup-job")).unwrap();
    let folder = fs::canonicalize(folder).unwrap();
    let is_ours = |id: u32| {
        let of = |what: &str| fs::read_link(format!("/proc/{id}/{what}")).ok();
        let arguments = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        of("exe").as_ref() == Some(&program)
            && of("cwd").as_ref() == Some(&folder)
            && arguments.split(|&byte| byte == 0).any(|argument| argument == b"--lifeline")
    };
    let processes = fs::read_dir("/proc").unwrap();
    let ids = processes.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    ids.filter(|&id| is_ours(id)).collect()
}
