//! The start of a job's processes: each calls the processes before it, and listens until those after it have
//! called.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use snow::StatelessTransportState;

use super::channel::SealedChannel;
use super::control::Control;
use super::data::Data;
use super::handshake::{self, ConnectionKind, Hello, SharedSecret, Verdict};
use super::membership::Membership;

/// Number of handshakes that this process answers at once. Further callers are turned away, and may call
/// again.
const HANDSHAKES: usize = 64;
/// Pause between two checks for a new connection.
const LOOK: Duration = Duration::from_millis(10);
/// Pause between two calls to a process that does not listen yet.
const CALL_AGAIN: Duration = Duration::from_millis(100);

/// Set of connections, each with the process at its other end.
type Ends = BTreeSet<(usize, ConnectionKind)>;
/// A proved connection, or the reason why the processes cannot connect.
type Arrival = Result<(usize, ConnectionKind, SealedChannel), String>;

/// State that the threads of one start share.
struct Start {
    control: Arc<Control>,
    job: [u8; 32],
    secret: SharedSecret,
    /// Whether there is no token, so that all processes must be on loopback.
    only_loopback: bool,
    deadline: Instant,
    over: AtomicBool,
    /// Connections that have not come yet.
    awaited: Mutex<Ends>,
    handshakes: AtomicUsize,
    /// Number of connections that did not prove the token.
    strangers: AtomicUsize,
    /// Last failure with each process that this one calls.
    troubles: Mutex<BTreeMap<usize, String>>,
}

/// Returns the connections that this process opens, and those that it awaits. Of two processes, the later one
/// calls.
fn expected(membership: &Membership) -> (Ends, Ends) {
    let kinds = |low: usize| {
        if low == 0 { &[ConnectionKind::Control, ConnectionKind::Data][..] } else { &[ConnectionKind::Data] }
    };
    let before = (0..membership.index).flat_map(|to| kinds(to).iter().map(move |kind| (to, *kind)));
    let after = (membership.index + 1..membership.addresses.len())
        .flat_map(|from| kinds(membership.index).iter().map(move |kind| (from, *kind)));
    (before.collect(), after.collect())
}

/// Connects to all other processes. Gives the control connections to `control`, and returns those for the
/// engine by index of process.
///
/// # Errors
/// The line that says why the processes cannot connect.
pub(super) fn rendezvous(
    control: &Arc<Control>,
    job: [u8; 32],
    token: &[u8],
) -> Result<Vec<Option<Data>>, String> {
    let (before, after) = expected(&control.membership);
    let start = Arc::new(Start {
        control: Arc::clone(control),
        job,
        secret: SharedSecret::of_token(token),
        only_loopback: token.is_empty(),
        deadline: Instant::now() + control.limits.start,
        over: AtomicBool::new(false),
        awaited: Mutex::new(after.clone()),
        handshakes: AtomicUsize::new(0),
        strangers: AtomicUsize::new(0),
        troubles: Mutex::default(),
    });
    let listener = start.listen()?;
    let (sender, arrivals) = mpsc::channel();
    let no_thread = |error: io::Error| format!("could not start a thread: {error}");
    for to in 0..control.membership.index {
        let kinds = before.iter().filter(|(process, _)| *process == to).map(|(_, kind)| *kind).collect();
        let start = Arc::clone(&start);
        let sender = sender.clone();
        let call = move || start.call(to, kinds, &sender);
        thread::Builder::new().name(format!("call-{to}")).spawn(call).map_err(no_thread)?;
    }
    let answering = {
        let start = Arc::clone(&start);
        let sender = sender.clone();
        let answer = move || start.answer_all(&listener, &sender);
        thread::Builder::new().name("listen".to_owned()).spawn(answer).map_err(no_thread)?
    };
    let missing = before.union(&after).copied().collect();
    let connected = start.collect(control, missing, &arrivals);
    start.over.store(true, Ordering::Relaxed);
    // Joins the thread so that the port is closed. A panic of that thread ends the process before this call
    // returns.
    let _ = answering.join();
    connected
}

impl Start {
    fn over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Collects the connections of the other threads until none is missing.
    fn collect(
        &self,
        control: &Arc<Control>,
        mut missing: Ends,
        arrivals: &mpsc::Receiver<Arrival>,
    ) -> Result<Vec<Option<Data>>, String> {
        let mut data: Vec<Option<Data>> = self.control.membership.addresses.iter().map(|_| None).collect();
        while !missing.is_empty() {
            if let Some(failure) = control.failure() {
                return Err(failure.to_string());
            }
            match arrivals.recv_timeout(self.left().min(CALL_AGAIN)) {
                Ok(arrival) => {
                    let (peer, kind, channel) = arrival?;
                    missing.remove(&(peer, kind));
                    let started = match kind {
                        ConnectionKind::Control => control.start(peer, channel),
                        ConnectionKind::Data => {
                            Data::start(peer, channel, control).map(|it| data[peer] = Some(it))
                        }
                    };
                    started.map_err(|error| {
                        format!("could not watch {}: {error}", self.control.membership.name(peer))
                    })?;
                }
                Err(_) if self.left().is_zero() => return Err(self.missed(&missing)),
                Err(_) => {}
            }
        }
        Ok(data)
    }

    /// Returns a line with the processes that did not come, and what is known of the reasons.
    fn missed(&self, missing: &Ends) -> String {
        let missing: BTreeSet<usize> = missing.iter().map(|(process, _)| *process).collect();
        let names: Vec<_> = missing.iter().map(|process| self.control.membership.name(*process)).collect();
        let troubles = self.troubles.lock();
        let known = missing.iter().filter_map(|process| troubles.get_key_value(process));
        let mut hints: Vec<_> =
            known.map(|(process, trouble)| format!("process {process}: {trouble}")).collect();
        match self.strangers.load(Ordering::Relaxed) {
            0 => {}
            count => hints.push(format!("connections without proof of the token: {count}")),
        }
        let hints = if hints.is_empty() { String::new() } else { format!(" ({})", hints.join("; ")) };
        format!(
            "{} did not come within {} s{hints}",
            names.join(", "),
            self.control.limits.start.as_secs_f32()
        )
    }

    fn check_address(&self, process: usize, address: IpAddr) -> Result<(), String> {
        match !self.only_loopback || address.is_loopback() {
            true => Ok(()),
            false => Err(format!(
                "{} is not on loopback, which needs a token",
                self.control.membership.name(process)
            )),
        }
    }

    /// Opens the own port. Retries, because a name may become known only after a while, and a port may be
    /// taken for a moment.
    fn listen(&self) -> Result<TcpListener, String> {
        let address = &self.control.membership.addresses[self.control.membership.index];
        let failed = |error: io::Error| format!("could not listen on {address}: {error}");
        let begun = Instant::now();
        loop {
            let error = match address.to_socket_addrs() {
                Ok(addresses) => {
                    let addresses: Vec<_> = addresses.collect();
                    for address in &addresses {
                        self.check_address(self.control.membership.index, address.ip())?;
                    }
                    match TcpListener::bind(&addresses[..]) {
                        Ok(listener) => {
                            listener.set_nonblocking(true).map_err(failed)?;
                            return Ok(listener);
                        }
                        Err(error)
                            if error.kind() == ErrorKind::AddrInUse
                                && begun.elapsed() < self.control.limits.handshake =>
                        {
                            error
                        }
                        Err(error) => return Err(failed(error)),
                    }
                }
                Err(error) if error.kind() == ErrorKind::InvalidInput => return Err(failed(error)),
                Err(error) => error,
            };
            if self.left().is_zero() {
                return Err(failed(error));
            }
            thread::sleep(CALL_AGAIN.min(self.left()));
        }
    }

    /// Answers callers until all processes have connected.
    fn answer_all(self: &Arc<Self>, listener: &TcpListener, arrivals: &mpsc::Sender<Arrival>) {
        while !self.over() {
            // The error concerns this connection alone, or is transient, such as a lack of file descriptors.
            let Ok((stream, _)) = listener.accept() else {
                thread::sleep(LOOK);
                continue;
            };
            if self.handshakes.fetch_add(1, Ordering::Relaxed) >= HANDSHAKES {
                self.handshakes.fetch_sub(1, Ordering::Relaxed);
                self.strangers.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            let start = Arc::clone(self);
            let arrivals = arrivals.clone();
            let answer = move || {
                match start.answer(stream) {
                    // After the end of the start nobody receives this.
                    Ok(Some(arrival)) => drop(arrivals.send(arrival)),
                    Ok(None) => {}
                    Err(_) => drop(start.strangers.fetch_add(1, Ordering::Relaxed)),
                }
                start.handshakes.fetch_sub(1, Ordering::Relaxed);
            };
            if thread::Builder::new().name("answer".to_owned()).spawn(answer).is_err() {
                self.handshakes.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    /// Answers one caller. Returns `None` for a peer that is turned away without harm to this process, and an
    /// error for a stranger.
    fn answer(&self, stream: TcpStream) -> io::Result<Option<Arrival>> {
        let deadline = Instant::now() + self.control.limits.handshake;
        stream.set_nonblocking(false)?;
        let caller = handshake::answer(&stream, &self.secret, self.control.membership.index, deadline)?;
        let (from, kind) = (caller.hello.from as usize, caller.hello.kind);
        if caller.job != self.job {
            caller.say(&stream, Verdict::OtherJob, deadline)?;
            return Ok(Some(Err(format!("process {from} runs another program or configuration"))));
        }
        let (_, callers) = expected(&self.control.membership);
        let verdict = if !callers.contains(&(from, kind)) {
            Verdict::NotAwaited
        } else if !self.awaited.lock().remove(&(from, kind)) {
            Verdict::Taken
        } else {
            Verdict::Welcome
        };
        let said = caller.say(&stream, verdict, deadline);
        if verdict != Verdict::Welcome {
            return said.map(|_| None);
        }
        let [by_client, by_server] = handshake::SEALED;
        match said.and_then(|keys| self.channel(stream, keys, [by_server, by_client])) {
            Ok(channel) => Ok(Some(Ok((from, kind, channel)))),
            Err(error) => {
                self.awaited.lock().insert((from, kind));
                Err(error)
            }
        }
    }

    fn channel(
        &self,
        stream: TcpStream,
        keys: StatelessTransportState,
        next: [u64; 2],
    ) -> io::Result<SealedChannel> {
        SealedChannel::new(stream, keys, next, self.control.limits.tick, self.control.limits.silent_ticks)
    }

    /// Calls a process until all connections to it are open.
    fn call(&self, to: usize, kinds: Vec<ConnectionKind>, arrivals: &mpsc::Sender<Arrival>) {
        for kind in kinds {
            let reached = loop {
                if self.over() || self.left().is_zero() {
                    return;
                }
                match self.try_call(to, kind) {
                    Ok(reached) => break reached,
                    Err(trouble) => {
                        let trouble = trouble.to_string();
                        self.troubles.lock().insert(to, trouble);
                        thread::sleep(CALL_AGAIN);
                    }
                }
            };
            // After the end of the start nobody receives this.
            let _ = arrivals.send(reached.map(|channel| (to, kind, channel)));
        }
    }

    /// Calls a process once. The outer error is transient, the inner one final.
    fn try_call(&self, to: usize, kind: ConnectionKind) -> io::Result<Result<SealedChannel, String>> {
        let name = self.control.membership.name(to);
        let mut trouble = io::Error::other("its name has no address");
        for address in self.control.membership.addresses[to].to_socket_addrs()? {
            if let Err(refusal) = self.check_address(to, address.ip()) {
                return Ok(Err(refusal));
            }
            // This is twice the server's own limit, so that an answer at its last moment is still heard.
            let patience = self.control.limits.handshake * 2;
            let deadline = Instant::now() + patience;
            let from = self.control.membership.index as u32;
            let to = to as u32;
            let hello = Hello { from, to, kind };
            let called = TcpStream::connect_timeout(&address, patience).and_then(|stream| {
                let (verdict, keys) = handshake::call(&stream, &self.secret, &hello, &self.job, deadline)?;
                Ok((self.channel(stream, keys, handshake::SEALED)?, verdict))
            });
            match called {
                Ok((channel, Verdict::Welcome)) => return Ok(Ok(channel)),
                Ok((_, Verdict::OtherJob)) => {
                    return Ok(Err(format!("{name} runs another program or configuration")));
                }
                Ok((_, Verdict::NotAwaited)) => {
                    return Ok(Err(format!("{name} does not await process {from}")));
                }
                Ok((_, Verdict::Taken)) => return Ok(Err(format!("{name} has met another process {from}"))),
                Err(error) => trouble = error,
            }
        }
        Err(trouble)
    }
}
