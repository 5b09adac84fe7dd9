//! Checksums of what was read of a file, by which later readings are compared with the first one.

use std::collections::BTreeSet;
use std::mem;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use xxhash_rust::xxh3::xxh3_64;

use super::store::Version;

/// Length of a cell, the unit of comparison, which is the length of an HDFS packet. Longer cells would cost
/// less memory, but readers of many columns would fetch more than they use. The length is also a multiple of
/// 512, the least number of bytes that HDFS sends: a range that begins elsewhere is cut out of what is sent
/// by the unprotected offset in the packet's header.
pub(super) const CELL_BYTES: usize = 1 << 16;

/// Checksums of the cells of a file, as they were when first read.
///
/// A file costs 8 bytes of memory for each 64 KiB, from its first read on. Each file of a job has one `Sums`,
/// which all who open the file share. The first read of a cell sets its sum, and every later read must match
/// it:
///
/// ```text
/// read cell 0 (first time)    sums: [a, -, -]   agrees
/// read cell 2 (first time)    sums: [a, -, c]   agrees
/// read cell 0, same bytes     sums: [a, -, c]   agrees
/// read cell 2, other bytes    sums: [a, -, c]   differs: read again, at last Error::Changed
/// ```
pub(crate) struct Sums {
    cells: OnceLock<Vec<AtomicU64>>,
    pub(super) bytes: u64,
    pub(super) version: Version,
}

impl Sums {
    /// Creates the sums of a file with the length and version that it had when the job was planned.
    pub(crate) fn new(bytes: u64, version: Version) -> Self {
        Sums { cells: OnceLock::new(), bytes, version }
    }

    fn cells(&self) -> &[AtomicU64] {
        let cells = self.bytes.div_ceil(CELL_BYTES as u64);
        self.cells.get_or_init(|| (0..cells).map(|_| AtomicU64::new(0)).collect())
    }

    /// Returns whether the cell held the same bytes before. The first call for a cell sets its sum.
    pub(super) fn agree(&self, index: u64, cell: &[u8]) -> bool {
        // A sum of 0 marks a cell that was never read.
        self.set(index, xxh3_64(cell).max(1))
    }

    fn set(&self, index: u64, sum: u64) -> bool {
        let Some(cell) = self.cells().get(index as usize) else { return false };
        match cell.compare_exchange(0, sum, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => true,
            Err(before) => before == sum,
        }
    }

    /// Takes the sums that an earlier run has read, as [`Noted::take`] returned them. Returns whether they
    /// agree with everything that this process has read.
    pub(crate) fn restore(&self, sums: &[(u64, u64)]) -> bool {
        sums.iter().all(|&(index, sum)| self.set(index, sum))
    }
}

/// Set of the cells of a file that one reader has read. It is stored with the results of that reader.
#[derive(Debug, Default)]
pub struct Noted(pub(super) Mutex<BTreeSet<u64>>);

impl Noted {
    /// Returns the numbers of the noted cells with their sums, in order, and forgets them.
    pub(crate) fn take(&self, sums: &Sums) -> Vec<(u64, u64)> {
        let noted = mem::take(&mut *self.0.lock());
        let cells = sums.cells();
        noted.into_iter().map(|index| (index, cells[index as usize].load(Ordering::Relaxed))).collect()
    }
}
