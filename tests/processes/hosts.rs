//! Tests on several hosts on this machine: network namespaces with a wire between each two of them, and a
//! mount namespace for each process. They need root, and a kernel that lets it make namespaces.

mod relay;

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::corpus::with_bad_line;
use crate::faults::{Whole, clock};
use crate::support::{Folder, Running, run, wait_until};

/// Time within which all has ended after a connection broke.
const AFTER_LOSS: Duration = Duration::from_secs(15);
/// Time far longer than a job takes.
const PATIENCE: Duration = Duration::from_secs(120);

/// Number of hosts that were made, so that each has a name of its own.
static MADE: AtomicUsize = AtomicUsize::new(0);

/// Hosts that exist until this is dropped.
struct Hosts {
    /// Names of the network namespaces.
    names: Vec<String>,
}

impl Hosts {
    fn new(count: usize) -> Self {
        let set = MADE.fetch_add(1, Ordering::Relaxed);
        let name = |host: usize| format!("dedup-{}-{set}-{host}", std::process::id());
        let mut hosts = Hosts { names: Vec::new() };
        for host in 0..count {
            let made = Command::new("ip").args(["netns", "add", &name(host)]).output();
            let made = made.expect("these tests need ip: run scripts/tools/build");
            assert!(
                made.status.success(),
                "these tests make network and mount namespaces, which needs CAP_SYS_ADMIN and CAP_NET_ADMIN: be root, and \
                 in a container start it with --privileged. ip netns add said: {}",
                String::from_utf8_lossy(&made.stderr)
            );
            hosts.names.push(name(host));
            hosts.ip(host, "link set lo up");
            hosts.ip(host, &format!("address add {}/32 dev lo", address(host)));
        }
        for (low, high) in (0..count).flat_map(|high| (0..high).map(move |low| (low, high))) {
            let peer = &hosts.names[high];
            hosts.ip(low, &format!("link add to{high} type veth peer name to{low} netns {peer}"));
            for (host, other) in [(low, high), (high, low)] {
                hosts.ip(host, &format!("link set to{other} up"));
                let (here, there) = (address(host), address(other));
                hosts.ip(host, &format!("route add {there}/32 dev to{other} src {here}"));
            }
        }
        hosts
    }

    /// Runs `ip` with `line` in the network namespace of a host.
    fn ip(&self, host: usize, line: &str) {
        let mut command = Command::new("ip");
        command.args(["-n", &self.names[host]]).args(line.split(' '));
        let done = run(&mut command);
        assert_eq!(done.code, Some(0), "ip -n {} {line}: {done:?}", self.names[host]);
    }

    /// Removes the wire between two hosts. Neither is told.
    fn cut(&self, one: usize, other: usize) {
        for (host, gone) in [(one, other), (other, one)] {
            self.ip(host, &format!("route replace blackhole {}/32", address(gone)));
        }
        self.ip(one, &format!("link set to{other} down"));
    }

    /// Starts a process on a host: the program in `here` with the arguments of `line`. `first`: what a shell
    /// does there before; a file system that it mounts is seen by this process alone.
    fn start(&self, here: &Folder, host: usize, first: &str, line: &str) -> Process {
        let program = here.command("").get_program().to_owned();
        let mut command = Command::new("ip");
        // `ip netns exec` gives what it starts a mount namespace of its own.
        command.args(["netns", "exec", &self.names[host], "sh", "-c", &format!("{first} exec \"$@\""), "sh"]);
        command.arg(program).args(line.split_whitespace()).current_dir(here.path(""));
        let said = format!("said-{}", MADE.fetch_add(1, Ordering::Relaxed));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(here.path(&said)).unwrap());
        Process { child: Running(command.spawn().unwrap()), said: here.path(&said) }
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in &self.names {
            // The wires vanish with the namespace. An error of a failed test matters more than what it
            // leaves.
            drop(Command::new("ip").args(["netns", "delete", name]).output());
        }
    }
}

fn address(host: usize) -> String {
    format!("10.117.0.{}", host + 1)
}

/// Process on a host.
struct Process {
    child: Running,
    /// File of what the process writes to stderr.
    said: PathBuf,
}

impl Process {
    /// Waits for the end of the process. Returns the exit code, and what it said.
    fn end(&mut self, limit: Duration) -> (Option<i32>, String) {
        let begun = Instant::now();
        loop {
            let ended = self.child.0.try_wait().unwrap();
            let said = fs::read_to_string(&self.said).unwrap();
            if let Some(status) = ended {
                return (status.code(), said);
            }
            assert!(begun.elapsed() < limit, "no end after {limit:?}: {said}");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Makes the corpus, the hosts file `hosts` of `count` processes, and the token file.
fn folder(count: usize) -> Folder {
    let here = with_bad_line();
    here.write("hosts", (0..count).map(|host| address(host) + "\n").collect::<String>());
    here.write("token", "1b0f5c5bd7a5417e9e4bb5a5f4f1d9b2\n");
    fs::set_permissions(here.path("token"), fs::Permissions::from_mode(0o600)).unwrap();
    here
}

/// Returns the arguments of process `index` of `count`. `hosts`: its hosts file.
fn line(index: usize, count: usize, hosts: &str) -> String {
    format!(
        "--process {index} --hosts {hosts} --token-file token --workers {count} dedup in.jsonl out --split-size 96K --quiet"
    )
}

/// Returns the output of one process on the same corpus.
fn of_one(here: &Folder) -> Whole {
    here.run("--workers 2 dedup in.jsonl out --split-size 96K --quiet").ends(3);
    Whole::take(here)
}

#[test]
fn hosts_whose_clocks_are_a_day_apart_write_what_one_process_writes() {
    let here = folder(3);
    let hosts = Hosts::new(3);
    let expected = of_one(&here);
    let library = clock::library(&here).display().to_string();
    let clocks = ["", "-86400", "86400"].map(|seconds| match seconds {
        "" => String::new(),
        _ => format!("export LD_PRELOAD={library} CLOCK_AHEAD={seconds};"),
    });
    let start = |host: usize| hosts.start(&here, host, &clocks[host], &line(host, 3, "hosts"));
    for mut process in [0, 1, 2].map(start) {
        let (code, said) = process.end(PATIENCE);
        assert_eq!(code, Some(3), "{said}");
    }
    assert!(Whole::take(&here) == expected);
}

#[test]
fn a_peer_that_is_cut_off_from_one_but_not_from_process_0_ends_the_job() {
    let here = folder(3);
    let hosts = Hosts::new(3);
    let start = |host: usize| {
        let busy = "export DEDUP_FAULT='0 exchange 1 wait';";
        hosts.start(&here, host, busy, &line(host, 3, "hosts"))
    };
    let mut processes = [0, 1, 2].map(start);
    wait_until("the map stage", PATIENCE, || {
        let maps = fs::read_dir(here.path("out/_temporary")).into_iter().flatten().flatten();
        maps.filter(|run| run.path().join("map").exists()).count() > 0
    });
    thread::sleep(Duration::from_secs(3));
    hosts.cut(1, 2);
    let begun = Instant::now();
    let ends = processes.each_mut().map(|process| process.end(AFTER_LOSS));
    assert!(begun.elapsed() < AFTER_LOSS, "{:?}", begun.elapsed());
    for (code, said) in &ends {
        assert_eq!(*code, Some(1), "{said}");
        let reason = "the connection to process ";
        assert!(said.contains(reason) && said.contains(" was lost: nothing came from it for 10 s"), "{said}");
    }
    assert!(!here.path("out/_SUCCESS").exists());
}

/// Each host would see only the parts that it wrote itself, and one of them would commit these.
#[test]
fn two_hosts_with_separate_folders_end_with_an_error_and_commit_nothing() {
    let here = folder(2);
    let hosts = Hosts::new(2);
    fs::create_dir(here.path("out")).unwrap();
    let mount = "mount -t tmpfs none out &&";
    let mut processes =
        [(0, ""), (1, mount)].map(|(host, first)| hosts.start(&here, host, first, &line(host, 2, "hosts")));
    let ends = processes.each_mut().map(|process| process.end(PATIENCE));
    // This test does not care which of the codes of a refusal it is, and how it is said.
    assert!(ends.iter().all(|(code, _)| code.is_some_and(|code| ![0, 3].contains(&code))), "{ends:?}");
    assert!(ends.iter().any(|(_, said)| said.contains("error: ") && said.contains("\"out\"")), "{ends:?}");
    assert!(!here.path("out/_SUCCESS").exists());
}
