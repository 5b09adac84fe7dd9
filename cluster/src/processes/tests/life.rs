//! Joint work of processes, and how they learn of the end of another one.

use timely::dataflow::operators::{Exchange, Inspect, ToStream};

use super::*;

#[test]
fn records_reach_the_worker_of_their_value_in_any_process() {
    let sums = each(3, 2, |group, _lost| {
        let (index, all) = (group.index(), group.all_workers());
        let sums = group.run(|worker| {
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
        let again = group.run(|_| Ok::<_, Error>(()));
        assert!(again.is_err(), "the sockets are gone");
        group.leave().unwrap();
        (index, all, sums.unwrap())
    });
    for (process, (index, all, sums)) in sums.into_iter().enumerate() {
        assert_eq!((index, all), (process, 6));
        // Six workers give 0..6000 each. 1,000 of these numbers belong to each worker.
        let sum = |worker: usize| (worker, (0..1000).map(|i| 6 * (i * 6 + worker as u64)).sum::<u64>());
        assert_eq!(sums, [sum(2 * process), sum(2 * process + 1)]);
    }
}

#[test]
fn gather_broadcast_and_all_reduce_reach_every_process() {
    let results = each(3, 1, |group, _lost| {
        let mine = vec![group.index() as u8; 5_000_000 * group.index()];
        let gathered = group.gather(mine).unwrap();
        let lengths = gathered.map(|all| {
            all.iter().map(|bytes| bytes.len() as u8 ^ bytes.last().copied().unwrap_or(9)).collect()
        });
        let lengths = group.broadcast(lengths).unwrap();
        let words = group.all_reduce(group.index().to_string(), |all| Ok::<_, Error>(all.join("+"))).unwrap();
        group.leave().unwrap();
        (lengths, words)
    });
    let last = |length: usize, byte: u8| length as u8 ^ byte;
    let expected = (vec![last(0, 9), last(5_000_000, 1), last(10_000_000, 2)], "0+1+2".to_owned());
    assert_eq!(results, [expected.clone(), expected.clone(), expected]);
}

#[test]
fn a_group_of_one_process_gets_back_what_it_gives() {
    let group = Group::alone(2);
    assert_eq!((group.index(), group.processes(), group.all_workers()), (0, 1, 2));
    assert_eq!(group.gather(vec![1]).unwrap(), Some(vec![vec![1]]));
    assert_eq!(group.broadcast(Some(vec![2])).unwrap(), [2]);
    assert_eq!(group.all_reduce(3, Ok::<_, Error>).unwrap(), [3]);
    group.leave().unwrap();
}

#[test]
fn a_process_that_goes_without_goodbye_is_named_to_all() {
    for gone in 0..3 {
        let lines = each(3, 1, move |group, lost| {
            if group.index() == gone {
                return None;
            }
            let line = lost.recv_timeout(PATIENCE).unwrap();
            assert!(group.gather(vec![]).and_then(|_| group.broadcast(None)).is_err());
            assert!(group.leave().is_err());
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
        let lines = each(3, 1, move |group, lost| {
            if group.index() == failing {
                group.fail("the disk is full");
                assert!(lost.try_recv().is_err(), "it blames nobody");
                return None;
            }
            // Calls that wait for that process get the error, too.
            let error = match group.index() {
                0 => group.gather(vec![]).map(drop),
                _ => group.broadcast(None).map(drop),
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
    let left = each(3, 1, |group, _lost| {
        if group.index() == 2 {
            thread::sleep(Duration::from_millis(300));
            group.fail("too bad");
            return false;
        }
        group.leave().is_ok()
    });
    assert_eq!(left, [false; 3]);
}

#[test]
fn a_settled_process_0_ends_well_without_lost_processes() {
    let left = each(3, 1, |group, lost| {
        match group.index() {
            0 => {
                group.gather(vec![]).unwrap();
                group.settle();
                // The other processes leave only after this broadcast.
                group.broadcast(Some(vec![])).unwrap();
            }
            _ => drop(group.gather(vec![]).and_then(|_| group.broadcast(None)).unwrap()),
        }
        match group.index() {
            1 => None,
            _ => Some((group.leave().unwrap(), lost.try_recv().is_ok())),
        }
    });
    let (gone, blamed) = left[0].as_ref().unwrap();
    assert!(gone[0].starts_with("process 1 (127.0.0.1:") && gone.len() == 1 && !blamed, "{gone:?}");
    assert_eq!(left[2], Some((vec![], false)), "nobody else takes harm");
}

#[test]
fn a_settled_process_0_that_fails_still_ends_the_others() {
    let lines = each(2, 1, |group, lost| {
        if group.index() == 0 {
            group.settle();
            group.fail("the disk is full");
            return None;
        }
        lost.recv_timeout(PATIENCE).ok()
    });
    assert!(lines[1].as_ref().unwrap().ends_with("): the disk is full"), "{lines:?}");
}
