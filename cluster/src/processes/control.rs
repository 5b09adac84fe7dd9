//! The control connections, from every process to process 0. They carry heartbeats, gather and broadcast,
//! failures and goodbyes.

use std::collections::VecDeque;
use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::channel::{Receiver, SealedChannel, Sender};
use super::frame::Frame;
use super::membership::{Limits, Membership};
use crate::Error;

/// Longest time that a process that gives up waits until the others were told.
const TELL: Duration = Duration::from_secs(1);
/// Time that an engine thread whose connection broke waits to hear the reason.
const EXPLAIN: Duration = Duration::from_millis(2500);

/// Callback that shows the line that says why the job cannot go on, and ends the process.
type OnLost = Box<dyn Fn(&str) + Send + Sync>;

/// Knowledge of this process about the others, shared by two threads for each connection.
///
/// Process 0 has a connection to every other process; each other process has one to process 0. Failures
/// travel through process 0, and the first one wins. For example, in a job of three processes:
///
/// ```text
/// process 2 panics, and sends Failure("panicked at ...") to process 0
/// process 0 reads it, and makes it "process 2 (host:port): panicked at ..."
/// process 0 sends that line to process 1, and also to process 2
/// process 1 reads it, and calls on_lost with the line
/// process 0 calls on_lost with the line, once the others were told or after a second
/// ```
pub(crate) struct Control {
    pub(super) membership: Membership,
    pub(super) limits: Limits,
    on_lost: OnLost,
    state: Mutex<ControlState>,
    changed: Condvar,
}

/// State that the threads of all connections change.
struct ControlState {
    /// Whether the job cannot go on. The first reason counts, because all others follow from it.
    failing: bool,
    /// That reason, for calls that still wait. If another process is to blame, it is set only after `on_lost`
    /// has returned, which in a job it does not. So the reason is shown once.
    failure: Option<String>,
    /// Whether this process needs nothing more from the others, except the goodbye of process 0 if this is
    /// another one.
    settled: bool,
    /// Whether this process has left, so that the state of its connections no longer matters.
    over: bool,
    /// Peers by index of process. Those without a control connection to this one stay empty.
    peers: Vec<Peer>,
}

#[derive(Default)]
struct Peer {
    stream: Option<TcpStream>,
    /// Queue of frames to the thread that writes.
    outbox: Option<mpsc::Sender<Frame>>,
    inbox: VecDeque<Vec<u8>>,
    goodbye: bool,
    /// Reason of its end, if it ended after process 0 had settled.
    gone: Option<String>,
    /// Whether the last frame for this peer was written, or can no longer be written.
    told: bool,
}

impl ControlState {
    fn send(&self, to: usize, frame: Frame) {
        if let Some(outbox) = &self.peers[to].outbox {
            // If the writer has ended, its connection is lost, which the reader reports.
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
    pub(super) fn new(membership: Membership, limits: Limits, on_lost: OnLost) -> Self {
        let peers = membership.addresses.iter().map(|_| Peer::default()).collect();
        let state =
            Mutex::new(ControlState { failing: false, failure: None, settled: false, over: false, peers });
        Control { membership, limits, on_lost, state, changed: Condvar::new() }
    }

    /// Waits until `ready` holds.
    fn wait(&self, ready: impl Fn(&ControlState) -> bool) -> MutexGuard<'_, ControlState> {
        let mut state = self.state.lock();
        self.changed.wait_while(&mut state, |state| !ready(state));
        state
    }

    /// Waits until `ready` holds, but no longer than `most`, and returns whether it does.
    fn wait_for(&self, most: Duration, ready: impl Fn(&ControlState) -> bool) -> bool {
        !self.changed.wait_while_for(&mut self.state.lock(), |state| !ready(state), most).timed_out()
    }

    /// Takes over a connection. One thread reads it, and one writes it.
    ///
    /// # Errors
    /// When the system starts no more threads.
    pub(super) fn start(self: &Arc<Self>, peer: usize, channel: SealedChannel) -> io::Result<()> {
        let SealedChannel { stream, sender, receiver } = channel;
        let (outbox, frames) = mpsc::channel();
        let known = Peer { stream: Some(stream), outbox: Some(outbox), ..Peer::default() };
        self.state.lock().peers[peer] = known;
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
                self.state.lock().peers[peer].told = true;
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

    /// Receives frames until the connection ends as it should. An error is the line that says why the
    /// connection ended otherwise.
    fn receive(&self, peer: usize, mut receiver: Receiver) -> Result<(), String> {
        let name = self.membership.name(peer);
        loop {
            match Frame::read(&mut receiver) {
                Ok(Frame::Bytes(bytes)) => self.state.lock().peers[peer].inbox.push_back(bytes.into()),
                Ok(Frame::Failure(reason)) if self.membership.index == 0 => {
                    return Err(format!("{name}: {reason}"));
                }
                Ok(Frame::Failure(line)) => return Err(line),
                Ok(Frame::Goodbye) => self.state.lock().peers[peer].goodbye = true,
                Err(_) if self.state.lock().peers[peer].goodbye => return Ok(()),
                Err(error) => return Err(format!("{name} was lost: {error}")),
            }
            self.changed.notify_all();
        }
    }

    /// Handles the loss of another process, after which the job cannot go on. Process 0 tells the others,
    /// unless it has settled.
    fn lost(&self, peer: usize, line: String) {
        let first = self.membership.index == 0;
        let mut state = self.state.lock();
        if first && state.settled {
            state.peers[peer].gone = Some(line);
            self.changed.notify_all();
            return;
        }
        drop(state);
        if self.claim_failure(first.then_some(&*line)) {
            if first {
                self.wait_for(TELL, ControlState::all_told);
            }
            (self.on_lost)(&line);
            self.set_failure(line);
        }
    }

    /// Handles a failure of this process, after which the job cannot go on. Returns when the others were
    /// told, after a second at most.
    pub(crate) fn fail(&self, reason: &str) {
        let line = format!("{}: {reason}", self.membership.name(self.membership.index));
        let tell = if self.membership.index == 0 { &line } else { reason };
        if self.claim_failure(Some(tell)) {
            self.set_failure(line);
        }
        // The call waits even if another thread failed first, because the process ends when this call
        // returns.
        self.wait_for(TELL, ControlState::all_told);
    }

    /// Returns whether this is the first failure. If so, `tell` is sent to the others.
    fn claim_failure(&self, tell: Option<&str>) -> bool {
        let mut state = self.state.lock();
        if state.failing || state.over {
            return false;
        }
        state.failing = true;
        if let Some(tell) = tell {
            // A goodbye may have been sent before.
            state.peers.iter_mut().for_each(|peer| peer.told = false);
            state.send_all(|| Frame::Failure(tell.to_owned()));
        }
        self.changed.notify_all();
        true
    }

    fn set_failure(&self, line: String) {
        self.state.lock().failure = Some(line);
        self.changed.notify_all();
    }

    /// Handles a broken data connection to `peer`, and waits for the process to end. Process 0 knows better
    /// which process failed first. If nothing is heard from it, this process reports what it knows.
    pub(crate) fn connection_lost(&self, peer: usize, why: &str) {
        if !self.wait_for(EXPLAIN, |state| state.failing || state.settled || state.over) {
            let reason = format!("the connection to {} was lost: {why}", self.membership.name(peer));
            self.fail(&reason);
            (self.on_lost)(&reason);
        }
    }

    /// Declares that this process no longer ends when another one does: it is process 0, and has everything
    /// that it needs from them. Another process calls this when it leaves.
    pub(super) fn settle(&self) {
        self.state.lock().settled = true;
        self.changed.notify_all();
    }

    /// Returns why the job cannot go on, if that is so.
    pub(super) fn failure(&self) -> Option<Error> {
        self.state.lock().failure.clone().map(|reason| Error::Processes { reason })
    }

    pub(super) fn send(&self, to: usize, bytes: Bytes) {
        log::trace!(target: "meet", "to {to}");
        self.state.lock().send(to, Frame::Bytes(bytes));
    }

    /// Waits for the next bytes from `from`.
    ///
    /// # Errors
    /// When the job cannot go on, or `from` has said goodbye.
    pub(super) fn take(&self, from: usize) -> Result<Vec<u8>, Error> {
        log::trace!(target: "meet", "from {from}");
        let ready = |state: &ControlState| {
            let peer = &state.peers[from];
            state.failure.is_some() || peer.goodbye || !peer.inbox.is_empty()
        };
        let mut state = self.wait(ready);
        state.peers[from].inbox.pop_front().ok_or_else(|| {
            let left = || format!("{} left too early", self.membership.name(from));
            Error::Processes { reason: state.failure.clone().unwrap_or_else(left) }
        })
    }

    /// Says goodbye. Process 0 does so when all others have, and they wait for its goodbye. So either all
    /// processes end well or none does, except those that end after process 0 has settled. Returns the
    /// reasons of these.
    ///
    /// # Errors
    /// When the job fails meanwhile.
    pub(super) fn leave(&self) -> Result<Vec<String>, Error> {
        log::trace!(target: "leave", "{}", self.membership.index);
        let farewell = |state: &ControlState| {
            let done = |peer: &Peer| peer.outbox.is_none() || peer.goodbye || peer.gone.is_some();
            state.failure.is_some() || !state.failing && state.peers.iter().all(done)
        };
        if self.membership.index == 0 {
            drop(self.wait(farewell));
        } else {
            self.settle();
        }
        self.state.lock().send_all(|| Frame::Goodbye);
        drop(self.wait(farewell));
        if let Some(failure) = self.failure() {
            return Err(failure);
        }
        self.wait_for(TELL, ControlState::all_told);
        Ok(self.state.lock().peers.iter_mut().filter_map(|peer| peer.gone.take()).collect())
    }

    /// Closes the connections. Peers take this for the death of this process, unless they have received a
    /// goodbye.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.over = true;
        for peer in &mut state.peers {
            peer.outbox = None;
            if let Some(stream) = peer.stream.take() {
                // A connection that is already closed is no error.
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
        self.changed.notify_all();
    }
}
