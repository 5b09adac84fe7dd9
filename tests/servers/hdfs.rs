//! A real HDFS, and Hadoop's own SequenceFile code. Both need `scripts/hadoop/build`.

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::sync::OnceLock;

use super::{LIFE_SECONDS, Server, java, new_folder};

/// Name nodes and data nodes in one process. Their superuser is `hdfs`; the tests are an ordinary user.
pub struct MiniDfs {
    /// Name of the file system, such as `hdfs://127.0.0.1:40123`. Everybody may write to its root.
    pub uri: String,
    /// Ports on which the data nodes serve blocks.
    pub data_ports: Vec<u16>,
    server: Server,
}

impl MiniDfs {
    /// Returns the cluster of three data nodes that all tests share.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<MiniDfs> = OnceLock::new();
        SHARED.get_or_init(|| MiniDfs::start(3, &[]))
    }

    /// Starts a cluster, which takes some seconds. `flags`: such as `ha` and `ec`, as in `Hadoop.java`.
    pub fn start(data_nodes: usize, flags: &[&str]) -> Self {
        let folder = new_folder();
        let mut command = java(&["java"], "hadoop", "Hadoop", &folder);
        command.arg("dfs").arg(folder.join("dfs")).args([&data_nodes.to_string(), LIFE_SECONDS]).args(flags);
        command.env("HADOOP_USER_NAME", "hdfs");
        let ready = |line: &str| Some(line.strip_prefix("ready ")?.to_owned());
        let (server, line) = Server::start(folder, &mut command, ready);
        let (uri, ports) = line.split_once(' ').unwrap();
        let data_ports = ports.split(' ').map(|port| port.parse().unwrap()).collect();
        MiniDfs { uri: uri.to_owned(), data_ports, server }
    }

    /// Returns the folder with the settings of its clients.
    pub fn conf(&self) -> PathBuf {
        self.server.folder.join("dfs/conf")
    }

    /// Returns the files in which the data nodes keep whole blocks.
    pub fn replicas(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.server.folder.join("dfs/data")];
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
        self.server.tell(line);
    }

    /// Sends a signal such as `STOP` or `CONT` to the whole cluster.
    pub fn signal(&self, name: &str) {
        self.server.signal(name);
    }
}

/// Runs one of the other commands of `scripts/hadoop/src/Hadoop.java`.
pub fn hadoop(args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Output {
    run_class("Hadoop", args)
}

/// Runs a command of `scripts/hadoop/src/ParquetMr.java`.
pub fn parquet_mr(args: &[&str]) -> Output {
    run_class("ParquetMr", args)
}

fn run_class(class: &str, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let mut command = java(&["timeout", "-k", "10", "120", "java"], "hadoop", class, folder.path());
    command.args(args).stdin(Stdio::null()).output().unwrap()
}

/// Runs several of these commands in one Java, and returns the lines that they print.
pub fn hadoop_lines(commands: &[Vec<String>]) -> Vec<String> {
    let output = hadoop(commands.join(&"--".to_owned()));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().split_terminator('\n').map(str::to_owned).collect()
}
