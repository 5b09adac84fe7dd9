//! The metrics of a server, for Prometheus, and its access log.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::Response;
use parking_lot::Mutex;
use serde::Serialize;

use super::admission::RequestCaller;
use crate::index_folder::IndexFolder;
use runtime::clock::seconds_now;
use runtime::progress::{MetricsText, labels};

/// Upper bounds of the histogram of times, in microseconds.
const TIMES: [u64; 10] = [100, 250, 500, 1_000, 2_500, 5_000, 25_000, 100_000, 1_000_000, 10_000_000];

/// Counts requests, and writes the access log.
pub(super) struct Observer {
    log: Option<Mutex<File>>,
    /// Requests by the hundreds of their status: 1xx to 5xx.
    requests: [AtomicU64; 5],
    /// Requests that took at most each time of [`TIMES`], and that took longer.
    times: [AtomicU64; TIMES.len() + 1],
    microseconds: AtomicU64,
    documents: AtomicU64,
}

/// A line of the access log.
#[derive(Serialize)]
struct AccessLine<'a> {
    /// Seconds since 1970.
    time: u64,
    client: Option<SocketAddr>,
    token: Option<&'a str>,
    method: &'a str,
    path: &'a str,
    status: u16,
    microseconds: u64,
}

impl Observer {
    /// Opens the access log, if there is to be one.
    pub fn new(path: Option<&str>) -> Result<Self> {
        let open = |path: &str| {
            let file = OpenOptions::new().create(true).append(true).open(path);
            file.map(Mutex::new).with_context(|| format!("could not open the access log \"{path}\""))
        };
        Ok(Observer {
            log: path.map(open).transpose()?,
            requests: Default::default(),
            times: Default::default(),
            microseconds: AtomicU64::new(0),
            documents: AtomicU64::new(0),
        })
    }

    /// Counts documents of a request.
    pub fn count_documents(&self, documents: usize) {
        self.documents.fetch_add(documents as u64, Ordering::Relaxed);
    }

    fn count(&self, status: StatusCode, took: Duration) -> u64 {
        let took = took.as_micros() as u64;
        let hundreds = usize::from(status.as_u16() / 100).clamp(1, 5);
        self.requests[hundreds - 1].fetch_add(1, Ordering::Relaxed);
        self.times[TIMES.partition_point(|bound| *bound < took)].fetch_add(1, Ordering::Relaxed);
        self.microseconds.fetch_add(took, Ordering::Relaxed);
        took
    }

    fn write_line(&self, line: &AccessLine) {
        let Some(log) = &self.log else { return };
        if let Ok(mut text) = serde_json::to_string(line) {
            text.push('\n');
            // A full disk must not end the server.
            let _ = log.lock().write_all(text.as_bytes());
        }
    }

    /// Returns the metrics in the text format of Prometheus.
    pub fn metrics(&self, index: &IndexFolder, is_ready: bool) -> String {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut text = MetricsText(String::new());
        let by_status = self.requests.iter().zip(1..);
        let by_status = by_status
            .map(|(count, hundreds)| (labels(&[("status", &format!("{hundreds}xx"))]), of(count) as f64));
        text.metric("dedup_index_requests_total", "Requests that were answered", by_status);
        let segments: usize = index.topics.values().map(|topic| topic.segments.len()).sum();
        text.unlabelled(&[
            ("dedup_index_documents_total", "Documents of requests", of(&self.documents) as f64),
            ("dedup_index_ready", "Whether changes are taken", f64::from(u8::from(is_ready))),
            ("dedup_index_topics", "Topics of the index", index.topics.len() as f64),
            ("dedup_index_segments", "Segments of all topics", segments as f64),
            ("dedup_index_memory_bytes", "Bytes of documents in memory", index.memory_bytes() as f64),
        ]);
        let MetricsText(mut text) = text;
        let name = "dedup_index_request_seconds";
        let _ = writeln!(text, "# HELP {name} Time of requests\n# TYPE {name} histogram");
        let mut sum = 0;
        for (count, bound) in self.times.iter().zip(TIMES) {
            sum += of(count);
            let _ = writeln!(text, "{name}_bucket{{le=\"{}\"}} {sum}", bound as f64 / 1e6);
        }
        sum += of(&self.times[TIMES.len()]);
        let seconds = of(&self.microseconds) as f64 / 1e6;
        let _ =
            writeln!(text, "{name}_bucket{{le=\"+Inf\"}} {sum}\n{name}_sum {seconds}\n{name}_count {sum}");
        text
    }
}

/// Counts a request and notes it in the access log.
pub(super) async fn observe(State(observer): State<Arc<Observer>>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let method = request.method().clone();
    let uri = request.uri().clone();
    let client = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|client| client.0);
    let response = next.run(request).await;
    let microseconds = observer.count(response.status(), began.elapsed());
    let caller = response.extensions().get::<RequestCaller>();
    observer.write_line(&AccessLine {
        time: seconds_now(),
        client,
        token: caller.and_then(RequestCaller::name),
        method: method.as_str(),
        path: uri.path(),
        status: response.status().as_u16(),
        microseconds,
    });
    response
}
