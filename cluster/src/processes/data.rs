//! The data connections, one for each pair of processes, as the engine wants them.
//!
//! Until the engine takes one, and afterwards, each end beats; so a peer that this process can no longer reach is noticed
//! even while both still reach process 0.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::thread;
use std::time::Duration;

use timely::communication::allocator::zero_copy::stream::Stream;

use super::channel::{Channel, Receiver, Record, Sender};
use super::control::Control;

/// A data connection; its clones are the same one.
#[derive(Clone)]
pub(super) struct Data(Arc<Ends>);

struct Ends {
    stream: TcpStream,
    sender: Mutex<Sender>,
    /// Held by the one who watches until data comes, by the engine afterwards.
    receiver: Mutex<Receiver>,
}

impl Data {
    /// Takes over a connection to `peer`: one thread beats, one watches until the engine has its first data.
    ///
    /// # Errors
    /// When the system gives no more threads.
    pub(super) fn start(peer: usize, channel: Channel, control: &Arc<Control>) -> io::Result<Self> {
        let Channel { stream, sender, receiver } = channel;
        let ends = Arc::new(Ends { stream, sender: Mutex::new(sender), receiver: Mutex::new(receiver) });
        let (weak, tick) = (Arc::downgrade(&ends), control.limits.tick);
        thread::Builder::new().name(format!("data-beat-{peer}")).spawn(move || beat(&weak, tick))?;
        let (watched, control) = (Arc::clone(&ends), Arc::clone(control));
        let watch = move || {
            if let Err(error) = watched.watch() {
                control.connection_lost(peer, &error.to_string());
            }
        };
        thread::Builder::new().name(format!("data-watch-{peer}")).spawn(watch)?;
        Ok(Data(ends))
    }

    /// Says that nothing more comes. That the other process is gone already matters no more.
    pub(super) fn close(&self) {
        drop(self.0.sender().close());
    }

    /// Ends the connection without a word.
    pub(super) fn cut(&self) {
        // One that is closed already is fine.
        drop(self.0.stream.shutdown(Shutdown::Both));
    }
}

impl Ends {
    fn sender(&self) -> MutexGuard<'_, Sender> {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn receiver(&self) -> MutexGuard<'_, Receiver> {
        self.receiver.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes beats until something else comes, which stays for the engine.
    fn watch(&self) -> io::Result<()> {
        let mut receiver = self.receiver();
        while receiver.record()? == Record::Beat {}
        Ok(())
    }
}

/// Beats as long as the connection is there. Who holds the sender is sending.
fn beat(ends: &Weak<Ends>, tick: Duration) {
    loop {
        thread::sleep(tick);
        let Some(ends) = ends.upgrade() else { return };
        let beaten = match ends.sender.try_lock() {
            Ok(mut sender) => sender.beat(),
            Err(TryLockError::Poisoned(sender)) => sender.into_inner().beat(),
            Err(TryLockError::WouldBlock) => Ok(true),
        };
        // A connection that is lost is reported by who reads it.
        if !beaten.unwrap_or(false) {
            return;
        }
    }
}

impl Read for Data {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.receiver().read(buffer)
    }
}

impl Write for Data {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.sender().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream for Data {
    fn try_clone(&self) -> io::Result<Self> {
        Ok(self.clone())
    }

    /// It always blocks, and nobody asks for anything else.
    fn set_nonblocking(&self, _nonblocking: bool) -> io::Result<()> {
        Ok(())
    }

    /// The engine shuts down the side that it writes, when it has written all.
    fn shutdown(&self, _how: Shutdown) -> io::Result<()> {
        self.0.sender().close()
    }
}
