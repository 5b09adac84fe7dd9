//! An attacker between two processes, who holds the port that one of them calls.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use parking_lot::Mutex;

use super::*;

/// Change that the attacker makes to the bytes that pass.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Deed {
    Pass,
    /// Drops all bytes and closes nothing, like a host that vanished.
    Swallow,
    Flip,
    Repeat,
    /// Inserts a frame as a process without seals would have written it.
    Insert,
    Cut,
}

/// A relay between a process and `to`. Its first connection is the control connection of the calling process,
/// its second one the data connection.
struct Middle {
    address: String,
    /// Deeds for the control connection and for the data connection.
    deeds: Arc<Mutex<[Deed; 2]>>,
}

impl Middle {
    fn start(to: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let deeds = Arc::new(Mutex::new([Deed::Pass; 2]));
        let to = to.to_owned();
        let of_both = Arc::clone(&deeds);
        thread::spawn(move || {
            let mut number = 0;
            for client in listener.incoming() {
                let client = client.unwrap();
                // Process `to` may not listen yet; then the other one calls again.
                let Ok(server) = TcpStream::connect(&to) else { continue };
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let deeds = Arc::clone(&of_both);
                    let number = number;
                    thread::spawn(move || pump(from, to, || deeds.lock()[number]));
                }
                number += 1;
            }
        });
        Middle { address, deeds }
    }

    fn does(&self, connection: usize, deed: Deed) {
        self.deeds.lock()[connection] = deed;
    }
}

fn pump(mut from: TcpStream, mut to: TcpStream, deed: impl Fn() -> Deed) {
    let mut buffer = [0; 4096];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        let bytes = &mut buffer[..read];
        let sent = match deed() {
            Deed::Pass => to.write_all(bytes),
            Deed::Swallow => Ok(()),
            Deed::Flip => {
                bytes[read / 2] ^= 0x10;
                to.write_all(bytes)
            }
            Deed::Repeat => to.write_all(&[&bytes[..], bytes].concat()),
            Deed::Insert => {
                to.write_all(b"\x02\x08\0\0\0\0\0\0\0give up!").and_then(|()| to.write_all(bytes))
            }
            Deed::Cut => {
                drop((from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both)));
                return;
            }
        };
        if sent.is_err() {
            return;
        }
    }
    drop(to.shutdown(Shutdown::Write));
}

/// Starts two processes, the second of which calls the first through a relay.
fn two(limits: &Limits) -> (Middle, [Joined; 2]) {
    let addresses = addresses(2);
    let middle = Middle::start(&addresses[0]);
    let behind = vec![middle.address.clone(), addresses[1].clone()];
    let joining = |index: usize, addresses: &[String]| {
        let membership = Membership { index, addresses: addresses.to_vec(), workers: 1 };
        let limits = limits.clone();
        thread::spawn(move || join(membership, limits))
    };
    let threads = [joining(0, &addresses), joining(1, &behind)];
    (middle, threads.map(|thread| thread.join().unwrap()))
}

#[test]
fn a_relay_that_changes_nothing_disturbs_no_job() {
    let (_middle, joined) = two(&Limits::default());
    let leaving = joined.map(|(group, _)| thread::spawn(move || group.unwrap().leave()));
    leaving.into_iter().for_each(|thread| assert!(thread.join().unwrap().unwrap().is_empty()));
}

#[test]
fn any_tampering_on_the_way_ends_the_job_with_its_reason() {
    let limits = Limits { tick: Duration::from_millis(300), ..Limits::default() };
    let changed = "what came on its connection was changed on the way or is not from it";
    let (closed, silent) = ("its connection closed", "nothing came from it for 3 s");
    let cases = [
        (Deed::Flip, changed),
        (Deed::Repeat, changed),
        (Deed::Insert, changed),
        (Deed::Cut, closed),
        (Deed::Swallow, silent),
    ];
    let case = |(connection, deed, reason): (usize, Deed, &str)| {
        let (middle, joined) = two(&limits);
        // Both send heartbeats for longer than a silence may last.
        thread::sleep(limits.tick * (limits.silent_ticks + 5));
        assert!(joined.iter().all(|(_, lost)| lost.try_recv().is_err()));
        middle.does(connection, deed);
        let lines = joined.each_ref().map(|(_, lost)| lost.recv_timeout(PATIENCE).unwrap());
        // Either process may notice first and tell the other. Neither may obey a forged frame.
        assert!(lines.iter().all(|line| !line.contains("give up")), "{connection}, {deed:?}: {lines:?}");
        let blamed = |line: &String| line.contains("process ") && line.contains(" was lost: ");
        assert!(lines.iter().all(blamed), "{connection}, {deed:?}: {lines:?}");
        assert!(lines.iter().any(|line| line.ends_with(reason)), "{connection}, {deed:?}: {lines:?}");
    };
    thread::scope(|scope| {
        for (connection, (deed, reason)) in [0, 1].into_iter().flat_map(|of| cases.map(|case| (of, case))) {
            scope.spawn(move || case((connection, deed, reason)));
        }
    });
}
