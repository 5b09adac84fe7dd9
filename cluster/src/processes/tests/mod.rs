//! Tests with processes that are threads of the test. Each sees the others through its sockets alone.

mod channels;
mod life;
mod middle;
mod strangers;

use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::Duration;

use super::*;
use crate::Error;

const JOB: [u8; 32] = [7; 32];
const TOKEN: &[u8] = b"only ours";
/// Time limit that nothing here reaches, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns addresses on loopback where nobody listens. Their ports are below those that the system gives to whoever names
/// none, which a call of another test could take before a process listens there.
fn addresses(count: usize) -> Vec<String> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let port =
        || 10_000 + (std::process::id().wrapping_mul(37) + NEXT.fetch_add(1, Ordering::Relaxed)) % 20_000;
    let free = std::iter::repeat_with(|| TcpListener::bind(("127.0.0.1", port() as u16)));
    let listeners: Vec<_> = free.flatten().take(count).collect();
    listeners.iter().map(|listener| listener.local_addr().unwrap().to_string()).collect()
}

fn memberships(addresses: &[String], workers: usize) -> impl Iterator<Item = Membership> {
    (0..addresses.len()).map(move |index| Membership { index, addresses: addresses.to_vec(), workers })
}

/// Result of joining, and the receiver of the line of `on_lost`.
type Joined = (Result<Group, Error>, mpsc::Receiver<String>);

/// Joins a job with the token of the tests.
fn join(membership: Membership, limits: Limits) -> Joined {
    join_as(membership, JOB, TOKEN, limits)
}

fn join_as(membership: Membership, job: [u8; 32], token: &[u8], limits: Limits) -> Joined {
    let (lost, line) = mpsc::channel();
    let on_lost = move |line: &str| drop(lost.send(line.to_owned()));
    (Group::join(membership, job, token, limits, Box::new(on_lost)), line)
}

/// Runs `work` in each of `count` processes once all are connected, and returns the results in their order.
fn each<T: Send + 'static>(
    count: usize,
    workers: usize,
    work: impl Fn(Group, mpsc::Receiver<String>) -> T + Clone + Send + 'static,
) -> Vec<T> {
    let all_there = Arc::new(Barrier::new(count));
    let start = |membership: Membership| {
        let work = work.clone();
        let all_there = Arc::clone(&all_there);
        thread::spawn(move || {
            let (group, lost) = join(membership, Limits::default());
            let group = group.unwrap();
            all_there.wait();
            work(group, lost)
        })
    };
    let threads: Vec<_> = memberships(&addresses(count), workers).map(start).collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}
