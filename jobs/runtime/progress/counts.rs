//! The counts of all workers of a process, and the stages that have begun.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use parking_lot::Mutex;

use super::events::{Event, Events};
use super::stage::Stage;
use super::stages::{StageCounts, StageRow, StageTotals, WorkerTotals, merge};
use super::stragglers::{AtHand, WorkerState, median, slow};
use crate::cli::terminal::say;

/// Counts of all workers of this process.
///
/// Memory: some hundred bytes for each worker and stage, 16 for each finished split.
#[derive(Default)]
pub struct Progress {
    /// Counts of each worker, by its number in the whole job. Each worker locks only its own, once a batch.
    pub(super) workers: Mutex<BTreeMap<usize, Arc<Mutex<WorkerCounts>>>>,
    pub(super) board: Mutex<Board>,
    /// Bytes written to local disks because memory is short; whoever spills adds them.
    pub spilled_bytes: AtomicU64,
    /// Numbers of records that are kept, removed and rejected, once all are.
    pub(super) outcomes: Mutex<[u64; 3]>,
    /// Number of times that a worker was named as slow.
    pub(super) slow: AtomicU64,
    /// Names of the encodings in which a file was read and of which the user was told.
    pub(super) told_encodings: Mutex<BTreeSet<&'static str>>,
    pub(super) outlets: OnceLock<Outlets>,
}

/// Places where progress is shown; unset for a job that is not watched.
pub(super) struct Outlets {
    pub(super) quiet: bool,
    pub(super) bar: Option<ProgressBar>,
    pub(super) events: Option<Events>,
}

/// The stages that have begun, and the workers in them. Never locked while the counts of a worker are locked.
pub(super) type Board = [Span; Stage::ALL.len()];

/// Span of a stage, from the first worker that enters it to the last that leaves it.
#[derive(Default)]
pub(super) struct Span {
    first: Option<Instant>,
    last: Option<Instant>,
    /// Number of workers in the stage.
    inside: usize,
    /// Whether the end of the stage was told.
    told: bool,
    /// Time that each finished split took.
    pub(super) splits: Vec<Duration>,
}

/// Counts of one worker.
#[derive(Default)]
pub(super) struct WorkerCounts {
    pub(super) tallies: [StageCounts; Stage::ALL.len()],
    pub(super) at_hand: Option<Hand>,
    /// Time when the worker last counted something.
    pub(super) moved: Option<Instant>,
}

/// Split that a worker is reading.
pub(super) struct Hand {
    pub(super) stage: Stage,
    pub(super) split: u32,
    pub(super) file: String,
    pub(super) since: Instant,
    /// Whether the user was told that it takes long.
    pub(super) named: bool,
}

impl Progress {
    /// Returns every stage that was entered, with all workers of this process that were in it.
    pub fn totals(&self) -> Vec<StageTotals> {
        let board = self.board.lock();
        self.totals_of(&board)
    }

    /// Notes how many records are kept, removed and rejected.
    pub fn set_outcomes(&self, outcomes: [u64; 3]) {
        *self.outcomes.lock() = outcomes;
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
        let workers = self.workers.lock();
        let of_worker = |(&number, own): (&usize, &Arc<Mutex<WorkerCounts>>)| {
            let own = own.lock();
            let spans = board.iter().zip(own.tallies);
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
    pub(super) fn now(&self) -> (Stage, Duration, StageCounts) {
        let board = self.board.lock();
        let begun = Stage::ALL.into_iter().zip(board.iter()).rfind(|(_, span)| span.first.is_some());
        let Some((stage, span)) = begun else { return Default::default() };
        let first = span.first.map_or(Duration::ZERO, |first| first.elapsed());
        drop(board);
        let workers = self.workers.lock();
        (stage, first, workers.values().map(|own| own.lock().tallies[stage as usize]).sum())
    }

    /// Whether a stage was begun.
    pub(super) fn has_begun(&self, stage: Stage) -> bool {
        self.board.lock()[stage as usize].first.is_some()
    }

    /// Names workers that are slow now and were not named yet.
    pub(super) fn name_slow(&self) {
        let now = Instant::now();
        let states: Vec<WorkerState> =
            self.workers.lock().iter().map(|(&number, own)| own.lock().state(number, now)).collect();
        for slow in slow(&states, |stage| median(&self.board.lock()[stage as usize].splits)) {
            if let Some(own) = self.workers.lock().get(&slow.worker)
                && let Some(hand) = &mut own.lock().at_hand
                && hand.split == slow.at_hand.split
            {
                hand.named = true;
            }
            self.slow.fetch_add(1, Ordering::Relaxed);
            self.tell(&Event::SlowWorker {
                stage: slow.at_hand.stage,
                worker: slow.worker,
                split: slow.at_hand.split,
                file: &slow.at_hand.file,
                message: &slow.to_string(),
            });
            self.say_warning(&slow.to_string());
        }
    }

    /// Writes an event. If that fails, warns once.
    pub(super) fn tell(&self, event: &Event) {
        let events = self.outlets.get().and_then(|outlets| outlets.events.as_ref());
        if let Some(Err(error)) = events.map(|events| events.tell(event)) {
            self.say_warning(&format!("{error:#}"));
        }
    }

    pub(super) fn say_warning(&self, warning: &str) {
        self.say(&format!("warning: {warning}"));
    }

    /// Says a line beside the bar, unless the user wants only errors.
    pub fn say(&self, line: &str) {
        let line = cluster::one_line(line);
        match self.outlets.get() {
            Some(Outlets { quiet: true, .. }) => {}
            Some(Outlets { bar: Some(bar), .. }) => bar.suspend(|| say(line)),
            _ => say(line),
        }
    }

    /// Notes that a worker goes from one stage to another.
    pub(super) fn passes(&self, from: Stage, to: Stage) {
        let now = Instant::now();
        let mut board = self.board.lock();
        if from != Stage::Start {
            let left = &mut board[from as usize];
            left.inside -= 1;
            left.last = Some(now);
        }
        if to != Stage::Start {
            let entered = &mut board[to as usize];
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
        let last = board.iter().rposition(|span| span.first.is_some());
        self.tell_finished_before(board, last.unwrap_or(0));
    }

    /// Tells of finished stages before `end`, the first stage that may go on.
    pub(super) fn tell_finished_before(&self, board: &mut Board, end: usize) {
        let ended = |span: &Span| span.first.is_some() && span.inside == 0 && !span.told;
        if !board[..end].iter().any(ended) {
            return;
        }
        let totals = self.totals_of(board);
        for (stage, span) in Stage::ALL.into_iter().zip(board.iter_mut()).take(end) {
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

impl WorkerCounts {
    fn state(&self, worker: usize, now: Instant) -> WorkerState {
        let at_hand = self.at_hand.as_ref().filter(|hand| !hand.named).map(|hand| {
            let taken = now.saturating_duration_since(hand.since);
            AtHand { stage: hand.stage, split: hand.split, file: hand.file.clone(), taken }
        });
        let still = self.moved.map(|moved| now.saturating_duration_since(moved));
        WorkerState { worker, still, at_hand }
    }
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
        progress.workers.lock()[&3].lock().at_hand = Some(hand);
        progress.name_slow();
        progress.board.lock()[Stage::Map as usize].splits = vec![Duration::from_secs(20)];
        progress.name_slow();
        progress.name_slow();
        let told = std::fs::read_to_string(&path).unwrap();
        let slow: Vec<&str> = told.lines().filter(|line| line.contains("slow_worker")).collect();
        assert_eq!(slow.len(), 1, "{told}");
        assert!(slow[0].contains("has taken 95 s, others took 20 s"), "{told}");
        assert_eq!(progress.slow.load(Ordering::Relaxed), 1);
    }
}
