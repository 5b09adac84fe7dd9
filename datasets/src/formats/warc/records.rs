//! The records of a WARC file, for both the reader and the writer.

use operators::Reject;

use crate::parts::copy_writer::CopySource;
use crate::text::charset::Charset;
use crate::text::line_reader::{Extended, Lines};
use crate::{Error, Piece, Reading};

/// Length of the longest header.
const HEADER_BYTES: usize = 4 << 20;
/// Bytes behind each record.
const END: &[u8] = b"\r\n\r\n";

/// The header of a record.
pub(super) struct WarcHead<'h>(Vec<(&'h str, &'h str)>);

impl<'h> WarcHead<'h> {
    /// Reads a header: the line of the version, lines `Name: value`, and a blank one. What is no such line is passed over, and so is what
    /// continues a line on the next one.
    pub fn of(head: &'h [u8]) -> Self {
        let named = |line: &'h [u8]| {
            let line = str::from_utf8(line).ok().filter(|line| !line.starts_with([' ', '\t']))?;
            let (name, value) = line.split_once(':')?;
            Some((name.trim_end(), value.trim()))
        };
        WarcHead(head.split(|byte| *byte == b'\n').skip(1).filter_map(named).collect())
    }

    /// Returns the names of the headers.
    pub fn names(&self) -> impl Iterator<Item = &'h str> {
        self.0.iter().map(|(name, _)| *name)
    }

    /// Returns the value of the first header of a name, in upper or lower case.
    pub fn value(&self, name: &str) -> Option<&'h str> {
        self.0.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
    }
}

/// The records of a piece, in order. A record belongs to the piece in which it begins. Memory: one record.
pub(super) struct WarcRecords {
    pub lines: Lines,
    /// Offset of the first record that counts: those before belong to an earlier piece.
    first: u64,
    end: u64,
    /// Length of the header of the current record.
    body: usize,
    /// Whether the current line of `lines` begins a record that was not yet returned.
    opened: bool,
    /// The fault of the current record.
    fault: Option<WarcFault>,
}

/// A record that is not read: its place, its first bytes, and the reason.
struct WarcFault {
    offset: u64,
    head: Vec<u8>,
    reason: String,
}

/// A record or a fault of a piece.
pub(super) struct WarcRecord<'a> {
    /// Offset of its first byte.
    pub offset: u64,
    pub bytes: &'a [u8],
    /// Offset in `bytes` of what stands behind the header.
    pub body: usize,
    /// Reason why the record is not read. Then `bytes` is its beginning.
    pub fault: Option<&'a str>,
}

impl WarcRecords {
    /// Goes to the first record of the piece. Whether a line begins a record is known only from the lengths of all records before, so a thread
    /// finds the places for all pieces.
    pub fn open(piece: &Piece, reading: &Reading) -> Result<Self, Error> {
        let lines = match piece.start {
            0 => Lines::open(piece, reading)?,
            start => {
                let starts = &piece.shared.starts;
                let shared = piece.shared.without_starts();
                let whole = Piece { start: 0, end: u64::MAX, shared, ..piece.clone() };
                let like = reading.clone();
                starts.begin(&piece.blob, move |each: &dyn Fn(u64) -> bool| {
                    let mut records = WarcRecords::open(&whole, &like)?;
                    while records.next()?.is_some_and(|record| each(record.offset)) {}
                    Ok(())
                });
                let start = starts.before(piece.blob.path(), start)?;
                Lines::open_from(start, piece, reading)?
            }
        };
        let end = lines.end;
        let mut lines = lines.past_end();
        // Each record has an encoding of its own.
        lines.charset = Charset::of_values(None);
        Ok(WarcRecords { lines, first: piece.start, end, body: 0, opened: false, fault: None })
    }

    /// Advances to the next record or fault, and returns it. Errors: those of [`Lines::advance`].
    pub fn next(&mut self) -> Result<Option<WarcRecord<'_>>, Error> {
        loop {
            self.fault = None;
            let before = if self.opened { self.lines.line().offset } else { self.lines.next_offset() };
            match self.advance() {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                // The record that is lost with the damage belongs to another piece, whose reader reports it.
                Err(error) if error.is_data() && !(self.first..self.end).contains(&before) => {
                    return Ok(None);
                }
                Err(error) => return Err(error),
            }
            let offset = self.fault.as_ref().map_or(self.lines.line().offset, |fault| fault.offset);
            if offset >= self.end {
                return Ok(None);
            }
            if offset >= self.first {
                break;
            }
        }
        let line = self.lines.line();
        let body = self.body;
        Ok(Some(match &self.fault {
            Some(WarcFault { offset, head, reason }) => {
                WarcRecord { offset: *offset, bytes: head, body: 0, fault: Some(reason) }
            }
            None => WarcRecord { offset: line.offset, bytes: line.bytes, body, fault: None },
        }))
    }

    /// Advances to the next record or fault. Returns `false` at the end of the file.
    fn advance(&mut self) -> Result<bool, Error> {
        if !self.opened && !self.lines.advance_to_text()? {
            return Ok(false);
        }
        self.opened = false;
        if !begins(self.lines.line().bytes) {
            self.fault = Some(self.fault("no record begins here".to_owned()));
            self.find_next()?;
            return Ok(true);
        }
        let first = self.lines.line().bytes.len();
        if let Err(reason) = self.find_end()? {
            self.fault = Some(self.fault(reason));
            // Its length may be wrong, and must not cost the records behind it.
            self.lines.cut(first);
            self.find_next()?;
        }
        Ok(true)
    }

    fn fault(&self, reason: String) -> WarcFault {
        let line = self.lines.line();
        WarcFault {
            offset: line.offset,
            head: line.bytes[..line.bytes.len().min(Reject::HEAD_BYTES)].to_vec(),
            reason,
        }
    }

    /// Passes lines up to the next that begins a record.
    fn find_next(&mut self) -> Result<(), Error> {
        while !self.opened && self.lines.advance()? {
            let line = self.lines.line();
            self.opened = begins(line.bytes);
            // A record that is cut short ends anywhere in a line.
            if !self.opened
                && line.whole
                && let Some(at) = ends_in_version(line.bytes)
            {
                self.lines.cut(at);
            }
        }
        Ok(())
    }

    /// Joins the other lines of the record to its first. Returns the reason if it cannot be read.
    fn find_end(&mut self) -> Result<Result<(), String>, Error> {
        let wrong = |reason: &str| Ok(Err(reason.to_owned()));
        loop {
            let before = self.lines.line().bytes.len();
            match self.lines.extend()? {
                Extended::Longer => {
                    let bytes = self.lines.line().bytes;
                    if bytes[before..].trim_ascii().is_empty() {
                        break;
                    }
                    // A header without an end must not be read again from each line that could begin one.
                    if begins(&bytes[before..]) || bytes.len() > HEADER_BYTES {
                        return wrong("its header has no end");
                    }
                }
                Extended::AtEnd => {
                    self.lines.damage()?;
                    return wrong("cut short in its header");
                }
                Extended::TooLong => return wrong("its header has no end"),
            }
        }
        let bytes = self.lines.line().bytes;
        self.body = bytes.len();
        let length = match WarcHead::of(bytes).value("Content-Length") {
            None => return wrong("its header has no Content-Length"),
            Some(value) => value.parse::<u64>(),
        };
        let Ok(length) = length else { return wrong("its Content-Length is no number") };
        let whole = (self.body as u64).saturating_add(length);
        let Some(end) = usize::try_from(whole).ok().filter(|end| *end <= self.lines.max_bytes()) else {
            return Ok(Err(self.lines.too_long()));
        };
        // One line more tells whether the record ends where it says.
        while self.lines.line().bytes.len() <= end {
            match self.lines.extend()? {
                Extended::Longer => {}
                Extended::AtEnd => {
                    self.lines.damage()?;
                    break;
                }
                Extended::TooLong => return Ok(Err(self.lines.too_long())),
            }
        }
        let bytes = self.lines.line().bytes;
        let Some(behind) = bytes.get(end..) else {
            let held = bytes.len() - self.body;
            return Ok(Err(format!("cut short: {held} of {length} bytes are there")));
        };
        if !behind.trim_ascii_start().is_empty() && !begins(behind) {
            return wrong("its Content-Length is wrong: it does not end there");
        }
        self.lines.cut(end);
        Ok(Ok(()))
    }
}

/// Returns the place of a version at the end of a line, which begins a record.
fn ends_in_version(line: &[u8]) -> Option<usize> {
    let line = line.trim_ascii_end();
    let at = line.len().checked_sub(b"WARC/1.0".len())?;
    (begins(&line[at..]) && at > 0).then_some(at)
}

/// Whether a line begins a record.
fn begins(line: &[u8]) -> bool {
    line.strip_prefix(b"WARC/").is_some_and(|version| version.first().is_some_and(u8::is_ascii_digit))
}

impl CopySource for WarcRecords {
    fn lines(&self) -> &Lines {
        &self.lines
    }

    fn next_record(&mut self) -> Result<Option<bool>, Error> {
        Ok(self.next()?.map(|record| record.fault.is_none()))
    }

    fn record(&self) -> [&[u8]; 2] {
        [self.lines.line().bytes, END]
    }

    fn rejected(&self) -> Option<[&[u8]; 2]> {
        self.fault.is_none().then(|| self.record())
    }

    fn are_compressed_apart(&self) -> bool {
        true
    }

    fn shortened(&mut self, _cuts: &[std::ops::Range<usize>]) -> Result<Vec<u8>, Error> {
        Err(Error::changed(&self.lines.path))
    }
}
