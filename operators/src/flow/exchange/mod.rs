//! Exchange: sends records from worker to worker, in one process or between processes.
//!
//! Channels limit the records on their way, shuffles deliver records to the worker of their key, and the
//! all-reduce adds up feature counts. This room uses the engine, `spill` and the counters of `sets`; every
//! other room of `flow` uses it.

pub(crate) mod buffer;
pub(crate) mod channel;
mod parcel;
pub(crate) mod shuffle;
pub(crate) mod sum;
