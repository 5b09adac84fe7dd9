//! A server of Azure Blob Storage, Microsoft's emulator Azurite. It needs `scripts/azurite/build`.

use std::process::Command;

use super::{Server, built, new_folder};

const ACCOUNT: &str = "devstoreaccount1";
/// Key of the emulator, which is public: https://learn.microsoft.com/azure/storage/common/storage-use-azurite
pub const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// Server with one container, `bucket`.
pub struct Azurite {
    endpoint: String,
    _server: Server,
}

impl Azurite {
    /// Starts a server, which takes a second or two.
    pub fn start() -> Self {
        let program = "target/node_modules/azurite/dist/src/blob/main.js";
        let scripts = built("azurite", program);
        let folder = new_folder();
        let mut command = Command::new("node");
        command.arg(scripts.join(program)).args(["--silent", "--disableTelemetry", "--skipApiVersionCheck"]);
        command.args(["--blobHost", "127.0.0.1", "--blobPort", "0", "--location"]).arg(&folder);
        let ready = |line: &str| Some(line.split_once("successfully listens on ")?.1.to_owned());
        let (server, address) = Server::start(folder, &mut command, ready);
        let endpoint = format!("{address}/{ACCOUNT}");
        let mut create = Command::new("timeout");
        create.args(["-k", "10", "60", "node"]).arg(scripts.join("container.js")).args([&endpoint, "bucket"]);
        assert!(create.status().unwrap().success(), "{}", server.log(0));
        Azurite { endpoint, _server: server }
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
