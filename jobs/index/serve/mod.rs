//! `index serve`: answers over HTTP, and changes the index.
//!
//! ```text
//! client -> hosts -> admission -> routes -> served_index     query: under the lock that readers share
//!                                      \--> changes          insert, delete, ...: one thread, one sync for many requests
//!                                           background       another thread writes and merges segments meanwhile
//! ```
//!
//! `views` keeps the clean set of topics true. `args.rs` has the options, `tokens.rs` who may do what, `bodies.rs` the room for requests and their bodies,
//! `deadline.rs` their time, `api_error.rs` the refusals, `tls.rs` the certificates, and `observe.rs` the metrics and the
//! access log. `page.html` is the page for people, and `openapi.json` describes the routes.

mod admission;
mod api_error;
mod args;
mod background;
mod bodies;
mod changes;
mod deadline;
mod export_stream;
mod hosts;
mod observe;
mod route_state;
mod routes;
mod served_index;
mod tls;
mod tokens;
mod views;

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use axum_server::accept::NoDelayAcceptor;
use axum_server::{Handle, Server};
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};

use self::admission::Admission;
use self::deadline::Closing;
use self::hosts::HostNames;
use self::observe::Observer;
use self::served_index::ServedIndex;
use runtime::Common;
use runtime::cli::exit::WrongUse;
use runtime::cli::terminal::print;

pub(super) use args::ServeArgs;

/// Time that a client has for the first request of a connection, for the TLS handshake, and for the headers of each
/// later request.
const HEADER_TIME: Duration = Duration::from_secs(10);

/// Largest number of requests at a time on one connection of HTTP/2.
const STREAMS: u32 = 100;

/// Serves an index until SIGTERM or SIGINT. The address is printed once it is bound.
///
/// The end: no more connections, the requests that have begun are answered within `--grace`, and whatever was
/// acknowledged is durable.
///
/// # Errors
/// [`WrongUse`] for an address beyond this machine without tokens and a certificate; those of opening the index.
pub(super) fn serve(common: &Common, args: &ServeArgs) -> Result<u8> {
    let is_loopback = args.address.ip().is_loopback();
    if !is_loopback && (args.tokens.is_none() || args.tls_cert.is_none()) {
        bail!(WrongUse(format!(
            "{} can be reached from other machines: this needs --tokens, --tls-cert and --tls-key",
            args.address
        )));
    }
    let runtime = Builder::new_multi_thread()
        .worker_threads(common.workers().max(2))
        .thread_name("http")
        .on_thread_start(cluster::panics_are_caught)
        .enable_all()
        .build()?;
    let serving = Arc::new(OnceLock::new());
    let closing = Closing::default();
    let signals = runtime.block_on(async {
        anyhow::Ok([signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?])
    })?;
    runtime.spawn(end_by_signal(signals, Arc::clone(&serving), closing.clone(), args.grace()));
    let admission = Admission::new(args, &closing, common)?;
    let tls = args.tls()?;
    let index = Arc::new(ServedIndex::open(common, args, closing)?);
    let observer = Arc::new(Observer::new(args.access_log.as_deref())?);
    let listener = TcpListener::bind(args.address)
        .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
        .with_context(|| format!("could not serve on {}", args.address))?;
    let address = listener.local_addr()?;
    let hosts = HostNames::new(address, &args.allow_host);
    let router = routes::router(Arc::clone(&index), admission, observer, hosts, args);
    let served = runtime.block_on(async {
        let handle: Handle<SocketAddr> = Handle::new();
        serving.get_or_init(|| handle.clone());
        let scheme = if tls.is_some() { "https" } else { "http" };
        print(format_args!("serving {} on {scheme}://{address}\n", args.index))?;
        let service = router.into_make_service_with_connect_info::<SocketAddr>();
        match tls {
            Some(acceptor) => {
                let server = axum_server::from_tcp(listener)?.acceptor(acceptor);
                limited(server).handle(handle).serve(service).await?;
            }
            None => {
                // The feed of a view has a short part for each version, which is not to wait for the client's last word.
                let server = axum_server::from_tcp(listener)?.acceptor(NoDelayAcceptor::new());
                limited(server).handle(handle).serve(service).await?;
            }
        }
        anyhow::Ok(())
    });
    // Requests that the grace did not suffice for end here.
    runtime.shutdown_timeout(Duration::from_secs(1));
    index.close();
    served.map(|()| 0)
}

/// Sets the limits of slow clients.
fn limited<A>(mut server: Server<SocketAddr, A>) -> Server<SocketAddr, A> {
    let http = server.http_builder();
    http.http1().header_read_timeout(HEADER_TIME);
    http.http2().keep_alive_interval(HEADER_TIME).max_concurrent_streams(STREAMS);
    server.first_request_timeout(HEADER_TIME)
}

/// Ends the server once a signal comes. Before it serves, nobody waits for anything, and the process ends at once, as it may
/// at any time: the index is as it was.
async fn end_by_signal(
    [mut term, mut interrupt]: [Signal; 2],
    serving: Arc<OnceLock<Handle<SocketAddr>>>,
    closing: Closing,
    grace: Duration,
) {
    tokio::select! {
        _ = term.recv() => {}
        _ = interrupt.recv() => {}
    }
    let Some(handle) = serving.get() else { std::process::exit(0) };
    // The work ends somewhat earlier, so that there is time to say how much of it was done.
    closing.begin(grace - grace / 4);
    handle.graceful_shutdown(Some(grace));
}
