//! This format reads SogouCS and SogouCA: news pages of Sogou Labs, one pseudo-XML element for each page.

use std::borrow::Cow;
use std::ops::Range;

use operators::{DocBatch, Reject};

use crate::parts::copy_writer::{CopySource, CopyWriter};
use crate::parts::cut_text::without;
use crate::text::charset;
use crate::text::compression::Compression;
use crate::text::line_numbers::LineNumbers;
use crate::text::line_reader::{Extended, Lines};
use crate::{BadText, Cuts, Error, Format, Parts, Piece, Reader, Reading, RecognisedEncoding, Writer};

/// The format of SogouCS, in GB18030 or another encoding:
/// ```text
/// <doc>
/// <url>http://...</url>
/// <docno>98590b972ad2f0ea-34913306c0bb3300</docno>
/// <contenttitle>...</contenttitle>
/// <content>...</content>
/// </doc>
/// ```
/// The id is `docno`, or the url where `url` is named as the field of the id. The text is the title, a
/// newline and the content, or the content alone where the title is empty or missing. The format is no XML:
/// `&` stands for itself, and nothing is unescaped. An unused url must be valid text too.
///
/// A document begins at a line that is `<doc>`, and ends with `</doc>`, or where the next begins if that is
/// missing. The file splits at such lines. No byte of `<`, `>`, `/` or the newline can be a later byte of a
/// character of GB18030: second bytes are 0x40 and above, or 0x30 to 0x39 in characters of four bytes, as is
/// the fourth. A root `<docs>` and blank lines may lie outside of documents; they are not copied. Any other
/// text between two documents, before the first or behind the last is one reject. So a document whose `<doc>`
/// is damaged is not lost in silence.
///
/// Published by Sogou Labs: SogouCS at <http://www.sogou.com/labs/resource/cs.php>, SogouCA, which has the
/// same format, at <http://www.sogou.com/labs/resource/ca.php>.
pub struct SogouCs;

/// The one value of [`SogouCs`].
pub static SOGOUCS: SogouCs = SogouCs;

impl Format for SogouCs {
    fn name(&self) -> &'static str {
        "sogoucs"
    }

    /// Recognises by the first line: `<doc>`, or `<docs>` and then `<doc>`.
    fn recognises(&self, _path: &str, head: &[u8]) -> bool {
        let head = charset::head(head);
        let mut lines = head.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
        let mut first = lines.next();
        if first == Some(b"<docs>") {
            first = lines.next();
        }
        first == Some(b"<doc>")
    }

    fn cuts(&self, path: &str) -> Cuts {
        Compression::named(path).1.cuts()
    }

    fn expansion(&self, path: &str) -> u64 {
        Compression::named(path).1.expansion()
    }

    fn open(&self, piece: &Piece, reading: &Reading) -> Result<Box<dyn Reader>, Error> {
        let elements = Elements::open(piece, reading)?;
        Ok(Box::new(SogouReader { elements, reading: reading.clone(), buffer: Vec::new() }))
    }

    fn writer<'a>(&self, parts: &'a dyn Parts, reading: &Reading) -> Box<dyn Writer + 'a> {
        Box::new(CopyWriter::new(parts, ".dat", reading, Elements::open))
    }

    fn line_numbers(&self, file: &Piece, reading: &Reading) -> Result<Option<LineNumbers>, Error> {
        LineNumbers::open(file, reading).map(Some)
    }
}

/// The documents of a piece as bytes, for both the reader and the writer. Memory: one document.
struct Elements {
    lines: Lines,
    end: u64,
    /// Whether the next line is known to lie outside of any document. This holds at the beginning of the file
    /// and behind a `</doc>`, but not at the beginning of a later piece.
    outside: bool,
    /// Whether the current line of `lines` begins a document that was not yet returned.
    opened: bool,
    /// The fault of the current record, which is no document or too long to be held.
    fault: Option<Fault>,
}

/// A record that is not read: its place, its first bytes, and the reason.
struct Fault {
    offset: u64,
    head: Vec<u8>,
    reason: String,
}

/// One document or fault of a piece.
struct Element<'a> {
    /// Offset of its first byte.
    offset: u64,
    bytes: &'a [u8],
    /// Reason why the record is not read. Then `bytes` is its beginning.
    fault: Option<&'a str>,
}

impl Elements {
    fn open(piece: &Piece, reading: &Reading) -> Result<Self, Error> {
        let lines = Lines::open(piece, reading)?;
        let end = lines.end;
        Ok(Elements { lines: lines.past_end(), end, outside: piece.start == 0, opened: false, fault: None })
    }

    /// Advances to the next document or fault, and returns it. Errors: those of [`Lines::advance`].
    fn next(&mut self) -> Result<Option<Element<'_>>, Error> {
        self.fault = None;
        let found = self.find_opening()?;
        if self.fault.is_none() {
            if !found {
                return Ok(None);
            }
            self.opened = false;
            self.find_end()?;
        }
        let line = self.lines.line();
        Ok(Some(match &self.fault {
            Some(Fault { offset, head, reason }) => {
                Element { offset: *offset, bytes: head, fault: Some(reason) }
            }
            None => Element { offset: line.offset, bytes: line.bytes, fault: None },
        }))
    }

    /// Advances to the first line of the next document, and returns whether that belongs to this piece.
    ///
    /// Text between two documents belongs to the first of them, and text before all documents to the first
    /// piece of the file. So the rejects do not depend on where the pieces are cut.
    fn find_opening(&mut self) -> Result<bool, Error> {
        while !self.opened {
            if !self.lines.advance()? || self.lines.line().offset >= self.end && !self.outside {
                return Ok(false);
            }
            let line = self.tag(0);
            let tag = line.trim_ascii();
            let opened = tag == b"<doc>";
            if self.outside && self.fault.is_none() && !opened && !matches!(tag, b"" | b"<docs>" | b"</docs>")
            {
                self.fault = Some(self.fault("text outside of any <doc>".to_owned()));
            }
            self.opened = opened;
        }
        self.outside = false;
        Ok(self.lines.line().offset < self.end)
    }

    fn fault(&self, reason: String) -> Fault {
        let line = self.lines.line();
        let head = &line.bytes[..line.bytes.len().min(Reject::HEAD_BYTES)];
        Fault { offset: line.offset, head: head.to_vec(), reason }
    }

    /// Joins the other lines of the document to its first.
    fn find_end(&mut self) -> Result<(), Error> {
        loop {
            let before = self.lines.line().bytes.len();
            match self.lines.extend()? {
                Extended::Longer => {}
                // The document at the damage is lost with it.
                Extended::AtEnd => return self.lines.damage(),
                Extended::TooLong => return self.pass_long(),
            }
            let tag = self.tag(before);
            if tag.trim_ascii() == b"<doc>" {
                self.lines.cut(before);
                return Ok(());
            }
            if tag.trim_ascii_end().ends_with(b"</doc>") {
                self.outside = true;
                return Ok(());
            }
        }
    }

    /// Skips the rest of a document that is too long to be held.
    fn pass_long(&mut self) -> Result<(), Error> {
        self.fault = Some(self.fault(self.lines.too_long()));
        while self.lines.advance()? {
            let tag = self.tag(0);
            let (opens, closes) = (tag.trim_ascii() == b"<doc>", tag.trim_ascii_end().ends_with(b"</doc>"));
            if opens || closes {
                (self.opened, self.outside) = (opens, closes);
                break;
            }
        }
        Ok(())
    }

    /// Returns the current record from `from` on, as ASCII.
    fn tag(&self, from: usize) -> Cow<'_, [u8]> {
        self.lines.charset.ascii(&self.lines.line().bytes[from..])
    }
}

/// The offset of the fault in a document, and the reason.
type Wrong = (usize, Cow<'static, str>);

/// The id and the text of a document.
type SogouDocument<'t> = Result<(&'t str, Cow<'t, str>), Wrong>;

fn document<'t>(text: &'t str, reading: &Reading) -> SogouDocument<'t> {
    let docno = field(text, "<docno>", "</docno>")?.map_or("", |(docno, _)| docno.trim());
    if docno.is_empty() {
        return Err((0, "the document has no <docno>".into()));
    }
    let id = match reading.id() {
        ("url", true) => field(text, "<url>", "</url>")?.map_or("", |(url, _)| url.trim()),
        _ => docno,
    };
    if id.is_empty() {
        return Err((0, "the document has no <url>".into()));
    }
    let title = field(text, "<contenttitle>", "</contenttitle>")?.map_or("", |(title, _)| title.trim());
    let content = field(text, "<content>", "</content>")?;
    let (content, rest) = content.ok_or((0, "the document has no <content>".into()))?;
    // If the newline between two documents is damaged, the second one must not be lost in silence.
    if find(rest, "<docno>").is_some() {
        return Err((0, "the document has two <docno>".into()));
    }
    let text = if title.is_empty() { content.into() } else { format!("{title}\n{content}").into() };
    Ok((id, text))
}

/// Returns the text between the first `open` and the first `close` after it, and the rest behind that.
fn field<'t>(text: &'t str, open: &str, close: &str) -> Result<Option<(&'t str, &'t str)>, Wrong> {
    let Some(at) = find(text, open) else { return Ok(None) };
    let value = &text[at + open.len()..];
    match find(value, close) {
        Some(end) => Ok(Some((&value[..end], &value[end + close.len()..]))),
        None => Err((0, format!("{open} is not closed").into())),
    }
}

/// Returns a document without these ranges of its text, of which the title and the content each lose their part. The
/// newline between the two is in no element. `None` if the text has no such ranges.
fn document_without(document: &str, cuts: &[Range<usize>]) -> Option<String> {
    let value =
        |tag: [&str; 2]| field(document, tag[0], tag[1]).ok().flatten().map_or("", |(value, _)| value);
    let place = |value: &str| {
        let start = (value.as_ptr() as usize).saturating_sub(document.as_ptr() as usize);
        start..start + value.len()
    };
    let title = value(["<contenttitle>", "</contenttitle>"]).trim();
    let content = value(["<content>", "</content>"]);
    let begins = if title.is_empty() { 0 } else { title.len() + 1 };
    let within = |part: Range<usize>| -> Vec<_> {
        let clipped = cuts.iter().map(|cut| cut.start.max(part.start)..cut.end.min(part.end));
        clipped
            .filter(|cut| cut.start < cut.end)
            .map(|cut| cut.start - part.start..cut.end - part.start)
            .collect()
    };
    let mut parts = vec![(place(content), without(content, &within(begins..begins + content.len()))?)];
    if !title.is_empty() {
        parts.push((place(title), without(title, &within(0..title.len()))?));
    }
    parts.sort_by_key(|(place, _)| place.start);
    let (mut whole, mut end) = (String::with_capacity(document.len()), 0);
    for (place, value) in parts {
        whole.push_str(document.get(end..place.start)?);
        whole.push_str(&value);
        end = place.end;
    }
    whole.push_str(document.get(end..)?);
    Some(whole)
}

fn find(text: &str, tag: &str) -> Option<usize> {
    memchr::memmem::find(text.as_bytes(), tag.as_bytes())
}

struct SogouReader {
    elements: Elements,
    reading: Reading,
    /// Buffer for documents that must be decoded.
    buffer: Vec<u8>,
}

impl Reader for SogouReader {
    fn fill(&mut self, batch: &mut DocBatch) -> Result<bool, Error> {
        let path = self.elements.lines.path.clone();
        let charset = self.elements.lines.charset;
        while !batch.full() {
            let Some(element) = self.elements.next()? else { return Ok(false) };
            if let Some(reason) = element.fault {
                batch.reject(&path, element.offset, reason, element.bytes);
                continue;
            }
            let decoded = charset.decode(element.bytes, self.reading.bad_text, &mut self.buffer);
            let decoded = decoded.map_err(|illegal| (illegal.offset, illegal.reason.into()));
            match decoded.and_then(|(text, replaced)| Ok((document(text, &self.reading)?, replaced))) {
                Ok(((id, text), replaced)) => batch.push_decoded(id, &text, replaced),
                Err((at, reason)) => {
                    batch.reject(&path, element.offset + at as u64, reason, element.bytes);
                }
            }
        }
        Ok(true)
    }

    fn recognised(&self) -> Option<RecognisedEncoding> {
        self.elements.lines.recognised()
    }
}

impl CopySource for Elements {
    fn lines(&self) -> &Lines {
        &self.lines
    }

    fn next_record(&mut self) -> Result<Option<bool>, Error> {
        Ok(self.next()?.map(|element| element.fault.is_none()))
    }

    fn shortened(&mut self, cuts: &[Range<usize>]) -> Result<Vec<u8>, Error> {
        let (record, mut buffer) = (self.lines.line().bytes, Vec::new());
        let decoded = self.lines.charset.decode(record, BadText::Replace, &mut buffer).ok();
        let shortened = decoded.and_then(|(document, _)| document_without(document, cuts));
        let shortened = shortened.ok_or_else(|| Error::changed(&self.lines.path))?;
        Ok(self.lines.charset.encode(&shortened, record).into_owned())
    }
}

#[cfg(test)]
mod tests;
