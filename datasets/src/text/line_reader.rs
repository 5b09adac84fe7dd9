//! Cuts a file, compressed or not, into lines: the one way in which text formats find their records.

use std::io::{self, Read};
use std::sync::Arc;

use cluster::BlobReader;
use operators::Reject;

use super::compression::{Compression, window_too_long};
use super::encoding::Charset;
use crate::{Error, Piece, Reading};

/// The lines of a piece, in order. A line belongs to the piece in which its first byte lies.
///
/// A compressed file is one piece: the piece at its first byte gives every line, any other none.
/// Holds one record (a line, or those that [`Lines::extend`] joined to it) and at least 256 KiB; a line beyond
/// [`Reading::max_record_bytes`] is passed over without being held.
pub(crate) struct Lines {
    path: String,
    compression: Compression,
    charset: Charset,
    input: Box<dyn Read + Send>,
    /// Met while reading ahead of the lines that were given.
    failed: Option<Error>,
    /// Of `buffer[start]` in the file, or in what it holds decompressed.
    offset: u64,
    /// No line that starts here or later is given.
    end: u64,
    buffer: Vec<u8>,
    /// `buffer[start..filled]` was read and is not passed yet; `record_bytes` of it are the record given last.
    start: usize,
    filled: usize,
    record_bytes: usize,
    /// How the line begins, if it is longer than is held.
    long_head: Option<Vec<u8>>,
    line_offset: u64,
    max_bytes: usize,
    window_log: u32,
}

/// One line, or the lines of one record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// Of its first byte.
    pub offset: u64,
    /// With its newline, where it has one; without a byte order mark.
    pub bytes: &'a [u8],
    /// `false`: it is longer than is held, and `bytes` is how it begins.
    pub whole: bool,
}

/// What became of [`Lines::extend`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Extended {
    /// The record has one more line.
    Longer,
    /// There is no more line in the file; where it is damaged, [`Lines::advance`] will say so.
    AtEnd,
    /// With one more line it would be longer than a record may be.
    TooLong,
}

impl Lines {
    const BUFFER_BYTES: usize = 1 << 18;
    /// Beyond this, the buffer is given back once the long line in it has been passed.
    const KEPT_BYTES: usize = 16 << 20;

    /// The lines that start in the piece.
    pub fn open(piece: &Piece, reading: &Reading) -> Result<Self, Error> {
        Self::open_to(piece, piece.end, reading)
    }

    /// The lines that start at or after the piece's start, up to the file's end.
    pub fn open_past(piece: &Piece, reading: &Reading) -> Result<Self, Error> {
        Self::open_to(piece, u64::MAX, reading)
    }

    fn open_to(piece: &Piece, end: u64, reading: &Reading) -> Result<Self, Error> {
        let path = piece.blob.path().to_owned();
        let mut head = vec![0; Charset::HEAD_BYTES.min(piece.blob.bytes() as usize)];
        let length = piece.blob.read_full_at(0, &mut head)?;
        let head = &head[..length];
        let compression = match head {
            [] => Compression::None, // an empty file has no lines, whatever its name
            head => Compression::of(&path, head),
        };
        let plain = compression == Compression::None;
        let charset = Charset::of(head, length as u64 == piece.blob.bytes(), reading.encoding);
        // A line may start at the piece's first byte only if a newline lies before it.
        let unit = charset.unit() as u64;
        let from = if plain && piece.start > 0 { (piece.start - 1) / unit * unit } else { 0 };
        let input = BlobReader::new(Arc::clone(&piece.blob), from, u64::MAX);
        let input = if plain { input.ahead_to(piece.end) } else { input };
        let input = compression.decode_file(&path, input, reading)?;
        let mut lines = Lines {
            path,
            compression,
            charset,
            input,
            failed: None,
            offset: from,
            end: match (plain, piece.start) {
                (true, _) => end,
                (false, 0) => u64::MAX,
                (false, _) => 0,
            },
            buffer: Vec::new(),
            start: 0,
            filled: 0,
            record_bytes: 0,
            long_head: None,
            line_offset: 0,
            max_bytes: reading.max_record_bytes,
            window_log: reading.window_log(),
        };
        if !plain && piece.start == 0 {
            lines.recognise(reading);
        }
        if from > 0 || plain && piece.start > 0 {
            lines.pass_line()?;
        }
        Ok(lines)
    }

    /// Finds out the encoding of what the file holds decompressed.
    fn recognise(&mut self, reading: &Reading) {
        let mut more = true;
        while more && self.filled < Charset::HEAD_BYTES {
            // What lies before the damage is read first.
            more = self.read_more().unwrap_or_else(|error| {
                self.failed = Some(error);
                false
            });
        }
        let ended = !more && self.failed.is_none();
        self.charset = Charset::of(&self.buffer[..self.filled], ended, reading.encoding);
    }

    /// How the file is compressed.
    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// What its text is encoded in.
    pub fn charset(&self) -> Charset {
        self.charset
    }

    /// The file's name for people.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Why a line that is not whole is rejected.
    pub fn too_long(&self) -> String {
        format!("longer than the {} bytes that a record may have", self.max_bytes)
    }

    /// The next line; `None` when no more start in the piece. Errors: as in [`Lines::advance`].
    #[cfg(test)]
    pub fn next(&mut self) -> Result<Option<Line<'_>>, Error> {
        Ok(if self.advance()? { Some(self.line()) } else { None })
    }

    /// Goes on to the next line that is not blank; `false` when no more start in the piece.
    ///
    /// Errors: as in [`Lines::advance`].
    pub fn advance_to_text(&mut self) -> Result<bool, Error> {
        while self.advance()? {
            if !self.charset.is_blank(self.line().bytes) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Goes on to the next line; `false` when no more start in the piece.
    ///
    /// Errors: the store's; [`Error::Data`] where compressed data is damaged or cut short, which takes
    /// the line that it cuts with it.
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

    /// Joins the next line to the record, wherever in the file it starts.
    ///
    /// Errors: the store's. What it reads is held until the record has been passed.
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

    /// The damage of which [`Lines::extend`] knows, if there is any.
    pub fn damage(&mut self) -> Result<(), Error> {
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Makes the record shorter, so that [`Lines::advance`] goes on behind these bytes (without a byte order mark).
    pub fn cut(&mut self, bytes: usize) {
        self.record_bytes = bytes + self.mark_bytes();
    }

    /// The line that [`Lines::advance`] went to, with what was joined to it.
    pub fn line(&self) -> Line<'_> {
        let bytes = match &self.long_head {
            Some(head) => head,
            None => &self.buffer[self.start..self.start + self.record_bytes],
        };
        let mark_bytes = self.mark_bytes();
        let bytes = bytes.get(mark_bytes..).unwrap_or_default();
        Line { offset: self.line_offset + mark_bytes as u64, bytes, whole: self.long_head.is_none() }
    }

    /// Of the record, which has one only at the beginning of the file.
    fn mark_bytes(&self) -> usize {
        if self.line_offset == 0 { self.charset.mark_bytes() } else { 0 }
    }

    /// How many lines end before `offset`, of those that are not passed yet; passes them. Behind damage, before that.
    fn pass_lines(&mut self, offset: u64) -> Result<u64, Error> {
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

    /// How long the record is with the next line, and whether that ends with a newline. Looks no further than a record
    /// may be long.
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

    /// Passes everything up to and with the next newline.
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

    /// Reads on behind what is unread; `false` at the end of the file.
    fn read_more(&mut self) -> Result<bool, Error> {
        if let Some(error) = self.failed.take() {
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
                let reason = window_too_long(&reason, self.window_log)
                    .unwrap_or_else(|| format!("damaged or cut short as {name}: {reason}"));
                Error::Data { path, offset, reason }
            }
            other => other,
        }
    }
}

/// Says on which line of a file an offset lies. Cost: one reading of the file up to the last offset.
pub struct LineNumbers {
    lines: Lines,
    number: u64,
}

impl LineNumbers {
    /// Opens a whole file.
    pub(crate) fn open(file: &Piece, reading: &Reading) -> Result<Self, Error> {
        Ok(LineNumbers { lines: Lines::open(file, reading)?, number: 1 })
    }

    /// The line of `offset`, counted from 1; the offsets must not fall. Behind damage, the line of the damage.
    ///
    /// Errors: the store's.
    pub fn of(&mut self, offset: u64) -> Result<u64, Error> {
        self.number += self.lines.pass_lines(offset)?;
        Ok(self.number)
    }
}

/// A line's place as the id of a document without one: `path:byte`, put into `place`.
pub(crate) fn place<'p>(path: &str, offset: u64, place: &'p mut String) -> &'p str {
    place.clear();
    place.push_str(path);
    place.push(':');
    place.push_str(&offset.to_string());
    place
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MemoryBlob, pieces};

    fn at_most(max_record_bytes: usize) -> Reading {
        Reading { max_record_bytes, ..Reading::default() }
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over_and_the_next_ones_are_right() {
        let long = "x".repeat(600_000);
        for (max_bytes, read_ahead_bytes) in [(10, 100), (300_000, 100_000), (599_999, 1 << 20)] {
            for (file, next) in [(format!("ab\n{long}\ncd"), 600_004), (format!("ab\n{long}"), 0)] {
                let blob = MemoryBlob::shared("/a", file.as_bytes(), read_ahead_bytes);
                let mut lines = Lines::open(&pieces(&blob, &[])[0], &at_most(max_bytes)).unwrap();
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
        let mut lines = Lines::open(&pieces(&blob, &[])[0], &Reading::default()).unwrap();
        assert_eq!(lines.next().unwrap().unwrap().bytes.len(), (40 << 20) + 1);
        while lines.advance().unwrap() {}
        assert_eq!(lines.offset, file.len() as u64);
        assert!(lines.buffer.capacity() <= Lines::KEPT_BYTES);
    }

    #[test]
    fn an_empty_file_has_no_lines_whatever_its_name() {
        for path in ["/a", "/a.gz", "/a.zst"] {
            let blob = MemoryBlob::shared(path, b"", 9);
            assert!(
                Lines::open(&pieces(&blob, &[])[0], &Reading::default()).unwrap().next().unwrap().is_none()
            );
        }
    }

    #[test]
    fn lines_can_be_joined_and_parted_again() {
        let blob = MemoryBlob::shared("/a", "\u{feff}ab\ncd\nef\ng".as_bytes(), 3);
        let mut lines = Lines::open(&pieces(&blob, &[])[0], &at_most(12)).unwrap();
        assert_eq!(lines.next().unwrap().unwrap().bytes, b"ab\n");
        assert_eq!(lines.extend().unwrap(), Extended::Longer);
        assert_eq!(lines.extend().unwrap(), Extended::Longer);
        assert_eq!(lines.line().bytes, b"ab\ncd\nef\n");
        assert_eq!(lines.extend().unwrap(), Extended::TooLong);
        lines.cut(3);
        assert_eq!(lines.line().bytes, b"ab\n");
        assert_eq!(lines.next().unwrap().unwrap(), Line { offset: 6, bytes: b"cd\n", whole: true });
        while lines.extend().unwrap() == Extended::Longer {}
        assert_eq!(lines.line().bytes, b"cd\nef\ng");
        assert!(lines.next().unwrap().is_none());
    }

    #[test]
    fn line_numbers_are_those_of_the_offsets_in_every_encoding() {
        for (unit, newline) in [(1, &b"\n"[..]), (2, b"\n\0")] {
            let mark: &[u8] = if unit == 2 { b"\xff\xfe" } else { b"" };
            let line = [&b"abcdef"[..], newline].concat();
            let file = [mark, &line.repeat(300)].concat();
            for read_ahead_bytes in [1, 7, 1000] {
                let blob = MemoryBlob::shared("/a", &file, read_ahead_bytes);
                let mut numbers = LineNumbers::open(&pieces(&blob, &[])[0], &Reading::default()).unwrap();
                let start = |number: u64| mark.len() as u64 + line.len() as u64 * (number - 1);
                let offsets = [0, start(2) - 1, start(2), start(2), start(200) + 1, start(300), 1 << 40];
                let lines = offsets.map(|offset| numbers.of(offset).unwrap());
                assert_eq!(lines, [1, 1, 2, 2, 200, 300, 301]);
            }
        }
    }
}
