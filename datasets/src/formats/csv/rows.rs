//! The records of a CSV file, for both the reader and the writer.

use std::borrow::Cow;
use std::ops::Range;

use super::dialect::{Dialect, masked};
use super::scan::{End, MAX_FIELDS, Scan, without_newline};
use crate::text::charset::{Charset, Illegal};
use crate::text::line_reader::{Extended, Lines};
use crate::{BadText, Error, MissingField, Piece, Reading};

/// Layout of the records of a format in a file.
#[derive(Clone, Copy)]
pub(super) struct CsvLayout {
    /// Whether a record is one line.
    pub one_line: bool,
    /// Delimiter, if the format has one of its own.
    pub delimiter: Option<u8>,
}

impl CsvLayout {
    /// Records between commas, or what else the header is written with.
    pub const COMMAS: CsvLayout = CsvLayout { one_line: false, delimiter: None };
    /// Records between tabs.
    pub const TABS: CsvLayout = CsvLayout { one_line: false, delimiter: Some(b'\t') };
    /// Posts, each on a line.
    pub const POSTS: CsvLayout = CsvLayout { one_line: true, delimiter: Some(b',') };

    /// Returns what to do about a record that is none in this layout, for the end of the reason.
    fn advice(self) -> &'static str {
        if self.one_line { " (--format csv reads records of several lines)" } else { "" }
    }
}

/// The names of the fields of a file.
pub(super) struct CsvHeader {
    /// Bytes before the first record that is a document, with a newline, and with the byte order mark of UTF-8 where the file has one.
    pub bytes: Vec<u8>,
    pub names: Vec<String>,
    /// Whether the file names its fields.
    pub is_named: bool,
    /// Index of the field of the text.
    pub text: usize,
    /// Index of the field of the id, if there is one, and whether a record must have an id.
    pub id: Option<(usize, bool)>,
    /// Index of the field of the priority, if it is asked for.
    pub priority: Option<usize>,
    /// Offset behind the header.
    end: u64,
}

/// The records of a piece, in order. A record belongs to the piece in which its first line begins.
pub(super) struct CsvRows {
    /// The lines of the file. The current one is the current record.
    pub lines: Lines,
    /// Header of the file. `None` if the file is empty.
    pub header: Option<CsvHeader>,
    /// Offset of the first record that counts: those before are the header, or belong to an earlier piece.
    first: u64,
    scan: Scan,
    /// The current record as ASCII, where the encoding is UTF-16 or has later bytes that look like delimiters.
    ascii: Vec<u8>,
    layout: CsvLayout,
    /// Whether the last record was too long to be held, and ends in a quoted field that continues.
    too_long: bool,
}

impl CsvRows {
    /// Reads the header, and goes to the beginning of the piece.
    ///
    /// Errors: those of the store; [`Error::Field`] where the header lacks a field; [`Error::Data`] where the
    /// header is no text.
    pub fn open(piece: &Piece, reading: &Reading, layout: CsvLayout) -> Result<Self, Error> {
        let Some((header, before)) = CsvRows::header(piece, reading, layout)? else {
            let lines = Lines::open(piece, reading)?;
            return Ok(CsvRows::unread(lines, layout, Dialect::of(&reading.csv, layout.delimiter)));
        };
        let dialect = header.dialect();
        let header = header.into_header(reading, &before)?;
        let one_line = layout.one_line;
        let lines = match one_line || piece.start == 0 {
            true => Lines::open(piece, reading)?,
            false => {
                let starts = &piece.shared.starts;
                let shared = piece.shared.without_starts();
                let whole = Piece { start: 0, end: u64::MAX, shared, ..piece.clone() };
                let like = reading.clone();
                starts.begin(&piece.blob, move |each: &dyn Fn(u64) -> bool| {
                    CsvRows::open(&whole, &like, layout)?.scan_all(each)
                });
                let start = starts.before(piece.blob.path(), piece.start)?;
                Lines::open_from(start, piece, reading)?
            }
        };
        let mut rows = CsvRows::unread(lines, layout, dialect);
        rows.first = if one_line { header.end } else { header.end.max(piece.start) };
        rows.header = Some(header);
        Ok(rows)
    }

    /// Reads the header: its record, and the line before it that names the delimiter for spreadsheets, as in `sep=;`. Returns `None` for
    /// a file without a record.
    ///
    /// The delimiter is the one that the user gives, else the one that this line names, else that of the format, else the one by which the
    /// header has the field of the text. If there is none, the delimiter that gives most fields is taken, to tell the user which fields
    /// there are.
    fn header(
        piece: &Piece,
        reading: &Reading,
        layout: CsvLayout,
    ) -> Result<Option<(CsvRows, Vec<u8>)>, Error> {
        let given = Dialect::of(&reading.csv, layout.delimiter);
        // Opens the file at its line of this number, which is no longer than all before it and one byte.
        let line = |dialect: Dialect, end: u64, lines: usize| -> Result<Option<CsvRows>, Error> {
            let whole = Piece { start: 0, end, ..piece.clone() };
            let mut rows = CsvRows::unread(Lines::open(&whole, reading)?, layout, dialect);
            for _ in 0..=lines {
                if !rows.lines.advance_to_text()? {
                    return Ok(None);
                }
            }
            Ok(Some(rows))
        };
        let Some(first) = line(given, 1, 0)? else { return Ok(None) };
        let charset = first.lines.charset;
        let (bytes, offset) = (first.lines.line().bytes, first.lines.line().offset);
        let named = str::from_utf8(&charset.ascii(bytes)).ok().and_then(Dialect::named);
        let (before, end, lines) = match named {
            // The offset of a line may be before or behind the mark, and a little more than the line does no harm.
            Some(_) => (bytes.to_vec(), offset + (bytes.len() + charset.mark_bytes()) as u64 + 1, 1),
            None => (Vec::new(), 1, 0),
        };
        let dialect = match named.filter(|_| reading.csv.delimiter.is_none()) {
            Some(delimiter) => Dialect { delimiter, ..given },
            None => given,
        };
        let is_open = named.is_none()
            && reading.csv.delimiter.is_none()
            && layout.delimiter.is_none()
            && !reading.csv.no_header;
        let mut best: Option<CsvRows> = None;
        let mut refusal = None;
        // The file is opened again for another delimiter alone, and for the line behind that which names one.
        let mut opened = named.is_none().then_some(first);
        for dialect in dialect.others().take(if is_open { usize::MAX } else { 1 }) {
            let rows = opened.take().map_or_else(|| line(dialect, end, lines), |first| Ok(Some(first)))?;
            let Some(mut rows) = rows else { return Ok(None) };
            if let Err(reason) = rows.row(None)? {
                refusal.get_or_insert(Error::data(&rows.lines.path, 0, format!("the header: {reason}")));
                continue;
            }
            let mut buffer = Vec::new();
            let mut fields = 0..rows.scan.fields.len();
            let is_text = |field| {
                let name = rows.value(field, BadText::Reject, &mut buffer);
                name.is_ok_and(|(name, _)| name == reading.text())
            };
            if fields.any(is_text) {
                return Ok(Some((rows, before)));
            }
            if best.as_ref().is_none_or(|best| best.scan.count < rows.scan.count) {
                best = Some(rows);
            }
        }
        match (best, refusal) {
            // Any delimiter that does not occur gives one field.
            (Some(best), refusal) if refusal.is_none() || best.scan.count > 1 => Ok(Some((best, before))),
            (_, Some(refusal)) => Err(refusal),
            (_, None) => Ok(None),
        }
    }

    /// Calls `each` with the offset of every record of a whole file, until it returns `false`.
    fn scan_all(mut self, each: &dyn Fn(u64) -> bool) -> Result<(), Error> {
        while self.advance()?.is_some() && each(self.lines.line().offset) {}
        Ok(())
    }

    fn unread(lines: Lines, layout: CsvLayout, dialect: Dialect) -> Self {
        let scan = Scan::new(dialect);
        let ascii = Vec::new();
        CsvRows { lines, header: None, first: 0, scan, ascii, layout, too_long: false }
    }

    /// Returns the characters that separate the fields.
    pub fn dialect(&self) -> Dialect {
        self.scan.dialect
    }

    /// Converts the record that was read to the header. `before`: the line before it that names the delimiter.
    fn into_header(self, reading: &Reading, before: &[u8]) -> Result<CsvHeader, Error> {
        let path = self.lines.path.clone();
        let mut buffer = Vec::new();
        let mut names = Vec::new();
        for field in 0..self.scan.fields.len() {
            if reading.csv.no_header {
                names.push(format!("_c{field}"));
                continue;
            }
            let name = self.value(field, BadText::Reject, &mut buffer);
            let name = name.map_err(|illegal| {
                Error::data(&path, illegal.offset as u64, format!("the header: {}", illegal.reason))
            })?;
            names.push(name.0.into_owned());
        }
        let find = |field: &str| {
            names.iter().position(|name| name == field).ok_or_else(|| {
                let (path, field, found) = (path.clone(), field.to_owned(), names.clone());
                Error::Field(MissingField { path, field, found })
            })
        };
        let text = find(reading.text())?;
        let id = match reading.id() {
            (id, true) => Some((find(id)?, true)),
            (id, false) => find(id).ok().map(|id| (id, false)),
        };
        let priority = reading.priority.as_deref().map(find).transpose()?;
        let charset = self.lines.charset;
        let line = self.lines.line();
        let mark: &[u8] = if charset.mark_bytes() == 3 { b"\xef\xbb\xbf" } else { b"" };
        let is_named = !reading.csv.no_header;
        let (bytes, end) = match is_named {
            true => {
                let bytes = [mark, before, line.bytes, charset.missing_newline(line.bytes)].concat();
                (bytes, line.offset + line.bytes.len() as u64)
            }
            false => ([mark, before].concat(), line.offset),
        };
        Ok(CsvHeader { bytes, names, is_named, text, id, priority, end })
    }

    /// Advances to the next record. Returns why it cannot be read, if so, and `None` when no more records
    /// start in the piece.
    ///
    /// A record of several lines must be faultless. Otherwise its first line is a bad record by itself, and
    /// the next record begins on the next line. So a quote too many or too few costs one line, and not
    /// everything up to the next quote. A record that is too long to be held is skipped to its end.
    ///
    /// Errors: those of [`Lines::advance`].
    pub fn advance(&mut self) -> Result<Option<Result<(), String>>, Error> {
        match self.next_row() {
            // The line that is lost with the damage belongs to an earlier piece, whose reader reports it.
            Err(error) if error.is_data() && self.lines.next_offset() < self.first => Ok(None),
            row => row,
        }
    }

    fn next_row(&mut self) -> Result<Option<Result<(), String>>, Error> {
        let Some(CsvHeader { names, end, .. }) = &self.header else { return Ok(None) };
        let names = names.len();
        let end = *end;
        loop {
            if std::mem::take(&mut self.too_long) {
                self.pass_quoted()?;
            }
            if !self.lines.advance_to_text()? {
                return Ok(None);
            }
            let offset = self.lines.line().offset;
            if offset >= end {
                let row = self.row(Some(names))?;
                if offset >= self.first {
                    return Ok(Some(row));
                }
            }
        }
    }

    /// Finds the fields of the record that begins with the current line, and joins its other lines to it.
    fn row(&mut self, names: Option<usize>) -> Result<Result<(), String>, Error> {
        if !self.lines.line().whole {
            return Ok(Err(self.lines.too_long()));
        }
        let first_bytes = self.lines.line().bytes.len();
        self.ascii.clear();
        let mut end = self.scan(true);
        while end == End::Open && !self.layout.one_line && names.is_none_or(|names| self.scan.count < names) {
            match self.lines.extend()? {
                Extended::Longer => {}
                Extended::TooLong if !self.holds_records(names) => {
                    self.too_long = true;
                    return Ok(Err(self.lines.too_long()));
                }
                Extended::TooLong | Extended::AtEnd => break,
            }
            end = self.scan(false);
        }
        let fields = self.scan.count;
        let one = self.lines.line().bytes.len() == first_bytes;
        let reason = match (end, names) {
            (End::Record, None) if fields > MAX_FIELDS => {
                format!("{fields} fields, where at most {MAX_FIELDS} are read")
            }
            (End::Record, None) => return Ok(Ok(())),
            (End::Record, Some(names)) if fields == names => return Ok(Ok(())),
            (End::Record, Some(names)) if one => {
                format!("not as many fields as the header: {fields} instead of {names}{}", self.layout.advice())
            }
            (End::Faulty, _) if one => {
                "neither a delimiter nor the end of the line behind a closing quote (--escape names a character before quotes)".to_owned()
            }
            _ if self.layout.one_line => {
                format!("a quoted field does not end on its line{}", self.layout.advice())
            }
            _ => {
                "a quoted field does not end, or not in a record with as many fields as the header".to_owned()
            }
        };
        self.lines.cut(first_bytes);
        Ok(Err(reason))
    }

    /// Returns whether most lines of a record that is too long are records by themselves. Then its quote was
    /// one too many.
    fn holds_records(&self, names: Option<usize>) -> bool {
        let text = self.lines.charset.ascii(self.lines.line().bytes);
        let mut scan = Scan::new(self.scan.dialect);
        let mut lines = 0;
        let mut records = 0;
        for line in text.split_inclusive(|&byte| byte == b'\n') {
            lines += 1;
            records += usize::from(scan.line(line) == End::Record && Some(scan.count) == names);
        }
        records > lines / 2
    }

    /// Skips the lines on which a quoted field continues, including the one on which it ends.
    fn pass_quoted(&mut self) -> Result<(), Error> {
        let mut end = End::Open;
        while end == End::Open && self.lines.advance()? {
            let text = self.lines.charset.ascii(self.lines.line().bytes).into_owned();
            end = self.scan.within_quotes(&text);
        }
        Ok(())
    }

    fn scan(&mut self, first: bool) -> End {
        let line = self.lines.line().bytes;
        let charset = self.lines.charset;
        let text = if charset.unit() == 1 && !self.scan.dialect.has_later_bytes() {
            line
        } else if charset.unit() == 1 {
            let more = &line[self.ascii.len()..];
            match charset.of_one(more).encoding().and_then(|encoding| masked(encoding, more)) {
                Some(more) => self.ascii.extend_from_slice(&more),
                None => self.ascii.extend_from_slice(more),
            }
            &self.ascii
        } else {
            let more = charset.ascii(&line[charset.unit() * self.ascii.len()..]);
            self.ascii.extend_from_slice(&more);
            &self.ascii
        };
        if first { self.scan.line(text) } else { self.scan.more(text) }
    }

    /// Returns the bytes of the current record that are a field, with its quotes.
    pub fn place(&self, field: usize) -> Range<usize> {
        let Range { start, end } = self.scan.fields.get(field).cloned().unwrap_or_default();
        // Half a unit at the end of a file of UTF-16 counts as one.
        let within = |unit: usize| (self.lines.charset.unit() * unit).min(self.lines.line().bytes.len());
        within(start)..within(end)
    }

    /// Returns the value of a field of the current record, and whether illegal bytes in it were replaced. An
    /// error has the offset of the illegal bytes in the record.
    pub fn value<'b>(
        &'b self,
        field: usize,
        bad: BadText,
        buffer: &'b mut Vec<u8>,
    ) -> Result<(Cow<'b, str>, bool), Illegal> {
        let charset = self.lines.charset.of_one(self.lines.line().bytes);
        let Range { start, end } = self.place(field);
        let bytes = &self.lines.line().bytes[start..end];
        let decoded = charset.decode(bytes, bad, buffer);
        let (text, replaced) =
            decoded.map_err(|illegal| Illegal { offset: start + illegal.offset, ..illegal })?;
        let value = self.dialect().value(text);
        Ok((value.unwrap_or(Cow::Borrowed(text)), replaced))
    }
}

/// Splits a record from its newline. A missing newline is added.
pub(super) fn split_newline(charset: Charset, bytes: &[u8]) -> [&[u8]; 2] {
    let length = charset.unit() * without_newline(&charset.ascii(bytes));
    let (record, newline) = bytes.split_at(length.min(bytes.len()));
    let missing = charset.missing_newline(bytes);
    [record, if missing.is_empty() { newline } else { missing }]
}
