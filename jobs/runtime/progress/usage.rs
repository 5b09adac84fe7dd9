//! Resources that processes use, as the system counts them.

use std::fs;

use serde::{Deserialize, Serialize};

/// Resources that the processes have used.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct ResourceUsage {
    /// User and system time, with that of processes that were started to read documents.
    pub cpu_milliseconds: u64,
    /// Most memory that was resident at a time, in the process that had most.
    pub peak_memory_bytes: u64,
    /// Bytes written to local disks because they did not fit into memory.
    pub spilled_bytes: u64,
}

impl ResourceUsage {
    /// Adds what another process has used.
    pub fn add(&mut self, other: &ResourceUsage) {
        self.cpu_milliseconds += other.cpu_milliseconds;
        self.peak_memory_bytes = self.peak_memory_bytes.max(other.peak_memory_bytes);
        self.spilled_bytes += other.spilled_bytes;
    }

    /// Asks the system what this process has used so far; 0 where the system does not say (Linux does).
    pub fn measure() -> Self {
        // The name of the process is in brackets. After it come fields 3 and following of proc(5); 14 and 15
        // are in ticks of 10 ms, and so are 16 and 17, those of children that have ended, such as processes that read pages.
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        let ticks: u64 = fields.skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum();
        ResourceUsage { cpu_milliseconds: 10 * ticks, peak_memory_bytes: status("VmHWM:"), spilled_bytes: 0 }
    }

    /// Returns the number of bytes that are resident now; 0 where the system does not say.
    pub fn resident_memory_bytes() -> u64 {
        status("VmRSS:")
    }
}

/// Returns a size that the system gives for this process, in bytes.
fn status(field: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let size = status.lines().find_map(|line| line.strip_prefix(field));
    1024 * size.and_then(|size| size.trim().split(' ').next()?.parse::<u64>().ok()).unwrap_or(0)
}
