//! The data connections, one for each pair of processes, as streams for the engine.
//!
//! Each end sends heartbeats, before and after the engine takes the connection. So a peer that this process
//! can no longer reach is noticed even while both still reach process 0.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use timely::communication::allocator::zero_copy::stream::Stream;

use super::channel::{Receiver, RecordType, SealedChannel, Sender};
use super::control::Control;

/// A data connection. Its clones share it.
#[derive(Clone)]
pub(super) struct Data(Arc<DataEnds>);

/// Both ends of a data connection, and its stream.
struct DataEnds {
    stream: TcpStream,
    sender: Mutex<Sender>,
    /// Receiving half. The watching thread holds it until data comes, then the engine reads it.
    receiver: Mutex<Receiver>,
}

impl Data {
    /// Takes over a connection to `peer`. One thread sends heartbeats; another watches until the engine's
    /// first data comes.
    ///
    /// # Errors
    /// When the system starts no more threads.
    pub(super) fn start(peer: usize, channel: SealedChannel, control: &Arc<Control>) -> io::Result<Self> {
        let SealedChannel { stream, sender, receiver } = channel;
        let ends = Arc::new(DataEnds { stream, sender: Mutex::new(sender), receiver: Mutex::new(receiver) });
        let weak = Arc::downgrade(&ends);
        let tick = control.limits.tick;
        thread::Builder::new().name(format!("data-beat-{peer}")).spawn(move || beat(&weak, tick))?;
        let watched = Arc::clone(&ends);
        let control = Arc::clone(control);
        let watch = move || {
            if let Err(error) = watched.watch() {
                control.connection_lost(peer, &error.to_string());
            }
        };
        thread::Builder::new().name(format!("data-watch-{peer}")).spawn(watch)?;
        Ok(Data(ends))
    }

    /// Sends the end of the data. It does not matter if the other process is gone already.
    pub(super) fn close(&self) {
        drop(self.0.sender.lock().close());
    }

    /// Closes the connection without sending anything.
    pub(super) fn cut(&self) {
        // A connection that is already closed is no error.
        drop(self.0.stream.shutdown(Shutdown::Both));
    }
}

impl DataEnds {
    /// Skips beats until another record comes, which stays for the engine.
    fn watch(&self) -> io::Result<()> {
        let mut receiver = self.receiver.lock();
        while receiver.record()? == RecordType::Beat {}
        Ok(())
    }
}

/// Sends heartbeats while the connection exists. A thread that holds the sender is sending, so no beat is
/// needed then.
fn beat(ends: &Weak<DataEnds>, tick: Duration) {
    loop {
        thread::sleep(tick);
        let Some(ends) = ends.upgrade() else { return };
        let beaten = ends.sender.try_lock().map_or(Ok(true), |mut sender| sender.beat());
        // The reader reports a lost connection.
        if !beaten.unwrap_or(false) {
            return;
        }
    }
}

impl Read for Data {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.receiver.lock().read(buffer)
    }
}

impl Write for Data {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.sender.lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream for Data {
    fn try_clone(&self) -> io::Result<Self> {
        Ok(self.clone())
    }

    /// Does nothing: the stream always blocks, and the engine needs nothing else.
    fn set_nonblocking(&self, _nonblocking: bool) -> io::Result<()> {
        Ok(())
    }

    /// Sends the end of the data. The engine calls this when it has written everything.
    fn shutdown(&self, _how: Shutdown) -> io::Result<()> {
        self.0.sender.lock().close()
    }
}
