//! The proof, on both ends of a new connection, of the shared token. Nothing is allocated for a stranger.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use aws_lc_rs::{hmac, rand};

/// Ends with the version of the handshake.
const MAGIC: [u8; 8] = *b"dedupjb\x01";
const NONCE_BYTES: usize = 32;
const HELLO_BYTES: usize = MAGIC.len() + 32 + 4 + 4 + 1 + NONCE_BYTES;
const MAC_BYTES: usize = 32;
/// What the two sides prove is not the same, so that neither's proof can be given back to it.
const SERVER: &[u8] = b"server";
const CLIENT: &[u8] = b"client";

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
    pub(super) job: [u8; 32],
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) kind: Kind,
}

impl Hello {
    fn encode(&self, nonce: &[u8; NONCE_BYTES]) -> [u8; HELLO_BYTES] {
        let fields: [&[u8]; 6] =
            [&MAGIC, &self.job, &self.from.to_le_bytes(), &self.to.to_le_bytes(), &[self.kind as u8], nonce];
        let mut bytes = [0; HELLO_BYTES];
        bytes.iter_mut().zip(fields.into_iter().flatten()).for_each(|(to, from)| *to = *from);
        bytes
    }

    /// `None`: nobody of ours wrote this.
    fn decode(bytes: &[u8; HELLO_BYTES]) -> Option<Hello> {
        let (magic, rest) = bytes.split_first_chunk()?;
        let (job, rest) = rest.split_first_chunk()?;
        let (from, rest) = rest.split_first_chunk()?;
        let (to, rest) = rest.split_first_chunk()?;
        let kind = match rest.first()? {
            0 => Kind::Control,
            1 => Kind::Data,
            _ => return None,
        };
        let hello = Hello { job: *job, from: u32::from_le_bytes(*from), to: u32::from_le_bytes(*to), kind };
        (*magic == MAGIC).then_some(hello)
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

fn nonce() -> io::Result<[u8; NONCE_BYTES]> {
    let mut nonce = [0; NONCE_BYTES];
    rand::fill(&mut nonce).map_err(|_| io::Error::other("no random numbers"))?;
    Ok(nonce)
}

/// The proof covers who calls whom, for what, and both nonces, the client's being part of `hello`.
fn said(side: &[u8], hello: &[u8; HELLO_BYTES], nonce: &[u8; NONCE_BYTES]) -> Vec<u8> {
    [side, hello, nonce].concat()
}

/// As the client. Costs two round trips.
///
/// # Errors
/// When the other side is slow, gone, or does not prove that it knows the token.
pub(super) fn call(
    stream: &TcpStream,
    token: &hmac::Key,
    hello: &Hello,
    deadline: Instant,
) -> io::Result<Verdict> {
    let mut stream = Hurried { stream, deadline };
    let hello = hello.encode(&nonce()?);
    stream.write_all(&hello)?;
    let theirs: [u8; NONCE_BYTES] = stream.read()?;
    let proof: [u8; MAC_BYTES] = stream.read()?;
    if hmac::verify(token, &said(SERVER, &hello, &theirs), &proof).is_err() {
        return Err(io::Error::other("it does not prove the token"));
    }
    stream.write_all(hmac::sign(token, &said(CLIENT, &hello, &theirs)).as_ref())?;
    let [verdict] = stream.read()?;
    VERDICTS.get(usize::from(verdict)).copied().ok_or_else(|| ErrorKind::InvalidData.into())
}

/// As the server, until the client has proved that it knows the token.
///
/// # Errors
/// When the client is a stranger: slow, gone, or without the token.
pub(super) fn answer(stream: &TcpStream, token: &hmac::Key, deadline: Instant) -> io::Result<Hello> {
    let mut stream = Hurried { stream, deadline };
    let bytes: [u8; HELLO_BYTES] = stream.read()?;
    let hello = Hello::decode(&bytes).ok_or(ErrorKind::InvalidData)?;
    let nonce = nonce()?;
    let proof = hmac::sign(token, &said(SERVER, &bytes, &nonce));
    stream.write_all(&[&nonce, proof.as_ref()].concat())?;
    let theirs: [u8; MAC_BYTES] = stream.read()?;
    match hmac::verify(token, &said(CLIENT, &bytes, &nonce), &theirs) {
        Ok(()) => Ok(hello),
        Err(_) => Err(ErrorKind::PermissionDenied.into()),
    }
}

/// Ends the handshake on the server's side.
pub(super) fn say(stream: &TcpStream, verdict: Verdict, deadline: Instant) -> io::Result<()> {
    Hurried { stream, deadline }.write_all(&[verdict as u8])
}
