//! Runs a server of Azure Blob Storage on loopback, Microsoft's emulator Azurite. It needs
//! `scripts/azurite/build`.
#![allow(dead_code, reason = "every test binary uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test that cannot start should fail")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

const START: Duration = Duration::from_secs(60);
const STOP: Duration = Duration::from_secs(20);
/// Time after which a forgotten server ends, in seconds.
const LIFE_SECONDS: &str = "1800";
const ACCOUNT: &str = "devstoreaccount1";
/// Key of the emulator, which is public: https://learn.microsoft.com/azure/storage/common/storage-use-azurite
pub const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// Server with one container, `bucket`.
pub struct Azurite {
    endpoint: String,
    child: Child,
    _folder: TempDir,
}

impl Azurite {
    /// Starts a server, which takes a second or two.
    pub fn start() -> Self {
        let scripts = scripts();
        let program = scripts.join("target/node_modules/azurite/dist/src/blob/main.js");
        assert!(program.exists(), "run scripts/azurite/build");
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new("timeout")
            .args(["-k", "10", LIFE_SECONDS, "node"])
            .arg(program)
            .args(["--silent", "--disableTelemetry", "--skipApiVersionCheck"])
            .args(["--blobHost", "127.0.0.1", "--blobPort", "0", "--location"])
            .arg(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if let Some((_, address)) = line.split_once("successfully listens on ") {
                    sender.send(address.to_owned()).unwrap();
                }
            }
        });
        let address = lines.recv_timeout(START).unwrap_or_default();
        let server = Azurite { endpoint: format!("{address}/{ACCOUNT}"), child, _folder: folder };
        assert!(!address.is_empty(), "no Azurite");
        let mut create = Command::new("timeout");
        create
            .args(["-k", "10", "60", "node"])
            .arg(scripts.join("container.js"))
            .args([&server.endpoint, "bucket"]);
        assert!(create.status().unwrap().success());
        server
    }

    /// Returns the environment variables of a client that signs with this key.
    pub fn settings(&self, key: &str) -> Vec<(String, String)> {
        let settings = [
            ("AZURE_STORAGE_ENDPOINT", self.endpoint.as_str()),
            ("AZURE_ALLOW_HTTP", "true"),
            ("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT),
            ("AZURE_STORAGE_ACCOUNT_KEY", key),
        ];
        settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
    }
}

impl Drop for Azurite {
    fn drop(&mut self) {
        // `timeout` hands this signal on. SIGKILL would end `timeout` and leave the server alone.
        Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        let end = Instant::now() + STOP;
        while self.child.try_wait().unwrap().is_none() {
            if Instant::now() > end {
                self.child.kill().unwrap();
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

fn scripts() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().map(|folder| folder.join("scripts/azurite")).find(|folder| folder.exists()).unwrap()
}
