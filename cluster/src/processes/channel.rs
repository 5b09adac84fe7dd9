//! A proved connection: what goes over it is sealed, and what comes over it is from the other process, in its order.
//!
//! A record is a head of 19 bytes, which seals kind and length, and, where the length is not 0, that many bytes, sealed
//! too. Head and body are Noise messages, numbered from 0 in each direction without a gap; so none of them can be
//! left out, repeated, moved or changed. A length is believed only after its head was opened.

use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use snow::StatelessTransportState;

/// What sealing adds to a message.
pub(super) const TAG_BYTES: usize = 16;
const HEAD_BYTES: usize = 3 + TAG_BYTES;
/// The largest body: Noise limits a message to 65,535 bytes.
const BODY_BYTES: usize = 65_535 - TAG_BYTES;
/// Memory of each direction of a connection: this, and a body before and after it is sealed or opened.
const BUFFER_BYTES: usize = 1 << 16;

/// What a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Record {
    /// The sender lives.
    Beat,
    /// There is something to read.
    Data,
    /// The sender has said all. A connection that ends without this was cut.
    Close,
}

const RECORDS: [Record; 3] = [Record::Beat, Record::Data, Record::Close];

/// Both directions of a connection whose handshake is done.
pub(super) struct Channel {
    pub(super) stream: TcpStream,
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
}

impl Channel {
    /// `sent` and `received`: messages that the handshake itself has sealed with these keys. The one who reads gives up
    /// when no whole record comes within `silent_ticks` times `tick`.
    ///
    /// # Errors
    /// When the system does not do what is asked of a socket.
    pub(super) fn new(
        stream: TcpStream,
        keys: StatelessTransportState,
        [sent, received]: [u64; 2],
        tick: Duration,
        silent_ticks: u32,
    ) -> io::Result<Self> {
        stream.set_read_timeout(Some(tick))?;
        stream.set_write_timeout(None)?;
        stream.set_nodelay(true)?;
        let keys = Arc::new(keys);
        let sender = Sender {
            stream: stream.try_clone()?,
            keys: Arc::clone(&keys),
            next: sent,
            sealed: vec![0; HEAD_BYTES + BODY_BYTES + TAG_BYTES],
            spoke: false,
            closed: false,
        };
        let ticking =
            Ticking { stream: stream.try_clone()?, tick, most: tick * silent_ticks, waited: Duration::ZERO };
        let receiver = Receiver {
            stream: BufReader::with_capacity(BUFFER_BYTES, ticking),
            keys,
            next: received,
            sealed: vec![0; BODY_BYTES + TAG_BYTES],
            opened: vec![0; BODY_BYTES + TAG_BYTES],
            left: 0..0,
            closed: false,
        };
        Ok(Channel { stream, sender, receiver })
    }
}

/// Seals what is written to it, and sends it at once.
pub(super) struct Sender {
    stream: TcpStream,
    keys: Arc<StatelessTransportState>,
    /// Number of the next message.
    next: u64,
    sealed: Vec<u8>,
    /// Whether something was sent since this was last asked.
    spoke: bool,
    closed: bool,
}

impl Sender {
    fn record(&mut self, record: Record, body: &[u8]) -> io::Result<()> {
        if self.closed {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let [low, high] = (body.len() as u16).to_le_bytes();
        let mut bytes = self.seal(&[record as u8, low, high], 0)?;
        if !body.is_empty() {
            bytes += self.seal(body, bytes)?;
        }
        // After an error, part of a record may be on its way: nothing can follow it.
        self.closed = true;
        self.stream.write_all(&self.sealed[..bytes])?;
        (self.closed, self.spoke) = (record == Record::Close, true);
        Ok(())
    }

    /// Puts the next message at `at`, and says how long it is.
    fn seal(&mut self, message: &[u8], at: usize) -> io::Result<usize> {
        let bytes = self.keys.write_message(self.next, message, &mut self.sealed[at..]);
        self.next += 1;
        bytes.map_err(io::Error::other)
    }

    /// Says that this process lives, unless something was said since the last time; `false` if nothing more may be said.
    pub(super) fn beat(&mut self) -> io::Result<bool> {
        if !std::mem::take(&mut self.spoke) && !self.closed {
            self.record(Record::Beat, &[])?;
            self.spoke = false;
        }
        Ok(!self.closed)
    }

    /// Says that nothing more comes. The other direction stays open.
    pub(super) fn close(&mut self) -> io::Result<()> {
        if self.closed {
            return Ok(());
        }
        self.record(Record::Close, &[])?;
        // That record is the end: who has read it may be gone by now.
        drop(self.stream.shutdown(Shutdown::Write));
        Ok(())
    }
}

impl Write for Sender {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let body = &bytes[..bytes.len().min(BODY_BYTES)];
        if !body.is_empty() {
            self.record(Record::Data, body)?;
        }
        Ok(body.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Opens what comes, and gives out what was sent and nothing else. An error says in words what is wrong.
pub(super) struct Receiver {
    stream: BufReader<Ticking>,
    keys: Arc<StatelessTransportState>,
    /// Number of the next message.
    next: u64,
    sealed: Vec<u8>,
    opened: Vec<u8>,
    /// What of `opened` was not given out yet.
    left: std::ops::Range<usize>,
    closed: bool,
}

impl Receiver {
    /// Waits for the next record; that of one that holds data are given out by `read`.
    ///
    /// # Errors
    /// When the other process is silent or gone, or what comes is not from it.
    pub(super) fn record(&mut self) -> io::Result<Record> {
        if !self.left.is_empty() {
            return Ok(Record::Data);
        }
        if self.closed {
            return Ok(Record::Close);
        }
        self.message(HEAD_BYTES)?;
        let [kind, low, high] = [self.opened[0], self.opened[1], self.opened[2]];
        let record = RECORDS.get(usize::from(kind)).copied().ok_or_else(forged)?;
        let bytes = usize::from(u16::from_le_bytes([low, high]));
        if (record == Record::Data) != (1..=BODY_BYTES).contains(&bytes) {
            return Err(forged());
        }
        if record == Record::Data {
            self.message(bytes + TAG_BYTES)?;
            self.left = 0..bytes;
        }
        self.closed = record == Record::Close;
        self.stream.get_mut().waited = Duration::ZERO;
        Ok(record)
    }

    /// Reads and opens a message that is sealed in so many bytes.
    fn message(&mut self, bytes: usize) -> io::Result<()> {
        let sealed = &mut self.sealed[..bytes];
        self.stream.read_exact(sealed).map_err(|error| match error.kind() {
            ErrorKind::TimedOut => error,
            _ => io::Error::new(error.kind(), "its connection closed"),
        })?;
        self.keys.read_message(self.next, sealed, &mut self.opened).map_err(|_| forged())?;
        self.next += 1;
        Ok(())
    }
}

fn forged() -> io::Error {
    io::Error::new(
        ErrorKind::InvalidData,
        "what came on its connection was changed on the way or is not from it",
    )
}

impl Read for Receiver {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.record()? {
                Record::Beat => {}
                Record::Close => return Ok(0),
                Record::Data => {
                    let bytes = buffer.len().min(self.left.len());
                    buffer[..bytes].copy_from_slice(&self.opened[self.left.start..][..bytes]);
                    self.left.start += bytes;
                    return Ok(bytes);
                }
            }
        }
    }
}

/// Reads a stream whose read timeout is one tick, and gives up when it has waited too long for a whole record: bytes that
/// drip do not count for life.
///
/// One wait counts for a tick at most: after this process itself was stopped, however long, no more than that has gone by.
struct Ticking {
    stream: TcpStream,
    tick: Duration,
    most: Duration,
    /// Since the last whole record.
    waited: Duration,
}

impl Read for Ticking {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let begun = Instant::now();
            let read = self.stream.read(buffer);
            self.waited += begun.elapsed().min(self.tick);
            match read {
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                // What a stop and continue of this process gives.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(1..) if self.waited >= self.most => {}
                read => return read,
            }
            if self.waited >= self.most {
                let silence = format!("nothing came from it for {} s", self.most.as_secs_f32());
                return Err(io::Error::new(ErrorKind::TimedOut, silence));
            }
        }
    }
}
