//! Time limits of calls to HDFS.

use std::time::Duration;

/// Time limits of calls to HDFS.
///
/// A read of up to 8 MiB ends within `whole` and one `call`, with success or an error. Any other call ends
/// within `attempts * call` and the pauses between, which begin at 0.2 to 0.3 seconds and double.
#[derive(Clone, Copy, Debug)]
pub struct HdfsLimits {
    /// Limit for an answer of the name node, and for writing a megabyte or closing a file.
    pub call: Duration,
    /// Time that the library waits for a data node before it turns to another one that holds the block.
    pub data_node: Duration,
    /// Limit for the next bytes of a read. Longer than one or two data nodes may stall.
    pub item: Duration,
    /// Limit for one attempt at reading up to 8 MiB. The next attempt continues where it ended.
    pub range: Duration,
    /// Limit for all attempts at reading up to 8 MiB, which sets the least rate of a read.
    pub whole: Duration,
    /// Number of attempts that may fail before a call does. For a read, only attempts without a single new
    /// byte count.
    pub attempts: u32,
}

impl Default for HdfsLimits {
    fn default() -> Self {
        HdfsLimits {
            call: Duration::from_secs(60),
            data_node: Duration::from_secs(10),
            item: Duration::from_secs(30),
            range: Duration::from_secs(60),
            whole: Duration::from_secs(240),
            attempts: 4,
        }
    }
}
