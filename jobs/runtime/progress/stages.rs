//! Totals of each stage: as they are counted, as they travel between processes, and as people see them.

use std::collections::BTreeMap;
use std::fmt;
use std::iter::Sum;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use unicode_width::UnicodeWidthStr;

use super::stage::Stage;

/// Counts of one worker in one stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct StageCounts {
    /// Whether the worker has taken part.
    pub entered: bool,
    /// Number of records, with rejected ones.
    pub records: u64,
    /// Bytes of text, or of files if the stage copies files.
    pub bytes: u64,
    /// Bytes of the input files that are read.
    pub file_bytes: u64,
    /// Number of finished splits.
    pub splits: u64,
    /// Time in the stage.
    pub wall: Duration,
    /// CPU time of its thread.
    pub cpu: Duration,
    /// Time not spent waiting for other workers.
    pub busy: Duration,
}

impl Sum for StageCounts {
    fn sum<I: Iterator<Item = StageCounts>>(tallies: I) -> StageCounts {
        tallies.fold(StageCounts::default(), |a, b| StageCounts {
            entered: a.entered || b.entered,
            records: a.records + b.records,
            bytes: a.bytes + b.bytes,
            file_bytes: a.file_bytes + b.file_bytes,
            splits: a.splits + b.splits,
            wall: a.wall + b.wall,
            cpu: a.cpu + b.cpu,
            busy: a.busy + b.busy,
        })
    }
}

/// Totals of a stage, with the workers that took part in it. Each process sends them to process 0.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct StageTotals {
    /// Stage that the totals are of.
    pub stage: Stage,
    /// Time from the first worker that entered the stage to the last that left it.
    pub took: Duration,
    /// Workers by their numbers.
    pub workers: Vec<WorkerTotals>,
}

/// Counts of one worker of the whole job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct WorkerTotals {
    pub worker: u32,
    pub tally: StageCounts,
}

/// Joins the totals of several processes or workers: the stages in their order, each with all of its workers.
///
/// No clock of one process is compared with that of another, so the time of a stage is that of the process
/// where it took longest.
pub fn merge(parts: impl IntoIterator<Item = StageTotals>) -> Vec<StageTotals> {
    let mut all = BTreeMap::<Stage, StageTotals>::new();
    for mut part in parts {
        let none = StageTotals { stage: part.stage, took: Duration::ZERO, workers: Vec::new() };
        let totals = all.entry(part.stage).or_insert(none);
        totals.took = totals.took.max(part.took);
        totals.workers.append(&mut part.workers);
        totals.workers.sort_by_key(|worker| worker.worker);
    }
    all.into_values().collect()
}

/// Stage as `_SUCCESS` and the events show it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageRow {
    /// Stage that the row is of.
    pub stage: Stage,
    /// Seconds from the first worker's start to the last's end, at the process where that took longest.
    pub seconds: f64,
    /// Number of workers that took part.
    pub workers: usize,
    /// Number of splits that were finished in the stage.
    pub splits: u64,
    /// Number of records, rejected ones included.
    pub records: u64,
    /// Bytes of text; in `write` of the input files, and of the files if the stage copies files.
    pub bytes: u64,
    /// CPU time of the threads of all workers, in seconds.
    pub cpu_seconds: f64,
    /// Time that all workers spent on splits, and CPU time outside of them, in seconds.
    pub busy_seconds: f64,
    /// Number of the worker that was busy longest, from 0; the first of several.
    pub slowest_worker: u32,
    /// Time that this worker was busy, in seconds.
    pub slowest_busy_seconds: f64,
    /// Busy time of the slowest worker, as a multiple of the mean of those that took part.
    pub skew: f64,
}

impl StageRow {
    /// Sums up the totals of the workers of a stage.
    pub fn of(totals: &StageTotals) -> Self {
        let workers = &totals.workers;
        let all: StageCounts = workers.iter().map(|worker| worker.tally).sum();
        // The first of several equally slow workers counts.
        let slowest = workers.iter().rev().max_by_key(|worker| worker.tally.busy);
        let (slowest, most) =
            slowest.map_or_else(Default::default, |slowest| (slowest.worker, slowest.tally.busy));
        let mean = all.busy.as_secs_f64() / workers.len().max(1) as f64;
        let skew = if mean > 0.0 { most.as_secs_f64() / mean } else { 1.0 };
        StageRow {
            stage: totals.stage,
            seconds: seconds(totals.took),
            workers: workers.len(),
            splits: all.splits,
            records: all.records,
            bytes: all.bytes,
            cpu_seconds: seconds(all.cpu),
            busy_seconds: seconds(all.busy),
            slowest_worker: slowest,
            slowest_busy_seconds: seconds(most),
            skew: (100.0 * skew).round() / 100.0,
        }
    }
}

/// Returns a time in seconds, rounded to thousandths.
pub fn seconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e3).round() / 1e3
}

/// Stages as a table with aligned columns, 80 characters wide unless numbers are huge.
pub(crate) struct StageTable<'a>(pub &'a [StageTotals]);

impl fmt::Display for StageTable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["stage", "seconds", "CPU s", "records", "MB", "records/s", "slowest/mean"];
        let mut lines = vec![head.map(str::to_owned)];
        lines.extend(self.0.iter().map(|totals| cells(&StageRow::of(totals))));
        let widths: Vec<usize> = (0..head.len())
            .map(|column| lines.iter().map(|line| line[column].width()).max().unwrap_or(0))
            .collect();
        f.write_str("Stages")?;
        for line in &lines {
            write!(f, "\n    {:<1$}", line[0], widths[0])?;
            for (cell, width) in line.iter().zip(&widths).skip(1).take(head.len() - 2) {
                write!(f, "  {cell:>width$}")?;
            }
            write!(f, "  {}", line[head.len() - 1])?;
        }
        Ok(())
    }
}

fn cells(row: &StageRow) -> [String; 7] {
    let counted = |text: String| if row.records > 0 { text } else { "-".to_owned() };
    [
        row.stage.name().to_owned(),
        format!("{:.1}", row.seconds),
        format!("{:.1}", row.cpu_seconds),
        counted(row.records.to_string()),
        counted(format!("{:.1}", row.bytes as f64 / 1e6)),
        counted(format!("{:.0}", row.records as f64 / row.seconds.max(0.001))),
        format!("{:.2} (worker {})", row.skew, row.slowest_worker),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker(worker: u32, records: u64, busy: u64) -> WorkerTotals {
        let (wall, busy) = (Duration::from_secs(10), Duration::from_secs(busy));
        let bytes = 1_000_000 * records;
        let file_bytes = 0;
        WorkerTotals {
            worker,
            tally: StageCounts {
                entered: true,
                records,
                bytes,
                file_bytes,
                splits: 1,
                wall,
                cpu: busy,
                busy,
            },
        }
    }

    fn totals(stage: Stage, took: u64, workers: &[WorkerTotals]) -> StageTotals {
        StageTotals { stage, took: Duration::from_secs(took), workers: workers.to_vec() }
    }

    #[test]
    fn processes_are_merged_stage_by_stage() {
        let ours = vec![
            totals(Stage::Map, 10, &[worker(0, 5, 2), worker(1, 7, 9)]),
            totals(Stage::Resolve, 1, &[worker(0, 0, 1)]),
        ];
        let theirs = vec![totals(Stage::Map, 12, &[worker(3, 1, 2), worker(2, 2, 3)])];
        let merged = merge(theirs.into_iter().chain(ours));
        let map = [worker(0, 5, 2), worker(1, 7, 9), worker(2, 2, 3), worker(3, 1, 2)];
        assert_eq!(merged, [totals(Stage::Map, 12, &map), totals(Stage::Resolve, 1, &[worker(0, 0, 1)])]);
        let row = StageRow::of(&merged[0]);
        assert_eq!((row.records, row.bytes, row.splits, row.workers), (15, 15_000_000, 4, 4));
        // The slowest worker took 9 seconds, and all four 16 together.
        assert_eq!((row.slowest_worker, row.skew, row.cpu_seconds), (1, 2.25, 16.0));
        assert_eq!((row.seconds, row.busy_seconds, row.slowest_busy_seconds), (12.0, 16.0, 9.0));
    }

    #[test]
    fn nobody_is_slowest_where_nothing_took_time() {
        let row = StageRow::of(&totals(Stage::Commit, 0, &[worker(0, 0, 0), worker(1, 0, 0)]));
        assert_eq!((row.slowest_worker, row.skew), (0, 1.0));
    }

    #[test]
    fn the_table_is_aligned() {
        let stages = [
            totals(Stage::Map, 10, &[worker(0, 12_345_678, 2), worker(31, 7, 9)]),
            totals(Stage::Resolve, 1, &[worker(0, 0, 1)]),
        ];
        let table = "\
Stages
    stage    seconds  CPU s   records          MB  records/s  slowest/mean
    map         10.0   11.0  12345685  12345685.0    1234568  1.64 (worker 31)
    resolve      1.0    1.0         -           -          -  1.00 (worker 0)";
        assert_eq!(StageTable(&stages).to_string(), table);
        assert!(table.lines().all(|line| line.len() <= 80));
    }
}
