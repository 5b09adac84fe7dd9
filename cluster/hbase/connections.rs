//! Connections to a gateway, and the retries of what is asked through them.

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cluster::{Backoff, Error};
use parking_lot::Mutex;
use thrift::ApplicationErrorKind;
use thrift::protocol::{TBinaryInputProtocol, TBinaryOutputProtocol};
use thrift::transport::{TBufferedReadTransport, TBufferedWriteTransport};

use super::gateway::{THBaseServiceSyncClient, TIOError, TIllegalArgument};

/// Bounds of the requests to a gateway.
#[derive(Clone, Copy, Debug)]
pub struct GatewayLimits {
    /// Time within which a connection must stand.
    pub connect: Duration,
    /// Time within which the next bytes of an answer must come.
    pub answer: Duration,
    /// Number of times that a request is made. The pauses between them begin with 0.2 s and double.
    pub attempts: u32,
    /// Largest number of connections that wait for the next request.
    pub idle_connections: usize,
}

impl Default for GatewayLimits {
    fn default() -> Self {
        // Nine attempts take at least 51 s, in which HBase gives the regions of a dead server to another one.
        GatewayLimits {
            connect: Duration::from_secs(5),
            answer: Duration::from_secs(30),
            attempts: 9,
            idle_connections: 16,
        }
    }
}

type GatewayInput = TBinaryInputProtocol<TBufferedReadTransport<TcpStream>>;
type GatewayOutput = TBinaryOutputProtocol<TBufferedWriteTransport<TcpStream>>;

/// Client of a gateway, over one connection.
pub(super) type GatewayClient = THBaseServiceSyncClient<GatewayInput, GatewayOutput>;

/// Connections to one gateway, which any number of threads share.
///
/// A request takes a connection that waits, or a new one, and gives it back if the answer was whole. A gateway closes
/// connections that have been idle for a minute, so a request that fails on a connection which has waited is made
/// again on a new one at once.
pub(super) struct Connections {
    gateway: String,
    limits: GatewayLimits,
    waiting: Mutex<Vec<GatewayClient>>,
    /// Whether a connection has ever stood. If not, the address is probably wrong.
    has_connected: AtomicBool,
}

/// Reason why a request has failed.
enum RequestFailure {
    /// The connection broke, or the answer did not come in time. Nobody knows whether the request was carried out.
    Broken(io::Error),
    /// The gateway says that it could not carry out the request, or all of it, at the moment.
    Transient(io::Error),
    /// The same request would fail again.
    Final(io::Error),
}

impl Connections {
    /// Makes connections when they are asked for. `gateway`: host and port.
    pub fn new(gateway: &str, limits: GatewayLimits) -> Self {
        Connections {
            gateway: gateway.to_owned(),
            limits,
            waiting: Mutex::new(Vec::new()),
            has_connected: AtomicBool::new(false),
        }
    }

    /// Makes a request until it is answered. Because an answer may be lost, the request may be carried out several
    /// times, and even after a later one. `path` and `action` name it in errors.
    ///
    /// # Errors
    /// [`Error::Io`] when all attempts have failed, when the gateway says that another one would, and when no
    /// connection has ever stood.
    pub fn request<T>(
        &self,
        path: &str,
        action: &'static str,
        mut make: impl FnMut(&mut GatewayClient) -> thrift::Result<T>,
    ) -> Result<T, Error> {
        let mut backoff = Backoff::new(self.limits.attempts);
        loop {
            let waiting = self.waiting.lock().pop();
            let has_waited = waiting.is_some();
            let answer = self.attempt(waiting, &mut make);
            let error = |source| Error::Io { path: path.to_owned(), action, source };
            match answer {
                Ok(answer) => return Ok(answer),
                Err(RequestFailure::Final(source)) => return Err(error(source)),
                // The others have waited as long, and may be closed, too.
                Err(RequestFailure::Broken(_)) if has_waited => self.waiting.lock().clear(),
                Err(RequestFailure::Broken(source) | RequestFailure::Transient(source)) => {
                    backoff.wait_after(error(source))?
                }
            }
        }
    }

    fn attempt<T>(
        &self,
        waiting: Option<GatewayClient>,
        make: &mut impl FnMut(&mut GatewayClient) -> thrift::Result<T>,
    ) -> Result<T, RequestFailure> {
        let mut client = match waiting {
            Some(client) => client,
            None => self.connect()?,
        };
        // The library panics if a length in an answer is negative.
        let Ok(answer) = cluster::catch(|| make(&mut client)) else {
            return Err(RequestFailure::Broken(io::Error::other("the answer is not one of Thrift")));
        };
        // An exception of the service has arrived as a whole answer.
        if matches!(answer, Ok(_) | Err(thrift::Error::User(_))) {
            let mut waiting = self.waiting.lock();
            if waiting.len() < self.limits.idle_connections {
                waiting.push(client);
            }
        }
        answer.map_err(RequestFailure::of)
    }

    fn connect(&self) -> Result<GatewayClient, RequestFailure> {
        let connected = self.connect_any();
        let client = connected.map_err(|error| match self.has_connected.load(Ordering::Relaxed) {
            true => RequestFailure::Broken(error),
            false => RequestFailure::Final(error),
        })?;
        self.has_connected.store(true, Ordering::Relaxed);
        Ok(client)
    }

    fn connect_any(&self) -> io::Result<GatewayClient> {
        let mut failed = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
        for address in self.gateway.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, self.limits.connect) {
                Ok(stream) => return self.client(stream),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    fn client(&self, stream: TcpStream) -> io::Result<GatewayClient> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(self.limits.answer))?;
        stream.set_write_timeout(Some(self.limits.answer))?;
        let input = TBufferedReadTransport::new(stream.try_clone()?);
        let output = TBufferedWriteTransport::new(stream);
        Ok(GatewayClient::new(
            TBinaryInputProtocol::new(input, true),
            TBinaryOutputProtocol::new(output, true),
        ))
    }
}

impl RequestFailure {
    fn of(error: thrift::Error) -> Self {
        let exception = match error {
            thrift::Error::User(exception) => exception,
            // An answer to another request: the connection is not used again, and a new one may do.
            thrift::Error::Application(error) if error.kind == ApplicationErrorKind::BadSequenceId => {
                return RequestFailure::Broken(io::Error::other(error.message));
            }
            thrift::Error::Application(error) => {
                return RequestFailure::Final(io::Error::other(error.message));
            }
            thrift::Error::Protocol(error) => return RequestFailure::Broken(io::Error::other(error.message)),
            thrift::Error::Transport(error) => {
                return RequestFailure::Broken(io::Error::other(error.message));
            }
        };
        if let Some(TIOError { message, can_retry }) = exception.downcast_ref() {
            // The message is a Java exception, whose first line says what it is.
            let message = message.as_deref().unwrap_or("HBase gives no reason");
            let error = io::Error::other(message.lines().next().unwrap_or_default().to_owned());
            return match can_retry {
                Some(false) => RequestFailure::Final(error),
                _ => RequestFailure::Transient(error),
            };
        }
        let message = exception.downcast_ref().and_then(|wrong: &TIllegalArgument| wrong.message.clone());
        RequestFailure::Final(io::Error::other(message.unwrap_or_else(|| exception.to_string())))
    }
}
