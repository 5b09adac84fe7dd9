//! The characters that separate the fields of CSV, and whether the first record names them.

use std::borrow::Cow;
use std::str::FromStr;

use encoding_rs::{BIG5, EUC_KR, SHIFT_JIS};

use crate::text::encoding::{Encoding, GB18030};

/// Form of CSV, as the user says it. What is `None` is found out from the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CsvReading {
    /// Character between fields.
    pub delimiter: Option<CsvChar>,
    /// Character around a field that holds delimiters.
    pub quote: Option<CsvChar>,
    /// Character before a quote that belongs to a quoted field, besides a second quote.
    pub escape: Option<CsvChar>,
    /// Whether the first record does not name the fields, which are `_c0`, `_c1` and so on then, as Spark has it.
    pub no_header: bool,
}

/// A character of ASCII that has a meaning in CSV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CsvChar(pub u8);

impl FromStr for CsvChar {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "\\t" | "tab" => Ok(CsvChar(b'\t')),
            _ => match text.as_bytes() {
                [byte] if byte.is_ascii() && !matches!(byte, b'\n' | b'\r' | 0) => Ok(CsvChar(*byte)),
                _ => Err("expected one ASCII character, or tab".to_owned()),
            },
        }
    }
}

impl std::fmt::Display for CsvChar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            b'\t' => f.write_str("tab"),
            byte => write!(f, "{}", char::from(byte)),
        }
    }
}

/// Delimiters that are tried on a header, the commonest first.
const DELIMITERS: [u8; 4] = [b',', b'\t', b';', b'|'];

/// The characters of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dialect {
    pub delimiter: u8,
    pub quote: u8,
    pub escape: Option<u8>,
}

impl Default for Dialect {
    /// Returns that of RFC 4180.
    fn default() -> Self {
        Dialect { delimiter: b',', quote: b'"', escape: None }
    }
}

impl Dialect {
    /// Returns the dialect that the user has given. `delimiter`: that of the format, if it has one.
    pub fn of(reading: &CsvReading, delimiter: Option<u8>) -> Self {
        let rfc = Dialect::default();
        let or = |given: Option<CsvChar>, default: u8| given.map_or(default, |given| given.0);
        Dialect {
            delimiter: or(reading.delimiter, delimiter.unwrap_or(rfc.delimiter)),
            quote: or(reading.quote, rfc.quote),
            escape: reading.escape.map(|escape| escape.0),
        }
    }

    /// Whether a character of it may be the later byte of another one in some encodings.
    pub fn has_later_bytes(self) -> bool {
        [Some(self.delimiter), Some(self.quote), self.escape].into_iter().flatten().any(|byte| byte >= b'@')
    }

    /// Returns this dialect with each delimiter that may be meant, this one first.
    pub fn others(self) -> impl Iterator<Item = Dialect> {
        let others = DELIMITERS.into_iter().filter(move |other| *other != self.delimiter);
        [self.delimiter].into_iter().chain(others).map(move |delimiter| Dialect { delimiter, ..self })
    }

    /// Returns the delimiter that the first line of a file names for spreadsheets, as in `sep=;`.
    pub fn named(line: &str) -> Option<u8> {
        let name = line.trim_end_matches(['\r', '\n']).strip_prefix("sep=")?;
        name.parse().ok().map(|CsvChar(delimiter)| delimiter)
    }

    /// Returns the value of a field that is in quotes; `None` if it is not.
    pub fn value(self, field: &str) -> Option<Cow<'_, str>> {
        let quote = char::from(self.quote);
        let within = field.strip_prefix(quote).and_then(|field| field.strip_suffix(quote))?;
        let escape = self.escape.map(char::from);
        if !within.contains(quote) && !escape.is_some_and(|escape| within.contains(escape)) {
            return Some(within.into());
        }
        let mut value = String::with_capacity(within.len());
        let mut chars = within.chars().peekable();
        while let Some(c) = chars.next() {
            let next = chars.peek().copied();
            let stands_before_quote = c == quote && next == Some(quote);
            let escapes = Some(c) == escape && next.is_some_and(|next| next == quote || Some(next) == escape);
            if stands_before_quote || escapes {
                chars.next();
                value.extend(next);
            } else {
                value.push(c);
            }
        }
        Some(value.into())
    }

    /// Appends a field, with quotes where it needs them.
    pub fn push(self, record: &mut String, value: &str) {
        let (delimiter, quote) = (char::from(self.delimiter), char::from(self.quote));
        if !value.contains([delimiter, quote, '\n', '\r']) {
            record.push_str(value);
            return;
        }
        record.push(quote);
        for c in value.chars() {
            match self.escape.map(char::from) {
                Some(escape) if c == quote || c == escape => record.push(escape),
                None if c == quote => record.push(quote),
                _ => {}
            }
            record.push(c);
        }
        record.push(quote);
    }
}

/// Returns `bytes` of the same length in which later bytes of characters are no ASCII, since some may look like the characters of a dialect, as
/// `@[\\]^_{|}~` do; `None` if the encoding has no such bytes.
pub(super) fn masked(Encoding(encoding): Encoding, bytes: &[u8]) -> Option<Vec<u8>> {
    if ![GB18030.0, BIG5, SHIFT_JIS, EUC_KR].contains(&encoding) {
        return None;
    }
    let mut masked = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let width = match (bytes[at], bytes.get(at + 1)) {
            (0..0x80, _) => 1,
            (0xa1..=0xdf, _) if encoding == SHIFT_JIS => 1,
            (_, Some(b'0'..=b'9')) if encoding == GB18030.0 => 4,
            _ => 2,
        };
        let end = (at + width).min(bytes.len());
        if bytes[at] >= 0x80 {
            masked[at..end].fill(0x80);
        }
        at = end;
    }
    Some(masked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_is_written_is_read_as_it_was() {
        for escape in [None, Some(b'\\')] {
            for (delimiter, quote) in [(b',', b'"'), (b'\t', b'"'), (b';', b'\''), (b'|', b'"')] {
                let dialect = Dialect { delimiter, quote, escape };
                for value in [
                    "",
                    "a",
                    "a,b;c|d\te",
                    "他说\"好\"",
                    "it's",
                    "C:\\temp\\\"x\"",
                    "两\n行\r\n",
                    "\\",
                    "\"\"",
                    "\\\"",
                ] {
                    let mut field = String::new();
                    dialect.push(&mut field, value);
                    let read = dialect.value(&field).unwrap_or_else(|| field.as_str().into());
                    assert_eq!(read, value, "{dialect:?}: {field}");
                }
            }
        }
        assert_eq!(Dialect::named("sep=;\r\n"), Some(b';'));
        assert_eq!(Dialect::named("sep=\t\n"), Some(b'\t'));
        assert_eq!((Dialect::named("sep=ab\n"), Dialect::named("id,text\n")), (None, None));
    }
}
