//! The encoding of the texts of a file, and its texts as UTF-8.

use std::borrow::Cow;

use encoding_rs::{UTF_8, UTF_16BE, UTF_16LE};

use super::decode::decode_slowly;
use super::detect::{Recognition, recognise, surely_utf8, utf16_without_mark};
use super::encoding::{Encoding, GB18030, RecognisedEncoding};
use super::gb18030;
use crate::BadText;

/// Error of bytes that are no text in their encoding.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Illegal {
    /// Offset of the first illegal byte, from the start of the decoded bytes.
    pub offset: usize,
    /// Reason in lower case, without a full stop.
    pub reason: String,
}

/// Encoding of the texts of a file: named by the user, announced by a byte order mark, or recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Charset {
    /// The encoding. `None` if the file begins with pure ASCII, so that each record is recognised by itself.
    encoding: Option<Encoding>,
    /// Whether the encoding was recognised, and not named or announced.
    is_recognised: bool,
    /// Certainty with which the encoding of the file was recognised, if it was.
    recognition: Option<Recognition>,
    /// Length of the byte order mark, in bytes.
    mark_bytes: usize,
}

impl Charset {
    /// Number of bytes at the beginning of a file by which it is recognised.
    pub const HEAD_BYTES: usize = 1 << 16;

    /// Finds the encoding of a file that begins with `head`, and ends with it if `whole`.
    ///
    /// A byte order mark takes precedence over the encoding that was `chosen`.
    pub fn of(head: &[u8], whole: bool, chosen: Option<Encoding>) -> Self {
        let marked = |encoding, mark_bytes| Charset {
            encoding: Some(encoding),
            is_recognised: false,
            recognition: None,
            mark_bytes,
        };
        match head {
            [0xef, 0xbb, 0xbf, ..] => marked(Encoding(UTF_8), 3),
            [0xff, 0xfe, ..] => marked(Encoding(UTF_16LE), 2),
            [0xfe, 0xff, ..] => marked(Encoding(UTF_16BE), 2),
            _ => {
                let ascii = (whole && head.len() <= Self::HEAD_BYTES).then_some(Encoding(UTF_8));
                let head = &head[..head.len().min(Self::HEAD_BYTES)];
                let utf16 = if chosen.is_none() { utf16_without_mark(head) } else { None };
                let known = chosen.or(utf16);
                let recognition = if known.is_none() { recognise(head) } else { None };
                let encoding = known.or(recognition.map(|of| of.encoding)).or(ascii);
                Charset { encoding, is_recognised: chosen.is_none(), recognition, mark_bytes: 0 }
            }
        }
    }

    /// Returns the charset of values in a format that does not state their encoding: UTF-8, unless another
    /// was `chosen`.
    pub fn of_values(chosen: Option<Encoding>) -> Self {
        let encoding = chosen.or(Some(Encoding(UTF_8)));
        Charset { encoding, is_recognised: false, recognition: None, mark_bytes: 0 }
    }

    /// Returns the encoding, by which the parts of an output differ.
    pub fn encoding(&self) -> Option<Encoding> {
        self.encoding
    }

    /// Returns whether every character can be written without an escape.
    pub fn is_utf8(&self) -> bool {
        self.encoding == Some(Encoding(UTF_8))
    }

    /// Returns the newline that a last line needs before another line may follow.
    pub fn missing_newline(&self, line: &[u8]) -> &'static [u8] {
        let newline: &[u8] = match self.utf16() {
            None => b"\n",
            Some(true) => b"\n\0",
            Some(false) => b"\0\n",
        };
        if line.ends_with(newline) { b"" } else { newline }
    }

    /// Returns the length of the byte order mark at the beginning of the file, in bytes.
    pub fn mark_bytes(&self) -> usize {
        self.mark_bytes
    }

    /// Returns the number of bytes of an ASCII character.
    pub fn unit(&self) -> usize {
        if self.utf16().is_some() { 2 } else { 1 }
    }

    /// Returns `None` unless the encoding is UTF-16, and then whether it is little-endian.
    fn utf16(&self) -> Option<bool> {
        let Encoding(encoding) = self.encoding?;
        (encoding == UTF_16LE || encoding == UTF_16BE).then_some(encoding == UTF_16LE)
    }

    /// Finds the end of the first newline at or behind `from`. `bytes` and `from` are whole units.
    ///
    /// Byte 0x0A is a newline in all encodings but UTF-16, because it is no part of a longer character.
    pub fn line_end(&self, bytes: &[u8], from: usize) -> Option<usize> {
        let Some(little) = self.utf16() else {
            return memchr::memchr(b'\n', &bytes[from..]).map(|at| from + at + 1);
        };
        let newline = if little { [b'\n', 0] } else { [0, b'\n'] };
        memchr::memchr_iter(b'\n', &bytes[from..])
            .map(|at| (from + at) & !1)
            .find(|&at| bytes.get(at..at + 2) == Some(&newline))
            .map(|at| at + 2)
    }

    /// Counts the newlines in `bytes`, which are whole units.
    pub fn count_lines(&self, bytes: &[u8]) -> u64 {
        if self.unit() == 1 {
            return memchr::memchr_iter(b'\n', bytes).count() as u64;
        }
        let mut end = 0;
        std::iter::from_fn(|| {
            end = self.line_end(bytes, end)?;
            Some(())
        })
        .count() as u64
    }

    /// Returns whether there is nothing but white space of ASCII.
    pub fn is_blank(&self, bytes: &[u8]) -> bool {
        match self.utf16() {
            None => bytes.trim_ascii_start().is_empty(),
            Some(little) => bytes.chunks(2).all(|unit| ascii_unit(unit, little).is_ascii_whitespace()),
        }
    }

    /// Returns the offset of the last character that is no white space, if that is the ASCII character
    /// `last`.
    pub fn last(&self, bytes: &[u8], last: u8) -> Option<usize> {
        let Some(little) = self.utf16() else {
            return bytes.trim_ascii_end().strip_suffix(&[last]).map(<[u8]>::len);
        };
        let mut units = bytes.chunks(2).map(|unit| ascii_unit(unit, little));
        let at = units.rposition(|byte| !byte.is_ascii_whitespace())?;
        (ascii_unit(&bytes[2 * at..], little) == last).then_some(2 * at)
    }

    /// Returns `bytes` as ASCII, one byte for each unit, in which formats search their marks. Other
    /// characters become bytes that are no marks.
    ///
    /// Only UTF-16 is copied. In GB18030 and Big5 the later bytes of a character are digits, letters or one
    /// of `@[\]^_{|}~` and the backtick, never `<`, `>`, `/`, quote, comma or newline.
    pub fn ascii<'b>(&self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        let Some(little) = self.utf16() else { return Cow::Borrowed(bytes) };
        Cow::Owned(bytes.chunks(2).map(|unit| ascii_unit(unit, little)).collect())
    }

    /// Encodes text that is to be added to `record`, in the record's encoding.
    ///
    /// A character that Big5 lacks becomes a numeric reference, such as `&#9731;`.
    pub fn encode<'t>(&self, text: &'t str, record: &[u8]) -> Cow<'t, [u8]> {
        let units = |bytes: fn(u16) -> [u8; 2]| Cow::Owned(text.encode_utf16().flat_map(bytes).collect());
        match self.utf16() {
            Some(true) => units(u16::to_le_bytes),
            Some(false) => units(u16::to_be_bytes),
            None => self.of_record(record).0.encode(text).0,
        }
    }

    /// Returns the charset of all parts of `record`, for files whose records are recognised one by one.
    pub fn of_one(self, record: &[u8]) -> Self {
        if self.encoding.is_some() {
            return self;
        }
        let recognition = recognise(record);
        let encoding = recognition.map_or(Encoding(UTF_8), |of| of.encoding);
        Charset { encoding: Some(encoding), recognition, ..self }
    }

    fn of_record(&self, record: &[u8]) -> Encoding {
        self.encoding.or_else(|| recognise(record).map(|of| of.encoding)).unwrap_or(Encoding(UTF_8))
    }

    /// Returns the encoding of the file at `path`, if it was recognised and the user should know.
    pub fn recognised(&self, path: &str) -> Option<RecognisedEncoding> {
        let recognition = self.recognition.filter(|of| of.is_foreign() && of.is_sure())?;
        let path = path.to_owned();
        let encoding = recognition.encoding;
        Some(RecognisedEncoding { path, encoding, percent: recognition.percent() })
    }

    /// Decodes `bytes`. Returns the text, and whether illegal bytes were replaced, which happens only if
    /// `bad` allows it.
    ///
    /// UTF-8 is not copied; other encodings are decoded into `buffer`. A text that is UTF-8 beyond doubt is
    /// illegal in a file that was recognised as something else, because it would nearly always decode to
    /// other characters.
    pub fn decode<'b>(
        &self,
        bytes: &'b [u8],
        bad: BadText,
        buffer: &'b mut Vec<u8>,
    ) -> Result<(&'b str, bool), Illegal> {
        let recognition = match self.encoding {
            Some(_) => self.recognition,
            None => recognise(bytes),
        };
        if let Some(reason) = recognition.and_then(Recognition::doubt) {
            return Err(Illegal { offset: 0, reason });
        }
        let encoding = self.encoding.or(recognition.map(|of| of.encoding)).unwrap_or(Encoding(UTF_8));
        if encoding.0 == UTF_8 {
            if let Ok(text) = simdutf8::basic::from_utf8(bytes) {
                return Ok((text, false));
            }
        } else if self.is_recognised && surely_utf8(bytes) {
            let reason = format!("valid UTF-8 in a file that was recognised as {}", encoding.name());
            return Err(Illegal { offset: 0, reason });
        }
        if buffer.len() > KEPT_BYTES && bytes.len() < KEPT_BYTES / 4 {
            *buffer = Vec::new();
        }
        let fast = if encoding == GB18030 { gb18030::decode(bytes, buffer) } else { None };
        let (length, replaced) = match fast {
            Some(length) => (length, false),
            None => {
                let decoded = decode_slowly(encoding, bytes);
                if let (Some(offset), BadText::Reject) = (decoded.first_illegal, bad) {
                    return Err(Illegal { offset, reason: decoded.reason(encoding, self.is_recognised) });
                }
                *buffer = decoded.text.into_bytes();
                (buffer.len(), decoded.first_illegal.is_some())
            }
        };
        // Both decoders write UTF-8, but without unsafe code only a check can turn bytes into text.
        let text = simdutf8::basic::from_utf8(&buffer[..length]);
        let broken = |_| Illegal { offset: 0, reason: "not decoded to UTF-8".to_owned() };
        text.map(|text| (text, replaced)).map_err(broken)
    }
}

/// Returns the ASCII character of the first UTF-16 unit of `bytes`, or 0xff for any other character.
fn ascii_unit(bytes: &[u8], little: bool) -> u8 {
    match (bytes, little) {
        ([low, 0, ..], true) | ([0, low, ..], false) => *low,
        _ => 0xff,
    }
}

/// Length of a buffer that is kept after a long text, in bytes.
const KEPT_BYTES: usize = 1 << 20;

/// Returns the first bytes of a file as ASCII, whatever its encoding. Formats are recognised by them.
pub(crate) fn head(head: &[u8]) -> Cow<'_, [u8]> {
    let charset = Charset::of(head, false, None);
    charset.ascii(&head[charset.mark_bytes()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "新华社北京电 国家统计局十九日发布数据,前三季度国内生产总值同比增长百分之五点二。";

    fn encoded(name: &str, text: &str) -> Vec<u8> {
        Charset::of(b"", true, Some(name.parse().unwrap())).encode(text, b"").into_owned()
    }

    /// Decodes a whole file, in a recognised encoding or the one of that name.
    fn decode(bytes: &[u8], name: Option<&str>, bad: BadText) -> Result<(String, bool), Illegal> {
        let charset = Charset::of(bytes, true, name.map(|name| name.parse().unwrap()));
        let mut buffer = Vec::new();
        let decoded = charset.decode(&bytes[charset.mark_bytes()..], bad, &mut buffer);
        decoded.map(|(text, replaced)| (text.to_owned(), replaced))
    }

    fn read(bytes: &[u8]) -> Result<String, Illegal> {
        decode(bytes, None, BadText::Reject).map(|(text, _)| text)
    }

    #[test]
    fn every_encoding_gives_the_same_text_named_or_recognised() {
        for name in ["utf-8", "GB18030", "gbk", "utf-16le", "utf-16be"] {
            let bytes = encoded(name, TEXT);
            assert_eq!(decode(&bytes, Some(name), BadText::Reject), Ok((TEXT.to_owned(), false)), "{name}");
            let marked = if name.contains("16") { encoded(name, &format!("\u{feff}{TEXT}")) } else { bytes };
            assert_eq!(read(&marked).as_deref(), Ok(TEXT), "{name}");
        }
        let traditional = "臺灣大學校長表示,將於下週公布名單。";
        let bytes = encoded("big5", traditional);
        assert_eq!(decode(&bytes, Some("big5"), BadText::Reject), Ok((traditional.to_owned(), false)));
        assert_eq!(read(&bytes).as_deref(), Ok(traditional));
        assert_eq!(read(&encoded("gbk", traditional)).as_deref(), Ok(traditional));
        assert_eq!(read(format!("\u{feff}{TEXT}").as_bytes()).as_deref(), Ok(TEXT));
        assert_eq!(read(b"").as_deref(), Ok(""));
    }

    #[test]
    fn characters_of_four_bytes_and_private_use_are_read() {
        for (bytes, text) in [
            (&b"\xa2\xe3"[..], "\u{20ac}"),
            (b"\x80", "\u{20ac}"),
            (b"\xaa\xa1", "\u{e000}"),
            (b"\x90\x30\x81\x30", "\u{10000}"),
        ] {
            assert_eq!(read(bytes).as_deref(), Ok(text), "{bytes:x?}");
        }
        let rare = "\u{20000}".repeat(10_000); // four bytes in both
        assert_eq!(read(&encoded("gb18030", &rare)).unwrap(), rare);
    }

    #[test]
    fn the_first_illegal_byte_is_named_and_all_are_counted() {
        let start = encoded("gbk", TEXT);
        for (bad, name) in [
            (&b"\xff"[..], "no lead byte"),
            (b"\xb0", "cut"),
            (b"\xb0\n", "a newline behind a lead byte"),
            (b"\x81\x30\x81", "four bytes cut"),
            (b"\x81\x30ab", "no third of four bytes"),
            (b"\x81\x30\x81a", "no fourth of four bytes"),
            (b"\xe3\x32\x9a\x36x", "four bytes beyond Unicode"),
        ] {
            let bytes = [&start[..], bad].concat();
            let illegal = read(&bytes).unwrap_err();
            assert_eq!(illegal.offset, start.len(), "{name}");
            assert!(
                illegal.reason.starts_with("not valid GB18030, as which it was recognised: 1 of 4"),
                "{illegal:?}"
            );
        }
        let bytes = [&start[..], b"\xff", &start, b"\xff"].concat();
        let illegal = decode(&bytes, Some("gbk"), BadText::Reject).unwrap_err();
        assert_eq!(illegal.reason, "not valid GB18030: 2 of 84 characters are illegal");
    }

    #[test]
    fn illegal_bytes_are_replaced_where_that_is_asked_for_and_nothing_else_changes() {
        for name in ["utf-8", "gb18030", "big5"] {
            let bytes = [b"ab\xff,", &*encoded(name, "臺灣"), b"\xff"].concat();
            let text = "ab\u{fffd},臺灣\u{fffd}".to_owned();
            assert_eq!(decode(&bytes, Some(name), BadText::Replace), Ok((text, true)), "{name}");
        }
        let lone = [encoded("utf-16le", "a"), vec![0, 0xd8], encoded("utf-16le", "b"), vec![7]].concat();
        let text = "a\u{fffd}b\u{fffd}".to_owned();
        assert_eq!(decode(&lone, Some("utf-16le"), BadText::Replace), Ok((text, true)));
    }

    #[test]
    fn damaged_utf_8_is_not_taken_for_gb18030() {
        let middle = TEXT.len() / 2;
        for cut in middle..middle + 3 {
            let mut bytes = TEXT.as_bytes().to_vec();
            bytes.remove(cut);
            assert!(read(&bytes).unwrap_err().reason.starts_with("not valid UTF-8"));
        }
        assert_eq!(read(b"\xef\xbb\xbfab\xff").unwrap_err().offset, 2);
    }

    #[test]
    fn a_text_of_the_other_encoding_is_never_read_as_other_characters() {
        let utf8 = TEXT.as_bytes();
        let gbk = encoded("gbk", TEXT);
        let mut buffer = Vec::new();
        for (file, record) in [(utf8, &gbk[..]), (&gbk, utf8), (&gbk, "新华社电".as_bytes())] {
            let charset = Charset::of(file, false, None);
            assert!(charset.decode(file, BadText::Reject, &mut buffer).is_ok());
            assert!(charset.decode(record, BadText::Reject, &mut buffer).is_err());
        }
        // Text that is UTF-8 by chance is read as GBK.
        let charset = Charset::of(&gbk, false, None);
        let thanks = encoded("gbk", "谢谢[怒][怒][偷笑]");
        assert!(std::str::from_utf8(&thanks).is_ok());
        assert!(charset.decode(&thanks, BadText::Reject, &mut buffer).is_ok());
        // A file that begins with pure ASCII may continue in either encoding, record by record.
        let charset = Charset::of(b"ascii", false, None);
        for record in [utf8, &gbk] {
            assert_eq!(charset.decode(record, BadText::Reject, &mut buffer).map(|(text, _)| text), Ok(TEXT));
        }
    }

    #[test]
    fn lines_of_utf_16_end_at_newlines_and_not_at_characters_that_have_its_byte() {
        for name in ["utf-16le", "utf-16be"] {
            let charset = Charset::of(b"", true, Some(name.parse().unwrap()));
            let bytes = encoded(name, "\u{0a0a}\u{0a00}\u{000b}\u{100a}x\ny");
            assert_eq!(charset.line_end(&bytes, 0), Some(12), "{name}");
            assert_eq!(charset.line_end(&bytes, 12), None, "{name}");
            assert_eq!(charset.line_end(&bytes[..11], 0), None, "{name}");
            assert_eq!(charset.ascii(&encoded(name, "a新\n")).as_ref(), b"a\xff\n");
        }
    }
}
