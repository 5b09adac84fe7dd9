//! The proof, on both ends of a new connection, of the shared token: Noise, in the pattern `NNpsk0`.
//!
//! The client says who calls whom and for what, in clear, and the first Noise message; the server, if it is the one who
//! is called, the second. Both hold these words as the prologue, so that a handshake about others fails. Then, sealed: the
//! client says its job, which proves that it is there and no recording, and the server its verdict.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use aws_lc_rs::hkdf;
use snow::{Builder, HandshakeState, StatelessTransportState};

use super::channel::TAG_BYTES;

/// Ends with the version of the handshake.
const MAGIC: [u8; 8] = *b"dedupjb\x02";
const HELLO_BYTES: usize = MAGIC.len() + 4 + 4 + 1;
const NOISE: &str = "Noise_NNpsk0_25519_AESGCM_SHA256";
/// A key of X25519 and the tag of an empty payload.
const MESSAGE_BYTES: usize = 32 + TAG_BYTES;
const JOB_BYTES: usize = 32;
/// Why a process of the same job may not answer.
const NO_ANSWER: &str =
    "it closed the connection: its token, its version or its place in the hosts file differs";
/// How many messages of each side, the client's first, the handshake itself seals with the keys of the connection.
pub(super) const SEALED: [u64; 2] = [1, 1];

/// The key that both sides must know.
#[derive(Clone)]
pub(super) struct Secret([u8; 32]);

impl Secret {
    /// Of an empty token, which everybody knows, too.
    pub(super) fn of_token(token: &[u8]) -> Self {
        let mut key = [0; 32];
        let extracted = hkdf::Salt::new(hkdf::HKDF_SHA256, &MAGIC).extract(token);
        let filled =
            extracted.expand(&[b"token"], hkdf::HKDF_SHA256).and_then(|key_of| key_of.fill(&mut key));
        debug_assert!(filled.is_ok(), "a hash gives as many bytes as it has");
        Secret(key)
    }
}

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Goes to process 0, and stays with us.
    Control,
    /// Goes to the engine.
    Data,
}

/// Who calls whom, and for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) kind: Kind,
}

impl Hello {
    fn encode(&self) -> [u8; HELLO_BYTES] {
        let fields: [&[u8]; 4] =
            [&MAGIC, &self.from.to_le_bytes(), &self.to.to_le_bytes(), &[self.kind as u8]];
        let mut bytes = [0; HELLO_BYTES];
        bytes.iter_mut().zip(fields.into_iter().flatten()).for_each(|(to, from)| *to = *from);
        bytes
    }

    /// `None`: nobody of ours wrote this.
    fn decode(bytes: &[u8; HELLO_BYTES]) -> Option<Hello> {
        let (magic, rest) = bytes.split_first_chunk()?;
        let (from, rest) = rest.split_first_chunk()?;
        let (to, rest) = rest.split_first_chunk()?;
        let kind = match rest.first()? {
            0 => Kind::Control,
            1 => Kind::Data,
            _ => return None,
        };
        let hello = Hello { from: u32::from_le_bytes(*from), to: u32::from_le_bytes(*to), kind };
        (*magic == MAGIC).then_some(hello)
    }

    fn noise(&self, secret: &Secret, initiator: bool) -> Result<HandshakeState, snow::Error> {
        let prologue = self.encode();
        let builder = Builder::new(NOISE.parse()?).prologue(&prologue)?.psk(0, &secret.0)?;
        if initiator { builder.build_initiator() } else { builder.build_responder() }
    }
}

/// What the server says to a client that has proved the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Welcome,
    /// Another program, configuration or number of processes.
    OtherJob,
    /// No process of that index calls this one.
    NotAwaited,
    /// Another one with that index came before.
    Taken,
}

const VERDICTS: [Verdict; 4] = [Verdict::Welcome, Verdict::OtherJob, Verdict::NotAwaited, Verdict::Taken];

/// A stream on which all that is read and written must be done by a deadline.
struct Hurried<'a> {
    stream: &'a TcpStream,
    deadline: Instant,
}

impl Hurried<'_> {
    /// Sets the timeouts for one call to what is left.
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

/// The next message of a handshake whose payloads are empty.
fn message(noise: &mut HandshakeState) -> io::Result<[u8; MESSAGE_BYTES]> {
    let mut message = [0; MESSAGE_BYTES];
    noise.write_message(&[], &mut message).map_err(io::Error::other)?;
    Ok(message)
}

/// As the client. Costs two round trips.
///
/// # Errors
/// When the other side is slow, gone, or does not prove that it knows the token.
pub(super) fn call(
    stream: &TcpStream,
    secret: &Secret,
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

/// As the server, until the client has proved that it knows the token. Who calls anybody else than process `index`
/// gets no answer: it may be a relay, which wants one for somebody else.
///
/// # Errors
/// When the client is a stranger: slow, gone, without the token, or for another process.
pub(super) fn answer(
    stream: &TcpStream,
    secret: &Secret,
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
    /// Ends the handshake on the server's side.
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
