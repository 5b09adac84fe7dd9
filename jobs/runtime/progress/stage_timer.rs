//! The time of one worker in the stages of a job.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use datasets::RecognisedEncoding;
use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};

use super::counts::{Hand, Progress, WorkerCounts};
use super::events::Event;
use super::stage::Stage;
use super::stages::{StageCounts, seconds};

impl Progress {
    /// Returns a worker of this process that is in no stage yet. `number`: its number in the whole job. What
    /// the main thread does by itself is done as worker 0. Only one thread at a time may be a worker.
    pub fn worker(&self, number: usize) -> StageTimer<'_> {
        let own = Arc::clone(self.workers.lock().entry(number).or_default());
        let wall = Cell::new(Instant::now());
        let cpu = Cell::new(thread_cpu());
        StageTimer { progress: self, number, own, stage: Cell::new(Stage::Start), wall, cpu }
    }

    /// Returns the timer of a worker that enters a stage.
    pub fn worker_at(&self, number: usize, stage: Stage) -> StageTimer<'_> {
        let at = self.worker(number);
        at.enter(stage);
        at
    }
}

/// Worker and the stage that it is in. The worker leaves the stage when this is dropped, or when it enters
/// another.
///
/// Must be used only on the thread that made it, whose CPU time is counted.
pub struct StageTimer<'a> {
    progress: &'a Progress,
    number: usize,
    own: Arc<Mutex<WorkerCounts>>,
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

    /// Tells the user in which encoding a file was read, once for each encoding.
    pub fn warn_of_encoding(&self, of: &RecognisedEncoding) {
        let name = of.encoding.name();
        if self.progress.told_encodings.lock().insert(name) {
            self.progress.warn(&format!(
                "\"{}\" is read as {name}, which it is with a probability of {}, and so are files like it; --encoding names another \
                 encoding",
                of.path, of.percent
            ));
        }
    }

    /// Calls `work`, which does a split of the stage. `file`: name of the first file of the split.
    pub fn split<T>(&self, number: u32, file: String, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let since = Instant::now();
        let stage = self.stage.get();
        self.count(|_| {});
        let before = {
            let mut own = self.own.lock();
            own.at_hand = Some(Hand { stage, split: number, file, since, named: false });
            own.tallies[stage as usize]
        };
        let result = work();
        self.count(|tally| tally.splits += u64::from(result.is_ok()));
        let (records, bytes) = {
            let mut own = self.own.lock();
            own.at_hand = None;
            let after = own.tallies[stage as usize];
            (after.records - before.records, after.bytes - before.bytes)
        };
        if result.is_ok() {
            let took = since.elapsed();
            self.progress.board.lock()[stage as usize].splits.push(took);
            let seconds = seconds(took);
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
        let now = Instant::now();
        let cpu = thread_cpu();
        let wall = now.saturating_duration_since(self.wall.replace(now));
        let spent = cpu.saturating_sub(self.cpu.replace(cpu));
        if self.stage.get() == Stage::Start {
            return;
        }
        let mut own = self.own.lock();
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

/// Returns the CPU time of this thread so far.
pub fn thread_cpu() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}
