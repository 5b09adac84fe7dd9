//! Serves the metrics of a job that stays, for Prometheus, over HTTP.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result};
use parking_lot::Mutex;

use super::metrics::text_of_runs;

/// Time that a client has to ask and to take the answer.
const CLIENT_TIME: Duration = Duration::from_secs(2);
/// Number of bytes of a request that are read.
const REQUEST_BYTES: usize = 8 << 10;

/// Page of metrics that a server shows: those of the run that is, or was last, under way, and those of the job
/// around it.
#[derive(Clone, Debug, Default)]
pub struct MetricsPage(Arc<Mutex<PageText>>);

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
    /// One client is answered after the other, and each has two seconds, so clients can take neither threads nor open
    /// files from the job.
    ///
    /// # Errors
    /// When the address is in use or is none of this machine.
    pub fn serve(&self, address: SocketAddr) -> Result<SocketAddr> {
        let listener =
            TcpListener::bind(address).with_context(|| format!("could not serve metrics on {address}"))?;
        let address = listener.local_addr()?;
        let page = self.clone();
        thread::Builder::new().name("metrics".to_owned()).spawn(move || {
            // A client that goes away, or that says nothing, is no failure of the job.
            listener.incoming().flatten().for_each(|client| drop(page.answer(client)));
        })?;
        Ok(address)
    }

    fn answer(&self, mut client: TcpStream) -> io::Result<()> {
        client.set_read_timeout(Some(CLIENT_TIME))?;
        client.set_write_timeout(Some(CLIENT_TIME))?;
        let mut request = [0; REQUEST_BYTES];
        let mut read = 0;
        let began = Instant::now();
        while !request[..read].windows(4).any(|end| end == b"\r\n\r\n") {
            let more = client.read(&mut request[read..])?;
            if more == 0 || began.elapsed() > CLIENT_TIME {
                return Ok(());
            }
            read += more;
        }
        let (status, body) = match request.starts_with(b"GET /metrics ") {
            true => ("200 OK", self.text()),
            false => ("404 Not Found", "the metrics are at /metrics\n".to_owned()),
        };
        let length = body.len();
        write!(
            client,
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )
    }
}
