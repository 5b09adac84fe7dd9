//! A real HBase with its Thrift2 gateway, and the Java that the tests run beside it. Both need `scripts/hbase/build`.

use std::process::{Output, Stdio};

use super::{LIFE_SECONDS, Server, built, java, new_folder};

/// Time after which the gateway drops a connection on which nothing comes, in milliseconds. By default it is a minute.
pub const IDLE_MS: &str = "3000";

/// HDFS, ZooKeeper, a master, region servers and a Thrift2 gateway in one process.
pub struct MiniHBase {
    /// Port of the gateway.
    pub port: u16,
    /// Port of ZooKeeper, which clients in Java ask for everything else.
    pub zookeeper: String,
    server: Server,
}

impl MiniHBase {
    /// Starts a cluster, which takes some 15 seconds.
    pub fn start(region_servers: usize) -> Self {
        let folder = new_folder();
        let mut command = java(&start(), "hbase", "HBase", &folder);
        command.arg(folder.join("data")).args([&region_servers.to_string(), LIFE_SECONDS, IDLE_MS]);
        command.current_dir(&folder);
        let ready = |line: &str| Some(line.strip_prefix("ready ")?.to_owned());
        let (server, line) = Server::start(folder, &mut command, ready);
        let (port, zookeeper) = line.split_once(' ').unwrap();
        MiniHBase { port: port.parse().unwrap(), zookeeper: zookeeper.to_owned(), server }
    }

    /// Returns the name of a table.
    pub fn table(&self, name: &str) -> String {
        format!("hbase://127.0.0.1:{}/{name}", self.port)
    }

    /// Tells the cluster to do something, such as `kill seen`, and waits until it is done.
    pub fn tell(&self, line: &str) {
        self.server.tell(line);
    }
}

/// Runs one of the commands of `scripts/hbase/src/ArticleTable.java`.
pub fn article(cluster: &MiniHBase, args: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let start = start();
    let mut words = vec!["timeout", "-k", "10", "300"];
    words.extend(start.iter().map(|word| &**word));
    let mut command = java(&words, "hbase", "ArticleTable", folder.path());
    command.arg(&cluster.zookeeper).args(args).stdin(Stdio::null()).output().unwrap()
}

/// Returns how Java is started, with the modules of its own that HBase reads.
fn start() -> [String; 2] {
    let options = built("hbase", "java.options").join("java.options");
    ["java".to_owned(), format!("@{}", options.display())]
}
