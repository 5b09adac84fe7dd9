//! An authenticated and encrypted connection. What arrives was sent by the other process, in the same order.
//!
//! A record is a sealed head and a sealed body. Both are Noise messages, numbered from 0 in each direction
//! without a gap, so none of them can be left out, repeated, moved or changed. The receiver trusts a length
//! only after it has opened the head.
//!
//! | part | bytes | holds |
//! |---|---|---|
//! | head | 19 | kind (1) and length of the contents (2), and a tag (16) |
//! | body, unless the length is 0 | length + 16 | contents, and a tag (16) |

use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use snow::StatelessTransportState;

/// Number of bytes that sealing adds to a message.
pub(super) const TAG_BYTES: usize = 16;
/// Length of a sealed head, in bytes.
const HEAD_BYTES: usize = 3 + TAG_BYTES;
/// Largest length of the contents of a body, in bytes. Noise limits a message to 65,535 bytes.
const BODY_BYTES: usize = 65_535 - TAG_BYTES;
/// Length of the read buffer of a connection, in bytes. In addition, each direction holds a body before and
/// after it is sealed or opened.
const BUFFER_BYTES: usize = 1 << 16;

/// Kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordType {
    /// Heartbeat: the sender lives.
    Beat,
    /// The body holds data.
    Data,
    /// The sender has sent everything. A connection that ends without this record was cut.
    Close,
}

/// Records by the number of their kind.
const RECORDS: [RecordType; 3] = [RecordType::Beat, RecordType::Data, RecordType::Close];

/// Both directions of a connection whose handshake is done.
///
/// For example, a sender writes `hello`, pauses for a tick, and closes. Message 0 was part of the handshake:
///
/// ```text
/// write(b"hello")   head (Data, 5) and body    messages 1 and 2
/// beat()            nothing, since data was sent in this tick
/// beat()            head (Beat, 0)             message 3
/// close()           head (Close, 0)            message 4; the writing side is shut down
/// receiver          reads "hello", skips the beat, then reads the end of the stream
/// ```
pub(super) struct SealedChannel {
    pub(super) stream: TcpStream,
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
}

impl SealedChannel {
    /// Wraps a connection. `sent` and `received` count the messages that the handshake itself has sealed with
    /// these keys. A reader gives up when no whole record comes within `silent_ticks` times `tick`.
    ///
    /// # Errors
    /// When the system refuses an option of the socket.
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
        Ok(SealedChannel { stream, sender, receiver })
    }
}

/// Sending half of a channel. Each write is sealed and sent at once.
pub(super) struct Sender {
    stream: TcpStream,
    keys: Arc<StatelessTransportState>,
    /// Number of the next message.
    next: u64,
    sealed: Vec<u8>,
    /// Whether a record other than a beat was sent since the last call of `beat`.
    spoke: bool,
    closed: bool,
}

impl Sender {
    fn record(&mut self, record: RecordType, body: &[u8]) -> io::Result<()> {
        if self.closed {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let [low, high] = (body.len() as u16).to_le_bytes();
        let mut bytes = self.seal(&[record as u8, low, high], 0)?;
        if !body.is_empty() {
            bytes += self.seal(body, bytes)?;
        }
        // After an error, part of a record may have been sent, so nothing can follow it.
        self.closed = true;
        self.stream.write_all(&self.sealed[..bytes])?;
        (self.closed, self.spoke) = (record == RecordType::Close, true);
        Ok(())
    }

    /// Seals the next message into the buffer at `at`, and returns its sealed length.
    fn seal(&mut self, message: &[u8], at: usize) -> io::Result<usize> {
        let bytes = self.keys.write_message(self.next, message, &mut self.sealed[at..]);
        self.next += 1;
        bytes.map_err(io::Error::other)
    }

    /// Sends a heartbeat, unless something was sent since the last call. Returns `false` once the sender is
    /// closed.
    pub(super) fn beat(&mut self) -> io::Result<bool> {
        if !std::mem::take(&mut self.spoke) && !self.closed {
            self.record(RecordType::Beat, &[])?;
            self.spoke = false;
        }
        Ok(!self.closed)
    }

    /// Sends the end of this direction. The other direction stays open.
    pub(super) fn close(&mut self) -> io::Result<()> {
        if self.closed {
            return Ok(());
        }
        self.record(RecordType::Close, &[])?;
        // The peer may be gone once it has read that record.
        drop(self.stream.shutdown(Shutdown::Write));
        Ok(())
    }
}

impl Write for Sender {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let body = &bytes[..bytes.len().min(BODY_BYTES)];
        if !body.is_empty() {
            self.record(RecordType::Data, body)?;
        }
        Ok(body.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Receiving half of a channel. It opens records and returns only data that the peer sent. Its errors are
/// written for messages.
pub(super) struct Receiver {
    stream: BufReader<Ticking>,
    keys: Arc<StatelessTransportState>,
    /// Number of the next message.
    next: u64,
    sealed: Vec<u8>,
    opened: Vec<u8>,
    /// Part of `opened` that was not returned yet.
    left: std::ops::Range<usize>,
    closed: bool,
}

impl Receiver {
    /// Waits for the next record. The data of a data record is returned by `read`.
    ///
    /// # Errors
    /// When the other process is silent or gone, or a message is not from it.
    pub(super) fn record(&mut self) -> io::Result<RecordType> {
        if !self.left.is_empty() {
            return Ok(RecordType::Data);
        }
        if self.closed {
            return Ok(RecordType::Close);
        }
        self.message(HEAD_BYTES)?;
        let [kind, low, high] = [self.opened[0], self.opened[1], self.opened[2]];
        let record = RECORDS.get(usize::from(kind)).copied().ok_or_else(forged)?;
        let bytes = usize::from(u16::from_le_bytes([low, high]));
        if (record == RecordType::Data) != (1..=BODY_BYTES).contains(&bytes) {
            return Err(forged());
        }
        if record == RecordType::Data {
            self.message(bytes + TAG_BYTES)?;
            self.left = 0..bytes;
        }
        self.closed = record == RecordType::Close;
        self.stream.get_mut().waited = Duration::ZERO;
        Ok(record)
    }

    /// Reads and opens a message that is `bytes` long when sealed.
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
                RecordType::Beat => {}
                RecordType::Close => return Ok(0),
                RecordType::Data => {
                    let bytes = buffer.len().min(self.left.len());
                    buffer[..bytes].copy_from_slice(&self.opened[self.left.start..][..bytes]);
                    self.left.start += bytes;
                    return Ok(bytes);
                }
            }
        }
    }
}

/// Stream with a read timeout of one tick, which fails when no whole record came for too long. Single bytes
/// that trickle in do not count as life.
///
/// One wait counts for one tick at most. So a process that was itself stopped, for however long, does not
/// blame its peer.
struct Ticking {
    stream: TcpStream,
    tick: Duration,
    most: Duration,
    /// Time since the last whole record.
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
                // A stop and continue of this process interrupts the read.
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
