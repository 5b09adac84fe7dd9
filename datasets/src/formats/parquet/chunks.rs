//! The bytes of column chunks, fetched from a blob in large reads.

use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use cluster::Blob;
use parking_lot::Mutex;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

/// Least length of a window, in bytes. A smaller one would cost more in calls than it saves in memory.
const LEAST_WINDOW_BYTES: usize = 16 << 10;
/// Number of bytes that are read where pages before them were passed over.
const PASSING_WINDOW_BYTES: usize = 64 << 10;

/// Ranges of a blob, such as the column chunks of a row group, each of which is read from its start to its
/// end.
///
/// Pages are small and columns are read in turn, so each range has a window of its own, which is filled with
/// large reads. Where pages are passed over, only their headers are wanted, so a read that does not begin in
/// the window or at its end is small, and the reads after it double. Memory: at most `windows_bytes` for all
/// windows, or one page per range.
#[derive(Clone)]
pub(super) struct Chunks(Arc<Inner>);

struct Inner {
    blob: Arc<dyn Blob>,
    ranges: Vec<Range<u64>>,
    window_bytes: usize,
    windows: Mutex<Vec<ChunkWindow>>,
    failure: Mutex<Option<cluster::Error>>,
}

#[derive(Clone, Default)]
struct ChunkWindow {
    start: u64,
    bytes: Bytes,
}

impl Chunks {
    /// Creates the windows. `ranges` must lie within the blob. `windows_bytes` bounds all windows together,
    /// unless a page is larger than its window.
    pub(super) fn new(blob: Arc<dyn Blob>, mut ranges: Vec<Range<u64>>, windows_bytes: usize) -> Self {
        ranges.sort_unstable_by_key(|range| (range.start, range.end));
        let start = ranges.first().map_or(0, |range| range.start);
        let end = ranges.iter().map(|range| range.end).max().unwrap_or(0);
        if end - start <= blob.read_ahead_bytes() as u64 {
            ranges.clear(); // one read for a small row group
            ranges.push(start..end);
        }
        let share = windows_bytes / ranges.len().max(1);
        let window_bytes = share.clamp(LEAST_WINDOW_BYTES, blob.read_ahead_bytes().max(LEAST_WINDOW_BYTES));
        let windows = Mutex::new(vec![ChunkWindow::default(); ranges.len()]);
        Chunks(Arc::new(Inner { blob, ranges, window_bytes, windows, failure: Mutex::default() }))
    }

    /// Returns the store's error behind the last failed read, which the parquet library has turned into text.
    pub(super) fn take_failure(&self) -> Option<cluster::Error> {
        self.0.failure.lock().take()
    }

    /// Returns the bytes from `start` to the end of its window, at least `least_bytes` of them.
    fn window(&self, start: u64, least_bytes: usize) -> Result<Bytes> {
        let inner = &*self.0;
        let at = inner.ranges.partition_point(|range| range.end <= start);
        let range = inner
            .ranges
            .get(at)
            .filter(|range| range.start <= start && range.end - start >= least_bytes as u64);
        let Some(range) = range else {
            return Err(ParquetError::EOF(format!("byte {start} + {least_bytes} is outside of the chunk")));
        };
        let mut windows = inner.windows.lock();
        let window = &mut windows[at];
        let skip = start.checked_sub(window.start).unwrap_or(u64::MAX).min(window.bytes.len() as u64);
        let tail = window.bytes.slice(skip as usize..);
        if tail.len() >= least_bytes.max(1) {
            return Ok(tail);
        }
        let goes_on = (window.start..=window.start + window.bytes.len() as u64).contains(&start);
        let most = match window.bytes.len() {
            0 => inner.window_bytes,
            last if goes_on => inner.window_bytes.min(2 * last),
            _ => inner.window_bytes.min(PASSING_WINDOW_BYTES),
        };
        let length = least_bytes.max(most).min((range.end - start) as usize);
        let mut bytes = Vec::with_capacity(length);
        bytes.extend_from_slice(&tail);
        bytes.resize(length, 0);
        match inner.blob.read_full_at(start + tail.len() as u64, &mut bytes[tail.len()..]) {
            Ok(read) if tail.len() + read == length => {}
            Ok(_) => return Err(ParquetError::EOF("the file is shorter than it was".to_owned())),
            Err(error) => {
                let text = error.to_string();
                *inner.failure.lock() = Some(error);
                return Err(ParquetError::General(text));
            }
        }
        *window = ChunkWindow { start, bytes: Bytes::from(bytes) };
        Ok(window.bytes.clone())
    }
}

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.0.blob.bytes()
    }
}

impl ChunkReader for Chunks {
    type T = ChunkRead;

    fn get_read(&self, start: u64) -> Result<ChunkRead> {
        Ok(ChunkRead { chunks: self.clone(), offset: start, bytes: Bytes::new() })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        match length {
            0 => Ok(Bytes::new()),
            _ => Ok(self.window(start, length)?.slice(..length)),
        }
    }
}

/// Sequential reader from an offset on. It serves page headers, whose length only their reader knows.
pub(super) struct ChunkRead {
    chunks: Chunks,
    offset: u64,
    bytes: Bytes,
}

impl Read for ChunkRead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.bytes.is_empty() && !buffer.is_empty() {
            self.bytes = self.chunks.window(self.offset, 1).map_err(io::Error::other)?;
        }
        let read = buffer.len().min(self.bytes.len());
        buffer[..read].copy_from_slice(&self.bytes.split_to(read));
        self.offset += read as u64;
        Ok(read)
    }
}
