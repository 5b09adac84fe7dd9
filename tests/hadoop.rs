//! Runs a real HDFS on loopback, and Hadoop's own SequenceFile code. Both need `scripts/hadoop/build`.
#![allow(dead_code, reason = "every test binary uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test that cannot start should fail")]

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Output, Stdio};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

const START: Duration = Duration::from_secs(120);
const STOP: Duration = Duration::from_secs(20);
const COMMAND: Duration = Duration::from_secs(120);
/// Time after which a forgotten cluster ends, in seconds.
const LIFE_SECONDS: &str = "1800";

/// Name nodes and data nodes in one process. Their superuser is `hdfs`; the tests are an ordinary user.
pub struct MiniDfs {
    /// Name of the file system, such as `hdfs://127.0.0.1:40123`. Everybody may write to its root.
    pub uri: String,
    /// Ports on which the data nodes serve blocks.
    pub data_ports: Vec<u16>,
    child: Child,
    /// Its standard input, and its answers; `None` at its end.
    talk: Mutex<Option<(ChildStdin, mpsc::Receiver<String>)>>,
    folder: TempDir,
}

impl MiniDfs {
    /// Starts a cluster, which takes some seconds. Panics with the end of Hadoop's log when it does not
    /// start.
    pub fn start(data_nodes: usize) -> Self {
        Self::start_with(data_nodes, &[])
    }

    /// Starts a cluster with flags such as `ha` and `ec`, as in `Hadoop.java`.
    pub fn start_with(data_nodes: usize, flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let mut child = java(folder.path(), ["dfs".as_ref(), folder.path().join("dfs").as_os_str()])
            .args([&data_nodes.to_string(), LIFE_SECONDS])
            .args(flags)
            .env("HADOOP_USER_NAME", "hdfs")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let line = lines.recv_timeout(START).unwrap_or_default();
        let mut words = line.strip_prefix("ready ").unwrap_or_default().split(' ').map(str::to_owned);
        let uri = words.next().unwrap_or_default();
        let data_ports = words.map(|port| port.parse().unwrap()).collect();
        let talk = Mutex::new(Some((child.stdin.take().unwrap(), lines)));
        let cluster = MiniDfs { uri, data_ports, child, talk, folder };
        assert!(!cluster.uri.is_empty(), "no HDFS: {}", tail(&log));
        cluster
    }

    /// Returns the folder with the settings of its clients.
    pub fn conf(&self) -> PathBuf {
        self.folder.path().join("dfs/conf")
    }

    /// Returns the files in which the data nodes keep whole blocks.
    pub fn replicas(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.folder.path().join("dfs/data")];
        while let Some(folder) = folders.pop() {
            // A data node may be moving the content of the folder at this moment.
            for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                if path.is_dir() {
                    folders.push(path);
                } else if name.starts_with("blk_") && !name.ends_with(".meta") {
                    found.push(path);
                }
            }
        }
        found
    }

    /// Tells the cluster to do something, such as `stop 1`, and waits until it is done.
    pub fn tell(&self, line: &str) {
        let mut talk = self.talk.lock().unwrap();
        let (stdin, lines) = talk.as_mut().unwrap();
        writeln!(stdin, "{line}").unwrap();
        let answer = lines.recv_timeout(COMMAND).unwrap_or_default();
        assert_eq!(answer, format!("done {line}"), "{}", tail(&self.folder.path().join("log")));
    }

    /// Sends a signal such as `STOP` or `CONT` to the whole cluster.
    pub fn signal(&self, name: &str) {
        let mut kill = Command::new("kill");
        assert!(kill.args(["-s", name, &self.child.id().to_string()]).status().unwrap().success());
    }
}

impl Drop for MiniDfs {
    fn drop(&mut self) {
        // The cluster ends when its standard input closes.
        drop(self.talk.lock().unwrap_or_else(PoisonError::into_inner).take());
        wait(&mut self.child, STOP);
    }
}

/// Runs one of the other commands of `scripts/hadoop/src/Hadoop.java`.
pub fn hadoop(args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let (stdout, stderr) = (folder.path().join("stdout"), folder.path().join("stderr"));
    let mut child = java(folder.path(), args)
        .stdin(Stdio::null())
        .stdout(File::create(&stdout).unwrap())
        .stderr(File::create(&stderr).unwrap())
        .spawn()
        .unwrap();
    let status = wait(&mut child, COMMAND);
    Output { status, stdout: fs::read(stdout).unwrap(), stderr: fs::read(stderr).unwrap() }
}

/// Runs several of these commands in one Java, and returns the lines that they print.
pub fn hadoop_lines(commands: &[Vec<String>]) -> Vec<String> {
    let output = hadoop(commands.join(&"--".to_owned()));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Returns a Java. `temporary`: a folder in which it may write anything; its web servers leave their folders
/// behind.
fn java(temporary: &Path, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
    let target = scripts().join("target");
    assert!(target.join("classes/Hadoop.class").exists(), "run scripts/hadoop/build");
    let mut command = Command::new("java");
    command.args(["-Xmx512m", "-Djava.net.preferIPv4Stack=true", "-Dfile.encoding=UTF-8"]);
    command.arg(format!("-Djava.io.tmpdir={}", temporary.display()));
    command.args(["-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp"]);
    command.arg(format!("{0}/lib/*:{0}/classes", target.display()));
    command.arg("Hadoop").args(args);
    // The tests ignore the cluster of whoever runs them.
    command.env_remove("HADOOP_CONF_DIR").env_remove("HADOOP_HOME");
    command
}

/// Returns the folder of the scripts, which is the same for the tests of every package.
fn scripts() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().map(|folder| folder.join("scripts/hadoop")).find(|folder| folder.exists()).unwrap()
}

/// Waits for the end of a process, and kills it after `limit`.
fn wait(child: &mut Child, limit: Duration) -> ExitStatus {
    let end = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if Instant::now() > end {
            child.kill().unwrap();
        }
        thread::sleep(Duration::from_millis(50));
    }
}

fn tail(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    String::from_utf8_lossy(&text[text.len().saturating_sub(2000)..]).into_owned()
}
