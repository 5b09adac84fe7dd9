//! The handshake of a new connection, in which both ends prove that they know the shared token. It follows
//! Noise, in the pattern `NNpsk0`.
//!
//! | step | from | sends | which tells the other side |
//! |---|---|---|---|
//! | 1 | client | hello in clear, and Noise message 1 | who calls whom, and for what |
//! | 2 | server | Noise message 2, if the hello calls this server | that the server knows the token |
//! | 3 | client | hash of the job, sealed | that the client knows the token and is no recording |
//! | 4 | server | verdict, sealed | whether the client is welcome |
//!
//! Both sides use the hello as the prologue of Noise, so a handshake about another hello fails.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use ring::hkdf;
use snow::{Builder, HandshakeState, StatelessTransportState};

use super::channel::TAG_BYTES;

/// First bytes of a hello. The last one is the version of the handshake.
const MAGIC: [u8; 8] = *b"dedupjb\x02";
/// Length of a hello: magic, two indexes of processes, and the kind of the connection.
const HELLO_BYTES: usize = MAGIC.len() + 4 + 4 + 1;
/// Name of the Noise protocol: X25519, AES-256-GCM and SHA-256.
const NOISE: &str = "Noise_NNpsk0_25519_AESGCM_SHA256";
/// Length of a handshake message: a key of X25519, and the tag of an empty payload.
const MESSAGE_BYTES: usize = 32 + TAG_BYTES;
/// Length of the hash of a job, in bytes.
const JOB_BYTES: usize = 32;
/// Message for a connection that is closed without an answer. The text lists why a process of the same job
/// may not answer.
const NO_ANSWER: &str =
    "it closed the connection: its token, its version or its place in the hosts file differs";
/// Number of messages that the handshake itself seals with the keys of the connection, of the client and of
/// the server.
pub(super) const SEALED: [u64; 2] = [1, 1];

/// Key that both sides must know.
#[derive(Clone)]
pub(super) struct SharedSecret([u8; 32]);

impl SharedSecret {
    /// Derives the key of a token with HKDF-SHA-256. The key of the empty token is known to everybody.
    pub(super) fn of_token(token: &[u8]) -> Self {
        let mut key = [0; 32];
        let extracted = hkdf::Salt::new(hkdf::HKDF_SHA256, &MAGIC).extract(token);
        let filled =
            extracted.expand(&[b"token"], hkdf::HKDF_SHA256).and_then(|key_of| key_of.fill(&mut key));
        debug_assert!(filled.is_ok(), "a hash gives as many bytes as it has");
        SharedSecret(key)
    }
}

/// Purpose of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ConnectionKind {
    /// Connection to process 0, for the messages of `Control`.
    Control,
    /// Connection for the engine.
    Data,
}

/// First words of a client: who calls whom, and for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) kind: ConnectionKind,
}

impl Hello {
    fn encode(&self) -> [u8; HELLO_BYTES] {
        let fields: [&[u8]; 4] =
            [&MAGIC, &self.from.to_le_bytes(), &self.to.to_le_bytes(), &[self.kind as u8]];
        let mut bytes = [0; HELLO_BYTES];
        bytes.iter_mut().zip(fields.into_iter().flatten()).for_each(|(to, from)| *to = *from);
        bytes
    }

    /// Decodes a hello. Returns `None` if the bytes are not from a process of this program and version.
    fn decode(bytes: &[u8; HELLO_BYTES]) -> Option<Hello> {
        let (magic, rest) = bytes.split_first_chunk()?;
        let (from, rest) = rest.split_first_chunk()?;
        let (to, rest) = rest.split_first_chunk()?;
        let kind = match rest.first()? {
            0 => ConnectionKind::Control,
            1 => ConnectionKind::Data,
            _ => return None,
        };
        let hello = Hello { from: u32::from_le_bytes(*from), to: u32::from_le_bytes(*to), kind };
        (*magic == MAGIC).then_some(hello)
    }

    fn noise(&self, secret: &SharedSecret, initiator: bool) -> Result<HandshakeState, snow::Error> {
        let prologue = self.encode();
        let builder = Builder::new(NOISE.parse()?).prologue(&prologue)?.psk(0, &secret.0)?;
        if initiator { builder.build_initiator() } else { builder.build_responder() }
    }
}

/// Answer of the server to a client that has proved that it knows the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Welcome,
    /// The client has another program, configuration or number of processes.
    OtherJob,
    /// The server awaits no connection of this kind from that process.
    NotAwaited,
    /// Another process with that index came before.
    Taken,
}

/// Verdicts by their number.
const VERDICTS: [Verdict; 4] = [Verdict::Welcome, Verdict::OtherJob, Verdict::NotAwaited, Verdict::Taken];

/// Stream on which all reads and writes must end by a deadline.
struct Hurried<'a> {
    stream: &'a TcpStream,
    deadline: Instant,
}

impl Hurried<'_> {
    /// Sets the timeouts of the next call to the time that is left.
    fn hurry(&self) -> io::Result<()> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.set_write_timeout(Some(left))
    }

    fn read<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

impl Read for Hurried<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.hurry()?;
        self.stream.read(buffer)
    }
}

impl Write for Hurried<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.hurry()?;
        self.stream.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn not_proved(_: snow::Error) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, "it does not prove the token")
}

/// Writes the next message of a handshake, which has an empty payload.
fn message(noise: &mut HandshakeState) -> io::Result<[u8; MESSAGE_BYTES]> {
    let mut message = [0; MESSAGE_BYTES];
    noise.write_message(&[], &mut message).map_err(io::Error::other)?;
    Ok(message)
}

/// Performs the handshake as the client. It costs two round trips.
///
/// # Errors
/// When the other side is slow or gone, or does not prove that it knows the token.
pub(super) fn call(
    stream: &TcpStream,
    secret: &SharedSecret,
    hello: &Hello,
    job: &[u8; JOB_BYTES],
    deadline: Instant,
) -> io::Result<(Verdict, StatelessTransportState)> {
    let mut stream = Hurried { stream, deadline };
    let mut noise = hello.noise(secret, true).map_err(io::Error::other)?;
    stream.write_all(&[&hello.encode()[..], &message(&mut noise)?].concat())?;
    let theirs: [u8; MESSAGE_BYTES] = stream.read().map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset => io::Error::new(error.kind(), NO_ANSWER),
        _ => error,
    })?;
    noise.read_message(&theirs, &mut []).map_err(not_proved)?;
    let keys = noise.into_stateless_transport_mode().map_err(io::Error::other)?;
    let mut sealed = [0; JOB_BYTES + TAG_BYTES];
    keys.write_message(0, job, &mut sealed).map_err(io::Error::other)?;
    stream.write_all(&sealed)?;
    let sealed: [u8; 1 + TAG_BYTES] = stream.read()?;
    let mut verdict = [0; 1 + TAG_BYTES];
    keys.read_message(0, &sealed, &mut verdict).map_err(not_proved)?;
    let verdict = VERDICTS.get(usize::from(verdict[0])).copied().ok_or(ErrorKind::InvalidData)?;
    Ok((verdict, keys))
}

/// A client that has proved that it knows the token, and waits for a verdict.
pub(super) struct Caller {
    pub(super) hello: Hello,
    pub(super) job: [u8; JOB_BYTES],
    keys: StatelessTransportState,
}

/// Performs the handshake as the server, until the client has proved that it knows the token. A client that
/// calls another process than `index` gets no answer, because it may be a relay that wants one for somebody
/// else.
///
/// # Errors
/// When the client is a stranger: slow, gone, without the token, or calling another process.
pub(super) fn answer(
    stream: &TcpStream,
    secret: &SharedSecret,
    index: usize,
    deadline: Instant,
) -> io::Result<Caller> {
    let mut stream = Hurried { stream, deadline };
    let hello = Hello::decode(&stream.read()?).ok_or(ErrorKind::InvalidData)?;
    if hello.to as usize != index {
        return Err(ErrorKind::InvalidData.into());
    }
    let mut noise = hello.noise(secret, false).map_err(io::Error::other)?;
    let theirs: [u8; MESSAGE_BYTES] = stream.read()?;
    noise.read_message(&theirs, &mut []).map_err(not_proved)?;
    stream.write_all(&message(&mut noise)?)?;
    let keys = noise.into_stateless_transport_mode().map_err(io::Error::other)?;
    let sealed: [u8; JOB_BYTES + TAG_BYTES] = stream.read()?;
    let mut opened = [0; JOB_BYTES + TAG_BYTES];
    keys.read_message(0, &sealed, &mut opened).map_err(not_proved)?;
    let job = *opened.first_chunk().ok_or(ErrorKind::InvalidData)?;
    Ok(Caller { hello, job, keys })
}

impl Caller {
    /// Sends the verdict, which ends the handshake on the server's side.
    pub(super) fn say(
        self,
        stream: &TcpStream,
        verdict: Verdict,
        deadline: Instant,
    ) -> io::Result<StatelessTransportState> {
        let mut sealed = [0; 1 + TAG_BYTES];
        self.keys.write_message(0, &[verdict as u8], &mut sealed).map_err(io::Error::other)?;
        Hurried { stream, deadline }.write_all(&sealed)?;
        Ok(self.keys)
    }
}
