//! The processes of a job: how they meet, run the engine together, and notice when one of them is gone.
//!
//! docs/design/0019 says why it is like this.

mod channel;
mod control;
mod data;
mod frame;
mod group;
mod handshake;
mod start;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub(crate) use control::Control;
pub use group::Cluster;

/// Where the processes of a job are, and which of them this is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Of this process.
    pub index: usize,
    /// Of each process, `host:port`. This one listens on its own until all have come.
    pub addresses: Vec<String>,
    /// Threads of each process.
    pub workers: usize,
}

impl Place {
    /// A process's name for people.
    fn name(&self, process: usize) -> String {
        format!("process {process} ({})", self.addresses[process])
    }
}

/// How long what may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Until all processes have come.
    pub start: Duration,
    /// For one handshake, from the first byte to the last.
    pub handshake: Duration,
    /// From one beat to the next.
    pub tick: Duration,
    /// After so many ticks without a whole record, a process is taken for dead.
    pub silent_ticks: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            start: Duration::from_secs(60),
            handshake: Duration::from_secs(5),
            tick: Duration::from_secs(1),
            silent_ticks: 10,
        }
    }
}
