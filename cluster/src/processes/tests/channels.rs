//! One connection: what is sent arrives, and nothing else does.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use super::super::channel::{RecordType, SealedChannel};
use super::super::handshake::{self, ConnectionKind, Hello, SEALED, SharedSecret, Verdict};
use super::*;

const TICK: Duration = Duration::from_millis(100);

/// Returns both ends of a connection whose handshake is done, and two streams between them. The first stream
/// gives the client's sealed bytes; sealed bytes that are written to the second one reach the server.
fn connected() -> (SealedChannel, (TcpStream, TcpStream), SealedChannel) {
    let listen = || TcpListener::bind("127.0.0.1:0").unwrap();
    let (front, back) = (listen(), listen());
    let deadline = Instant::now() + PATIENCE;
    let client = TcpStream::connect(front.local_addr().unwrap()).unwrap();
    let from_client = front.accept().unwrap().0;
    let to_server = TcpStream::connect(back.local_addr().unwrap()).unwrap();
    let server = back.accept().unwrap().0;
    // The relay passes the handshake through. The test handles what follows.
    let (mut from, mut to) = (from_client.try_clone().unwrap(), to_server.try_clone().unwrap());
    let relay = thread::spawn(move || {
        let mut message = [0; 65];
        from.read_exact(&mut message).unwrap();
        to.write_all(&message).unwrap();
        to.read_exact(&mut message[..48]).unwrap();
        from.write_all(&message[..48]).unwrap();
        from.read_exact(&mut message[..48]).unwrap();
        to.write_all(&message[..48]).unwrap();
        to.read_exact(&mut message[..17]).unwrap();
        from.write_all(&message[..17]).unwrap();
    });
    let calling = thread::spawn(move || {
        let hello = Hello { from: 1, to: 0, kind: ConnectionKind::Data };
        let (_, keys) =
            handshake::call(&client, &SharedSecret::of_token(TOKEN), &hello, &JOB, deadline).unwrap();
        SealedChannel::new(client, keys, SEALED, TICK, 5).unwrap()
    });
    let caller = handshake::answer(&server, &SharedSecret::of_token(TOKEN), 0, deadline).unwrap();
    let keys = caller.say(&server, Verdict::Welcome, deadline).unwrap();
    relay.join().unwrap();
    (
        calling.join().unwrap(),
        (from_client, to_server),
        SealedChannel::new(server, keys, SEALED, TICK, 5).unwrap(),
    )
}

/// Returns the bytes that a client sends for these parts and the close after them.
fn wire(client: &mut SealedChannel, from_client: &mut TcpStream, parts: &[&[u8]]) -> Vec<u8> {
    parts.iter().for_each(|part| client.sender.write_all(part).unwrap());
    client.sender.close().unwrap();
    let mut wire = Vec::new();
    from_client.read_to_end(&mut wire).unwrap();
    wire
}

/// Returns all that the server reads, and the error at the end, if any.
fn heard(mut server: SealedChannel) -> (Vec<u8>, Option<ErrorKind>) {
    let mut said = Vec::new();
    let end = server.receiver.read_to_end(&mut said);
    (said, end.err().map(|error| error.kind()))
}

#[test]
fn data_of_any_length_is_received_as_it_was_sent() {
    let (mut client, (mut from_client, mut to_server), mut server) = connected();
    let long: Vec<u8> = (0..200_000u32).map(|i| (i % 251) as u8).collect();
    let pump = thread::spawn(move || std::io::copy(&mut from_client, &mut to_server).map(drop));
    for length in [1, 2, 65_518, 65_519, 65_520, 200_000] {
        client.sender.write_all(&long[..length]).unwrap();
        assert!(client.sender.beat().unwrap() && client.sender.beat().unwrap());
        let mut said = vec![0; length];
        server.receiver.read_exact(&mut said).unwrap();
        assert!(said == long[..length], "{length}");
    }
    client.sender.close().unwrap();
    assert!(client.sender.write(b"more").is_err() && !client.sender.beat().unwrap());
    for _ in 0..2 {
        assert_eq!(server.receiver.read(&mut [0]).unwrap(), 0);
        assert_eq!(server.receiver.record().unwrap(), RecordType::Close);
    }
    drop((client, server));
    let _ = pump.join().unwrap();
}

#[test]
fn bytes_on_the_wire_do_not_show_the_data() {
    let (mut client, (mut from_client, _to_server), _server) = connected();
    let wire = wire(&mut client, &mut from_client, &[b"a text of ours", b"another one"]);
    assert_eq!(wire.len(), (19 + 14 + 16) + (19 + 11 + 16) + 19);
    assert!(!wire.windows(4).any(|bytes| bytes == b"text" || bytes == b"anot"));
}

#[test]
fn a_flipped_bit_is_detected_before_its_data_is_returned() {
    let parts: [&[u8]; 2] = [b"first", b"second"];
    for at in (0..19 + 21 + 19 + 22 + 19).step_by(7) {
        let (mut client, (mut from_client, mut to_server), server) = connected();
        let mut wire = wire(&mut client, &mut from_client, &parts);
        wire[at] ^= 1;
        to_server.write_all(&wire).unwrap();
        let (said, end) = heard(server);
        assert_eq!(end, Some(ErrorKind::InvalidData), "byte {at}");
        let whole = if at < 40 {
            &b""[..]
        } else if at < 81 {
            &b"first"[..]
        } else {
            b"firstsecond"
        };
        assert_eq!(said, whole, "byte {at}");
    }
}

#[test]
fn a_record_that_is_left_out_repeated_moved_or_not_ours_is_seen() {
    let (first, second) = (19 + 21, 19 + 22);
    for what in ["left out", "repeated", "moved", "not ours"] {
        let (mut client, (mut from_client, mut to_server), server) = connected();
        let wire = wire(&mut client, &mut from_client, &[b"first", b"second"]);
        assert_eq!(wire.len(), first + second + 19);
        let (of_first, rest) = wire.split_at(first);
        let changed = match what {
            "left out" => rest.to_vec(),
            "repeated" => [of_first, of_first, rest].concat(),
            "moved" => [rest, of_first].concat(),
            _ => [of_first, b"\x02\x03\0\0\0\0\0\0\0why 0123456789", rest].concat(),
        };
        to_server.write_all(&changed).unwrap();
        let (said, end) = heard(server);
        assert_eq!(end, Some(ErrorKind::InvalidData), "{what}");
        assert!(said.is_empty() || said == b"first", "{what}: {said:?}");
    }
}

#[test]
fn a_cut_stream_is_an_error_and_not_the_end() {
    for bytes in [0, 5, 19, 30, 40, 45] {
        let (mut client, (mut from_client, mut to_server), server) = connected();
        let wire = wire(&mut client, &mut from_client, &[b"first", b"second"]);
        to_server.write_all(&wire[..bytes]).unwrap();
        drop((to_server, from_client));
        let (said, end) = heard(server);
        assert!(end.is_some(), "{bytes} bytes");
        assert_eq!(said, if bytes < 40 { &b""[..] } else { b"first" }, "{bytes} bytes");
    }
}

#[test]
fn trickling_bytes_do_not_keep_a_connection_alive() {
    let (mut client, (mut from_client, mut to_server), mut server) = connected();
    let wire = wire(&mut client, &mut from_client, &[b"first"]);
    let dripping = thread::spawn(move || {
        for byte in wire {
            thread::sleep(TICK / 2);
            if to_server.write_all(&[byte]).is_err() {
                return;
            }
        }
    });
    let error = server.receiver.read(&mut [0; 5]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert_eq!(error.to_string(), "nothing came from it for 0.5 s");
    drop(server);
    dripping.join().unwrap();
}
