//! Lines of a file, compressed or not. All text formats find their records with them.

mod open;
#[cfg(test)]
mod tests;

use std::io::{self, Read};

use operators::Reject;

use super::charset::Charset;
use super::compression::{Compression, window_too_long};
use super::encoding::RecognisedEncoding;
use super::json::values::RecordLayout;
use crate::Error;

/// The lines of a piece, in order. A line belongs to the piece in which its first byte lies.
///
/// Pieces are ranges of the file, or of the contents of a compressed one. If a compressed file has pieces that are ranges of its compressed
/// bytes, the piece at byte 0 gives every line, and the others give none.
///
/// Memory: one record (a line, or those that [`Lines::extend`] joined to it) and at least 256 KiB. A line
/// longer than [`Reading::max_record_bytes`] is skipped without being held.
///
/// For example, a file of 12 bytes, `ab\ncdef\nghi\n`, in two pieces:
///
/// ```text
/// offset      0         3              8
/// line        a b \n    c d e f \n     g h i \n
/// piece 0..6  "ab\n", and "cdef\n", which begins at 3 and is read to its end
/// piece 6..12 reads from byte 5, skips to the newline, then gives "ghi\n"
/// ```
pub(crate) struct Lines {
    /// Name of the file, for messages.
    pub path: String,
    /// Compression of the file.
    pub compression: Compression,
    layout: RecordLayout,
    /// Encoding of the text.
    pub charset: Charset,
    input: Box<dyn Read + Send>,
    /// Error met while reading ahead of the lines that were returned.
    failed: Option<Error>,
    /// Offset of `buffer[start]` in the file, or in its decompressed contents.
    offset: u64,
    /// Offset from which on no line is returned.
    pub end: u64,
    buffer: Vec<u8>,
    /// `buffer[start..filled]` was read and not yet passed. Its first `record_bytes` are the current record.
    start: usize,
    filled: usize,
    record_bytes: usize,
    /// First bytes of the line, if it is too long to be held.
    long_head: Option<Vec<u8>>,
    /// Offset of the line that was returned last.
    line_offset: u64,
    /// Longest line that is held.
    max_bytes: usize,
    /// Logarithm of the largest window of a zstd frame that is read.
    window_log: u32,
}

/// One line, or the lines of one record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// Offset of its first byte.
    pub offset: u64,
    /// Its bytes with their newline, where they have one, and without a byte order mark.
    pub bytes: &'a [u8],
    /// Whether `bytes` is the whole line. Otherwise the line is too long to be held, and `bytes` is its
    /// beginning.
    pub whole: bool,
}

/// Result of [`Lines::extend`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Extended {
    /// The record has one more line.
    Longer,
    /// The file has no more line. If it is damaged there, [`Lines::advance`] will return the error.
    AtEnd,
    /// With one more line, the record would be longer than allowed.
    TooLong,
}

impl Lines {
    /// Least length of the buffer, in bytes.
    const BUFFER_BYTES: usize = 1 << 18;
    /// Buffer length above which the buffer is freed once the long line in it was passed, in bytes.
    const KEPT_BYTES: usize = 16 << 20;

    /// Adds the lines behind the piece, up to the end of the file.
    pub fn past_end(mut self) -> Self {
        if self.end > 0 {
            self.end = u64::MAX;
        }
        self
    }

    /// Returns the length of the longest record.
    pub fn max_bytes(&self) -> usize {
        self.max_bytes
    }

    /// Returns the reason for rejecting a line that is too long.
    pub fn too_long(&self) -> String {
        format!("longer than the {} bytes that a record may have", self.max_bytes)
    }

    /// Returns the encoding of the file, if it was recognised and the user should know.
    pub fn recognised(&self) -> Option<RecognisedEncoding> {
        self.charset.recognised(&self.path)
    }

    /// Returns the next line, or `None` when no more start in the piece. Errors: those of [`Lines::advance`].
    #[cfg(test)]
    pub fn next(&mut self) -> Result<Option<Line<'_>>, Error> {
        Ok(if self.advance()? { Some(self.line()) } else { None })
    }

    /// Advances to the next line that is not blank. Returns `false` when no more start in the piece.
    ///
    /// Errors: those of [`Lines::advance`].
    pub fn advance_to_text(&mut self) -> Result<bool, Error> {
        while self.advance()? {
            if !self.charset.is_blank(self.line().bytes) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Advances to the next line. Returns `false` when no more start in the piece.
    ///
    /// Errors: those of the store, and [`Error::Data`] where compressed data is damaged or cut short. The
    /// line at the damage is lost with it.
    pub fn advance(&mut self) -> Result<bool, Error> {
        self.pass(self.record_bytes);
        self.record_bytes = 0;
        self.long_head = None;
        if self.offset >= self.end {
            return Ok(false);
        }
        let (length, ended) = self.find_end()?;
        self.line_offset = self.offset;
        if length <= self.max_bytes {
            self.record_bytes = length;
            return Ok(length > 0);
        }
        self.long_head = Some(self.buffer[self.start..][..Reject::HEAD_BYTES.min(length)].to_vec());
        if ended {
            self.pass(length);
        } else {
            self.pass_line()?;
        }
        Ok(true)
    }

    /// Joins the next line to the record, wherever in the file it starts. What is read is held until the
    /// record is passed.
    ///
    /// Errors: those of the store.
    pub fn extend(&mut self) -> Result<Extended, Error> {
        match self.find_end() {
            Ok((length, _)) if length > self.max_bytes => Ok(Extended::TooLong),
            Ok((length, _)) if length == self.record_bytes => Ok(Extended::AtEnd),
            Ok((length, _)) => {
                self.record_bytes = length;
                Ok(Extended::Longer)
            }
            Err(error) if error.is_data() => {
                self.failed = Some(error);
                Ok(Extended::AtEnd)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the offset behind the record, where the next line begins.
    pub fn next_offset(&self) -> u64 {
        self.offset + self.record_bytes as u64
    }

    /// Returns the damage that [`Lines::extend`] met, as an error.
    pub fn damage(&mut self) -> Result<(), Error> {
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Shortens the record to its first `bytes` (without a byte order mark), so that [`Lines::advance`]
    /// continues behind them.
    pub fn cut(&mut self, bytes: usize) {
        self.record_bytes = bytes + self.mark_bytes();
    }

    /// Returns the current line, with the lines that were joined to it.
    pub fn line(&self) -> Line<'_> {
        let bytes = match &self.long_head {
            Some(head) => head,
            None => &self.buffer[self.start..self.start + self.record_bytes],
        };
        let mark_bytes = self.mark_bytes();
        let bytes = bytes.get(mark_bytes..).unwrap_or_default();
        let offset = self.line_offset + mark_bytes as u64;
        let whole = self.long_head.is_none();
        match self.layout {
            RecordLayout::Lines => Line { offset, bytes, whole },
            RecordLayout::JsonValues => {
                let value = bytes.trim_ascii_start();
                let offset = offset + (bytes.len() - value.len()) as u64;
                Line { offset, bytes: value.trim_ascii_end(), whole }
            }
        }
    }

    /// Returns the length of the record's byte order mark. Only a record at the beginning of the file has
    /// one.
    fn mark_bytes(&self) -> usize {
        if self.line_offset == 0 { self.charset.mark_bytes() } else { 0 }
    }

    /// Passes the lines that end before `offset`, and returns how many of them were not passed before. Stops
    /// at damage.
    pub(super) fn pass_lines(&mut self, offset: u64) -> Result<u64, Error> {
        let mut lines = 0;
        loop {
            let unread = &self.buffer[self.start..self.filled];
            let before = unread.len().min(offset.saturating_sub(self.offset) as usize);
            let whole = before / self.charset.unit() * self.charset.unit();
            lines += self.charset.count_lines(&unread[..whole]);
            self.pass(whole);
            if self.offset + self.charset.unit() as u64 > offset {
                return Ok(lines);
            }
            match self.read_more() {
                Ok(true) => {}
                Ok(false) => return Ok(lines),
                Err(error) if error.is_data() => return Ok(lines),
                Err(error) => return Err(error),
            }
        }
    }

    fn pass(&mut self, bytes: usize) {
        self.start += bytes;
        self.offset += bytes as u64;
    }

    /// Finds the length of the record with its next line, and whether that line ends with a newline. Searches
    /// no further than a record may be long.
    fn find_end(&mut self) -> Result<(usize, bool), Error> {
        let mut searched = self.record_bytes;
        loop {
            let unread = &self.buffer[self.start..self.filled];
            if let Some(end) = self.charset.line_end(unread, searched) {
                return Ok((end, true));
            }
            searched = unread.len() / self.charset.unit() * self.charset.unit();
            if unread.len() > self.max_bytes || !self.read_more()? {
                return Ok((self.filled - self.start, false));
            }
        }
    }

    /// Passes everything up to and including the next newline.
    fn pass_line(&mut self) -> Result<(), Error> {
        loop {
            let unread = &self.buffer[self.start..self.filled];
            if let Some(end) = self.charset.line_end(unread, 0) {
                self.pass(end);
                return Ok(());
            }
            self.pass(unread.len() / self.charset.unit() * self.charset.unit());
            if !self.read_more()? {
                self.pass(self.filled - self.start);
                return Ok(());
            }
        }
    }

    /// Reads more bytes behind those in the buffer. Returns `false` at the end of the file.
    fn read_more(&mut self) -> Result<bool, Error> {
        if let Some(mut error) = self.failed.take() {
            // It was met when the beginning was read to recognise the encoding, and its place is behind the last whole line.
            if let Error::Data { offset, .. } = &mut error {
                *offset = self.offset;
            }
            return Err(error);
        }
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.filled, 0);
            self.filled -= self.start;
            self.start = 0;
        }
        if self.filled == self.buffer.len() {
            self.buffer.resize((self.filled * 2).max(Self::BUFFER_BYTES), 0);
        } else if self.buffer.len() > Self::KEPT_BYTES && self.filled < Self::BUFFER_BYTES {
            self.buffer.truncate(Self::BUFFER_BYTES);
            self.buffer.shrink_to_fit();
        }
        match self.input.read(&mut self.buffer[self.filled..]) {
            Ok(read) => {
                self.filled += read;
                Ok(read > 0)
            }
            Err(error) => Err(self.failed(error)),
        }
    }

    fn failed(&self, error: io::Error) -> Error {
        match Error::reading(&self.path, self.offset, error) {
            Error::Data { path, offset, reason } => {
                let name = self.compression.name();
                let reason = match self.compression {
                    Compression::None => reason,
                    _ if reason.contains("Dictionary mismatch") => {
                        "its Zstandard frames need a dictionary, which is not read: decompress it by zstd -d -D".to_owned()
                    }
                    _ => window_too_long(&reason, self.window_log).unwrap_or_else(|| {
                        format!("damaged or cut short as {name}, so what follows is not read: {reason}")
                    }),
                };
                Error::Data { path, offset, reason }
            }
            other => other,
        }
    }
}
