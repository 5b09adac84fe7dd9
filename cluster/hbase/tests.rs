//! Tests of connections against gateways that fail in ways a real one rarely does.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::{GatewayLimits, HBaseAddress, HBaseTable};
use cluster::Error;

/// Treatment of a request by a gateway.
#[derive(Clone, Copy)]
enum Reply {
    /// The table exists.
    Yes,
    /// The table exists, and the connection is closed behind the answer.
    YesAndClose,
    /// The connection is closed without an answer.
    Close,
    /// The answer does not come.
    Silence,
    /// The answer is one of another protocol.
    Http,
    /// The answer has a name of negative length.
    Negative,
    /// The table server is busy, and the request may be made again.
    Busy,
    /// The request must not be made again.
    Never,
}

/// Starts a gateway that gives `replies` one after the other, and then the last of them for ever. Returns the table,
/// and how many requests have come. It ends with the process of the tests.
fn gateway(replies: &'static [Reply]) -> (HBaseTable, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("hbase://{}/seen", listener.local_addr().unwrap());
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let asked = Arc::clone(&counter);
            thread::spawn(move || while answer(&mut stream, replies, &asked) {});
        }
    });
    (table(&address), asked)
}

fn table(address: &str) -> HBaseTable {
    let limits = GatewayLimits {
        connect: Duration::from_secs(1),
        answer: Duration::from_millis(300),
        attempts: 3,
        idle_connections: 4,
    };
    HBaseTable::new(&HBaseAddress::parse(address).unwrap().unwrap(), limits)
}

/// Answers a request. Returns whether the connection stays.
fn answer(stream: &mut TcpStream, replies: &[Reply], asked: &AtomicUsize) -> bool {
    let mut request = [0; 1024];
    let Ok(count @ 1..) = stream.read(&mut request) else { return false };
    let at = asked.fetch_add(1, Ordering::Relaxed);
    // Version and kind, the name of the call, and the number of the request, which is the answer's, too.
    let head = &mut request[..4 + 4 + "tableExists".len() + 4].to_vec();
    assert!(count > head.len());
    head[3] = 2;
    let exception = |can_retry: u8| {
        let message = b"java.io.IOException: busy\n\tat Region.java";
        let length = (message.len() as u32).to_be_bytes();
        [&[12, 0, 1, 11, 0, 1][..], &length, message, &[2, 0, 2, can_retry, 0, 0]].concat()
    };
    let (bytes, stays) = match replies[at.min(replies.len() - 1)] {
        Reply::Yes => ([&head[..], &[2, 0, 0, 1, 0]].concat(), true),
        Reply::YesAndClose => ([&head[..], &[2, 0, 0, 1, 0]].concat(), false),
        Reply::Close => (Vec::new(), false),
        Reply::Silence => {
            thread::sleep(Duration::from_secs(2));
            (Vec::new(), false)
        }
        Reply::Http => (b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), false),
        Reply::Negative => ([&head[..4], &[0xff; 4]].concat(), false),
        Reply::Busy => ([&head[..], &exception(1)].concat(), true),
        Reply::Never => ([&head[..], &exception(0)].concat(), true),
    };
    stream.write_all(&bytes).is_ok() && stays
}

/// Returns what an error says, with its cause.
fn said(error: &Error) -> String {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    format!("{error}: {}", cause.unwrap_or_default())
}

#[test]
fn a_connection_is_used_again_and_made_anew_without_a_pause_if_it_was_dropped() {
    for reply in [&[Reply::Yes][..], &[Reply::YesAndClose]] {
        let (table, asked) = gateway(reply);
        assert!(table.exists().unwrap());
        let start = Instant::now();
        for _ in 0..20 {
            // The end of a connection arrives a little later than the answer before it.
            thread::sleep(Duration::from_millis(2));
            assert!(table.exists().unwrap());
        }
        // One pause takes 0.2 s.
        assert!(start.elapsed() < Duration::from_millis(200), "{:?}", start.elapsed());
        assert!(asked.load(Ordering::Relaxed) >= 21);
    }
}

#[test]
fn transient_errors_are_retried() {
    for replies in [
        &[Reply::Close, Reply::Yes][..],
        &[Reply::Silence, Reply::Yes],
        &[Reply::Http, Reply::Yes],
        &[Reply::Negative, Reply::Yes],
        &[Reply::Busy, Reply::Busy, Reply::Yes],
    ] {
        let (table, asked) = gateway(replies);
        assert!(table.exists().unwrap());
        assert_eq!(asked.load(Ordering::Relaxed), replies.len());
    }
}

#[test]
fn attempts_are_bounded_and_the_last_reason_is_said() {
    for (reply, times, reason) in [
        (&[Reply::Close][..], 3, ""),
        (&[Reply::Silence], 3, ""),
        (&[Reply::Negative], 3, "the answer is not one of Thrift"),
        (&[Reply::Busy], 3, "java.io.IOException: busy"),
        (&[Reply::Never], 1, "java.io.IOException: busy"),
    ] {
        let (table, asked) = gateway(reply);
        let start = Instant::now();
        let error = table.exists().unwrap_err();
        assert!(start.elapsed() < Duration::from_secs(4));
        // A connection that has waited gets one attempt more.
        let asked = asked.load(Ordering::Relaxed);
        assert!((times..=times + 2).contains(&asked), "{asked} attempts: {}", said(&error));
        assert!(said(&error).ends_with(reason), "{}", said(&error));
        assert!(said(&error).starts_with("could not look for \"hbase://127.0.0.1:"), "{}", said(&error));
    }
}

#[test]
fn a_gateway_that_was_never_reached_is_an_error_at_once() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let start = Instant::now();
    assert!(table(&format!("hbase://127.0.0.1:{port}/seen")).exists().is_err());
    assert!(start.elapsed() < Duration::from_millis(200), "{:?}", start.elapsed());
}
