//! A served index, and a client that asks one question a connection.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::support::{Folder, Running, signal, wait_until};

/// Time within which an answer comes.
const LIMIT: Duration = Duration::from_secs(60);
pub const JSON: (&str, &str) = ("Content-Type", "application/json");
pub const JSON_LINES: (&str, &str) = ("Content-Type", "application/x-ndjson");

/// A process that serves the index `ix` of a folder, and that is killed when this goes out of scope.
pub struct HttpServer {
    process: Running,
    pub address: SocketAddr,
}

/// Status and body of an answer.
#[derive(Debug)]
pub struct Answered {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answered {
    /// Returns the body, which must be JSON, of a request that succeeded.
    #[track_caller]
    pub fn json(&self) -> Value {
        assert_eq!(self.status, 200, "{self:?}");
        serde_json::from_str(&self.body).unwrap()
    }

    /// Returns the ids of the matches of each line.
    #[track_caller]
    pub fn matches(&self) -> Vec<Vec<String>> {
        assert_eq!(self.status, 200, "{self:?}");
        let lines = self.body.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let id = |found: &Value| found["id"].as_str().unwrap().to_owned();
        lines.map(|answer| answer["matches"].as_array().unwrap().iter().map(id).collect()).collect()
    }
}

impl HttpServer {
    /// Starts a server on a free port of the loopback.
    pub fn start(here: &Folder, options: &str) -> Self {
        let line = format!("--quiet --workers 2 index serve ix --address 127.0.0.1:0 {options}");
        HttpServer::of(&mut here.command(&line))
    }

    /// Starts a server by a command.
    pub fn of(command: &mut Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = Running(command.spawn().unwrap());
        let mut line = String::new();
        BufReader::new(process.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().rsplit("//").next().unwrap().parse();
        let address = address.unwrap_or_else(|_| panic!("the server says {line:?}"));
        HttpServer { process, address }
    }

    /// Connects.
    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream
    }

    /// Sends a request and returns its answer. `None` if the server has ended.
    pub fn try_ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Option<Answered> {
        let mut stream = TcpStream::connect(self.address).ok()?;
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        // Answers to HTTP/1.0 end with their connection.
        let mut request = format!("{method} {path} HTTP/1.0\r\nContent-Length: {}\r\n", body.len());
        for (name, value) in headers {
            let _ = write!(request, "{name}: {value}\r\n");
        }
        stream.write_all(format!("{request}\r\n{body}").as_bytes()).ok()?;
        read_answer(stream)
    }

    /// Sends a request and returns its answer.
    #[track_caller]
    pub fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answered {
        self.try_ask(method, path, headers, body).expect("the server answers")
    }

    #[track_caller]
    pub fn post(&self, path: &str, body: &str) -> Answered {
        self.ask("POST", path, &[JSON], body)
    }

    pub fn id(&self) -> u32 {
        self.process.0.id()
    }

    /// Ends the server by SIGTERM, and returns its exit code.
    #[track_caller]
    pub fn end(mut self) -> Option<i32> {
        signal(self.id(), "TERM");
        let mut code = None;
        wait_until("the server ends", Duration::from_secs(30), || {
            code = self.process.0.try_wait().unwrap();
            code.is_some()
        });
        code.unwrap().code()
    }
}

/// Reads an answer to the end of its connection.
pub fn read_answer(mut stream: impl Read) -> Option<Answered> {
    let mut answer = Vec::new();
    // The server may reset the connection of a request that it has not read to its end.
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some(Answered { status, head: head.to_owned(), body: body.to_owned() })
}

/// Makes an empty index in the folder `ix`.
pub fn empty_index(method: &str) -> Folder {
    let here = Folder::new();
    here.write("none.jsonl", "");
    here.run(&format!("--quiet index build ix none.jsonl --method {method}")).ends(0);
    here
}
