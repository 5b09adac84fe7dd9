//! Progress of a running job, and how people see it: a line on stderr, a table at the end, metrics and events
//! in files.
//!
//! Each worker counts for itself; a thread of its own looks at the counts (`watch.rs`). The reasons are in
//! docs/design/0024.

mod events;
mod metrics;
mod stages;
mod stragglers;
pub(crate) mod usage;
mod watch;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use indicatif::ProgressBar;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

pub(crate) use self::stages::{StageRow, StageTable, StageTotals, merge};
pub use self::watch::ProgressOptions;
pub(crate) use self::watch::{Watch, Watched};

use self::events::{Event, Events};
use self::stages::{StageCounts, WorkerTotals};
use self::stragglers::{AtHand, Slow, WorkerState, median, slow};
use crate::cli::terminal::say;

/// Stage of a job. No job has all stages, but each has its own in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Stage {
    #[default]
    Start,
    Census,
    Count,
    Read,
    Map,
    Compare,
    Verify,
    Resolve,
    Write,
    Pack,
    Unpack,
    Commit,
}

impl Stage {
    /// All stages, in order.
    pub const ALL: [Stage; 12] = [
        Stage::Start,
        Stage::Census,
        Stage::Count,
        Stage::Read,
        Stage::Map,
        Stage::Compare,
        Stage::Verify,
        Stage::Resolve,
        Stage::Write,
        Stage::Pack,
        Stage::Unpack,
        Stage::Commit,
    ];

    /// Returns the name of the stage for people and machines.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Start => "start",
            Stage::Census => "census",
            Stage::Count => "count",
            Stage::Read => "read",
            Stage::Map => "map",
            Stage::Compare => "compare",
            Stage::Verify => "verify",
            Stage::Resolve => "resolve",
            Stage::Write => "write",
            Stage::Pack => "pack",
            Stage::Unpack => "unpack",
            Stage::Commit => "commit",
        }
    }
}

/// Counts of all workers of this process.
///
/// Memory: some hundred bytes for each worker and stage, 16 for each finished split.
#[derive(Default)]
pub(crate) struct Progress {
    /// Counts of each worker, by its number in the whole job. Each worker locks only its own, once a batch.
    workers: Mutex<BTreeMap<usize, Arc<Mutex<OfWorker>>>>,
    board: Mutex<Board>,
    /// Bytes written to local disks because memory is short; whoever spills adds them.
    pub spilled_bytes: AtomicU64,
    /// Number of times that a worker was named as slow.
    slow: AtomicU64,
    outlets: OnceLock<Outlets>,
}

/// Places where progress is shown; unset for a job that is not watched.
struct Outlets {
    quiet: bool,
    bar: Option<ProgressBar>,
    events: Option<Events>,
}

/// The stages that have begun, and the workers in them. Never locked while the counts of a worker are locked.
#[derive(Default)]
struct Board {
    stages: [Span; Stage::ALL.len()],
}

/// Span of a stage, from the first worker that enters it to the last that leaves it.
#[derive(Default)]
struct Span {
    first: Option<Instant>,
    last: Option<Instant>,
    /// Number of workers in the stage.
    inside: usize,
    /// Whether the end of the stage was told.
    told: bool,
    /// Time that each finished split took.
    splits: Vec<Duration>,
}

/// Counts of one worker.
#[derive(Default)]
struct OfWorker {
    tallies: [StageCounts; Stage::ALL.len()],
    at_hand: Option<Hand>,
    /// Time when the worker last counted something.
    moved: Option<Instant>,
}

/// Split that a worker is reading.
struct Hand {
    stage: Stage,
    split: u32,
    file: String,
    since: Instant,
    /// Whether the user was told that it takes long.
    named: bool,
}

impl Progress {
    /// Returns a worker of this process that is in no stage yet. `number`: its number in the whole job. What
    /// the main thread does by itself is done as worker 0. Only one thread at a time may be a worker.
    pub fn worker(&self, number: usize) -> StageTimer<'_> {
        let own = Arc::clone(lock(&self.workers).entry(number).or_default());
        let (wall, cpu) = (Cell::new(Instant::now()), Cell::new(thread_cpu()));
        StageTimer { progress: self, number, own, stage: Cell::new(Stage::Start), wall, cpu }
    }

    /// Returns every stage that was entered, with all workers of this process that were in it.
    pub fn totals(&self) -> Vec<StageTotals> {
        let board = lock(&self.board);
        self.totals_of(&board)
    }

    /// Returns the stages as a finished job shows them.
    pub fn rows(&self) -> Vec<StageRow> {
        self.totals().iter().map(StageRow::of).collect()
    }

    /// Warns the user. The job goes on.
    pub fn warn(&self, warning: &str) {
        self.tell(&Event::Warning { message: warning });
        self.say_warning(warning);
    }

    fn totals_of(&self, board: &Board) -> Vec<StageTotals> {
        let workers = lock(&self.workers);
        let of_worker = |(&number, own): (&usize, &Arc<Mutex<OfWorker>>)| {
            let own = lock(own);
            let spans = board.stages.iter().zip(own.tallies);
            let taken_part = Stage::ALL.into_iter().zip(spans).filter(|(_, (_, tally))| tally.entered);
            let totals = taken_part.map(|(stage, (span, tally))| StageTotals {
                stage,
                took: span.took(),
                workers: vec![WorkerTotals { worker: number as u32, tally }],
            });
            totals.collect::<Vec<_>>()
        };
        merge(workers.iter().flat_map(of_worker))
    }

    /// Returns the last stage that was begun, how long ago that was, and what was done in it.
    fn now(&self) -> (Stage, Duration, StageCounts) {
        let board = lock(&self.board);
        let begun = Stage::ALL.into_iter().zip(&board.stages).rfind(|(_, span)| span.first.is_some());
        let Some((stage, span)) = begun else { return Default::default() };
        let first = span.first.map_or(Duration::ZERO, |first| first.elapsed());
        drop(board);
        let workers = lock(&self.workers);
        (stage, first, workers.values().map(|own| lock(own).tallies[stage as usize]).sum())
    }

    /// Names workers that are slow now and were not named yet.
    fn name_slow(&self) {
        let now = Instant::now();
        let states: Vec<WorkerState> =
            lock(&self.workers).iter().map(|(&number, own)| lock(own).state(number, now)).collect();
        let named: Vec<Slow> = Stage::ALL
            .into_iter()
            .flat_map(|stage| {
                slow(stage, &states, || median(&lock(&self.board).stages[stage as usize].splits))
            })
            .collect();
        for slow in named {
            if let Some(own) = lock(&self.workers).get(&slow.worker)
                && let Some(hand) = &mut lock(own).at_hand
                && hand.split == slow.at_hand.split
            {
                hand.named = true;
            }
            self.slow.fetch_add(1, Ordering::Relaxed);
            self.tell(&Event::SlowWorker {
                stage: slow.stage,
                worker: slow.worker,
                split: slow.at_hand.split,
                file: &slow.at_hand.file,
                message: &slow.to_string(),
            });
            self.say_warning(&slow.to_string());
        }
    }

    /// Writes an event. If that fails, warns once.
    fn tell(&self, event: &Event) {
        let events = self.outlets.get().and_then(|outlets| outlets.events.as_ref());
        if let Some(Err(error)) = events.map(|events| events.tell(event)) {
            self.say_warning(&format!("{error:#}"));
        }
    }

    fn say_warning(&self, warning: &str) {
        let warning = format!("warning: {warning}");
        let line = cluster::shown(&warning);
        match self.outlets.get() {
            Some(Outlets { quiet: true, .. }) => {}
            Some(Outlets { bar: Some(bar), .. }) => bar.suspend(|| say(line)),
            _ => say(line),
        }
    }

    /// Notes that a worker goes from one stage to another.
    fn passes(&self, from: Stage, to: Stage) {
        let now = Instant::now();
        let mut board = lock(&self.board);
        if from != Stage::Start {
            let left = &mut board.stages[from as usize];
            left.inside -= 1;
            left.last = Some(now);
        }
        if to != Stage::Start {
            let entered = &mut board.stages[to as usize];
            entered.inside += 1;
            if entered.first.is_none() {
                entered.first = Some(now);
                self.tell(&Event::StageStarted { stage: to });
            }
        }
        self.tell_finished(&mut board);
    }

    /// Tells of stages that are finished: nobody is in the stage and a later one has begun. A worker goes on
    /// to the next stage when all are through, and the main thread does when all have ended.
    fn tell_finished(&self, board: &mut Board) {
        let last = board.stages.iter().rposition(|span| span.first.is_some());
        self.tell_finished_before(board, last.unwrap_or(0));
    }

    /// Tells of finished stages before `end`, the first stage that may go on.
    fn tell_finished_before(&self, board: &mut Board, end: usize) {
        let ended = |span: &Span| span.first.is_some() && span.inside == 0 && !span.told;
        if !board.stages[..end].iter().any(ended) {
            return;
        }
        let totals = self.totals_of(board);
        for (stage, span) in Stage::ALL.into_iter().zip(&mut board.stages).take(end) {
            if ended(span) {
                span.told = true;
                if let Some(totals) = totals.iter().find(|totals| totals.stage == stage) {
                    self.tell(&Event::StageFinished(StageRow::of(totals)));
                }
            }
        }
    }
}

impl Span {
    /// Returns how long the stage took; until now if somebody is in it.
    fn took(&self) -> Duration {
        let end = if self.inside > 0 { Some(Instant::now()) } else { self.last };
        let took = self.first.zip(end).map(|(first, end)| end.saturating_duration_since(first));
        took.unwrap_or_default()
    }
}

impl OfWorker {
    fn state(&self, worker: usize, now: Instant) -> WorkerState {
        let at_hand = self.at_hand.as_ref().filter(|hand| !hand.named).map(|hand| {
            let taken = now.saturating_duration_since(hand.since);
            (hand.stage, AtHand { split: hand.split, file: hand.file.clone(), taken })
        });
        let still = self.moved.map(|moved| now.saturating_duration_since(moved));
        WorkerState { worker, still, at_hand }
    }
}

/// Worker and the stage that it is in. The worker leaves the stage when this is dropped, or when it enters
/// another.
///
/// Must be used only on the thread that made it, whose CPU time is counted.
pub(crate) struct StageTimer<'a> {
    progress: &'a Progress,
    number: usize,
    own: Arc<Mutex<OfWorker>>,
    /// Stage of the worker; `Start` if it is in none.
    stage: Cell<Stage>,
    /// Time when the clocks were last read.
    wall: Cell<Instant>,
    /// CPU time of the thread at that time.
    cpu: Cell<Duration>,
}

impl StageTimer<'_> {
    /// Enters a stage. Nothing happens if the worker is in that stage already.
    pub fn enter(&self, stage: Stage) {
        if stage == self.stage.get() {
            return;
        }
        self.count(|_| {});
        self.progress.passes(self.stage.replace(stage), stage);
        self.count(|tally| tally.entered = true);
    }

    /// Counts records and bytes that have gone through the stage. Cost: reads two clocks; to be called once a
    /// batch.
    pub fn read(&self, records: u64, bytes: u64) {
        self.count(|tally| {
            tally.records += records;
            tally.bytes += bytes;
        });
    }

    /// Counts bytes of the input files that have gone through the stage.
    pub fn done(&self, file_bytes: u64) {
        self.count(|tally| tally.file_bytes += file_bytes);
    }

    /// Calls `work`, which does a split of the stage. `file`: name of the first file of the split.
    pub fn split<T>(&self, number: u32, file: String, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let since = Instant::now();
        let stage = self.stage.get();
        self.count(|_| {});
        let before = {
            let mut own = lock(&self.own);
            own.at_hand = Some(Hand { stage, split: number, file, since, named: false });
            own.tallies[stage as usize]
        };
        let result = work();
        self.count(|tally| tally.splits += u64::from(result.is_ok()));
        let (records, bytes) = {
            let mut own = lock(&self.own);
            own.at_hand = None;
            let after = own.tallies[stage as usize];
            (after.records - before.records, after.bytes - before.bytes)
        };
        if result.is_ok() {
            let took = since.elapsed();
            lock(&self.progress.board).stages[stage as usize].splits.push(took);
            let seconds = stages::seconds(took);
            let worker = self.number;
            self.progress.tell(&Event::SplitFinished {
                stage,
                split: number,
                worker,
                records,
                bytes,
                seconds,
            });
        }
        result
    }

    /// Adds counts, and the time since the last call. While a worker has a split, all of its time is work of
    /// the CPU or the disk. Otherwise it may wait for other workers, so only its CPU time counts as busy.
    fn count(&self, add: impl FnOnce(&mut StageCounts)) {
        let (now, cpu) = (Instant::now(), thread_cpu());
        let wall = now.saturating_duration_since(self.wall.replace(now));
        let spent = cpu.saturating_sub(self.cpu.replace(cpu));
        if self.stage.get() == Stage::Start {
            return;
        }
        let mut own = lock(&self.own);
        let busy = if own.at_hand.is_some() { wall } else { spent };
        own.moved = Some(now);
        let tally = &mut own.tallies[self.stage.get() as usize];
        tally.wall += wall;
        tally.cpu += spent;
        tally.busy += busy;
        add(tally);
    }
}

impl Drop for StageTimer<'_> {
    fn drop(&mut self) {
        self.enter(Stage::Start);
    }
}

/// Locks a mutex, also after a panic: counts are still good then, and the panic ends the process anyway.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn thread_cpu() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stage_is_the_last_that_was_begun() {
        let progress = Progress::default();
        let (first, second) = (progress.worker(0), progress.worker(1));
        first.enter(Stage::Map);
        second.enter(Stage::Map);
        second.read(5, 50);
        first.enter(Stage::Compare);
        first.read(7, 70);
        second.read(1, 10);
        let (stage, _, tally) = progress.now();
        assert_eq!((stage, tally.records), (Stage::Compare, 7));
        drop((first, second));
        let totals = progress.totals();
        let counted = totals.iter().map(|of| (of.stage, of.workers.len(), StageRow::of(of).records));
        assert_eq!(counted.collect::<Vec<_>>(), [(Stage::Map, 2, 6), (Stage::Compare, 1, 7)]);
    }

    #[test]
    fn a_slow_worker_is_named_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events");
        let progress = Progress::default();
        let events = Some(Events::open(path.to_str().unwrap()).unwrap());
        assert!(progress.outlets.set(Outlets { quiet: true, bar: None, events }).is_ok());
        let at = progress.worker(3);
        at.enter(Stage::Map);
        let since = Instant::now().checked_sub(Duration::from_secs(95)).unwrap();
        let hand = Hand { stage: Stage::Map, split: 12, file: "in/part".to_owned(), since, named: false };
        lock(&at.own).at_hand = Some(hand);
        progress.name_slow();
        lock(&progress.board).stages[Stage::Map as usize].splits = vec![Duration::from_secs(20)];
        progress.name_slow();
        progress.name_slow();
        let told = std::fs::read_to_string(&path).unwrap();
        let slow: Vec<&str> = told.lines().filter(|line| line.contains("slow_worker")).collect();
        assert_eq!(slow.len(), 1, "{told}");
        assert!(slow[0].contains("has taken 95 s, others took 20 s"), "{told}");
        assert_eq!(progress.slow.load(Ordering::Relaxed), 1);
    }
}
