//! The shuffle: sends every record to the worker that its key selects, and gives back the records that
//! arrive.

use std::cell::RefCell;
use std::rc::Rc;

use timely::worker::Worker;

use super::buffer::{Buffer, ExchangeBuffer};
use super::channel::{Channel, round_bytes};
use crate::record::Record;
use crate::{Error, ExternalSort, Sorted, SpillBudget};

/// Takes one record after the other. The worker may let the engine work in between.
pub type RecordSink<'a, R> = &'a mut dyn FnMut(&mut Worker, R);
/// Gives the records that this worker has to send, the same each time that it is called.
pub type RecordScan<'a, R, E> = &'a mut dyn FnMut(&mut Worker, RecordSink<'_, R>) -> Result<(), E>;

/// Sends records to workers by key, and holds those that have arrived until they are taken. All workers must
/// open the same shuffles in the same order, and finish each.
///
/// Sending is divided into rounds. A worker waits while it is more than eight rounds ahead of what its peers
/// have taken in, so at most nine rounds of each sending worker travel. Their buffers of 64 KiB need not be
/// full: between threads there may be one for each of the nine rounds and each pair of workers.
pub struct Shuffle<T, C: Buffer<T> = ExchangeBuffer<T>> {
    way: Channel<T, C>,
    arrived: Rc<RefCell<Vec<T>>>,
}

impl<T: 'static, C: Buffer<T>> Shuffle<T, C> {
    /// Opens a shuffle. `key`: the worker that a record goes to, modulo the number of workers.
    pub fn new(worker: &mut Worker, name: &str, key: impl Fn(&T) -> u64 + 'static) -> Self {
        let arrived = Rc::default();
        Shuffle { way: Channel::new(worker, name, key, usize::MAX, &arrived), arrived }
    }

    /// Sends one record. The caller ends the rounds.
    pub fn send(&mut self, record: T) {
        self.way.put(record);
    }

    /// Ends a round of sending: lets the engine work, and waits while the peers are too far behind.
    pub fn round(&mut self, worker: &mut Worker) {
        self.way.round(worker);
    }

    /// Returns the records that have arrived since the last call.
    pub fn take(&mut self) -> Vec<T> {
        self.arrived.take()
    }

    /// Ends the sending. Gives the records that have arrived, and those that still arrive, to `each` until
    /// all workers have sent all.
    pub fn finish_each(self, worker: &mut Worker, mut each: impl FnMut(T)) {
        let Shuffle { way, arrived } = self;
        let taken = way.end();
        while !taken.done() {
            arrived.take().into_iter().for_each(&mut each);
            worker.step_or_park(None);
        }
        arrived.take().into_iter().for_each(each);
    }

    /// Ends the sending, waits until all workers have done so, and returns the records that have arrived and
    /// were not taken.
    pub fn finish(self, worker: &mut Worker) -> Vec<T> {
        self.way.close(worker);
        self.arrived.take()
    }
}

/// A [`Shuffle`] that gives back the arrived records sorted, and spills those beyond a budget.
///
/// Neither its operator nor sending can fail: the first error is kept, the records that arrive after it are
/// dropped, and [`SortingShuffle::finish`] returns the error.
///
/// Memory of records that travel: at most nine rounds of each worker, which is 9 MiB, or with a budget a
/// quarter of it if that is less, in buffers with twice the room.
pub struct SortingShuffle<R: Record + Ord> {
    way: Channel<R, ExchangeBuffer<R>>,
    arrived: Rc<RefCell<ExternalSort<R>>>,
}

impl<R: Record + Ord> SortingShuffle<R> {
    /// Opens a shuffle. `key`: the worker that a record goes to, modulo the number of workers. `arrived`: an
    /// empty sort.
    pub fn new(
        worker: &mut Worker,
        name: &str,
        key: impl Fn(&R) -> u64 + 'static,
        arrived: ExternalSort<R>,
    ) -> Self {
        let round = round_of::<R>(arrived.budget());
        let arrived = Rc::new(RefCell::new(arrived));
        SortingShuffle { way: Channel::new(worker, name, key, round, &arrived), arrived }
    }

    /// Sends one record. At the end of a round, lets the engine work, and waits while the peers are too far
    /// behind.
    pub fn send(&mut self, worker: &mut Worker, record: R) {
        self.way.send(worker, record);
    }

    /// Ends a round, so that others need not wait for a worker that has little to send.
    pub fn round(&mut self, worker: &mut Worker) {
        self.way.round(worker);
    }

    /// Ends the sending, waits until all workers have done so, and returns the records that have arrived.
    pub fn finish(self, worker: &mut Worker) -> Result<Sorted<R>, Error> {
        self.close(worker).finish()
    }

    /// Ends the sending, waits until all workers have done so, and returns what has arrived, not yet sorted.
    pub fn close(self, worker: &mut Worker) -> ExternalSort<R> {
        self.way.close(worker);
        self.arrived.replace(ExternalSort::new(&SpillBudget::unused()))
    }
}

/// Sends all records, waits for all workers, and returns the records that have arrived.
pub fn shuffle<R: Record>(
    worker: &mut Worker,
    name: &str,
    records: impl IntoIterator<Item = R>,
    key: impl Fn(&R) -> u64 + 'static,
) -> Vec<R> {
    let arrived = Rc::default();
    let mut way = Channel::<R, ExchangeBuffer<R>>::new(worker, name, key, round_of::<R>(None), &arrived);
    records.into_iter().for_each(|record| way.send(worker, record));
    way.close(worker);
    arrived.take()
}

/// Sends the records that `scan` gives, waits for all workers, and replaces the contents of `arrived` by the
/// records that have arrived. Memory that is used again need not be cleared again, which is a third of the
/// cost of shuffling millions of records.
///
/// Memory of records that travel: at most nine rounds of each worker, which is 9 MiB, in buffers with twice
/// the room.
pub(crate) fn shuffle_into<R: Record, E>(
    worker: &mut Worker,
    name: &str,
    scan: RecordScan<'_, R, E>,
    key: impl Fn(&R) -> u64 + 'static,
    arrived: &mut Vec<R>,
) -> Result<(), E> {
    arrived.clear();
    let here = Rc::new(RefCell::new(std::mem::take(arrived)));
    let mut way = Channel::<R, ExchangeBuffer<R>>::new(worker, name, key, round_of::<R>(None), &here);
    scan(worker, &mut |worker, record| way.send(worker, record))?;
    way.close(worker);
    *arrived = here.take();
    Ok(())
}

/// Returns the number of records of a round.
pub(crate) fn round_of<R>(budget: Option<usize>) -> usize {
    (round_bytes(budget.map(|bytes| bytes / 4)) / size_of::<R>()).max(1)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use parking_lot::Mutex;
    use timely::CommunicationConfig;

    use super::super::channel::AHEAD;
    use super::*;
    use crate::spill::budget::twins::Twin;

    /// Returns the results of two workers.
    fn two_workers<T: Send + 'static>(work: impl Fn(&mut Worker) -> T + Send + Sync + 'static) -> Vec<T> {
        let guards = timely::execute(timely::Config::process(2), work).unwrap();
        guards.join().into_iter().map(|result| result.unwrap()).collect()
    }

    #[test]
    fn a_slow_receiver_holds_back_a_fast_sender() {
        const RECORDS: usize = 1000;
        const ROUNDS: usize = 100;
        const MOST: usize = (AHEAD as usize + 1) * RECORDS;
        let sent = Arc::new(AtomicUsize::new(0));
        let results = two_workers(move |worker| {
            let mut shuffle = Shuffle::<u64>::new(worker, "Test", |_| 1);
            if worker.index() == 0 {
                for _ in 0..ROUNDS {
                    (0..RECORDS as u64).for_each(|record| shuffle.send(record));
                    sent.fetch_add(RECORDS, SeqCst);
                    shuffle.round(worker);
                }
                return (shuffle.finish(worker).len(), 0, 0);
            }
            // As long as this worker does not work, the other one comes exactly so far.
            while sent.load(SeqCst) < MOST {
                std::thread::yield_now();
            }
            (0..100).for_each(|_| std::thread::yield_now());
            let at_first = sent.load(SeqCst);
            // A worker that panics leaves the other one waiting, so results are checked afterwards.
            let mut most = 0;
            let Shuffle { way, arrived } = shuffle;
            let taken = way.end();
            while !taken.done() {
                worker.step();
                most = most.max(sent.load(SeqCst).saturating_sub(arrived.borrow().len()));
            }
            (arrived.take().len(), at_first, most)
        });
        assert_eq!(results[0], (0, 0, 0));
        let (arrived, at_first, most) = results[1];
        assert_eq!((arrived, at_first), (ROUNDS * RECORDS, MOST));
        assert!(most <= MOST, "{most}");
    }

    /// Returns the records that arrive of four rounds that fill buffers, and of a last one that does not.
    fn arrived<C: Buffer<(u64, u64)>>(communication: CommunicationConfig) -> Vec<(u64, u64)> {
        let config = timely::Config { communication, worker: timely::WorkerConfig::default() };
        let guards = timely::execute(config, |worker| {
            let mut shuffle = Shuffle::<(u64, u64), C>::new(worker, "Test", |&(to, _)| to);
            let first = worker.index() as u64 * 50_000;
            for record in first..first + 50_000 {
                shuffle.send((record % 7, record));
                if record % 12_000 == 0 {
                    shuffle.round(worker);
                }
            }
            let arrived = shuffle.finish(worker);
            assert!(arrived.iter().all(|(to, _)| to % worker.peers() as u64 == worker.index() as u64));
            arrived
        });
        let mut all: Vec<_> = guards.unwrap().join().into_iter().flat_map(|result| result.unwrap()).collect();
        all.sort_unstable_by_key(|&(_, record)| record);
        all
    }

    #[test]
    fn every_record_arrives_once_where_its_key_says() {
        use CommunicationConfig::{Process, ProcessBinary};
        for workers in [1, 2, 3] {
            let expected: Vec<_> = (0..workers as u64 * 50_000).map(|record| (record % 7, record)).collect();
            for communication in [Process(workers), ProcessBinary(workers)] {
                assert!(arrived::<ExchangeBuffer<_>>(communication.clone()) == expected, "{communication:?}");
                assert!(arrived::<Vec<_>>(communication.clone()) == expected, "{communication:?}");
            }
        }
    }

    /// Returns all records of two workers, sorted, by the worker that they have arrived at.
    fn sorted(spill: SpillBudget) -> Vec<Result<Vec<u64>, String>> {
        two_workers(move |worker| {
            let first = worker.index() as u64 * 3000;
            let records = (first..first + 3000).map(|record| record * 7919 % 6000);
            let mut shuffle =
                SortingShuffle::new(worker, "Test", |record| *record, ExternalSort::new(&spill));
            records.for_each(|record| shuffle.send(worker, record));
            let mut all = Vec::new();
            let arrived =
                shuffle.finish(worker).and_then(|mut arrived| arrived.each(|record| all.push(record)));
            arrived.map(|()| all).map_err(|error| error.to_string())
        })
    }

    #[test]
    fn what_arrives_is_sorted_in_memory_and_beyond() {
        let expected = [0, 1].map(|worker| Ok((0..6000).filter(|record| record % 2 == worker).collect()));
        for budget in [None, Some(1000), Some(100_000)] {
            let spill = Twin::default().budget(budget);
            assert_eq!(sorted(spill.clone()), expected, "{budget:?}");
            assert_eq!(spill.spilled().files, if budget == Some(1000) { 2 } else { 0 });
        }
    }

    #[test]
    fn a_full_disk_is_an_error_of_the_worker_loop() {
        let told = Mutex::new(Vec::new());
        for result in sorted(Twin::full_after(2000).budget(1000)) {
            told.lock().push(result.unwrap_err());
        }
        let expected = "the disk of \"/twin\" is full: could not spill 1 KiB";
        assert_eq!(*told.lock(), [expected, expected]);
    }
}
