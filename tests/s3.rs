//! Runs a real S3 server on loopback, S3Proxy. It needs `scripts/s3/build`.
#![allow(dead_code, reason = "every test binary uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test that cannot start should fail")]

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

const START: Duration = Duration::from_secs(60);
const STOP: Duration = Duration::from_secs(10);
/// Time after which a forgotten server ends, in seconds.
const LIFE_SECONDS: &str = "1800";
const KEY: &str = "dedup";
const SECRET: &str = "the-secret-of-dedup";

/// Server that checks signatures and has one bucket, `bucket`.
pub struct S3 {
    /// Address of the server, such as `http://127.0.0.1:40123`.
    pub endpoint: String,
    child: Child,
    folder: TempDir,
}

impl S3 {
    /// Starts a server, which takes a second or two. Panics with the server's log when it does not start.
    pub fn start() -> Self {
        let target = Path::new(env!("CARGO_MANIFEST_DIR"))
            .ancestors()
            .map(|folder| folder.join("scripts/s3/target"))
            .find(|target| target.join("classes/S3.class").exists());
        let target = target.expect("run scripts/s3/build");
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("data/bucket")).unwrap();
        let log = folder.path().join("log");
        let mut child = Command::new("java")
            .args(["-Xmx256m", "-Djava.net.preferIPv4Stack=true", "-Dfile.encoding=UTF-8"])
            .arg(format!("-Djava.io.tmpdir={}", folder.path().display()))
            .args(["-Dsun.jnu.encoding=UTF-8", "-cp"])
            .arg(format!("{0}/lib/*:{0}/classes", target.display()))
            .arg("S3")
            .arg(folder.path().join("data"))
            .args([KEY, SECRET, LIFE_SECONDS])
            // Without this the server cannot make files with names that are not ASCII.
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let line = lines.recv_timeout(START).unwrap_or_default();
        let endpoint = line.strip_prefix("ready ").unwrap_or_default().to_owned();
        let server = S3 { endpoint, child, folder };
        assert!(!server.endpoint.is_empty(), "no S3: {}", fs::read_to_string(&log).unwrap_or_default());
        server
    }

    /// Returns the environment variables of a client.
    pub fn settings(&self) -> Vec<(String, String)> {
        settings(&self.endpoint)
    }

    /// Returns the file in which the server keeps an object of its bucket.
    pub fn file(&self, key: &str) -> std::path::PathBuf {
        self.folder.path().join("data/bucket").join(key)
    }

    /// Sends a signal such as `STOP` or `CONT`.
    pub fn signal(&self, name: &str) {
        let mut kill = Command::new("kill");
        assert!(kill.args(["-s", name, &self.child.id().to_string()]).status().unwrap().success());
    }
}

/// Returns the environment variables of a client of any endpoint.
pub fn settings(endpoint: &str) -> Vec<(String, String)> {
    let settings = [
        ("AWS_ENDPOINT_URL", endpoint),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_ACCESS_KEY_ID", KEY),
        ("AWS_SECRET_ACCESS_KEY", SECRET),
        ("AWS_REGION", "us-east-1"),
    ];
    settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
}

impl Drop for S3 {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let end = Instant::now() + STOP;
        while self.child.try_wait().unwrap().is_none() {
            if Instant::now() > end {
                self.child.kill().unwrap();
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}
