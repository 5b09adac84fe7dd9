//! A server of ssh. It needs `scripts/sshd/build`.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use super::{Server, new_folder};

/// Server that lets in who has its key.
pub struct Sshd {
    server: Server,
    port: u16,
}

impl Sshd {
    /// Returns the server that all tests share.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Sshd> = OnceLock::new();
        SHARED.get_or_init(Sshd::start)
    }

    fn start() -> Self {
        let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/sshd/target");
        let programs = [target.join("usr/sbin/sshd"), "/usr/sbin/sshd".into()];
        let program = programs.iter().find(|program| program.exists()).expect("run scripts/sshd/build");
        let folder = new_folder();
        let path = |name: &str| folder.join(name).display().to_string();
        for key in ["host", "user"] {
            let mut keygen = Command::new("ssh-keygen");
            assert!(
                keygen.args(["-q", "-t", "ed25519", "-N", "", "-f", &path(key)]).status().unwrap().success()
            );
        }
        // A port that was free a moment ago.
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let mut config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nPidFile none\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\n\
             UsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\n\
             AcceptEnv AWS_*\n",
            path("host"),
            path("user.pub")
        );
        // Since version 9.8 the server has more programs.
        for (option, name) in [("SshdSessionPath", "sshd-session"), ("SshdAuthPath", "sshd-auth")] {
            let program = target.join("usr/lib/openssh").join(name);
            if program.exists() {
                config.push_str(&format!("{option} {}\n", program.display()));
            }
        }
        fs::write(path("sshd_config"), config).unwrap();
        let libraries = fs::read_dir(target.join("usr/lib")).into_iter().flatten();
        let libraries: Vec<_> = libraries.map(|entry| entry.unwrap().path().display().to_string()).collect();
        let mut command = Command::new(program);
        command.args(["-D", "-e", "-f", &path("sshd_config")]).env("LD_LIBRARY_PATH", libraries.join(":"));
        let ready = |line: &str| line.starts_with("Server listening on ").then_some(());
        let (server, ()) = Server::start(folder, &mut command, ready);
        Sshd { server, port }
    }

    /// Returns a launcher that reaches the server. `env`: variables of the processes that it starts
    /// there.
    pub fn launcher(&self, env: &[(&str, String)]) -> String {
        let path = |name: &str| self.server.folder.join(name).display().to_string();
        let env: String = env.iter().map(|(name, value)| format!(" {name}={value}")).collect();
        let set = if env.is_empty() { env } else { format!("-o 'SetEnv={}' ", env.trim()) };
        // It ends with the last words of the default, so that these are tested too.
        format!(
            "ssh -p {} -i '{}' -F none -o IdentitiesOnly=yes -o StrictHostKeyChecking=accept-new {set}\
             -o 'UserKnownHostsFile=\"{}\"' -o LogLevel=ERROR -o BatchMode=yes {{host}}",
            self.port,
            path("user"),
            path("known")
        )
    }

    /// Returns what the server has printed.
    pub fn log(&self) -> String {
        self.server.log(0)
    }
}
