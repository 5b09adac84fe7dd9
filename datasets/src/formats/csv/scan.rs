//! The fields of a CSV record, and the end of the record.

use std::ops::Range;

use memchr::{memchr, memchr2};

use super::dialect::Dialect;

/// Finder of the fields of one record, line by line, by RFC 4180. A field that begins with a quote ends with
/// one, and holds quotes doubled. A quote in a field that does not begin with one is text, as in most
/// programs.
///
/// Memory: 16 bytes for each field, up to [`MAX_FIELDS`].
///
/// For example:
///
/// ```text
/// 1,abc             a record of two fields: 0..1 and 2..5
/// 1,"a,b"           a record of two fields: 0..1 and 2..7, with its quotes
/// 1,"a              open: the quoted field continues on the next line
/// 1,"a" b           faulty: neither a comma nor the end of the line behind the quote
/// 1,a"b             a record of two fields: the quote is text
/// ```
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// Place of each of the first [`MAX_FIELDS`] fields, with its quotes.
    pub fields: Vec<Range<usize>>,
    /// Number of all fields.
    pub count: usize,
    /// Offset of the current field.
    start: usize,
    /// Offset up to which the text was scanned.
    at: usize,
    quoted: bool,
    pub dialect: Dialect,
}

/// State of the record at the end of the text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The record ends there.
    Record,
    /// A quoted field continues behind it.
    Open,
    /// The record is faulty: neither a comma nor the end of the line follows a closing quote.
    Faulty,
}

/// Largest number of fields. A header with more is refused.
pub(super) const MAX_FIELDS: usize = 100_000;

impl Scan {
    /// Makes one that has scanned nothing.
    pub fn new(dialect: Dialect) -> Self {
        Scan { dialect, ..Scan::default() }
    }

    /// Scans the first line of a record.
    pub fn line(&mut self, text: &[u8]) -> End {
        self.fields.clear();
        self.count = 0;
        (self.start, self.at) = (0, 0);
        self.quoted = false;
        self.open(text);
        self.more(text)
    }

    /// Continues in a quoted field, behind text that is not held. `text` is the next line alone.
    pub fn within_quotes(&mut self, text: &[u8]) -> End {
        self.fields.clear();
        self.count = 0;
        (self.start, self.at) = (0, 0);
        self.quoted = true;
        self.more(text)
    }

    /// Continues the scan. `text` is the record so far, with all of its lines.
    pub fn more(&mut self, text: &[u8]) -> End {
        let Dialect { delimiter, quote, escape } = self.dialect;
        loop {
            if !self.quoted {
                match memchr(delimiter, &text[self.at..]) {
                    Some(at) => self.close(self.at + at, text),
                    None => {
                        self.push(self.start..without_newline(text));
                        return End::Record;
                    }
                }
                continue;
            }
            let found = match escape {
                Some(escape) => memchr2(quote, escape, &text[self.at..]),
                None => memchr(quote, &text[self.at..]),
            };
            let Some(found) = found else {
                self.at = text.len();
                return End::Open;
            };
            let behind = self.at + found + 1;
            if text[behind - 1] != quote {
                // An escape hides the character behind it, which may be that of the next line.
                self.at = (behind + 1).min(text.len());
                continue;
            }
            match &text[behind..] {
                [next, ..] if *next == quote => self.at = behind + 1,
                [next, ..] if *next == delimiter => self.close(behind, text),
                [] | [b'\n'] | [b'\r'] | [b'\r', b'\n'] => {
                    self.push(self.start..behind);
                    return End::Record;
                }
                _ => return End::Faulty,
            }
        }
    }

    /// Ends a field at a delimiter.
    fn close(&mut self, delimiter: usize, text: &[u8]) {
        self.push(self.start..delimiter);
        self.start = delimiter + 1;
        self.open(text);
    }

    fn push(&mut self, field: Range<usize>) {
        self.count += 1;
        if self.fields.len() < MAX_FIELDS {
            self.fields.push(field);
        }
    }

    fn open(&mut self, text: &[u8]) {
        self.quoted = text.get(self.start) == Some(&self.dialect.quote);
        self.at = self.start + usize::from(self.quoted);
    }
}

/// Returns the length of a line without its newline.
pub(super) fn without_newline(line: &[u8]) -> usize {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line).len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(text: &str) -> (Vec<&str>, End) {
        let mut scan = Scan::default();
        let mut lines = text.split_inclusive('\n').map(str::len).scan(0, |end, length| {
            *end += length;
            Some(&text[..*end])
        });
        let mut end = scan.line(lines.next().unwrap_or_default().as_bytes());
        for line in lines {
            assert_eq!(end, End::Open, "{text}");
            end = scan.more(line.as_bytes());
        }
        (scan.fields.into_iter().map(|field| &text[field]).collect(), end)
    }

    #[test]
    fn fields_end_at_commas_that_are_not_quoted() {
        for (text, expected) in [
            ("a,b,c\n", &["a", "b", "c"][..]),
            ("a,,\r\n", &["a", "", ""]),
            ("\"a\",\"b,\"\"c\"\"\",d", &["\"a\"", "\"b,\"\"c\"\"\"", "d"]),
            ("1,\"two\nlines, \r\nthree\"\r\n", &["1", "\"two\nlines, \r\nthree\""]),
            ("1,\"\"\n", &["1", "\"\""]),
            ("1,it is \"so\"\n", &["1", "it is \"so\""]),
            ("", &[""]),
        ] {
            assert_eq!(fields(text), (expected.to_vec(), End::Record), "{text}");
        }
    }

    #[test]
    fn a_quoted_field_is_open_until_its_quote_and_faulty_with_text_behind_it() {
        for text in ["1,\"a\n", "1,\"a\"\"\n", "1,\""] {
            assert_eq!(fields(text).1, End::Open, "{text}");
        }
        for text in ["1,\"a\"b\n", "1,\"open\n2,\"b\"\n", "1,\"a\" ,b\n", "\"\"a\n"] {
            assert_eq!(fields(text).1, End::Faulty, "{text}");
        }
    }
}
