//! Metrics of a running job for Prometheus, in its text format, version 0.0.4.

use std::fmt::Write as _;
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use super::counts::Progress;
use super::events::Watched;
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

/// Name of the metric that later runs with the same file of metrics take over.
const LAST_SUCCESS: &str = "dedup_job_last_success_time_seconds";

/// Returns the time of the last success that these metrics of an earlier run tell, in seconds since 1970; 0 if they tell of
/// none.
pub(super) fn last_success(earlier: &str) -> f64 {
    let mut values = earlier.lines().filter_map(|line| line.strip_prefix(LAST_SUCCESS));
    values.find_map(|value| value.trim().parse().ok()).unwrap_or_default()
}

/// Returns all metrics as text (docs/formats.md). `last_success`: of the runs before.
pub(super) fn text(
    job: &Watched,
    started: SystemTime,
    state: JobState,
    last_success: f64,
    progress: &Progress,
) -> String {
    let (now, _, _) = progress.now();
    let totals = progress.totals();
    let process = ResourceUsage::measure();
    let started = seconds_since_1970(started);
    let spilled_bytes = progress.spilled_bytes.load(Ordering::Relaxed);
    let mut text = MetricsText(String::new());
    let number = job.process.to_string();
    let info = [("version", job.version), ("job", job.job), ("output", &job.output), ("process", &number)];
    text.metric("dedup_job_info", "The job; always 1", [(labels(&info), 1.0)]);
    text.unlabelled(&[
        ("dedup_job_running", "1 until the job ends", f64::from(state == JobState::Running)),
        ("dedup_job_failures_total", "1 once the job has failed", f64::from(state == JobState::Failed)),
        ("dedup_job_start_time_seconds", "When it started, since 1970", started),
        (
            LAST_SUCCESS,
            "When a job with this file of metrics last succeeded, since 1970, or 0",
            if state == JobState::Succeeded { seconds_since_1970(SystemTime::now()) } else { last_success },
        ),
        ("dedup_job_input_bytes", "Bytes of all input files", job.input_bytes as f64),
    ]);
    let of_stage = |stage: Stage| labels(&[("stage", stage.name())]);
    let at = Stage::ALL.map(|stage| (of_stage(stage), f64::from(stage == now)));
    text.metric("dedup_job_stage", "1 for the stage that the job is at", at);
    let took = totals.iter().map(|totals| (of_stage(totals.stage), totals.took.as_secs_f64()));
    text.metric("dedup_job_stage_seconds", "How long the stage took, or has taken so far", took);
    for (name, help, value) in STAGES {
        let sum = |totals: &StageTotals| totals.workers.iter().map(|worker| value(&worker.tally)).sum();
        text.metric(name, help, totals.iter().map(|totals| (of_stage(totals.stage), sum(totals))));
    }
    for (name, help, value) in WORKERS {
        let workers = totals.iter().flat_map(|totals| {
            totals.workers.iter().map(|worker| {
                let number = worker.worker.to_string();
                (labels(&[("stage", totals.stage.name()), ("worker", &number)]), value(&worker.tally))
            })
        });
        text.metric(name, help, workers);
    }
    let outcomes = ["kept", "removed", "rejected"].map(|outcome| labels(&[("outcome", outcome)]));
    let counts = progress.outcomes.lock().map(|count| count as f64);
    let help = "Records of the output by what became of them, once it is complete";
    text.metric("dedup_job_outcomes", help, outcomes.into_iter().zip(counts));
    text.unlabelled(&[
        (
            "dedup_job_slow_workers_total",
            "Times that a worker was named as slow",
            progress.slow.load(Ordering::Relaxed) as f64,
        ),
        ("dedup_job_spilled_bytes_total", "Bytes spilled to local disks", spilled_bytes as f64),
        (
            "process_cpu_seconds_total",
            "User and system time of the process",
            process.cpu_milliseconds as f64 / 1e3,
        ),
        (
            "process_resident_memory_bytes",
            "Memory of the process that is resident",
            ResourceUsage::resident_memory_bytes() as f64,
        ),
        (
            "dedup_job_peak_memory_bytes",
            "The most that was resident at a time",
            process.peak_memory_bytes as f64,
        ),
    ]);
    text.0
}

/// Returns the metrics of a job that stays and does one run after the other. `finished`: when the last run ended,
/// if one has.
pub(super) fn text_of_runs(runs: u64, finished: Option<SystemTime>) -> String {
    let finished = finished.map_or(0.0, seconds_since_1970);
    let mut text = MetricsText(String::new());
    text.unlabelled(&[
        ("dedup_job_runs_total", "Runs that have succeeded since the job started", runs as f64),
        ("dedup_job_last_run_time_seconds", "When the last of them ended, since 1970, or 0", finished),
    ]);
    text.0
}

fn seconds_since_1970(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// Name, help and value of a metric that counts what a worker does in a stage.
type OfCounts = (&'static str, &'static str, fn(&StageCounts) -> f64);

/// Counters of each stage: the sums over its workers.
const STAGES: [OfCounts; 5] = [
    ("dedup_job_records_total", "Records that went through the stage", |of| of.records as f64),
    ("dedup_job_bytes_total", "Bytes of text, or of copied files", |of| of.bytes as f64),
    ("dedup_job_splits_total", "Splits that were finished", |of| of.splits as f64),
    ("dedup_job_cpu_seconds_total", "CPU time of the workers", |of| of.cpu.as_secs_f64()),
    ("dedup_job_busy_seconds_total", "Time of the workers, less waiting for others", |of| {
        of.busy.as_secs_f64()
    }),
];

/// Counters of each worker in each stage.
const WORKERS: [OfCounts; 2] = [
    ("dedup_job_worker_records_total", "Records of one worker", |of| of.records as f64),
    ("dedup_job_worker_busy_seconds_total", "Time of one worker, less waiting for others", |of| {
        of.busy.as_secs_f64()
    }),
];

/// Metrics in the text format of Prometheus.
pub struct MetricsText(pub String);

impl MetricsText {
    /// Adds one metric: its help, its type, and a line for each of its values, which come with their labels.
    /// A metric is a counter if its name ends with `_total`.
    pub fn metric(&mut self, name: &str, help: &str, samples: impl IntoIterator<Item = (String, f64)>) {
        let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        for (labels, value) in samples {
            let _ = writeln!(self.0, "{name}{labels} {value}");
        }
    }

    /// Adds metrics of one value without labels: their names, helps and values.
    pub fn unlabelled(&mut self, metrics: &[(&str, &str, f64)]) {
        for (name, help, value) in metrics {
            self.metric(name, help, [(String::new(), *value)]);
        }
    }
}

/// Returns labels and their values as they follow the name of a metric.
pub fn labels(labels: &[(&str, &str)]) -> String {
    let escaped = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let labels = labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value)));
    format!("{{{}}}", labels.collect::<Vec<_>>().join(","))
}
