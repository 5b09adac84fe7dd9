//! A real S3 server, S3Proxy. It needs `scripts/s3/build`.

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use super::{LIFE_SECONDS, Server, java, new_folder};

const KEY: &str = "dedup";
const SECRET: &str = "the-secret-of-dedup";

/// Server that checks signatures. Its buckets are folders.
pub struct S3 {
    /// Address of the server, such as `http://127.0.0.1:40123`.
    endpoint: String,
    server: Server,
}

impl S3 {
    /// Returns the server that all tests share.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<S3> = OnceLock::new();
        SHARED.get_or_init(S3::start)
    }

    /// Starts a server, which takes a second or two.
    pub fn start() -> Self {
        let folder = new_folder();
        fs::create_dir(folder.join("data")).unwrap();
        let mut command = java(&["java"], "s3", "S3", &folder);
        command.arg(folder.join("data")).args([KEY, SECRET, LIFE_SECONDS]);
        let ready = |line: &str| Some(line.strip_prefix("ready ")?.to_owned());
        let (server, endpoint) = Server::start(folder, &mut command, ready);
        S3 { endpoint, server }
    }

    /// Returns the folder of a bucket, which is made if there is none.
    pub fn bucket(&self, name: &str) -> PathBuf {
        let folder = self.server.folder.join("data").join(name);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// Returns the environment variables of a client.
    pub fn settings(&self) -> Vec<(String, String)> {
        settings(&self.endpoint)
    }

    /// Sends a signal such as `STOP` or `CONT`.
    pub fn signal(&self, name: &str) {
        self.server.signal(name);
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
