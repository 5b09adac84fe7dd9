//! Exchange: how records travel from worker to worker, in one process or between processes.
//!
//! Uses the engine and `spill`; every other room of `flow` uses it.

pub(crate) mod buffer;
pub(crate) mod channel;
pub(crate) mod shuffle;
pub(crate) mod sum;
