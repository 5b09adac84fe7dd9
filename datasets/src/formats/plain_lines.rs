//! Plain text with one document on each line.

use std::ops::Range;

use operators::DocBatch;

use crate::parts::copy_writer::{CopySource, CopyWriter};
use crate::parts::cut_text::without;
use crate::text::compression::{Compression, has_suffix};
use crate::text::line_numbers::{LineNumbers, place};
use crate::text::line_reader::Lines;
use crate::{BadText, Cuts, Error, Format, Parts, Piece, Reader, Reading, RecognisedEncoding, Writer};

/// One document on each line, in any encoding; also `.gz`, `.zst` and `.bz2`.
///
/// The format must be named, unless the file is called `.lines`, because a text file is otherwise taken for [`crate::tancorp::TanCorp`]. The text
/// is the line without the white space at its end; the id is `path:byte`. Lines of nothing but ASCII white
/// space are no records. Plain files split at newlines, and only there: U+2028 and other characters that some
/// programs treat as ends of lines are text. Lines are copied byte for byte; a line without newline gets one.
pub struct TextLines;

/// The one value of [`TextLines`].
pub static LINES: TextLines = TextLines;

impl Format for TextLines {
    fn name(&self) -> &'static str {
        "lines"
    }

    fn recognises(&self, path: &str, _head: &[u8]) -> bool {
        has_suffix(Compression::named(path).0, ".lines")
    }

    fn cuts(&self, path: &str) -> Cuts {
        Compression::named(path).1.cuts()
    }

    fn expansion(&self, path: &str) -> u64 {
        Compression::named(path).1.expansion()
    }

    fn open(&self, piece: &Piece, reading: &Reading) -> Result<Box<dyn Reader>, Error> {
        let lines = Lines::open(piece, reading)?;
        let reading = reading.clone();
        Ok(Box::new(LineReader { lines, reading, buffer: Vec::new(), place: String::new() }))
    }

    fn writer<'a>(&self, parts: &'a dyn Parts, reading: &Reading) -> Box<dyn Writer + 'a> {
        Box::new(CopyWriter::new(parts, ".txt", reading, Lines::open))
    }

    fn line_numbers(&self, file: &Piece, reading: &Reading) -> Result<Option<LineNumbers>, Error> {
        LineNumbers::open(file, reading).map(Some)
    }
}

struct LineReader {
    lines: Lines,
    reading: Reading,
    /// Buffer for lines that must be decoded.
    buffer: Vec<u8>,
    place: String,
}

impl Reader for LineReader {
    fn fill(&mut self, batch: &mut DocBatch) -> Result<bool, Error> {
        while !batch.full() {
            if !self.lines.advance_to_text()? {
                return Ok(false);
            }
            let path = &self.lines.path;
            let line = self.lines.line();
            if !line.whole {
                batch.reject(path, line.offset, self.lines.too_long(), line.bytes);
                continue;
            }
            match self.lines.charset.decode(line.bytes, self.reading.bad_text, &mut self.buffer) {
                Ok((text, replaced)) => {
                    let id = place(path, line.offset, &mut self.place);
                    batch.push_decoded(id, text.trim_ascii_end(), replaced);
                }
                Err(illegal) => {
                    batch.reject(path, line.offset + illegal.offset as u64, illegal.reason, line.bytes);
                }
            }
        }
        Ok(true)
    }

    fn recognised(&self) -> Option<RecognisedEncoding> {
        self.lines.recognised()
    }
}

impl CopySource for Lines {
    fn lines(&self) -> &Lines {
        self
    }

    fn next_record(&mut self) -> Result<Option<bool>, Error> {
        Ok(self.advance_to_text()?.then(|| self.line().whole))
    }

    fn shortened(&mut self, cuts: &[Range<usize>]) -> Result<Vec<u8>, Error> {
        let line = self.line().bytes;
        let mut buffer = Vec::new();
        let decoded = self.charset.decode(line, BadText::Replace, &mut buffer).ok();
        let shortened = decoded.and_then(|(text, _)| without(text, cuts));
        let shortened = shortened.ok_or_else(|| Error::changed(&self.path))?;
        Ok(self.charset.encode(&shortened, line).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Record, check_splits};

    type Encode = fn(&str) -> Vec<u8>;

    #[test]
    fn every_split_gives_every_line_once_in_every_encoding() {
        let text = "新华社\u{2028}北京电\r\n\n \t\n国家\u{0a0a}统计局 \nab";
        let expected = ["新华社\u{2028}北京电", "国家\u{0a0a}统计局", "ab"];
        let kept = "新华社\u{2028}北京电\r\n国家\u{0a0a}统计局 \nab\n";
        let gb18030: Encode = |text| encoding_rs::GB18030.encode(text).0.into_owned();
        let utf16: Encode =
            |text| format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_be_bytes).collect();
        let utf8: Encode = |text| text.as_bytes().to_vec();
        for encode in [utf8, gb18030, utf16] {
            let records = check_splits(&LINES, "/a.txt", &encode(text), &encode(kept));
            let texts = records.iter().map(|record| match record {
                Record::Doc { text, .. } => text.as_str(),
                Record::Reject { reason, .. } => panic!("{reason}"),
            });
            assert!(texts.eq(expected), "{records:?}");
        }
    }
}
