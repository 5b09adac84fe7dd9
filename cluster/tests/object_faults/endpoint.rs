//! An S3 endpoint with one object, which misbehaves on demand.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Length of the object, in bytes.
pub const TOTAL: usize = 3000;
/// Longest time that a connection is held, whatever comes.
const LIFE: Duration = Duration::from_secs(30);

/// Returns the bytes of the object.
pub fn content() -> Vec<u8> {
    (0..TOTAL).map(|i| (i * i / 7) as u8).collect()
}

/// Fault in the answer to a request.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// The request is answered correctly.
    None,
    /// The connection is reset.
    Reset,
    /// No answer comes.
    Stall,
    /// The answer has this status.
    Status(u16),
    /// The body ends after this many bytes.
    Cut(usize),
    /// The body has the bytes of another range, with the right label.
    OtherRange,
    /// The body has the whole object where a range was requested.
    Whole,
    /// The answer is not HTTP.
    Garbage,
    /// The body has a range of another object of the same name and length.
    OtherTag,
    /// The answer is a page of a listing that names itself as the next page.
    SameToken,
    /// The answer is a page of a listing with these keys and lengths.
    Listed(&'static [(&'static str, usize)]),
}

/// The endpoint ends with the test's process; its threads end with their connections.
pub struct Endpoint {
    pub address: String,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    faults: VecDeque<Fault>,
    requests: Vec<String>,
}

impl Endpoint {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::<Mutex<State>>::default();
        let shared = state.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, state) = (stream.unwrap(), shared.clone());
                thread::spawn(move || answer(stream, &state));
            }
        });
        Endpoint { address, state }
    }

    /// Sets the faults of the next requests. Requests after them are answered correctly.
    pub fn next(&self, faults: impl IntoIterator<Item = Fault>) {
        self.state.lock().unwrap().faults = faults.into_iter().collect();
    }

    /// Returns the first lines of all requests so far.
    pub fn requests(&self) -> Vec<String> {
        self.state.lock().unwrap().requests.clone()
    }
}

/// Answers one request; each connection carries only one.
fn answer(stream: TcpStream, state: &Mutex<State>) -> Option<()> {
    stream.set_read_timeout(Some(LIFE)).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut first = String::new();
    reader.read_line(&mut first).ok().filter(|bytes| *bytes > 0)?;
    let fault = {
        let mut state = state.lock().unwrap();
        state.requests.push(first.trim_end().to_owned());
        state.faults.pop_front().unwrap_or(Fault::None)
    };
    if matches!(fault, Fault::Reset) {
        // Unread bytes turn the close into a reset.
        return None;
    }
    let (mut length, mut range) = (0, None);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
        let line = line.trim_end().to_ascii_lowercase();
        match line.split_once(": ") {
            Some(("content-length", value)) => length = value.parse().unwrap(),
            Some(("range", value)) => {
                let (start, end) = value.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
                range = Some((start.parse::<usize>().unwrap(), end.parse::<usize>().unwrap() + 1));
            }
            Some(_) => {}
            None if line.is_empty() => break,
            None => panic!("no header: {line}"),
        }
    }
    reader.read_exact(&mut vec![0; length]).ok()?;
    reply(stream, &first, range, fault)
}

fn reply(mut stream: TcpStream, first: &str, range: Option<(usize, usize)>, fault: Fault) -> Option<()> {
    let method = first.split(' ').next().unwrap();
    let tag = if matches!(fault, Fault::OtherTag) { "\"two\"" } else { "\"one\"" };
    let content = content();
    let mut head = format!("ETag: {tag}\r\nLast-Modified: Sat, 01 Jan 2022 00:00:00 GMT\r\n");
    let (mut status, mut body) = match (method, range) {
        ("GET", Some((start, end))) => {
            let start = if matches!(fault, Fault::OtherRange) { start + 1 } else { start };
            let end = end.min(TOTAL);
            head += &format!("Content-Range: bytes {start}-{}/{TOTAL}\r\n", end - 1);
            (206, content[start..end].to_vec())
        }
        ("GET", None) => {
            let token = match fault {
                Fault::SameToken => "<NextContinuationToken>again</NextContinuationToken>",
                _ => "",
            };
            let objects = if let Fault::Listed(objects) = fault { objects } else { &[] };
            let time = "2022-01-01T00:00:00Z";
            let object = |(key, size): &(&str, usize)| {
                format!(
                    "<Contents><Key>{key}</Key><Size>{size}</Size><LastModified>{time}</LastModified></Contents>"
                )
            };
            let objects: String = objects.iter().map(object).collect();
            (200, format!("<ListBucketResult>{objects}{token}</ListBucketResult>").into_bytes())
        }
        ("POST", _) if first.contains("uploads") => {
            (200, result("InitiateMultipartUpload", "<UploadId>7</UploadId>"))
        }
        ("POST", _) if first.contains("?delete") => {
            (200, result("Delete", "<Deleted><Key>x</Key></Deleted>"))
        }
        ("POST", _) => (200, result("CompleteMultipartUpload", "<ETag>\"one\"</ETag>")),
        ("DELETE", _) => (204, Vec::new()),
        ("PUT", _) => (200, Vec::new()),
        _ => (200, content.clone()),
    };
    match fault {
        Fault::Stall => {
            thread::sleep(LIFE);
            return None;
        }
        Fault::Garbage => {
            stream.write_all(&[0xff; 100]).ok()?;
            return None;
        }
        Fault::Whole => (status, body) = (200, content),
        Fault::Status(code) => {
            status = code;
            let (code, message) = match status {
                403 | 404 => ("AccessDenied", "no"),
                503 => ("SlowDown", "please"),
                _ => ("BadThing", "very bad"),
            };
            body = format!("<Error><Code>{code}</Code><Message>{message}</Message></Error>").into_bytes();
        }
        _ => {}
    }
    head += &format!("Content-Length: {}\r\nConnection: close\r\n", body.len());
    stream.write_all(format!("HTTP/1.1 {status} X\r\n{head}\r\n").as_bytes()).ok()?;
    if method != "HEAD" {
        let end = if let Fault::Cut(bytes) = fault { bytes } else { body.len() };
        stream.write_all(&body[..end]).ok()?;
    }
    Some(())
}

fn result(name: &str, inner: &str) -> Vec<u8> {
    format!("<{name}Result>{inner}</{name}Result>").into_bytes()
}
