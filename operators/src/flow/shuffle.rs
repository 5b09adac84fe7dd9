//! The shuffle: every record to the worker that its key says.

use std::cell::RefCell;
use std::rc::Rc;

use timely::Container;
use timely::container::{CapacityContainerBuilder, DrainContainer, PushInto, SizableContainer};
use timely::dataflow::channels::ContainerBytes;
use timely::dataflow::channels::pact::ExchangeCore;
use timely::dataflow::operators::generic::Operator;
use timely::dataflow::operators::probe::Probe;
use timely::dataflow::{InputHandle, ProbeHandle};
use timely::worker::Worker;

use super::rows::Rows;
use crate::record::Record;

/// How many rounds a worker may send ahead of what its peers have taken in: the engine's queues have no end.
const AHEAD: u64 = 8;

/// A buffer of records of type `T` that can cross a worker boundary.
pub trait Buffer<T>:
    Container
    + Clone
    + Send
    + ContainerBytes
    + SizableContainer
    + PushInto<T>
    + for<'a> DrainContainer<Item<'a> = T>
{
}

impl<T, C> Buffer<T> for C where
    C: Container
        + Clone
        + Send
        + ContainerBytes
        + SizableContainer
        + PushInto<T>
        + for<'a> DrainContainer<Item<'a> = T>
{
}

/// Sends records to workers by key. All workers must open the same shuffles in the same order, and finish
/// each. Holds what has arrived until it is taken.
pub struct Shuffle<T, C: Buffer<T> = Rows<T>> {
    input: InputHandle<u64, CapacityContainerBuilder<C>>,
    taken: ProbeHandle<u64>,
    arrived: Rc<RefCell<Vec<T>>>,
}

impl<T: 'static, C: Buffer<T>> Shuffle<T, C> {
    /// `key`: the worker that a record goes to, modulo the number of workers.
    pub fn new(worker: &mut Worker, name: &str, key: impl Fn(&T) -> u64 + 'static) -> Self {
        let mut input = InputHandle::new_with_builder();
        let taken = ProbeHandle::new();
        let arrived = Rc::new(RefCell::new(Vec::new()));
        log::trace!(target: "exchange", "{name}");
        let stash = Rc::clone(&arrived);
        worker.dataflow(|scope| {
            input
                .to_stream(scope)
                .unary::<CapacityContainerBuilder<Vec<()>>, _, _, _>(
                    ExchangeCore::new(move |record: &T| key(record)),
                    name,
                    // The operator takes its input at once and holds no capability, so the probe behind it
                    // says what has been taken in.
                    |_capability, _info| {
                        move |input, _output| {
                            input.for_each(|_time, buffer: &mut C| stash.borrow_mut().extend(buffer.drain()));
                        }
                    },
                )
                .probe_with(&taken);
        });
        Shuffle { input, taken, arrived }
    }

    /// Sends one record.
    pub fn send(&mut self, record: T) {
        self.input.send(record);
    }

    /// Ends a round of sending: lets the engine work, and waits while the peers are too far behind.
    pub fn round(&mut self, worker: &mut Worker) {
        let now = self.input.time() + 1;
        self.input.advance_to(now);
        worker.step();
        worker.step_or_park_while(None, || self.taken.less_than(&now.saturating_sub(AHEAD)));
    }

    /// What has arrived since the last call.
    pub fn take(&mut self) -> Vec<T> {
        self.arrived.take()
    }

    /// Sends no more, waits until all workers do likewise, and returns what has arrived.
    pub fn finish(self, worker: &mut Worker) -> Vec<T> {
        let Shuffle { input, taken, arrived } = self;
        input.close();
        worker.step_or_park_while(None, || !taken.done());
        arrived.take()
    }
}

/// Sends all records and returns those that arrive, once all have.
pub fn shuffle<R: Record>(
    worker: &mut Worker,
    name: &str,
    records: impl IntoIterator<Item = R>,
    key: impl Fn(&R) -> u64 + 'static,
) -> Vec<R> {
    let mut arrived = Vec::new();
    shuffle_into(worker, name, records, key, &mut arrived);
    arrived
}

/// The same into a buffer, whose contents are replaced: memory that is used again need not be cleared again,
/// which is a third of the cost of shuffling millions of records.
pub fn shuffle_into<R: Record>(
    worker: &mut Worker,
    name: &str,
    records: impl IntoIterator<Item = R>,
    key: impl Fn(&R) -> u64 + 'static,
    arrived: &mut Vec<R>,
) {
    const ROUND: usize = 1 << 16;
    let mut shuffle = Shuffle::<R>::new(worker, name, key);
    arrived.clear();
    shuffle.arrived.replace(std::mem::take(arrived));
    for (sent, record) in records.into_iter().enumerate() {
        shuffle.send(record);
        if sent % ROUND == ROUND - 1 {
            shuffle.round(worker);
        }
    }
    *arrived = shuffle.finish(worker);
}
