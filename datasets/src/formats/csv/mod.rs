//! This format reads CSV: fields between commas, tabs or other characters, named by the first record. `weibo-csv` is CSV with the columns
//! of a Weibo corpus. `dialect.rs` has the characters, `scan.rs` finds the ends of fields and records, `rows.rs` reads records.

mod dialect;
mod rows;
mod scan;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ops::Range;

use operators::{DocBatch, Priority};

pub use self::dialect::{CsvChar, CsvReading};
use self::rows::{CsvLayout, CsvRows, split_newline};
use self::scan::{End, Scan};
use crate::parts::copy_writer::{CopySource, CopyWriter};
use crate::parts::cut_text::without;
use crate::parts::decision_fields::{DecisionValue, DecisionValues, free_names};
use crate::text::charset;
use crate::text::compression::{Compression, has_suffix};
use crate::text::line_numbers::{LineNumbers, place};
use crate::text::line_reader::Lines;
use crate::{
    BadText, Cuts, Error, Format, Parts, Piece, Reader, Reading, RecognisedEncoding, Writer, no_number,
};

/// CSV by RFC 4180, in any encoding; also `.gz`, `.zst` and `.bz2`.
///
/// The first record names the fields. The id is `path:byte` where a record has none. The priority is a field
/// that is a number. Quoted fields may hold commas, doubled quotes and newlines; blank lines are no records. A
/// record must have as many fields as the first one. A record of one line with another number of fields, or
/// with faulty quotes, is a reject. Kept records are copied byte for byte behind the header in each part.
/// Removed ones get `duplicate_of`, `similarity`, `cluster` and `reason` as their last fields (with the suffix
/// `_dedup` where the file has a field of that name).
///
/// Whether a newline of [`CSV`] is quoted is known only from the beginning of the file, so one thread finds where its records
/// start for all splits of the file. In [`WEIBO_CSV`] a record is one line, so plain files split at newlines, and a quoted newline is
/// a reject.
///
/// `weibo-csv` is the layout of posts gathered from Weibo's search by day: `userid,text` in GB18030, each
/// post on a line that ends with CR LF. We know of no page that publishes them.
///
/// [`CsvReading`] says which other characters than commas and quotes a file has, and that the first record is one as others. The
/// delimiter is found out from the header, which has the field of the text: a comma, a tab, `;` or `|`; or from a line `sep=;` before it.
pub struct Csv {
    name: &'static str,
    extension: &'static str,
    layout: CsvLayout,
    open: fn(&Piece, &Reading) -> Result<CsvRows, Error>,
}

/// Any CSV file.
pub static CSV: Csv = Csv {
    name: "csv",
    extension: ".csv",
    layout: CsvLayout::COMMAS,
    open: |piece, reading| CsvRows::open(piece, reading, CsvLayout::COMMAS),
};
/// Fields between tabs.
pub static TSV: Csv = Csv {
    name: "tsv",
    extension: ".tsv",
    layout: CsvLayout::TABS,
    open: |piece, reading| CsvRows::open(piece, reading, CsvLayout::TABS),
};
/// Posts of Weibo.
pub static WEIBO_CSV: Csv = Csv {
    name: "weibo-csv",
    extension: ".csv",
    layout: CsvLayout::POSTS,
    open: |piece, reading| CsvRows::open(piece, reading, CsvLayout::POSTS),
};

impl Format for Csv {
    fn name(&self) -> &'static str {
        self.name
    }

    /// Recognises by extension; posts of Weibo also by their header, and by their first lines, none of which leaves a quote
    /// open: a post is one line.
    fn recognises(&self, path: &str, head: &[u8]) -> bool {
        if !has_suffix(Compression::named(path).0, self.extension) {
            return false;
        }
        if !self.layout.one_line {
            return true;
        }
        let head = Compression::of(path, head).decode_head(head);
        let head = charset::head(&head);
        let mut lines = head.split_inclusive(|&byte| byte == b'\n');
        let is_open =
            |line: &[u8]| line.ends_with(b"\n") && Scan::default().line(line.trim_ascii_end()) == End::Open;
        lines.next().is_some_and(|line| line.trim_ascii() == b"userid,text") && !lines.any(is_open)
    }

    fn has_fields(&self) -> bool {
        true
    }

    fn cuts(&self, path: &str) -> Cuts {
        Compression::named(path).1.cuts()
    }

    fn expansion(&self, path: &str) -> u64 {
        Compression::named(path).1.expansion()
    }

    fn open(&self, piece: &Piece, reading: &Reading) -> Result<Box<dyn Reader>, Error> {
        let rows = (self.open)(piece, reading)?;
        let reading = reading.clone();
        let (id, text, number) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Box::new(CsvReader { rows, reading, id, text, number, place: String::new() }))
    }

    fn writer<'a>(&self, parts: &'a dyn Parts, reading: &Reading) -> Box<dyn Writer + 'a> {
        Box::new(CopyWriter::new(parts, self.extension, reading, self.open))
    }

    fn line_numbers(&self, file: &Piece, reading: &Reading) -> Result<Option<LineNumbers>, Error> {
        LineNumbers::open(file, reading).map(Some)
    }
}

struct CsvReader {
    rows: CsvRows,
    reading: Reading,
    /// Buffers for fields that must be decoded.
    id: Vec<u8>,
    text: Vec<u8>,
    number: Vec<u8>,
    /// Id of a record that has none.
    place: String,
}

impl Reader for CsvReader {
    fn fill(&mut self, batch: &mut DocBatch) -> Result<bool, Error> {
        while !batch.full() {
            let Some(row) = self.rows.advance()? else { return Ok(false) };
            let path = &self.rows.lines.path;
            let line = self.rows.lines.line();
            if let Err(reason) = row {
                batch.reject(path, line.offset, reason, line.bytes);
                continue;
            }
            let Some(header) = &self.rows.header else { return Ok(false) };
            let bad = self.reading.bad_text;
            let decoded = match header.id {
                None => Ok((Cow::Borrowed(""), false)),
                Some((field, _)) => self.rows.value(field, bad, &mut self.id),
            };
            let decoded = decoded.and_then(|id| Ok((id, self.rows.value(header.text, bad, &mut self.text)?)));
            match decoded {
                Ok(((id, _), _)) if id.is_empty() && header.id.is_some_and(|(_, required)| required) => {
                    batch.reject(path, line.offset, "the field of the id is empty", line.bytes);
                }
                Ok(((id, id_replaced), (text, text_replaced))) => {
                    let priority = match header.priority {
                        None => Some(Priority::default()),
                        Some(field) => {
                            let number = self.rows.value(field, bad, &mut self.number);
                            number.ok().and_then(|(number, _)| Priority::of_text(&number))
                        }
                    };
                    let Some(priority) = priority else {
                        let field = self.reading.priority.as_deref().unwrap_or_default();
                        batch.reject(path, line.offset, no_number(field), line.bytes);
                        continue;
                    };
                    let id = if id.is_empty() { place(path, line.offset, &mut self.place) } else { &id };
                    batch.push_decoded(id, &text, id_replaced || text_replaced);
                    batch.set_priority(priority);
                }
                Err(illegal) => {
                    batch.reject(path, line.offset + illegal.offset as u64, illegal.reason, line.bytes);
                }
            }
        }
        Ok(true)
    }

    fn recognised(&self) -> Option<RecognisedEncoding> {
        self.rows.lines.recognised()
    }
}

impl CopySource for CsvRows {
    fn lines(&self) -> &Lines {
        &self.lines
    }

    fn next_record(&mut self) -> Result<Option<bool>, Error> {
        Ok(self.advance()?.map(|row| row.is_ok()))
    }

    fn record(&self) -> [&[u8]; 2] {
        split_newline(self.lines.charset, self.lines.line().bytes)
    }

    /// Returns the header with more fields, if the file names its fields.
    fn head(&self, fields: &[&str]) -> Vec<u8> {
        let Some(header) = &self.header else { return Vec::new() };
        if !header.is_named || fields.is_empty() {
            return header.bytes.clone();
        }
        let names = free_names(fields, |name| header.names.iter().any(|taken| taken == name));
        let more = more_fields(self, names.iter().map(|name| name.into()));
        let [record, newline] = split_newline(self.lines.charset, &header.bytes);
        [record, &self.lines.charset.encode(&more, record), newline].concat()
    }

    /// Returns the fields that a record gets, and the place of its newline.
    fn insertion(
        &mut self,
        _fields: &[&str],
        values: &DecisionValues,
    ) -> Result<Option<(usize, Vec<u8>)>, Error> {
        let value = |value: &DecisionValue| match value {
            DecisionValue::Text(text) => text.unwrap_or_default().to_owned(),
            DecisionValue::Number(number) => number.map(|number| number.to_string()).unwrap_or_default(),
            DecisionValue::Flag(flag) => flag.to_string(),
        };
        let more = more_fields(self, values.iter().map(|of| value(of).into()));
        let [record, _] = self.record();
        Ok(Some((record.len(), self.lines.charset.encode(&more, record).into_owned())))
    }

    /// Replaces the field of the text. The bytes before and behind it stay.
    fn shortened(&mut self, cuts: &[Range<usize>]) -> Result<Vec<u8>, Error> {
        let changed = || Error::changed(&self.lines.path);
        let field = self.header.as_ref().map(|header| header.text).ok_or_else(changed)?;
        let place = self.place(field);
        let mut buffer = Vec::new();
        let (text, _) = self.value(field, BadText::Replace, &mut buffer).map_err(|_| changed())?;
        let mut value = String::new();
        let text = without(&text, cuts).ok_or_else(changed)?;
        self.dialect().push(&mut value, &text);
        let [record, _] = self.record();
        let before = &record[..place.start];
        let behind = record.get(place.end..).unwrap_or_default();
        Ok([before, &self.lines.charset.encode(&value, record), behind].concat())
    }
}

/// Returns fields that stand behind others, each with the delimiter before it.
fn more_fields<'v>(rows: &CsvRows, values: impl Iterator<Item = Cow<'v, str>>) -> String {
    let mut more = String::new();
    for value in values {
        more.push(char::from(rows.dialect().delimiter));
        rows.dialect().push(&mut more, &value);
    }
    more
}
