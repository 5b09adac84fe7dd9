//! What processes do together, and how they learn of an end.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};

use timely::dataflow::operators::{Exchange, Inspect, ToStream};

use super::*;

#[test]
fn records_reach_the_worker_of_their_value_in_any_process() {
    let sums = each(3, 2, |cluster, _lost| {
        let (index, all) = (cluster.index(), cluster.all_workers());
        let sums = cluster.run(|worker| {
            let (sender, records) = mpsc::channel();
            worker.dataflow::<u64, _, _>(|scope| {
                let given = (0..6000u64).to_stream(scope).container::<Vec<_>>();
                given.exchange(|record| *record).inspect(move |record| sender.send(*record).unwrap());
            });
            while worker.step_or_park(None) {}
            let records: Vec<u64> = records.iter().collect();
            let ours = records.iter().all(|record| *record as usize % worker.peers() == worker.index());
            assert!(ours, "a record of another worker");
            Ok::<_, Error>((worker.index(), records.iter().sum::<u64>()))
        });
        let again = cluster.run(|_| Ok::<_, Error>(()));
        assert!(again.is_err(), "the sockets are gone");
        cluster.leave().unwrap();
        (index, all, sums.unwrap())
    });
    for (process, (index, all, sums)) in sums.into_iter().enumerate() {
        assert_eq!((index, all), (process, 6));
        // Six workers give 0..6000 each; 1000 of these have the value of one worker.
        let sum = |worker: usize| (worker, (0..1000).map(|i| 6 * (i * 6 + worker as u64)).sum::<u64>());
        assert_eq!(sums, [sum(2 * process), sum(2 * process + 1)]);
    }
}

#[test]
fn bytes_of_all_meet_at_the_first_and_its_bytes_reach_all() {
    let results = each(3, 1, |cluster, _lost| {
        let mine = vec![cluster.index() as u8; 5_000_000 * cluster.index()];
        let gathered = cluster.gather(mine).unwrap();
        let lengths = gathered.map(|all| {
            all.iter().map(|bytes| bytes.len() as u8 ^ bytes.last().copied().unwrap_or(9)).collect()
        });
        let lengths = cluster.broadcast(lengths).unwrap();
        let words = cluster.meet(cluster.index().to_string(), |all| Ok::<_, Error>(all.join("+"))).unwrap();
        cluster.leave().unwrap();
        (lengths, words)
    });
    let last = |length: usize, byte: u8| length as u8 ^ byte;
    let expected = (vec![last(0, 9), last(5_000_000, 1), last(10_000_000, 2)], "0+1+2".to_owned());
    assert_eq!(results, [expected.clone(), expected.clone(), expected]);
}

#[test]
fn each_process_gets_its_own_part_of_what_was_merged() {
    let parts = each(3, 1, |cluster, _lost| {
        let mine = format!("{0}{0}", cluster.index());
        let part = cluster.meet_apart(mine, |all| {
            let all = all.join("+");
            Ok::<_, Error>((0..3).map(|to| format!("{all} for {to}")).collect())
        });
        cluster.leave().unwrap();
        part.unwrap()
    });
    let part = |to: usize| format!("00+11+22 for {to}");
    assert_eq!(parts, [part(0), part(1), part(2)]);
}

#[test]
fn alone_everything_stays_as_it_is() {
    let cluster = Cluster::alone(2);
    assert_eq!((cluster.index(), cluster.processes(), cluster.all_workers()), (0, 1, 2));
    assert_eq!(cluster.gather(vec![1]).unwrap(), Some(vec![vec![1]]));
    assert_eq!(cluster.broadcast(Some(vec![2])).unwrap(), [2]);
    assert_eq!(cluster.meet(3, Ok::<_, Error>).unwrap(), [3]);
    assert_eq!(cluster.meet_apart(4, Ok::<_, Error>).unwrap(), 4);
    assert!(
        cluster.meet_apart((), |_| Ok::<_, Error>(Vec::<()>::new())).is_err(),
        "there is a part for each"
    );
    cluster.leave().unwrap();
}

#[test]
fn a_process_that_goes_without_goodbye_is_named_to_all() {
    for gone in 0..3 {
        let lines = each(3, 1, move |cluster, lost| {
            if cluster.index() == gone {
                return None;
            }
            let line = lost.recv_timeout(PATIENCE).unwrap();
            assert!(cluster.gather(vec![]).and_then(|_| cluster.broadcast(None)).is_err());
            assert!(cluster.leave().is_err());
            Some(line)
        });
        for line in lines.into_iter().flatten() {
            assert!(line.starts_with(&format!("process {gone} (127.0.0.1:")), "{line}");
            assert!(line.ends_with(") was lost: its connection closed"), "{line}");
        }
    }
}

#[test]
fn why_a_process_gives_up_is_told_to_all() {
    for failing in 0..3 {
        let lines = each(3, 1, move |cluster, lost| {
            if cluster.index() == failing {
                cluster.fail("the disk is full");
                assert!(lost.try_recv().is_err(), "it blames nobody");
                return None;
            }
            // Those who wait for it hear of it, too.
            let error = match cluster.index() {
                0 => cluster.gather(vec![]).map(drop),
                _ => cluster.broadcast(None).map(drop),
            };
            let line = lost.recv_timeout(PATIENCE).unwrap();
            assert_eq!(error.unwrap_err().to_string(), line);
            assert!(lost.try_recv().is_err(), "it is called once");
            Some(line)
        });
        for line in lines.into_iter().flatten() {
            assert!(line.starts_with(&format!("process {failing} (127.0.0.1:")), "{line}");
            assert!(line.ends_with("): the disk is full"), "{line}");
        }
    }
}

#[test]
fn nobody_leaves_well_when_another_fails_before_it_leaves() {
    let left = each(3, 1, |cluster, _lost| {
        if cluster.index() == 2 {
            thread::sleep(Duration::from_millis(300));
            cluster.fail("too bad");
            return false;
        }
        cluster.leave().is_ok()
    });
    assert_eq!(left, [false; 3]);
}

/// Forwards what comes to a new address to `to`, until told to swallow it.
fn proxy(to: &str, swallow: &Arc<AtomicBool>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (to, swallow) = (to.to_owned(), Arc::clone(swallow));
    let pump = |mut from: TcpStream, mut to: TcpStream, swallow: Arc<AtomicBool>| {
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read) = from.read(&mut buffer) {
                if swallow.load(Ordering::SeqCst) {
                    // A host that vanished closes nothing either.
                    thread::sleep(PATIENCE);
                }
                if read == 0 || to.write_all(&buffer[..read]).is_err() {
                    return;
                }
            }
        })
    };
    thread::spawn(move || {
        for client in listener.incoming() {
            let client = client.unwrap();
            if let Ok(server) = TcpStream::connect(&to) {
                pump(client.try_clone().unwrap(), server.try_clone().unwrap(), Arc::clone(&swallow));
                pump(server, client, Arc::clone(&swallow));
            }
        }
    });
    address
}

#[test]
fn a_host_that_vanishes_without_a_word_is_lost_after_the_ticks_of_silence() {
    let limits = Limits { tick: Duration::from_millis(300), ..Limits::default() };
    let swallow = Arc::new(AtomicBool::new(false));
    let addresses = addresses(2);
    let behind = vec![proxy(&addresses[0], &swallow), addresses[1].clone()];
    let joining = |index: usize, addresses: &[String]| {
        let place = Place { index, addresses: addresses.to_vec(), workers: 1 };
        let limits = limits.clone();
        thread::spawn(move || join(place, limits))
    };
    let threads = [joining(0, &addresses), joining(1, &behind)];
    let joined = threads.map(|thread| thread.join().unwrap());
    // Both beat for longer than a silence may last.
    thread::sleep(limits.tick * (limits.silent_ticks + 5));
    assert!(joined.iter().all(|(_, lost)| lost.try_recv().is_err()));
    swallow.store(true, Ordering::SeqCst);
    for ((_cluster, lost), other) in joined.iter().zip([1, 0]) {
        let line = lost.recv_timeout(PATIENCE).unwrap();
        assert!(line.starts_with(&format!("process {other} (")), "{line}");
        assert!(line.ends_with("was lost: nothing came from it for 3 s"), "{line}");
    }
}
