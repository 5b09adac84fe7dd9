//! The processes of a job, and the time limits of the connections between them.

use std::time::Duration;

/// Addresses of the processes of a job, and the index of this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// Index of this process.
    pub index: usize,
    /// Address of each process, `host:port`. This process listens on its own until all have connected.
    pub addresses: Vec<String>,
    /// Threads of each process.
    pub workers: usize,
}

impl Membership {
    /// Returns the name of a process for messages.
    pub(super) fn name(&self, process: usize) -> String {
        format!("process {process} ({})", self.addresses[process])
    }
}

/// Time limits of the connections between processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Limit for the start, until all processes have connected.
    pub start: Duration,
    /// Limit for one handshake, from the first byte to the last.
    pub handshake: Duration,
    /// Interval between heartbeats.
    pub tick: Duration,
    /// Number of ticks without a whole record after which a process is taken for dead.
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
