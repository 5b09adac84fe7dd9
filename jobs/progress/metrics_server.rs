//! Serves the metrics of a job that stays, for Prometheus, over HTTP.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;
use std::time::SystemTime;

use anyhow::{Context, Result};
use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use parking_lot::Mutex;
use tokio::runtime;

use super::metrics::text_of_runs;

/// Page of metrics that a server shows: those of the run that is, or was last, under way, and those of the job
/// around it.
#[derive(Clone, Debug, Default)]
pub(crate) struct MetricsPage(Arc<Mutex<PageText>>);

#[derive(Debug, Default)]
struct PageText {
    run: String,
    job: String,
}

impl MetricsPage {
    /// Replaces the metrics of the run.
    pub fn set_run(&self, metrics: String) {
        self.0.lock().run = metrics;
    }

    /// Replaces the metrics of the job around the runs. `runs`: the number of those that have succeeded.
    pub fn set_runs(&self, runs: u64) {
        let finished = (runs > 0).then(SystemTime::now);
        self.0.lock().job = text_of_runs(runs, finished);
    }

    fn text(&self) -> String {
        let page = self.0.lock();
        format!("{}{}", page.run, page.job)
    }

    /// Serves the page as `/metrics` until the process ends. Returns the address, which has a number for port 0.
    ///
    /// # Errors
    /// When the address is in use or is none of this machine.
    pub fn serve(&self, address: SocketAddr) -> Result<SocketAddr> {
        let listen = || -> std::io::Result<_> {
            let listener = TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            Ok((
                listener.local_addr()?,
                listener,
                runtime::Builder::new_current_thread().enable_io().build()?,
            ))
        };
        let (address, listener, runtime) =
            listen().with_context(|| format!("could not serve metrics on {address}"))?;
        let page = self.clone();
        let metrics = get(async move || ([(CONTENT_TYPE, "text/plain; version=0.0.4")], page.text()));
        let router = Router::new().route("/metrics", metrics);
        thread::Builder::new().name("metrics".to_owned()).spawn(move || {
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener)?;
                axum::serve(listener, router).await
            })
        })?;
        Ok(address)
    }
}
