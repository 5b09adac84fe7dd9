//! Tests with a host that has taken the name or the address of another one, and stands between it and its
//! callers.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::{Hosts, PATIENCE, address, folder, line, of_one};
use crate::faults::Whole;

const PORT: u16 = 7117;

/// Change to the bytes of one connection, after a number of bytes have passed from the client to the server.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Nothing,
    Flip,
    Repeat,
    /// Inserts what a process without seals would say to end the job.
    Insert,
    Cut,
}

/// Starts a thread of this process on host `at`, which passes on to host `to` what comes. The first
/// connection is for control, the second for data.
fn stand(hosts: &Hosts, at: usize, to: usize, deed: Deed, connection: usize, after: usize) {
    let namespace = File::open(Path::new("/run/netns").join(&hosts.names[at])).unwrap();
    let (ready, standing) = mpsc::channel();
    thread::spawn(move || {
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
        let listener = TcpListener::bind((address(at), PORT)).unwrap();
        ready.send(()).unwrap();
        let mut number = 0;
        while let Ok((client, _)) = listener.accept() {
            // The host may not listen yet; then the caller calls again.
            let Ok(server) = TcpStream::connect((address(to), PORT)) else { continue };
            let deed = if number == connection { deed } else { Deed::Nothing };
            let passed = Arc::new(AtomicUsize::new(0));
            for (from, to) in [(&client, &server), (&server, &client)] {
                let from = from.try_clone().unwrap();
                let to = to.try_clone().unwrap();
                let passed = Arc::clone(&passed);
                // A new thread is in the network namespace of the thread that starts it.
                thread::spawn(move || pass(from, to, deed, after, &passed));
            }
            number += 1;
        }
    });
    standing.recv_timeout(PATIENCE).expect("the relay stands");
}

fn pass(mut from: TcpStream, mut to: TcpStream, deed: Deed, after: usize, passed: &AtomicUsize) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        let before = passed.fetch_add(read, Ordering::Relaxed);
        let bytes = &mut buffer[..read];
        let now = before < after && before + read >= after;
        let sent = match deed {
            Deed::Flip if now => {
                bytes[read - 1] ^= 1;
                to.write_all(bytes)
            }
            Deed::Repeat if now => to.write_all(&[&bytes[..], bytes].concat()),
            Deed::Insert if now => to.write_all(&[&bytes[..], b"\x02\x08\0\0\0\0\0\0\0give up!"].concat()),
            Deed::Cut if now => {
                drop((from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both)));
                return;
            }
            _ => to.write_all(bytes),
        };
        if sent.is_err() {
            return;
        }
    }
    drop(to.shutdown(Shutdown::Write));
}

#[test]
fn a_relay_learns_nothing_changes_nothing_and_ends_the_job_when_it_tries() {
    let here = folder(2);
    let expected = of_one(&here);
    // Process 1 is told that process 0 is where the relay is.
    here.write("hosts-of-1", format!("{}\n{}\n", address(2), address(1)));
    for (connection, after, deed) in [
        (0, 0, Deed::Nothing),
        // The handshake is over by then.
        (0, 400, Deed::Flip),
        (0, 400, Deed::Repeat),
        (0, 400, Deed::Insert),
        (0, 400, Deed::Cut),
        (1, 20_000, Deed::Flip),
        (1, 20_000, Deed::Repeat),
        (1, 20_000, Deed::Insert),
        (1, 20_000, Deed::Cut),
    ] {
        let hosts = Hosts::new(3);
        stand(&hosts, 2, 0, deed, connection, after);
        let started = [(0, "hosts"), (1, "hosts-of-1")]
            .map(|(index, file)| hosts.start(&here, index, "", &line(index, 2, file)));
        let ends = started.map(|mut process| process.end(PATIENCE));
        let what = format!("connection {connection}, {deed:?}: {ends:?}");
        if let Deed::Nothing = deed {
            assert!(ends.iter().all(|(code, _)| *code == Some(3)), "{what}");
            assert!(Whole::take(&here) == expected);
            continue;
        }
        assert!(ends.iter().all(|(code, _)| *code == Some(1)), "{what}");
        assert!(
            ends.iter().all(|(_, said)| said.contains(" was lost: ") && !said.contains("give up")),
            "{what}"
        );
        let reason = match deed {
            Deed::Cut => " was lost: its connection closed",
            _ => " was lost: what came on its connection was changed on the way or is not from it",
        };
        assert!(ends.iter().any(|(_, said)| said.contains(reason)), "{what}");
        assert!(!here.path("out/_SUCCESS").exists(), "{what}");
        // The finished work must not be resumed. The job may have ended before it claimed its output.
        drop(std::fs::remove_dir_all(here.path("out")));
    }
}
