//! Strangers that must not disturb a start, or be taken for a process of the job.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use super::super::handshake::{self, ConnectionKind, Hello, SharedSecret, Verdict};
use super::*;

/// Limit that is long enough for a busy machine and short enough to wait for.
const HANDSHAKE: Duration = Duration::from_secs(2);

fn limits() -> Limits {
    Limits { handshake: HANDSHAKE, ..Limits::default() }
}

fn secret(token: &[u8]) -> SharedSecret {
    SharedSecret::of_token(token)
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
    // A server that refuses early may close before everything is written.
    let _ = stream.write_all(bytes);
    stream
}

/// Checks that the other side closes and never accepts. Returns how many bytes it sent.
fn refused(mut stream: TcpStream) -> usize {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut said = Vec::new();
    let end = stream.read_to_end(&mut said);
    let closed = end.is_ok() || end.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset);
    assert!(closed, "it was left open");
    // The server's handshake message may come, which is useless to anybody without the token.
    assert!(said.len() <= 48, "it said {said:?}");
    said.len()
}

fn assert_refused(stream: TcpStream) {
    refused(stream);
}

/// Performs a handshake as a process that knows the token.
fn call(address: &str, from: u32, to: u32, kind: ConnectionKind) -> std::io::Result<Verdict> {
    let hello = Hello { from, to, kind };
    let called = handshake::call(&connect(address), &secret(TOKEN), &hello, &JOB, Instant::now() + PATIENCE);
    called.map(|(verdict, _)| verdict)
}

/// Returns everything that the right client of process `to` sends in a handshake with another server that
/// knows the token: its first message and its last.
fn recorded(to: u32) -> (Vec<u8>, Vec<u8>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let middle = listener.local_addr().unwrap();
    let address = addresses(1).remove(0);
    let server = TcpListener::bind(&address).unwrap();
    let answering = thread::spawn(move || {
        let stream = server.accept().unwrap().0;
        handshake::answer(&stream, &secret(TOKEN), to as usize, Instant::now() + PATIENCE).unwrap()
    });
    let calling = thread::spawn(move || {
        let hello = Hello { from: 1, to, kind: ConnectionKind::Control };
        let stream = TcpStream::connect(middle).unwrap();
        let _ = handshake::call(&stream, &secret(TOKEN), &hello, &JOB, Instant::now() + PATIENCE);
    });
    let mut client = listener.accept().unwrap().0;
    let mut server = TcpStream::connect(address).unwrap();
    let mut begin = vec![0; 17 + 48];
    let mut answer = vec![0; 48];
    let mut end = vec![0; 48];
    client.read_exact(&mut begin).unwrap();
    server.write_all(&begin).unwrap();
    server.read_exact(&mut answer).unwrap();
    client.write_all(&answer).unwrap();
    client.read_exact(&mut end).unwrap();
    server.write_all(&end).unwrap();
    assert_eq!(answering.join().unwrap().hello.from, 1);
    drop(client);
    calling.join().unwrap();
    (begin, end)
}

/// Disturbs process 0 of several, which listens at `address`, in all the ways that a stranger can. Returns
/// the connections that must be refused.
fn disturb(address: &str) -> Vec<TcpStream> {
    let (hello, proof) = recorded(0);
    drop(connect(address));
    let mut held = vec![
        connect(address),
        say(address, b"dedup"),
        say(address, &[0x5a; 10_000]),
        say(address, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        say(address, &hello),
        say(address, &[hello.clone(), vec![0; 48]].concat()),
        say(address, &[&hello[..17], &[0; 48][..]].concat()),
        say(address, &[hello.clone(), proof].concat()),
    ];
    // Each byte comes in time, but all together would take longer than the test waits.
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
    let hello = Hello { from: 1, to: 0, kind: ConnectionKind::Control };
    let other =
        handshake::call(&connect(address), &secret(b"not ours"), &hello, &JOB, Instant::now() + PATIENCE);
    assert!(other.is_err(), "another token");
    assert_eq!(
        call(address, 0, 0, ConnectionKind::Data).unwrap(),
        Verdict::NotAwaited,
        "the server's own index"
    );
    assert_eq!(
        call(address, 9, 0, ConnectionKind::Data).unwrap(),
        Verdict::NotAwaited,
        "an index out of range"
    );
    assert_eq!(
        call(address, u32::MAX, 0, ConnectionKind::Control).unwrap(),
        Verdict::NotAwaited,
        "a large one"
    );
    held
}

#[test]
fn no_stranger_disturbs_a_start_and_none_gets_in() {
    let addresses = addresses(3);
    let starting = |membership: Membership| thread::spawn(move || join(membership, limits()));
    let mut memberships = memberships(&addresses, 1);
    let first = starting(memberships.next().unwrap());
    let mut strangers = disturb(&addresses[0]);
    let second = starting(memberships.next().unwrap());
    // Until process 1 has come, its place is free.
    let begun = Instant::now();
    strangers.extend(disturb(&addresses[0]));
    strangers.extend((0..200).map(|_| connect(&addresses[0])));
    let third = starting(memberships.next().unwrap());
    let groups: Vec<_> = [first, second, third]
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .map(|(group, lost)| (group.unwrap(), lost))
        .collect();
    assert!(begun.elapsed() < PATIENCE);
    strangers.into_iter().for_each(assert_refused);
    for address in &addresses {
        let error = TcpStream::connect(address).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "the port of {address}");
    }
    let leaving: Vec<_> = groups.into_iter().map(|(group, _)| thread::spawn(move || group.leave())).collect();
    leaving.into_iter().for_each(|thread| assert!(thread.join().unwrap().unwrap().is_empty()));
}

/// Otherwise a relay that holds the port of process 2 could make process 1 answer for it.
#[test]
fn a_caller_of_another_process_gets_no_answer() {
    let addresses = addresses(2);
    let joining =
        |membership: Membership| thread::spawn(move || join(membership, limits()).0.unwrap().leave());
    let mut memberships = memberships(&addresses, 1);
    let first = joining(memberships.next().unwrap());
    let (hello, _) = recorded(2);
    assert_eq!(refused(say(&addresses[0], &hello)), 0);
    assert!(call(&addresses[0], 1, 2, ConnectionKind::Control).is_err());
    // A hello for process 0 is answered.
    let (hello, _) = recorded(0);
    assert_eq!(refused(say(&addresses[0], &hello)), 48);
    for process in [first, joining(memberships.next().unwrap())] {
        process.join().unwrap().unwrap();
    }
}

#[test]
fn of_many_who_say_nothing_64_are_heard_out_and_the_others_turned_away_at_once() {
    let addresses = addresses(2);
    let limits = Limits { handshake: PATIENCE * 2, ..Limits::default() };
    let joining = |membership: Membership| {
        let limits = limits.clone();
        thread::spawn(move || join(membership, limits).0.unwrap().leave())
    };
    let mut memberships = memberships(&addresses, 1);
    let first = joining(memberships.next().unwrap());
    let mut silent: Vec<_> = (0..200).map(|_| connect(&addresses[0])).collect();
    silent.drain(64..).for_each(assert_refused);
    for stream in &mut silent {
        stream.set_nonblocking(true).unwrap();
        assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    }
    drop(silent);
    for process in [first, joining(memberships.next().unwrap())] {
        process.join().unwrap().unwrap();
    }
}

#[test]
fn an_index_that_has_come_is_not_given_again() {
    let addresses = addresses(3);
    let mut memberships = memberships(&addresses, 1);
    let first = memberships.next().unwrap();
    let first = thread::spawn(move || join(first, limits()).0.map(drop));
    let hello = Hello { from: 1, to: 0, kind: ConnectionKind::Data };
    let held = connect(&addresses[0]);
    let called = handshake::call(&held, &secret(TOKEN), &hello, &JOB, Instant::now() + PATIENCE);
    assert_eq!(called.unwrap().0, Verdict::Welcome);
    assert_eq!(call(&addresses[0], 1, 0, ConnectionKind::Data).unwrap(), Verdict::Taken);
    let error = join(memberships.next().unwrap(), limits()).0.map(drop).unwrap_err().to_string();
    assert_eq!(error, format!("process 0 ({}) has met another process 1", addresses[0]));
    // That process has connected to process 0 before, and tells it.
    let error = first.join().unwrap().unwrap_err().to_string();
    assert!(error.contains("process 1"), "{error}");
}

#[test]
fn processes_of_two_configurations_say_so_on_both_sides() {
    let addresses = addresses(2);
    let joining = |(membership, job): (Membership, [u8; 32])| {
        thread::spawn(move || join_as(membership, job, TOKEN, limits()).0.map(drop).unwrap_err().to_string())
    };
    let threads: Vec<_> = memberships(&addresses, 1).zip([JOB, [8; 32]]).map(joining).collect();
    let errors: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    let reason = "runs another program or configuration";
    assert_eq!(errors, [format!("process 1 {reason}"), format!("process 0 ({}) {reason}", addresses[0])]);
}

#[test]
fn a_process_that_does_not_come_in_time_is_named_to_all() {
    let addresses = addresses(4);
    let limits = Limits { start: Duration::from_secs(2), ..limits() };
    let joining = |membership: Membership| {
        let limits = limits.clone();
        thread::spawn(move || join(membership, limits).0.map(drop).unwrap_err().to_string())
    };
    let threads: Vec<_> = memberships(&addresses, 1).take(2).map(joining).collect();
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
    let joining = |(membership, token): (Membership, &'static [u8])| {
        let limits = limits.clone();
        thread::spawn(move || join_as(membership, JOB, token, limits).0.map(drop).unwrap_err().to_string())
    };
    let threads: Vec<_> = memberships(&addresses, 1).zip([TOKEN, b"not ours"]).map(joining).collect();
    let errors: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert!(errors[0].contains(" (connections without proof of the token: "), "{}", errors[0]);
    assert!(
        errors[1].contains("process 0: it closed the connection: its token, its version or "),
        "{}",
        errors[1]
    );
}

#[test]
fn without_a_token_only_loopback_will_do() {
    let elsewhere = "192.0.2.1:7077".to_owned();
    let mut addresses = addresses(2);
    let empty =
        |membership: Membership| join_as(membership, JOB, b"", limits()).0.map(drop).unwrap_err().to_string();
    addresses[0] = elsewhere.clone();
    let expected = "process 0 (192.0.2.1:7077) is not on loopback, which needs a token";
    for membership in memberships(&addresses, 1) {
        assert_eq!(empty(membership), expected);
    }
}
