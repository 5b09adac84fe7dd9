//! The servers of the tests, on loopback: HDFS, HBase, S3, Azure Blob Storage and ssh. `scripts/*/build` prepare
//! them.
//!
//! A server that several tests of a binary use is started once, by the first of them, and each test has a
//! folder or a bucket of its own there. A test starts another one if it freezes it, stops it, or needs it
//! set up in another way.
#![allow(dead_code, reason = "every test binary uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test that cannot start should fail")]

pub mod azurite;
pub mod hbase;
pub mod hdfs;
pub mod s3;
pub mod sshd;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Time within which a server starts, and within which it does what it is told.
const LIMIT: Duration = Duration::from_secs(120);
/// Time after which a server of tests that never end is ended, in seconds. A soak takes hours.
const LIFE_SECONDS: &str = "36000";
/// Waits until the tests have closed its input, by dropping the server or by ending in any way, and ends
/// the server.
const GUARD: &str =
    "timeout -s KILL \"$3\" cat; kill -s KILL \"$1\"; rm -rf \"$2\" || { sleep 1; rm -rf \"$2\"; }";

/// Process of a server, which ends when this is dropped and when the process of the tests ends.
pub struct Server {
    process: Child,
    guard: Child,
    /// Folder of the server, which goes with it. All that the server prints is in its file `log`.
    pub folder: PathBuf,
}

impl Server {
    /// Starts a server in `folder`. `ready` finds its address in one of the lines that it prints.
    ///
    /// # Panics
    /// When the server does not start, with what it has printed.
    pub fn start<T>(folder: PathBuf, command: &mut Command, ready: impl Fn(&str) -> Option<T>) -> (Self, T) {
        let log = File::create(folder.join("log")).unwrap();
        command.stdin(Stdio::piped()).stdout(log.try_clone().unwrap()).stderr(log);
        let process = command.spawn().unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
        let mut guard = Command::new("sh");
        guard.args(["-c", GUARD, "sh", &process.id().to_string()]).arg(&folder).arg(LIFE_SECONDS);
        // Its group is its own, so that it outlives a Ctrl-C that ends the tests.
        guard.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let server = Server { process, guard: guard.spawn().unwrap(), folder };
        let address = server.says(0, ready).unwrap_or_else(|| {
            let ended = if server.ended() { "has ended" } else { "is not ready in time" };
            panic!("{command:?} {ended}; it printed:\n{}", server.log(0))
        });
        (server, address)
    }

    /// Writes a line to the server's standard input, and waits until it has printed "done" and this line.
    pub fn tell(&self, line: &str) {
        let before = fs::metadata(self.folder.join("log")).unwrap().len();
        writeln!(self.process.stdin.as_ref().unwrap(), "{line}").unwrap();
        let done = |said: &str| (said == format!("done {line}")).then_some(());
        self.says(before, done).unwrap_or_else(|| panic!("{line} is not done\n{}", self.log(0)));
    }

    /// Sends a signal such as `STOP` or `CONT`.
    pub fn signal(&self, name: &str) {
        let mut kill = Command::new("kill");
        assert!(kill.args(["-s", name, &self.process.id().to_string()]).status().unwrap().success());
    }

    /// Returns what the server has printed, from byte `start` on.
    pub fn log(&self, start: u64) -> String {
        let mut log = File::open(self.folder.join("log")).unwrap();
        log.seek(SeekFrom::Start(start)).unwrap();
        let mut bytes = Vec::new();
        log.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Waits for a line from byte `start` of the log on in which `wanted` finds something. `None` if the
    /// server has ended, or the time is up.
    fn says<T>(&self, start: u64, wanted: impl Fn(&str) -> Option<T>) -> Option<T> {
        let end = Instant::now() + LIMIT;
        while Instant::now() < end {
            let ended = self.ended();
            let log = self.log(start);
            let mut whole = log.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
            let found = whole.find_map(&wanted);
            if found.is_some() || ended {
                return found;
            }
            thread::sleep(Duration::from_millis(20));
        }
        None
    }

    /// Whether the process is gone.
    fn ended(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.process.id())).unwrap_or_default();
        stat.rsplit_once(") ").is_none_or(|(_, state)| state.starts_with('Z'))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        // The server's number is its own until we wait for it, so that the guard kills nobody else.
        self.guard.wait().unwrap();
        self.process.wait().unwrap();
    }
}

/// Returns a new folder for a server, which removes it at its end.
fn new_folder() -> PathBuf {
    tempfile::Builder::new().prefix("dedup-server-").tempdir().unwrap().keep()
}

/// Returns the folder of a script, whose `build` must have made `file`. It is the same for all packages.
fn built(script: &str, file: &str) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = here.ancestors().map(|folder| folder.join("scripts").join(script));
    let found = folders.find(|folder| folder.join(file).exists());
    found.unwrap_or_else(|| panic!("run scripts/{script}/build"))
}

/// Returns a Java with a class of a script. `start`: words that start `java`, and options of its own behind it.
/// `temporary`: a folder in which it may write anything; its web servers leave their folders behind.
fn java(start: &[impl AsRef<OsStr>], script: &str, class: &str, temporary: &Path) -> Command {
    let target = built(script, &format!("target/classes/{class}.class")).join("target");
    let options = 1 + start.iter().position(|word| word.as_ref() == "java").unwrap();
    let mut command = Command::new(&start[0]);
    command.args(&start[1..options]).args(["-Xmx512m", "-Djava.net.preferIPv4Stack=true"]);
    // Of two options of one kind, the later one counts.
    command.args(&start[options..]);
    command.args(["-Dfile.encoding=UTF-8", "-Dsun.jnu.encoding=UTF-8"]);
    command.arg(format!("-Djava.io.tmpdir={}", temporary.display()));
    command.args(["-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp"]);
    command.arg(format!("{0}/lib/*:{0}/classes", target.display())).arg(class);
    // Without this S3Proxy cannot make files with names that are not ASCII.
    command.env("LC_ALL", "C.UTF-8");
    // The tests ignore the cluster of whoever runs them.
    command.env_remove("HADOOP_CONF_DIR").env_remove("HADOOP_HOME");
    command
}
