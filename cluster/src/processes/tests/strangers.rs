//! Who must not disturb a start, and who must not be taken for a process of the job.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use aws_lc_rs::hmac;

use super::super::handshake::{self, Hello, Kind, Verdict};
use super::*;

/// Long enough for a busy machine, short enough to wait for.
const HANDSHAKE: Duration = Duration::from_secs(2);

fn limits() -> Limits {
    Limits { handshake: HANDSHAKE, ..Limits::default() }
}

fn key(token: &[u8]) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, token)
}

/// Connects as soon as somebody listens.
fn connect(address: &str) -> TcpStream {
    let begun = Instant::now();
    loop {
        match TcpStream::connect(address) {
            Ok(stream) => break stream,
            Err(_) if begun.elapsed() < PATIENCE => thread::sleep(Duration::from_millis(10)),
            Err(error) => panic!("nobody listens at {address}: {error}"),
        }
    }
}

fn say(address: &str, bytes: &[u8]) -> TcpStream {
    let mut stream = connect(address);
    // What is refused early may be closed before all is said.
    let _ = stream.write_all(bytes);
    stream
}

/// Checks that the other side closes, and never says that all is well.
fn assert_refused(mut stream: TcpStream) {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut said = Vec::new();
    let end = stream.read_to_end(&mut said);
    let closed = end.is_ok() || end.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset);
    assert!(closed, "it was left open");
    // At most the server's nonce and proof.
    assert!(said.len() <= 64, "it said {said:?}");
}

/// A handshake by a process that knows the token.
fn call(address: &str, from: u32, to: u32, kind: Kind, job: [u8; 32]) -> Verdict {
    let hello = Hello { job, from, to, kind };
    handshake::call(&connect(address), &key(TOKEN), &hello, Instant::now() + PATIENCE).unwrap()
}

/// All that the right client of process 0 sends in a handshake with somebody else who knows the token.
fn recorded() -> (Vec<u8>, Vec<u8>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (middle, address) = (listener.local_addr().unwrap(), addresses(1).remove(0));
    let server = TcpListener::bind(&address).unwrap();
    let answering = thread::spawn(move || {
        let stream = server.accept().unwrap().0;
        handshake::answer(&stream, &key(TOKEN), Instant::now() + PATIENCE).unwrap()
    });
    let calling = thread::spawn(move || {
        let hello = Hello { job: JOB, from: 1, to: 0, kind: Kind::Control };
        let stream = TcpStream::connect(middle).unwrap();
        let _ = handshake::call(&stream, &key(TOKEN), &hello, Instant::now() + PATIENCE);
    });
    let (mut client, mut server) = (listener.accept().unwrap().0, TcpStream::connect(address).unwrap());
    let (mut hello, mut answer, mut proof) = (vec![0; 81], vec![0; 64], vec![0; 32]);
    client.read_exact(&mut hello).unwrap();
    server.write_all(&hello).unwrap();
    server.read_exact(&mut answer).unwrap();
    client.write_all(&answer).unwrap();
    client.read_exact(&mut proof).unwrap();
    server.write_all(&proof).unwrap();
    assert_eq!(answering.join().unwrap().from, 1);
    drop(client);
    calling.join().unwrap();
    (hello, proof)
}

/// Disturbs process 0 of several, which listens at `address`, in all the ways a stranger can. Returns the
/// connections that are to be refused.
fn disturb(address: &str) -> Vec<TcpStream> {
    let (hello, proof) = recorded();
    drop(connect(address));
    let mut held = vec![
        connect(address),
        say(address, b"dedup"),
        say(address, &[0x5a; 10_000]),
        say(address, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        say(address, &hello),
        say(address, &[hello.clone(), vec![0; 32]].concat()),
        say(address, &[hello.clone(), proof].concat()),
    ];
    // Each byte comes in time, and all would take longer than the test waits.
    let slow = connect(address);
    let mut writer = slow.try_clone().unwrap();
    thread::spawn(move || {
        for byte in hello {
            thread::sleep(HANDSHAKE / 2);
            if writer.write_all(&[byte]).is_err() {
                return;
            }
        }
    });
    held.push(slow);
    let hello = Hello { job: JOB, from: 1, to: 0, kind: Kind::Control };
    let other = handshake::call(&connect(address), &key(b"not ours"), &hello, Instant::now() + PATIENCE);
    assert!(other.is_err(), "another token");
    assert_eq!(call(address, 0, 0, Kind::Data, JOB), Verdict::NotAwaited, "the server's own index");
    assert_eq!(call(address, 9, 0, Kind::Data, JOB), Verdict::NotAwaited, "an index out of range");
    assert_eq!(call(address, u32::MAX, 0, Kind::Control, JOB), Verdict::NotAwaited, "a large one");
    assert_eq!(call(address, 1, 2, Kind::Data, JOB), Verdict::NotAwaited, "for somebody else");
    held
}

#[test]
fn no_stranger_disturbs_a_start_and_none_gets_in() {
    let addresses = addresses(3);
    let starting = |place: Place| thread::spawn(move || join(place, limits()));
    let mut places = places(&addresses, 1);
    let first = starting(places.next().unwrap());
    let mut strangers = disturb(&addresses[0]);
    let second = starting(places.next().unwrap());
    // Until process 1 has come, there is a place for it.
    let begun = Instant::now();
    strangers.extend(disturb(&addresses[0]));
    strangers.extend((0..200).map(|_| connect(&addresses[0])));
    let third = starting(places.next().unwrap());
    let clusters: Vec<_> = [first, second, third]
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .map(|(cluster, lost)| (cluster.unwrap(), lost))
        .collect();
    assert!(begun.elapsed() < PATIENCE);
    strangers.into_iter().for_each(assert_refused);
    for address in &addresses {
        let error = TcpStream::connect(address).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "the port of {address}");
    }
    let leaving: Vec<_> =
        clusters.into_iter().map(|(cluster, _)| thread::spawn(move || cluster.leave())).collect();
    leaving.into_iter().for_each(|thread| thread.join().unwrap().unwrap());
}

#[test]
fn of_many_who_say_nothing_64_are_heard_out_and_the_others_turned_away_at_once() {
    let addresses = addresses(2);
    let limits = Limits { handshake: PATIENCE * 2, ..Limits::default() };
    let joining = |place: Place| {
        let limits = limits.clone();
        thread::spawn(move || join(place, limits).0.unwrap().leave())
    };
    let mut places = places(&addresses, 1);
    let first = joining(places.next().unwrap());
    let mut silent: Vec<_> = (0..200).map(|_| connect(&addresses[0])).collect();
    silent.drain(64..).for_each(assert_refused);
    for stream in &mut silent {
        stream.set_nonblocking(true).unwrap();
        assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    }
    drop(silent);
    for process in [first, joining(places.next().unwrap())] {
        process.join().unwrap().unwrap();
    }
}

#[test]
fn an_index_that_has_come_is_not_given_again() {
    let addresses = addresses(3);
    let mut places = places(&addresses, 1);
    let first = places.next().unwrap();
    let first = thread::spawn(move || join(first, limits()).0.map(drop));
    let hello = Hello { job: JOB, from: 1, to: 0, kind: Kind::Data };
    let held = connect(&addresses[0]);
    let verdict = handshake::call(&held, &key(TOKEN), &hello, Instant::now() + PATIENCE);
    assert_eq!(verdict.unwrap(), Verdict::Welcome);
    assert_eq!(call(&addresses[0], 1, 0, Kind::Data, JOB), Verdict::Taken);
    let error = join(places.next().unwrap(), limits()).0.map(drop).unwrap_err().to_string();
    assert_eq!(error, format!("process 0 ({}) has met another process 1", addresses[0]));
    // That process has met process 0 before, and tells it.
    let error = first.join().unwrap().unwrap_err().to_string();
    assert!(error.contains("process 1"), "{error}");
}

#[test]
fn processes_of_two_configurations_say_so_on_both_sides() {
    let addresses = addresses(2);
    let joining = |(place, job): (Place, [u8; 32])| {
        thread::spawn(move || join_as(place, job, TOKEN, limits()).0.map(drop).unwrap_err().to_string())
    };
    let threads: Vec<_> = places(&addresses, 1).zip([JOB, [8; 32]]).map(joining).collect();
    let errors: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    let reason = "runs another program or configuration";
    assert_eq!(errors, [format!("process 1 {reason}"), format!("process 0 ({}) {reason}", addresses[0])]);
}

#[test]
fn who_does_not_come_in_time_is_named_to_all() {
    let addresses = addresses(4);
    let limits = Limits { start: Duration::from_secs(2), ..limits() };
    let joining = |place: Place| {
        let limits = limits.clone();
        thread::spawn(move || join(place, limits).0.map(drop).unwrap_err().to_string())
    };
    let threads: Vec<_> = places(&addresses, 1).take(2).map(joining).collect();
    let expected =
        format!("process 2 ({}), process 3 ({}) did not come within 2 s", addresses[2], addresses[3]);
    for thread in threads {
        let error = thread.join().unwrap();
        assert!(error.ends_with(&expected), "{error}");
    }
}

#[test]
fn a_process_with_another_token_is_not_met() {
    let addresses = addresses(2);
    let limits = Limits { start: Duration::from_secs(2), ..limits() };
    let joining = |(place, token): (Place, &'static [u8])| {
        let limits = limits.clone();
        thread::spawn(move || join_as(place, JOB, token, limits).0.map(drop).unwrap_err().to_string())
    };
    let threads: Vec<_> = places(&addresses, 1).zip([TOKEN, b"not ours"]).map(joining).collect();
    let errors: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert!(errors[0].contains(" (connections without proof of the token: "), "{}", errors[0]);
    assert!(errors[1].contains("process 0: it does not prove the token"), "{}", errors[1]);
}

#[test]
fn without_a_token_only_loopback_will_do() {
    let elsewhere = "192.0.2.1:7077".to_owned();
    let mut addresses = addresses(2);
    let empty = |place: Place| join_as(place, JOB, b"", limits()).0.map(drop).unwrap_err().to_string();
    addresses[0] = elsewhere.clone();
    let expected = "process 0 (192.0.2.1:7077) is not on loopback, which needs a token";
    for place in places(&addresses, 1) {
        assert_eq!(empty(place), expected);
    }
}
