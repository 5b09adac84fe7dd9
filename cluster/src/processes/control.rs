//! The control connections, from every process to process 0: beats, gather and broadcast, failure, goodbye.

use std::collections::VecDeque;
use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use bytes::Bytes;

use super::channel::{Channel, Receiver, Sender};
use super::frame::Frame;
use super::{Limits, Place};
use crate::Error;

/// How long a process that gives up waits until the others were told.
const TELL: Duration = Duration::from_secs(1);
/// How long an engine thread whose connection broke waits to hear why.
const EXPLAIN: Duration = Duration::from_millis(2500);

/// Shows the line that says why the job cannot go on, and ends the process.
type OnLost = Box<dyn Fn(&str) + Send + Sync>;

/// What this process knows of the others, shared by two threads for each connection.
pub(crate) struct Control {
    pub(super) place: Place,
    pub(super) limits: Limits,
    on_lost: OnLost,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// Whether the job cannot go on. The first reason counts: all others follow from it.
    failing: bool,
    /// That reason, for who still asks: when another process is to blame, only after `on_lost` returned, which in a job
    /// it does not. So the reason is shown once.
    failure: Option<String>,
    /// Whether this process needs nothing more of the others, but for the goodbye of process 0 if it is another one.
    settled: bool,
    /// Whether this process has left, so that what its connections do matters no more.
    over: bool,
    /// By index of process; those without a control connection to this one stay empty.
    peers: Vec<Peer>,
}

#[derive(Default)]
struct Peer {
    stream: Option<TcpStream>,
    /// To the thread that writes.
    outbox: Option<mpsc::Sender<Frame>>,
    inbox: VecDeque<Vec<u8>>,
    goodbye: bool,
    /// Why it ended, when that no longer mattered.
    gone: Option<String>,
    /// Whether the last frame for it was written, or never can be.
    told: bool,
}

impl State {
    fn send(&self, to: usize, frame: Frame) {
        if let Some(outbox) = &self.peers[to].outbox {
            // A writer that has ended has lost its connection, which the reader reports.
            let _ = outbox.send(frame);
        }
    }

    fn send_all(&self, frame: impl Fn() -> Frame) {
        (0..self.peers.len()).for_each(|to| self.send(to, frame()));
    }

    fn all_told(&self) -> bool {
        self.peers.iter().all(|peer| peer.outbox.is_none() || peer.told)
    }
}

impl Control {
    pub(super) fn new(place: Place, limits: Limits, on_lost: OnLost) -> Self {
        let peers = place.addresses.iter().map(|_| Peer::default()).collect();
        let state = Mutex::new(State { failing: false, failure: None, settled: false, over: false, peers });
        Control { place, limits, on_lost, state, changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `ready`.
    fn wait(&self, ready: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let state = self.changed.wait_while(self.state(), |state| !ready(state));
        state.unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `ready`, but not longer than `most`; says whether it is.
    fn wait_for(&self, most: Duration, ready: impl Fn(&State) -> bool) -> bool {
        let waited = self.changed.wait_timeout_while(self.state(), most, |state| !ready(state));
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Takes over a connection: one thread reads it, one writes it.
    ///
    /// # Errors
    /// When the system gives no more threads.
    pub(super) fn start(self: &Arc<Self>, peer: usize, channel: Channel) -> io::Result<()> {
        let Channel { stream, sender, receiver } = channel;
        let (outbox, frames) = mpsc::channel();
        let known = Peer { stream: Some(stream), outbox: Some(outbox), ..Peer::default() };
        self.state().peers[peer] = known;
        let control = Arc::clone(self);
        let name = format!("control-read-{peer}");
        thread::Builder::new().name(name).spawn(move || control.read(peer, receiver))?;
        let control = Arc::clone(self);
        let name = format!("control-write-{peer}");
        thread::Builder::new().name(name).spawn(move || control.write(peer, &frames, sender))?;
        Ok(())
    }

    fn write(&self, peer: usize, frames: &mpsc::Receiver<Frame>, mut sender: Sender) {
        loop {
            let (last, written) = match frames.recv_timeout(self.limits.tick) {
                Ok(frame) => (frame.last(), frame.write(&mut sender)),
                Err(mpsc::RecvTimeoutError::Timeout) => (false, sender.beat().map(drop)),
                Err(mpsc::RecvTimeoutError::Disconnected) => return,
            };
            if last || written.is_err() {
                self.state().peers[peer].told = true;
                self.changed.notify_all();
            }
            if written.is_err() {
                return;
            }
        }
    }

    fn read(&self, peer: usize, receiver: Receiver) {
        if let Err(line) = self.receive(peer, receiver) {
            self.lost(peer, line);
        }
    }

    /// Takes what comes, until the connection ends as it should; the error is the line that says why it did not.
    fn receive(&self, peer: usize, mut receiver: Receiver) -> Result<(), String> {
        let name = self.place.name(peer);
        loop {
            match Frame::read(&mut receiver) {
                Ok(Frame::Bytes(bytes)) => self.state().peers[peer].inbox.push_back(bytes.into()),
                Ok(Frame::Failure(reason)) if self.place.index == 0 => {
                    return Err(format!("{name}: {reason}"));
                }
                Ok(Frame::Failure(line)) => return Err(line),
                Ok(Frame::Goodbye) => self.state().peers[peer].goodbye = true,
                Err(_) if self.state().peers[peer].goodbye => return Ok(()),
                Err(error) => return Err(format!("{name} was lost: {error}")),
            }
            self.changed.notify_all();
        }
    }

    /// The job cannot go on because of another process. Process 0 tells the others, unless it needs nobody any more.
    fn lost(&self, peer: usize, line: String) {
        let first = self.place.index == 0;
        let mut state = self.state();
        if first && state.settled {
            state.peers[peer].gone = Some(line);
            self.changed.notify_all();
            return;
        }
        drop(state);
        if self.claim_failure(first.then_some(&*line)) {
            if first {
                self.wait_for(TELL, State::all_told);
            }
            (self.on_lost)(&line);
            self.set_failure(line);
        }
    }

    /// The job cannot go on because of this process. Returns when the others were told, after a second at most.
    pub(crate) fn fail(&self, reason: &str) {
        let line = format!("{}: {reason}", self.place.name(self.place.index));
        let tell = if self.place.index == 0 { &line } else { reason };
        if self.claim_failure(Some(tell)) {
            self.set_failure(line);
        }
        // Also when another thread was first: the process ends when this one returns.
        self.wait_for(TELL, State::all_told);
    }

    /// Whether this is the first failure, of which the others are then told.
    fn claim_failure(&self, tell: Option<&str>) -> bool {
        let mut state = self.state();
        if state.failing || state.over {
            return false;
        }
        state.failing = true;
        if let Some(tell) = tell {
            // A goodbye may have been said before.
            state.peers.iter_mut().for_each(|peer| peer.told = false);
            state.send_all(|| Frame::Failure(tell.to_owned()));
        }
        self.changed.notify_all();
        true
    }

    fn set_failure(&self, line: String) {
        self.state().failure = Some(line);
        self.changed.notify_all();
    }

    /// For a thread whose data connection to `peer` broke, and why. Waits for the process to end: who failed first is
    /// better known to process 0, and when nothing is heard of it, this says what is known here.
    pub(crate) fn connection_lost(&self, peer: usize, why: &str) {
        if !self.wait_for(EXPLAIN, |state| state.failing || state.settled || state.over) {
            let reason = format!("the connection to {} was lost: {why}", self.place.name(peer));
            self.fail(&reason);
            (self.on_lost)(&reason);
        }
    }

    /// From here on no end of another process ends this one, which is process 0 and has what it needs of them.
    pub(super) fn settle(&self) {
        self.state().settled = true;
        self.changed.notify_all();
    }

    /// Why the job cannot go on, if so.
    pub(super) fn failure(&self) -> Option<Error> {
        self.state().failure.clone().map(|reason| Error::Processes { reason })
    }

    pub(super) fn send(&self, to: usize, bytes: Bytes) {
        log::trace!(target: "meet", "to {to}");
        self.state().send(to, Frame::Bytes(bytes));
    }

    /// The next bytes that `from` sent.
    ///
    /// # Errors
    /// When the job cannot go on, or `from` has said goodbye.
    pub(super) fn take(&self, from: usize) -> Result<Vec<u8>, Error> {
        log::trace!(target: "meet", "from {from}");
        let ready = |state: &State| {
            let peer = &state.peers[from];
            state.failure.is_some() || peer.goodbye || !peer.inbox.is_empty()
        };
        let mut state = self.wait(ready);
        state.peers[from].inbox.pop_front().ok_or_else(|| {
            let left = || format!("{} left too early", self.place.name(from));
            Error::Processes { reason: state.failure.clone().unwrap_or_else(left) }
        })
    }

    /// Process 0 says goodbye when all others have, and they wait for that; so either all end well or none, but for those
    /// that end after process 0 has settled. Returns why these ended.
    ///
    /// # Errors
    /// When the job fails meanwhile.
    pub(super) fn leave(&self) -> Result<Vec<String>, Error> {
        log::trace!(target: "leave", "{}", self.place.index);
        let farewell = |state: &State| {
            let met = |peer: &Peer| peer.outbox.is_none() || peer.goodbye || peer.gone.is_some();
            state.failure.is_some() || !state.failing && state.peers.iter().all(met)
        };
        if self.place.index == 0 {
            drop(self.wait(farewell));
        } else {
            self.settle();
        }
        self.state().send_all(|| Frame::Goodbye);
        drop(self.wait(farewell));
        if let Some(failure) = self.failure() {
            return Err(failure);
        }
        self.wait_for(TELL, State::all_told);
        Ok(self.state().peers.iter_mut().filter_map(|peer| peer.gone.take()).collect())
    }

    /// Closes the connections. The others take it for death, but for those who heard a goodbye.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.over = true;
        for peer in &mut state.peers {
            peer.outbox = None;
            if let Some(stream) = peer.stream.take() {
                // One that is closed already is fine.
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
        self.changed.notify_all();
    }
}
