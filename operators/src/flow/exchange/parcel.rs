//! Parcels: buffers whose type only the two ends of a channel know, so that the engine's part of all channels is compiled once.

use std::any::Any;
use std::io::Write;

use dyn_clone::DynClone;
use timely::Accountable;
use timely::bytes::arc::Bytes;
use timely::communication::Push;
use timely::dataflow::channels::pushers::exchange::Distributor;
use timely::dataflow::channels::{ContainerBytes, Message, Stamp};

/// A buffer on its way to one worker. The number of the worker does not travel, since it is known on arrival.
#[derive(Clone, Default)]
pub(super) struct Parcel {
    to: usize,
    load: Option<Load>,
}

#[derive(Clone)]
enum Load {
    /// The buffer itself.
    Buffer(Box<dyn AnyBuffer>),
    /// Its bytes, which have come from another process.
    Bytes(Bytes),
}

/// A buffer that can go to another worker: as it is, or as bytes.
pub trait Freight: ContainerBytes + Clone + Send + 'static {}

impl<C: ContainerBytes + Clone + Send + 'static> Freight for C {}

/// A buffer of any type.
trait AnyBuffer: Any + Send + DynClone {
    fn length(&self) -> usize;
    fn write(&self, writer: &mut dyn Write);
}

dyn_clone::clone_trait_object!(AnyBuffer);

impl<C: Freight> AnyBuffer for C {
    fn length(&self) -> usize {
        self.length_in_bytes()
    }

    fn write(&self, mut writer: &mut dyn Write) {
        self.into_bytes(&mut writer);
    }
}

impl Parcel {
    /// Packs a buffer with records for a worker.
    pub fn new<C: Freight>(to: usize, buffer: C) -> Self {
        Parcel { to, load: Some(Load::Buffer(Box::new(buffer))) }
    }

    /// Returns the buffer, which both ends of a channel call by the same type; `None` if the parcel is empty.
    pub fn buffer<C: Freight>(&mut self) -> Option<&mut C> {
        let buffer: Box<dyn AnyBuffer> = match self.load.take()? {
            Load::Buffer(buffer) => buffer,
            Load::Bytes(bytes) => Box::new(C::from_bytes(bytes)),
        };
        let Load::Buffer(buffer) = self.load.insert(Load::Buffer(buffer)) else { return None };
        (&mut **buffer as &mut dyn Any).downcast_mut()
    }
}

/// A parcel counts as one, whatever it holds, since its bytes do not tell how many records they are.
impl Accountable for Parcel {
    fn record_count(&self) -> i64 {
        self.load.is_some().into()
    }
}

impl ContainerBytes for Parcel {
    fn from_bytes(bytes: Bytes) -> Self {
        Parcel { to: 0, load: Some(Load::Bytes(bytes)) }
    }

    fn length_in_bytes(&self) -> usize {
        match &self.load {
            Some(Load::Buffer(buffer)) => buffer.length(),
            Some(Load::Bytes(bytes)) => bytes.len(),
            None => 0,
        }
    }

    fn into_bytes<W: Write>(&self, writer: &mut W) {
        match &self.load {
            Some(Load::Buffer(buffer)) => buffer.write(writer),
            // The engine made the writer as long as `length_in_bytes` says, so a failure is a bug.
            #[expect(clippy::expect_used, reason = "the engine's trait has no way to fail")]
            Some(Load::Bytes(bytes)) => writer.write_all(bytes).expect("the engine's buffer is long enough"),
            None => {}
        }
    }
}

/// Delivers parcels to their workers.
pub(super) struct Deliver;

impl Distributor<Parcel> for Deliver {
    fn partition<T: Clone, P>(&mut self, parcel: &mut Parcel, stamp: &Stamp<T>, workers: &mut [P])
    where
        P: Push<Message<T, Parcel>>,
    {
        let to = parcel.to;
        Message::push_at(parcel, stamp.clone(), &mut workers[to]);
    }

    fn flush<T: Clone, P: Push<Message<T, Parcel>>>(&mut self, _: &Stamp<T>, _: &mut [P]) {}
}
