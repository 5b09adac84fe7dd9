//! Tests with a line to the gateway that is cut when a change has been made and its answer has not arrived yet.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::{documents, empty_index, ids, new_ids, shared};
use crate::corpus::demo;

/// Every so many bytes that go back from the gateway, the connection is cut instead.
const CUT_EVERY: usize = 20;

/// Passes connections on to a port, and cuts some of them as the first byte of an answer arrives. Returns its own port,
/// and the number of cuts. It ends with the process of the tests.
fn relay(port: u16) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    let cuts = Arc::new(AtomicUsize::new(0));
    let all_cuts = Arc::clone(&cuts);
    let answers = Arc::new(AtomicUsize::new(0));
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let Ok(gateway) = TcpStream::connect(("127.0.0.1", port)) else { continue };
            let (mut requests, mut to_gateway) = (client.try_clone().unwrap(), gateway.try_clone().unwrap());
            thread::spawn(move || {
                let _ = std::io::copy(&mut requests, &mut to_gateway);
                let _ = to_gateway.shutdown(Shutdown::Both);
            });
            let (cuts, answers) = (Arc::clone(&all_cuts), Arc::clone(&answers));
            thread::spawn(move || pass_back(gateway, client, &answers, &cuts));
        }
    });
    (own, cuts)
}

fn pass_back(mut gateway: TcpStream, mut client: TcpStream, answers: &AtomicUsize, cuts: &AtomicUsize) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(count @ 1..) = gateway.read(&mut buffer) {
        if answers.fetch_add(1, Ordering::Relaxed) % CUT_EVERY == CUT_EVERY - 1 {
            cuts.fetch_add(1, Ordering::Relaxed);
            break;
        }
        if client.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = client.shutdown(Shutdown::Both);
    let _ = gateway.shutdown(Shutdown::Both);
}

#[test]
#[ignore = "needs scripts/hbase/build"]
fn a_change_whose_answer_is_lost_is_made_once() {
    let here = demo(700, 5);
    let index = empty_index(&here, shared());
    let (port, cuts) = relay(shared().port);
    let through = index.replace(&shared().port.to_string(), &port.to_string());
    let whole = empty_index(&here, shared());
    let expected = here.run(&format!("--quiet index query --insert {whole} demo/corpus.jsonl")).ends(0);
    let run = here.run(&format!("--quiet index query --insert {through} demo/corpus.jsonl")).ends(0);
    assert!(cuts.load(Ordering::Relaxed) > 10, "{cuts:?}");
    assert_eq!(new_ids(&run), new_ids(&expected));
    assert_eq!(ids(&here, &index), new_ids(&expected));
    assert_eq!(documents(&here, &index), [new_ids(&expected).len() as u64, 0]);
    let before = documents(&here, &index)[0];
    here.run(&format!("--quiet index insert {through} demo/corpus.jsonl")).ends(0);
    assert_eq!(documents(&here, &index), [before + 700, 0]);
}
