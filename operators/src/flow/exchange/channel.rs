//! A channel of the exchange: carries records to the workers that their keys select, by the engine's
//! channels.

use std::cell::RefCell;
use std::mem;
use std::rc::Rc;

use timely::container::NoopBuilder;
use timely::dataflow::channels::pact::DistributorPact;
use timely::dataflow::operators::generic::Operator;
use timely::dataflow::operators::probe::Probe;
use timely::dataflow::{InputHandle, ProbeHandle};
use timely::worker::Worker;

use super::buffer::Buffer;
use super::parcel::{Deliver, Parcel};

/// Number of rounds that a worker may send ahead of those that its peers have taken in. There must be a
/// limit, because the engine's queues have none.
pub(crate) const AHEAD: u64 = 8;
/// Bytes that a worker sends in a round.
pub(crate) const ROUND_BYTES: usize = 1 << 20;

/// Returns the bytes of a round: [`ROUND_BYTES`], or less if all rounds that travel must not take more than
/// `most` bytes.
pub(crate) fn round_bytes(most: Option<usize>) -> usize {
    most.map_or(ROUND_BYTES, |most| ROUND_BYTES.min(most / (AHEAD as usize + 1)))
}

type ParcelInput = InputHandle<u64, NoopBuilder<Parcel>>;

/// Makes the dataflow of a channel. `take`: takes in a parcel that has arrived. The returned probe tells what all workers have taken in.
fn open(
    worker: &mut Worker,
    name: &str,
    mut take: Box<dyn FnMut(&mut Parcel)>,
) -> (ParcelInput, ProbeHandle<u64>) {
    let mut input = InputHandle::new_with_builder();
    let taken = ProbeHandle::new();
    log::trace!(target: "exchange", "{name}");
    worker.dataflow(|scope| {
        input
            .to_stream(scope)
            .unary::<NoopBuilder<Vec<()>>, _, _, _>(
                DistributorPact(|_workers| Deliver),
                name,
                // The operator takes its input at once and holds no capability, so the probe behind it
                // tells what has been taken in.
                |_capability, _info| {
                    move |input, _output| input.for_each(|_time, parcel: &mut Parcel| take(parcel))
                },
            )
            .probe_with(&taken);
    });
    (input, taken)
}

/// A channel to all workers. Each record goes to the worker that its key selects, and there into the
/// collection `arrived`.
///
/// Records are put into the buffer of their worker as they are sent. The engine's own exchange would take
/// them from one buffer and put them into another, at twice the cost.
pub(crate) struct Channel<T, C: Buffer<T>> {
    input: ParcelInput,
    /// The buffer of each worker.
    buffers: Vec<C>,
    /// Number of records that a buffer has room for.
    room: usize,
    key: Box<dyn Fn(&T) -> u64>,
    /// Length of a round, in records.
    round: usize,
    /// Number of records sent in the current round.
    sent: usize,
    taken: ProbeHandle<u64>,
}

impl<T: 'static, C: Buffer<T>> Channel<T, C> {
    /// Makes a channel. `key`: the worker of a record, modulo the number of workers. `round`: the number of
    /// records after which [`Channel::send`] ends a round.
    pub fn new<A>(
        worker: &mut Worker,
        name: &str,
        key: impl Fn(&T) -> u64 + 'static,
        round: usize,
        arrived: &Rc<RefCell<A>>,
    ) -> Self
    where
        A: Extend<T> + 'static,
    {
        let arrived = Rc::clone(arrived);
        let take = move |parcel: &mut Parcel| {
            if let Some(buffer) = parcel.buffer::<C>() {
                buffer.unload(&mut *arrived.borrow_mut());
            }
        };
        let (input, taken) = open(worker, name, Box::new(take));
        let buffers = vec![C::default(); worker.peers()];
        // Some workers get more records of a round than others.
        let room = round.div_ceil(worker.peers()).saturating_mul(2).min(C::RECORDS);
        Channel { input, buffers, room, key: Box::new(key), round, sent: 0, taken }
    }

    /// Sends a record. At the end of a round, lets the engine work, and waits while the peers are too far
    /// behind.
    #[inline]
    pub fn send(&mut self, worker: &mut Worker, record: T) {
        self.put(record);
        self.sent += 1;
        if self.sent == self.round {
            self.round(worker);
        }
    }

    /// Sends a record. The caller ends the rounds.
    #[inline]
    pub fn put(&mut self, record: T) {
        let key = (self.key)(&record);
        let workers = self.buffers.len() as u64;
        // A division takes as long as all the rest.
        let to = if workers.is_power_of_two() { key & (workers - 1) } else { key % workers } as usize;
        if self.buffers[to].push(record, self.room) {
            self.dispatch(to);
        }
    }

    fn dispatch(&mut self, to: usize) {
        let buffer = &mut self.buffers[to];
        if buffer.is_empty() {
            return;
        }
        let mut parcel = Parcel::new(to, mem::take(buffer));
        self.input.send_batch(&mut parcel);
        // A buffer that goes to another process is left behind here, and so is one that this worker has emptied.
        if let Some(left) = parcel.buffer() {
            mem::swap(buffer, left);
            buffer.clear();
        }
    }

    fn dispatch_all(&mut self) {
        (0..self.buffers.len()).for_each(|to| self.dispatch(to));
    }

    pub fn round(&mut self, worker: &mut Worker) {
        self.sent = 0;
        self.dispatch_all();
        let now = self.input.time() + 1;
        self.input.advance_to(now);
        worker.step();
        worker.step_or_park_while(None, || self.taken.less_than(&now.saturating_sub(AHEAD)));
    }

    /// Ends the sending. The returned probe is done when all workers have taken in all that was sent to them.
    pub fn end(mut self) -> ProbeHandle<u64> {
        self.dispatch_all();
        self.input.close();
        self.taken
    }

    pub fn close(self, worker: &mut Worker) {
        let taken = self.end();
        worker.step_or_park_while(None, || !taken.done());
    }
}
