//! Cuts a file, compressed or not, into lines: the one way in which text formats find their records.

use std::io::{self, Read};

use cluster::BlobReader;
use memchr::memchr;
use operators::Reject;

use crate::compression::Compression;
use crate::{Error, Piece, encoding};

/// The longest line or document that is held in memory.
pub(crate) const MAX_BYTES: usize = 1 << 30;

/// The lines of a piece, in order. A line belongs to the piece in which its first byte lies.
///
/// A compressed file is one piece: the piece at its first byte gives every line, any other none.
/// Holds one line and at least 256 KiB; a line beyond [`MAX_BYTES`] is passed over without being held.
pub(crate) struct Lines {
    path: String,
    compression: Compression,
    input: Box<dyn Read + Send>,
    /// Why the file is not read at all.
    refused: Option<&'static str>,
    /// Of `buffer[start]` in the file, or in what it holds decompressed.
    offset: u64,
    /// No line that starts here or later is given.
    end: u64,
    buffer: Vec<u8>,
    /// `buffer[start..filled]` was read and is not passed yet; `line_bytes` of it are the line given last.
    start: usize,
    filled: usize,
    line_bytes: usize,
    line_offset: u64,
    /// How the line begins, if it is longer than is held.
    long_head: Option<Vec<u8>>,
    max_bytes: usize,
}

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// Of its first byte.
    pub offset: u64,
    /// With its newline, where it has one; without a byte order mark.
    pub bytes: &'a [u8],
    /// `false`: it is longer than is held, and `bytes` is how it begins.
    pub whole: bool,
}

impl Lines {
    const BUFFER_BYTES: usize = 1 << 18;
    /// Beyond this, the buffer is given back once the long line in it has been passed.
    const KEPT_BYTES: usize = 16 << 20;

    /// The lines that start in the piece.
    pub fn open(piece: &Piece) -> Result<Self, Error> {
        Self::open_to(piece, piece.end, MAX_BYTES)
    }

    /// The lines that start at or after the piece's start, up to the file's end.
    pub fn open_past(piece: &Piece) -> Result<Self, Error> {
        Self::open_to(piece, u64::MAX, MAX_BYTES)
    }

    fn open_to(piece: &Piece, end: u64, max_bytes: usize) -> Result<Self, Error> {
        let path = piece.blob.path().to_owned();
        let mut head = Vec::new();
        BlobReader::new(piece.blob.clone(), 0, 4)
            .read_to_end(&mut head)
            .map_err(|error| Error::reading(&path, 0, error))?;
        let compression = match head.as_slice() {
            [] => Compression::None, // an empty file has no lines, whatever its name
            head => Compression::of(&path, head),
        };
        let plain = compression == Compression::None;
        // A line may start at the piece's first byte only if a newline lies before it.
        let from = if plain { piece.start.saturating_sub(1) } else { 0 };
        let input = BlobReader::new(piece.blob.clone(), from, u64::MAX);
        let input = if plain { input.ahead_to(piece.end) } else { input };
        let input = compression.decode_file(&path, input)?;
        let mut lines = Lines {
            path,
            compression,
            input,
            refused: encoding::utf16(&head),
            offset: from,
            end: match (plain, piece.start) {
                (true, _) => end,
                (false, 0) => u64::MAX,
                (false, _) => 0,
            },
            buffer: Vec::new(),
            start: 0,
            filled: 0,
            line_bytes: 0,
            line_offset: 0,
            long_head: None,
            max_bytes,
        };
        if plain && piece.start > 0 {
            lines.pass_line()?;
        }
        Ok(lines)
    }

    /// How the file is compressed.
    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// The file's name for people.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The next line; `None` when no more start in the piece. Errors: as in [`Lines::advance`].
    pub fn next(&mut self) -> Result<Option<Line<'_>>, Error> {
        Ok(if self.advance()? { Some(self.line()) } else { None })
    }

    /// Goes on to the next line; `false` when no more start in the piece.
    ///
    /// Errors: the store's; [`Error::Data`] where compressed data is damaged or cut short, which takes
    /// the line that it cuts with it; the same for UTF-16, before the first line.
    pub fn advance(&mut self) -> Result<bool, Error> {
        if let Some(reason) = self.refused {
            return Err(Error::data(&self.path, 0, reason));
        }
        self.pass(self.line_bytes);
        self.line_bytes = 0;
        self.long_head = None;
        if self.offset >= self.end {
            return Ok(false);
        }
        let mut searched = 0;
        let (length, ended) = loop {
            let unread = &self.buffer[self.start..self.filled];
            if let Some(at) = memchr(b'\n', &unread[searched..]) {
                break (searched + at + 1, true);
            }
            searched = unread.len();
            if searched > self.max_bytes || !self.read_more()? {
                break (searched, false);
            }
        };
        self.line_offset = self.offset;
        if length <= self.max_bytes {
            self.line_bytes = length;
            return Ok(length > 0);
        }
        self.long_head = Some(self.buffer[self.start..][..Reject::HEAD_BYTES.min(length)].to_vec());
        self.pass(length);
        if !ended {
            self.pass_line()?;
        }
        Ok(true)
    }

    /// The line that [`Lines::advance`] went to.
    pub fn line(&self) -> Line<'_> {
        let bytes = match &self.long_head {
            Some(head) => head,
            None => &self.buffer[self.start..self.start + self.line_bytes],
        };
        let bytes = if self.line_offset == 0 { encoding::without_mark(bytes) } else { bytes };
        Line { offset: self.line_offset, bytes, whole: self.long_head.is_none() }
    }

    fn pass(&mut self, bytes: usize) {
        self.start += bytes;
        self.offset += bytes as u64;
    }

    /// Passes everything up to and with the next newline.
    fn pass_line(&mut self) -> Result<(), Error> {
        loop {
            let unread = &self.buffer[self.start..self.filled];
            match memchr(b'\n', unread) {
                Some(at) => {
                    self.pass(at + 1);
                    return Ok(());
                }
                None => self.pass(unread.len()),
            }
            if !self.read_more()? {
                return Ok(());
            }
        }
    }

    /// Reads on behind what is unread; `false` at the end of the file.
    fn read_more(&mut self) -> Result<bool, Error> {
        self.buffer.copy_within(self.start..self.filled, 0);
        self.filled -= self.start;
        self.start = 0;
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
                Error::Data { path, offset, reason: format!("damaged or cut short as {name}: {reason}") }
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MemoryBlob, pieces};

    #[test]
    fn a_line_that_is_too_long_is_passed_over_and_the_next_ones_are_right() {
        let long = "x".repeat(600_000);
        for (max_bytes, read_ahead_bytes) in [(10, 100), (300_000, 100_000), (599_999, 1 << 20)] {
            for (file, next) in [(format!("ab\n{long}\ncd"), 600_004), (format!("ab\n{long}"), 0)] {
                let blob = MemoryBlob::shared("/a", file.as_bytes(), read_ahead_bytes);
                let mut lines = Lines::open_to(&pieces(&blob, &[])[0], u64::MAX, max_bytes).unwrap();
                assert_eq!(lines.next().unwrap().unwrap(), Line { offset: 0, bytes: b"ab\n", whole: true });
                let head = &long.as_bytes()[..lines.line().bytes.len().max(80).min(max_bytes + 1)];
                let line = lines.next().unwrap().unwrap();
                assert_eq!((line.offset, line.whole), (3, false));
                assert!(head.starts_with(line.bytes) || line.bytes.starts_with(head));
                let line = lines.next().unwrap();
                assert_eq!(line.is_some(), next > 0);
                if let Some(line) = line {
                    assert_eq!(line, Line { offset: next, bytes: b"cd", whole: true });
                }
                assert!(lines.next().unwrap().is_none());
            }
        }
    }

    #[test]
    fn the_buffer_of_a_long_line_is_given_back() {
        let file = format!("{}\n{}", "x".repeat(40 << 20), "short\n".repeat(1 << 20));
        let blob = MemoryBlob::shared("/a", file.as_bytes(), 1 << 20);
        let mut lines = Lines::open(&pieces(&blob, &[])[0]).unwrap();
        assert_eq!(lines.next().unwrap().unwrap().bytes.len(), (40 << 20) + 1);
        while lines.advance().unwrap() {}
        assert_eq!(lines.offset, file.len() as u64);
        assert!(lines.buffer.capacity() <= Lines::KEPT_BYTES);
    }

    #[test]
    fn an_empty_file_has_no_lines_whatever_its_name() {
        for path in ["/a", "/a.gz", "/a.zst"] {
            let blob = MemoryBlob::shared(path, b"", 9);
            assert!(Lines::open(&pieces(&blob, &[])[0]).unwrap().next().unwrap().is_none());
        }
    }
}
