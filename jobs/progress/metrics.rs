//! Metrics of a running job for Prometheus, in its text format, version 0.0.4.

use std::fmt::{Display, Write as _};
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use self::MetricKind::{Counter, Gauge};
use super::counts::Progress;
use super::stage::Stage;
use super::stages::{StageCounts, StageTotals};
use super::usage::ResourceUsage;

/// State of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JobState {
    Running,
    Succeeded,
    Failed,
}

/// Facts about a job that are known before it runs.
pub(super) struct JobInfo {
    pub name: String,
    pub output: String,
    pub process: usize,
    pub input_bytes: u64,
    pub started: SystemTime,
}

/// Returns all metrics as text (docs/formats.md).
pub(super) fn text(job: &JobInfo, outcome: JobState, progress: &Progress) -> String {
    let (stage, _, _) = progress.now();
    let totals = progress.totals();
    let process = ResourceUsage::measure();
    let number = job.process.to_string();
    let started = job.started.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let mut text = MetricsText(String::new());
    let info = [
        ("version", env!("CARGO_PKG_VERSION")),
        ("job", &job.name),
        ("output", &job.output),
        ("process", &number),
    ];
    text.metric("dedup_job_info", Gauge, "The job; always 1", [(&info[..], 1)]);
    text.metric(
        "dedup_job_running",
        Gauge,
        "1 until the job ends",
        [(&[][..], u8::from(outcome == JobState::Running))],
    );
    let failed = u8::from(outcome == JobState::Failed);
    text.metric("dedup_job_failures_total", Counter, "1 once the job has failed", [(&[][..], failed)]);
    text.metric("dedup_job_start_time_seconds", Gauge, "When it started, since 1970", [(&[][..], started)]);
    text.metric("dedup_job_input_bytes", Gauge, "Bytes of all input files", [(&[][..], job.input_bytes)]);
    let names = Stage::ALL.map(|stage| [("stage", stage.name())]);
    let at = names.iter().zip(Stage::ALL).map(|(name, of)| (&name[..], u8::from(of == stage)));
    text.metric("dedup_job_stage", Gauge, "1 for the stage that the job is at", at);

    let labels: Vec<_> = totals.iter().map(|totals| [("stage", totals.stage.name())]).collect();
    let of_stages =
        |value: fn(&StageTotals) -> f64| labels.iter().zip(&totals).map(move |(l, t)| (&l[..], value(t)));
    let took = of_stages(|totals| totals.took.as_secs_f64());
    text.metric("dedup_job_stage_seconds", Gauge, "How long the stage took, or has taken so far", took);
    for (name, help, value) in STAGES {
        text.metric(name, Counter, help, of_stages(value));
    }
    let workers: Vec<_> = totals
        .iter()
        .flat_map(|totals| {
            totals.workers.iter().map(|worker| (totals.stage, worker.worker.to_string(), worker.tally))
        })
        .collect();
    let labels: Vec<_> =
        workers.iter().map(|(stage, worker, _)| [("stage", stage.name()), ("worker", worker)]).collect();
    let records = labels.iter().zip(&workers).map(|(l, (_, _, tally))| (&l[..], tally.records));
    text.metric("dedup_job_worker_records_total", Counter, "Records of one worker", records);
    let busy = labels.iter().zip(&workers).map(|(l, (_, _, tally))| (&l[..], tally.busy.as_secs_f64()));
    text.metric(
        "dedup_job_worker_busy_seconds_total",
        Counter,
        "Time of one worker, less waiting for others",
        busy,
    );

    let slow = progress.slow.load(Ordering::Relaxed);
    text.metric(
        "dedup_job_slow_workers_total",
        Counter,
        "Times that a worker was named as slow",
        [(&[][..], slow)],
    );
    let spilled = progress.spilled_bytes.load(Ordering::Relaxed);
    text.metric(
        "dedup_job_spilled_bytes_total",
        Counter,
        "Bytes spilled to local disks",
        [(&[][..], spilled)],
    );
    let cpu = process.cpu_milliseconds as f64 / 1e3;
    text.metric(
        "process_cpu_seconds_total",
        Counter,
        "User and system time of the process",
        [(&[][..], cpu)],
    );
    let resident = ResourceUsage::resident_memory_bytes();
    text.metric(
        "process_resident_memory_bytes",
        Gauge,
        "Memory of the process that is resident",
        [(&[][..], resident)],
    );
    let peak = process.peak_memory_bytes;
    text.metric(
        "dedup_job_peak_memory_bytes",
        Gauge,
        "The most that was resident at a time",
        [(&[][..], peak)],
    );
    text.0
}

/// Name, help and value of a metric of each stage.
type OfStage = (&'static str, &'static str, fn(&StageTotals) -> f64);

/// Counters of each stage.
const STAGES: [OfStage; 5] = [
    ("dedup_job_records_total", "Records that went through the stage", |of| {
        sum(of, |tally| tally.records as f64)
    }),
    ("dedup_job_bytes_total", "Bytes of text, or of copied files", |of| sum(of, |tally| tally.bytes as f64)),
    ("dedup_job_splits_total", "Splits that were finished", |of| sum(of, |tally| tally.splits as f64)),
    ("dedup_job_cpu_seconds_total", "CPU time of the workers", |of| sum(of, |tally| tally.cpu.as_secs_f64())),
    ("dedup_job_busy_seconds_total", "Time of the workers, less waiting for others", |of| {
        sum(of, |tally| tally.busy.as_secs_f64())
    }),
];

fn sum(totals: &StageTotals, value: fn(&StageCounts) -> f64) -> f64 {
    totals.workers.iter().map(|worker| value(&worker.tally)).sum()
}

#[derive(Clone, Copy)]
enum MetricKind {
    Counter,
    Gauge,
}

struct MetricsText(String);

impl MetricsText {
    /// Adds one metric: its help, its type, and a line for each of its values.
    fn metric<'a, V: Display>(
        &mut self,
        name: &str,
        kind: MetricKind,
        help: &str,
        samples: impl IntoIterator<Item = (&'a [(&'a str, &'a str)], V)>,
    ) {
        let kind = match kind {
            Counter => "counter",
            Gauge => "gauge",
        };
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        for (labels, value) in samples {
            let labels: Vec<_> =
                labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
            let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
            let _ = writeln!(self.0, "{name}{labels} {value}");
        }
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
