//! A window on the bytes of a file around the place that is being read, and the sync markers in it.

use std::sync::Arc;

use cluster::Blob;
use memchr::memmem::Finder;

use super::header::MARKER_BYTES;
use crate::Error;

/// Number of bytes that are read at a time behind the end of the piece, where only the end of a record is
/// wanted.
const TAIL_BYTES: u64 = 1 << 16;
/// Number of bytes after a sync marker that decide whether a record or a block follows.
pub(super) const AFTER_BYTES: usize = 32;

/// Test whether a record, a block or the end can be at a place in the file. Its arguments are the bytes from
/// there on, at most [`AFTER_BYTES`], and the number of bytes up to the end of the file.
pub(super) type Follows = Box<dyn Fn(&[u8], u64) -> bool + Send>;

/// A moving window on a file. Memory: what is asked of it at once, and one read ahead.
///
/// The window finds *boundaries*, which are sync markers after which something sensible follows. Boundaries
/// depend on the bytes of the file alone, never on where reading began. So all pieces of a file and both
/// readings of it agree on them, even in a damaged file. A sync marker inside of a value, by chance or
/// malice, is no boundary, unless the value continues like a record.
///
/// ```text
/// marker, record        a boundary
/// marker, end of file   a boundary
/// marker, marker        a boundary: another marker is sensible, too
/// marker, other bytes   none: a value holds the marker by chance
/// ```
pub(super) struct Window {
    blob: Arc<dyn Blob>,
    /// Length of the file. It is less than the blob's if reading met the end earlier.
    bytes: u64,
    /// Offset up to which reads are as long as the blob prefers.
    ahead: u64,
    /// Offset of the buffer in the file.
    start: u64,
    buffer: Vec<u8>,
    used: usize,
    /// Finder of sync markers. A file without markers is one stretch.
    marker: Option<Finder<'static>>,
    follows: Follows,
    /// Offset up to which no boundary lies behind the position.
    clear: u64,
    /// Whether a boundary lies at `clear`.
    boundary: bool,
}

impl Window {
    /// Creates a window at `offset`; most of the reading will be before `ahead`.
    pub(super) fn new(
        blob: Arc<dyn Blob>,
        offset: u64,
        ahead: u64,
        marker: Option<[u8; MARKER_BYTES]>,
        follows: Follows,
    ) -> Self {
        let marker = marker.map(|marker| Finder::new(&marker).into_owned());
        let bytes = blob.bytes();
        let (start, clear) = (offset, offset);
        Window {
            blob,
            bytes,
            ahead,
            start,
            buffer: Vec::new(),
            used: 0,
            marker,
            follows,
            clear,
            boundary: false,
        }
    }

    /// Returns the position, which is the offset of the next byte in the file.
    pub(super) fn offset(&self) -> u64 {
        self.start + self.used as u64
    }

    /// Returns the number of bytes from `offset` to the end of the file.
    pub(super) fn rest(&self, offset: u64) -> u64 {
        self.bytes.saturating_sub(offset)
    }

    /// Returns the loaded bytes from the position on.
    pub(super) fn loaded(&self) -> &[u8] {
        &self.buffer[self.used..]
    }

    fn loaded_end(&self) -> u64 {
        self.start + self.buffer.len() as u64
    }

    /// Loads the bytes from the position to `until`, as far as the file goes.
    pub(super) fn load(&mut self, until: u64) -> Result<(), Error> {
        while self.loaded_end() < until.min(self.bytes) {
            self.buffer.drain(..self.used);
            self.start += self.used as u64;
            self.used = 0;
            let end = self.loaded_end();
            let most = self.blob.read_ahead_bytes() as u64;
            let wanted = (self.ahead.saturating_sub(end) + TAIL_BYTES).max(until - end);
            let old = self.buffer.len();
            self.buffer.resize(old + wanted.min(most).min(self.rest(end)) as usize, 0);
            let read = self.blob.read_at(end, &mut self.buffer[old..])?;
            self.buffer.truncate(old + read);
            if read == 0 {
                self.bytes = end;
            }
        }
        Ok(())
    }

    /// Moves the position on by `bytes`, which are loaded, and returns them.
    pub(super) fn take(&mut self, bytes: usize) -> &[u8] {
        self.used += bytes;
        &self.buffer[self.used - bytes..self.used]
    }

    /// Returns the first boundary at or after `from` and before `until`. `from` must not be before the
    /// position. The bytes between the position and the result (or `until`) are loaded.
    pub(super) fn boundary(&mut self, from: u64, until: u64) -> Result<Option<u64>, Error> {
        if self.marker.is_none() {
            return Ok(None);
        }
        if from > self.clear {
            (self.clear, self.boundary) = (from, false);
        }
        while !self.boundary && self.clear < until && self.clear < self.bytes {
            self.load(self.clear + MARKER_BYTES as u64)?;
            let unseen = (self.clear.min(self.loaded_end()) - self.start) as usize;
            match self.marker.as_ref().and_then(|marker| marker.find(&self.buffer[unseen..])) {
                Some(place) => {
                    self.clear += place as u64;
                    self.boundary = self.sensible(self.clear + MARKER_BYTES as u64)?;
                    self.clear += u64::from(!self.boundary);
                }
                None if self.loaded_end() >= self.bytes => self.clear = self.bytes,
                None => self.clear = self.clear.max(self.loaded_end() - (MARKER_BYTES as u64 - 1)),
            }
        }
        Ok((self.boundary && self.clear < until).then_some(self.clear))
    }

    /// Moves the position to the first boundary at or after `from`, or to `until` if none comes before. The
    /// bytes in between are not kept.
    pub(super) fn skip(&mut self, from: u64, until: u64) -> Result<(), Error> {
        let mut from = from;
        loop {
            let next = until.min(self.bytes).min(from + TAIL_BYTES).max(from);
            let found = self.boundary(from, next)?;
            let to = found.unwrap_or(next);
            self.load(to)?;
            self.used = (to.min(self.loaded_end()) - self.start) as usize;
            if found.is_some() || to >= until.min(self.bytes) {
                return Ok(());
            }
            from = next;
        }
    }

    /// Returns whether the file ends at `offset`, or a reader can continue there.
    pub(super) fn sensible(&self, offset: u64) -> Result<bool, Error> {
        let mut after = [0; AFTER_BYTES];
        let place = (offset - self.start) as usize;
        let read = match self.buffer.get(place..place + AFTER_BYTES) {
            Some(loaded) => {
                after.copy_from_slice(loaded);
                AFTER_BYTES
            }
            // This read is separate, because it is rare and `offset` may be far away.
            None => self.blob.read_full_at(offset, &mut after)?,
        };
        let after = &after[..read];
        Ok(after.is_empty() || self.is_marker(after) || (self.follows)(after, self.rest(offset)))
    }

    /// Returns whether a sync marker, boundary or not, is at the position.
    pub(super) fn at_marker(&self) -> bool {
        self.is_marker(self.loaded())
    }

    /// Returns whether `bytes` begin with a sync marker.
    pub(super) fn is_marker(&self, bytes: &[u8]) -> bool {
        self.marker.as_ref().is_some_and(|marker| bytes.starts_with(marker.needle()))
    }
}
