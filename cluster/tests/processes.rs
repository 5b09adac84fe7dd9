//! Deaths of real processes. This test program starts itself as each process of a job.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::cell::Cell;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use cluster::{Error, Group, Limits, Membership};
use rustix::process::{Pid, Signal, kill_process};
use timely::container::CapacityContainerBuilder;
use timely::dataflow::InputHandle;
use timely::dataflow::operators::{Exchange, Input, Inspect, Probe};

/// Time within which a panic or a kill must end all processes, as docs/design/processes.md requires.
const SOON: Duration = Duration::from_secs(3);
/// Time within which a frozen process must end all others.
const FROZEN: Duration = Duration::from_secs(15);

const PLACE: &str = "CLUSTER_TEST_PLACE";
const WORK: &str = "CLUSTER_TEST_WORK";

/// Runs one process of a job that exchanges records for ever, or until its work says otherwise.
///
/// | work | behaviour, the first four when stdin ends |
/// |---|---|
/// | `panic` | a worker panics |
/// | `stray` | a thread that is no worker panics |
/// | `error` | a worker returns an error |
/// | `end` | the process ends well |
/// | `gather` | the process takes part in a gather and a broadcast first |
/// | `silent` | the process neither gathers nor ends |
#[test]
#[ignore = "what the other tests start"]
fn process() {
    let Ok(place) = std::env::var(PLACE) else { return };
    let (index, addresses) = place.split_once(' ').unwrap();
    let addresses = addresses.split(' ').map(str::to_owned).collect();
    let membership = Membership { index: index.parse().unwrap(), addresses, workers: 2 };
    let work = std::env::var(WORK).unwrap();
    cluster::exit_on_panic();
    let limits = Limits { tick: Duration::from_millis(tick_ms(&work)), ..Limits::default() };
    let on_lost = |line: &str| {
        eprintln!("error: {line}");
        std::process::exit(1);
    };
    let group = Group::join(membership, [0; 32], b"", limits, Box::new(on_lost)).unwrap();
    group.report_panics();
    // The test waits for this line before it does any harm.
    eprintln!("joined");
    let (_held, ended) = mpsc::channel::<()>();
    match work.as_str() {
        "stray" => {
            wait_for_stdin();
            thread::spawn(|| panic!("astray"));
            let _ = ended.recv();
        }
        "gather" => {
            let gathered = group.gather(vec![]).unwrap();
            group.broadcast(gathered.map(|_| vec![])).unwrap();
        }
        "silent" => {
            // This process neither gathers nor ends.
            let _ = ended.recv();
        }
        _ => {}
    }
    let result = group.run(move |worker| exchange(worker, &work));
    if let Err(error) = result {
        eprintln!("own error: {error}");
        group.fail(&error.to_string());
        std::process::exit(3);
    }
    group.leave().unwrap();
    eprintln!("left");
}

fn tick_ms(work: &str) -> u64 {
    if work == "end" { 400 } else { 1000 }
}

fn wait_for_stdin() {
    std::io::read_to_string(std::io::stdin()).unwrap();
}

/// Sends records to all workers. Worker 1 of each process stops as `work` says, when stdin ends.
fn exchange(worker: &mut timely::worker::Worker, work: &str) -> Result<(), Error> {
    let mut input = InputHandle::<u64, CapacityContainerBuilder<Vec<u64>>>::new();
    let probe = worker.dataflow::<u64, _, _>(|scope| {
        scope.input_from(&mut input).exchange(|record: &u64| *record).inspect(|_| {}).probe().0
    });
    let harm = (worker.index() % 2 == 1 && work != "run").then(|| thread::spawn(wait_for_stdin));
    for epoch in 0.. {
        (0..100).for_each(|record| input.send(record));
        input.advance_to(epoch + 1);
        worker.step_while(|| probe.less_than(input.time()));
        if harm.as_ref().is_some_and(|harm| harm.is_finished()) {
            match work {
                "panic" => panic!("on purpose"),
                "error" => return Err(Error::NotFound { path: "what it needs".to_owned() }),
                _ => break,
            }
        }
        if work == "end" && worker.index().is_multiple_of(2) && epoch == 100 {
            break;
        }
    }
    Ok(())
}

/// Processes of a job. Those that are left at the end are killed.
struct Job {
    addresses: Vec<String>,
    processes: Vec<Child>,
    /// Lines that each process has written to stderr so far.
    said: Vec<mpsc::Receiver<String>>,
}

impl Job {
    /// Starts a process for each of `works` and waits until all have connected.
    fn start(works: &[&str]) -> Job {
        Job::start_by(works, |_, addresses| addresses.to_vec())
    }

    /// Starts the processes. `seen` returns the addresses at which a process finds all others, given the real
    /// ones.
    fn start_by(works: &[&str], seen: impl Fn(usize, &[String]) -> Vec<String>) -> Job {
        let listeners: Vec<_> = works.iter().map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let addresses: Vec<_> =
            listeners.iter().map(|listener| listener.local_addr().unwrap().to_string()).collect();
        drop(listeners);
        let mut job = Job { addresses, processes: Vec::new(), said: Vec::new() };
        for (index, work) in works.iter().enumerate() {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["--exact", "process", "--ignored", "--nocapture"]);
            command.env(PLACE, format!("{index} {}", seen(index, &job.addresses).join(" "))).env(WORK, work);
            let command = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
            let mut process = command.spawn().unwrap();
            let stderr = std::io::BufReader::new(process.stderr.take().unwrap());
            job.processes.push(process);
            let (sender, said) = mpsc::channel();
            thread::spawn(move || {
                for line in std::io::BufRead::lines(stderr) {
                    let _ = sender.send(line.unwrap());
                }
            });
            job.said.push(said);
        }
        for said in &job.said {
            assert_eq!(said.recv_timeout(Duration::from_secs(60)).unwrap(), "joined");
        }
        // Waits until records flow.
        thread::sleep(Duration::from_millis(300));
        job
    }

    fn signal(&self, process: usize, signal: Signal) {
        kill_process(Pid::from_child(&self.processes[process]), signal).unwrap();
    }

    fn end_stdin(&mut self, process: usize) {
        drop(self.processes[process].stdin.take());
    }

    /// Waits until all processes except `except` have ended, which must be within `limit`. Returns their exit
    /// codes and last lines.
    fn ends(&mut self, except: Option<usize>, limit: Duration) -> Vec<(Option<i32>, String)> {
        let begun = Instant::now();
        let mut ends = Vec::new();
        for (index, process) in self.processes.iter_mut().enumerate() {
            if Some(index) == except {
                ends.push((None, String::new()));
                continue;
            }
            let status = loop {
                if let Some(status) = process.try_wait().unwrap() {
                    break status;
                }
                assert!(begun.elapsed() < limit, "process {index} still runs");
                thread::sleep(Duration::from_millis(5));
            };
            ends.push((status.code(), self.said[index].iter().collect::<Vec<_>>().join("\n")));
        }
        ends
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// Checks that all processes but `guilty` end with code 1 within `limit`, and give `reason` for it and
/// nothing else.
#[track_caller]
fn assert_all_blame(job: &mut Job, guilty: usize, alive: bool, limit: Duration, reason: &str) {
    let expected = format!("error: process {guilty} ({}){reason}", job.addresses[guilty]);
    for (index, (code, said)) in job.ends(alive.then_some(guilty), limit).into_iter().enumerate() {
        if index != guilty {
            assert_eq!((code, &said), (Some(1), &expected), "process {index}");
        }
    }
}

#[test]
fn a_kill_of_any_process_ends_all_within_3_s() {
    for work in ["run", "silent"] {
        for guilty in 0..3 {
            let mut job = Job::start(&[work; 3]);
            job.signal(guilty, Signal::KILL);
            assert_all_blame(&mut job, guilty, false, SOON, " was lost: its connection closed");
        }
    }
}

#[test]
fn a_panic_of_a_worker_or_any_other_thread_ends_all_within_3_s() {
    for (work, text) in [("panic", "on purpose"), ("stray", "astray")] {
        for guilty in 0..3 {
            let mut works = [if work == "panic" { "run" } else { "gather" }; 3];
            works[guilty] = work;
            let mut job = Job::start(&works);
            job.end_stdin(guilty);
            let begun = Instant::now();
            let ends = job.ends(None, SOON);
            assert!(begun.elapsed() < SOON);
            let blame = format!("error: process {guilty} ({}): panicked at ", job.addresses[guilty]);
            for (index, (code, said)) in ends.into_iter().enumerate() {
                assert_eq!(code, Some(1), "process {index}: {said}");
                if index == guilty {
                    assert!(said.contains(text) && said.ends_with("nothing was committed"), "{said}");
                } else {
                    assert!(said.starts_with(&blame) && said.ends_with(&format!(": {text}")), "{said}");
                    assert!(said.contains("processes.rs:") && said.lines().count() == 1, "{said}");
                }
            }
        }
    }
}

#[test]
fn an_error_of_a_worker_ends_all_within_3_s_and_keeps_its_code() {
    for guilty in 0..3 {
        let mut works = ["run"; 3];
        works[guilty] = "error";
        let mut job = Job::start(&works);
        job.end_stdin(guilty);
        let text = "\"what it needs\" does not exist";
        let blame = format!("error: process {guilty} ({}): {text}", job.addresses[guilty]);
        for (index, end) in job.ends(None, SOON).into_iter().enumerate() {
            let own = (Some(3), format!("own error: {text}"));
            assert_eq!(end, if index == guilty { own } else { (Some(1), blame.clone()) }, "process {index}");
        }
    }
}

/// Forwards connections to `to`. Each is returned, so that the test can cut it.
fn proxy(to: &str) -> (String, mpsc::Receiver<TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let to = to.to_owned();
    let (sender, streams) = mpsc::channel();
    thread::spawn(move || {
        for client in listener.incoming() {
            let (client, Ok(server)) = (client.unwrap(), TcpStream::connect(&to)) else { continue };
            let _ = sender.send(client.try_clone().unwrap());
            for (mut from, mut to) in
                [(client.try_clone().unwrap(), server.try_clone().unwrap()), (server, client)]
            {
                thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Both);
                });
            }
        }
    });
    (address, streams)
}

#[test]
fn a_connection_that_breaks_between_two_who_live_ends_all() {
    let streams = Cell::new(None);
    let mut job = Job::start_by(&["run"; 3], |process, addresses| {
        let mut addresses = addresses.to_vec();
        if process == 2 {
            let (address, cut) = proxy(&addresses[1]);
            streams.set(Some(cut));
            addresses[1] = address;
        }
        addresses
    });
    for stream in streams.take().unwrap().try_iter() {
        let _ = stream.shutdown(Shutdown::Both);
    }
    for (index, (code, said)) in job.ends(None, FROZEN).into_iter().enumerate() {
        assert_eq!(code, Some(1), "process {index}: {said}");
        assert!(said.starts_with("error: ") && said.lines().count() == 1, "{said}");
        assert!(said.contains("the connection to process ") && said.contains(" was lost"), "{said}");
    }
}

#[test]
fn a_frozen_process_ends_all_others_within_15_s_and_itself_when_it_thaws() {
    for guilty in 0..2 {
        let mut job = Job::start(&["run"; 3]);
        job.signal(guilty, Signal::STOP);
        let reason = " was lost: nothing came from it for 10 s";
        assert_all_blame(&mut job, guilty, true, FROZEN, reason);
        job.signal(guilty, Signal::CONT);
        let (code, said) = job.ends(None, SOON).swap_remove(guilty);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.starts_with("error: process "), "{said}");
    }
}

#[test]
fn a_job_that_was_stopped_as_a_whole_goes_on() {
    let mut job = Job::start(&["end"; 3]);
    (0..3).for_each(|process| job.signal(process, Signal::STOP));
    // This is twice the silence that counts as death with this job's ticks.
    thread::sleep(Duration::from_secs(8));
    for process in 0..3 {
        job.signal(process, Signal::CONT);
    }
    thread::sleep(Duration::from_secs(1));
    (0..3).for_each(|process| job.end_stdin(process));
    for (code, said) in job.ends(None, Duration::from_secs(60)) {
        assert_eq!((code, said), (Some(0), "left".to_owned()));
    }
}
