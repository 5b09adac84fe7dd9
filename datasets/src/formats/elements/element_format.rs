//! Reads and copies elements, and tells the program of a format of them.

use std::borrow::Cow;
use std::ops::Range;

use operators::{DocBatch, Reject};

use crate::parts::copy_writer::{CopySource, CopyWriter};
use crate::text::charset;
use crate::text::compression::Compression;
use crate::text::line_numbers::LineNumbers;
use crate::text::line_reader::{Extended, Lines};
use crate::{BadText, Cuts, Error, Format, Parts, Piece, Reader, Reading, RecognisedEncoding, Writer};

/// A format whose documents are elements, each of which begins at a line of its own.
///
/// A document ends with the line that closes it, or where the next begins if that is missing, and the file splits at lines that open
/// one. Text between two documents, before the first or behind the last is one reject, unless it is of the format: so a document whose
/// opening is damaged is not lost in silence. No byte of `<`, `>`, `/` or the newline can be a later byte of a character of GB18030:
/// second bytes are 0x40 and above, or 0x30 to 0x39 in characters of four bytes, as is the fourth. Parts have the elements one behind
/// the other, without a root.
pub(crate) struct ElementFormat {
    pub(super) name: &'static str,
    /// Extension of the parts.
    pub(super) extension: &'static str,
    /// Whether texts stand as they are in the file, so that parts of them can be cut out.
    pub(super) cuts_texts: bool,
    /// Whether the first lines of a file, without white space around them, are those of the format.
    pub(super) recognises: fn(&mut dyn Iterator<Item = &[u8]>) -> bool,
    /// Opens the elements of a piece.
    pub(super) open: fn(&Piece, &Reading) -> Result<Elements, Error>,
}

/// The elements of a format.
pub(super) struct ElementKind {
    /// Name of the element, for messages.
    pub(super) name: &'static str,
    /// Whether a line, without white space around it, opens an element.
    pub(super) opens: fn(&[u8]) -> bool,
    /// End of the line that closes one.
    pub(super) closes: &'static [u8],
    /// Whether such a line may stand outside of all elements.
    pub(super) is_outside: fn(&[u8]) -> bool,
    /// Returns the id and the text of an element.
    pub(super) document: for<'t> fn(&'t str, &Reading) -> ElementDocument<'t>,
    /// Returns an element without these ranges of its text; `None` if the text has no such ranges.
    pub(super) without: fn(&str, &[Range<usize>]) -> Option<String>,
}

/// The offset of the fault in an element, and the reason.
pub(super) type Wrong = (usize, Cow<'static, str>);

/// The id and the text of an element.
pub(super) type ElementDocument<'t> = Result<(Cow<'t, str>, Cow<'t, str>), Wrong>;

impl Format for ElementFormat {
    fn name(&self) -> &'static str {
        self.name
    }

    fn recognises(&self, _path: &str, head: &[u8]) -> bool {
        let head = charset::head(head);
        (self.recognises)(&mut head.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii))
    }

    fn cuts_texts(&self, _field: &str) -> bool {
        self.cuts_texts
    }

    fn cuts(&self, path: &str) -> Cuts {
        Compression::named(path).1.cuts()
    }

    fn expansion(&self, path: &str) -> u64 {
        Compression::named(path).1.expansion()
    }

    fn open(&self, piece: &Piece, reading: &Reading) -> Result<Box<dyn Reader>, Error> {
        let elements = (self.open)(piece, reading)?;
        Ok(Box::new(ElementReader { elements, reading: reading.clone(), buffer: Vec::new() }))
    }

    fn writer<'a>(&self, parts: &'a dyn Parts, reading: &Reading) -> Box<dyn Writer + 'a> {
        Box::new(CopyWriter::new(parts, self.extension, reading, self.open))
    }

    fn line_numbers(&self, file: &Piece, reading: &Reading) -> Result<Option<LineNumbers>, Error> {
        LineNumbers::open(file, reading).map(Some)
    }
}

/// The documents of a piece as bytes, for both the reader and the writer. Memory: one document.
pub(super) struct Elements {
    kind: &'static ElementKind,
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
    pub fn open(piece: &Piece, reading: &Reading, kind: &'static ElementKind) -> Result<Self, Error> {
        let lines = Lines::open(piece, reading)?;
        let end = lines.end;
        Ok(Elements {
            kind,
            lines: lines.past_end(),
            end,
            outside: piece.start == 0,
            opened: false,
            fault: None,
        })
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
            let opened = (self.kind.opens)(tag);
            if self.outside && self.fault.is_none() && !opened && !(self.kind.is_outside)(tag) {
                self.fault = Some(self.fault(format!("text outside of any <{}>", self.kind.name)));
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
            if (self.kind.opens)(tag.trim_ascii()) {
                self.lines.cut(before);
                return Ok(());
            }
            if tag.trim_ascii_end().ends_with(self.kind.closes) {
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
            let opens = (self.kind.opens)(tag.trim_ascii());
            let closes = tag.trim_ascii_end().ends_with(self.kind.closes);
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

/// Returns the text between the first `open` and the first `close` after it, and the rest behind that.
pub(super) fn field<'t>(text: &'t str, open: &str, close: &str) -> Result<Option<(&'t str, &'t str)>, Wrong> {
    let Some(at) = find(text, open) else { return Ok(None) };
    let value = &text[at + open.len()..];
    match find(value, close) {
        Some(end) => Ok(Some((&value[..end], &value[end + close.len()..]))),
        None => Err((0, format!("{open} is not closed").into())),
    }
}

/// Returns the place of a tag.
pub(super) fn find(text: &str, tag: &str) -> Option<usize> {
    memchr::memmem::find(text.as_bytes(), tag.as_bytes())
}

struct ElementReader {
    elements: Elements,
    reading: Reading,
    /// Buffer for documents that must be decoded.
    buffer: Vec<u8>,
}

impl Reader for ElementReader {
    fn fill(&mut self, batch: &mut DocBatch) -> Result<bool, Error> {
        let path = self.elements.lines.path.clone();
        let charset = self.elements.lines.charset;
        let kind = self.elements.kind;
        while !batch.full() {
            let Some(element) = self.elements.next()? else { return Ok(false) };
            if let Some(reason) = element.fault {
                batch.reject(&path, element.offset, reason, element.bytes);
                continue;
            }
            let decoded = charset.decode(element.bytes, self.reading.bad_text, &mut self.buffer);
            let decoded = decoded.map_err(|illegal| (illegal.offset, illegal.reason.into()));
            match decoded.and_then(|(text, replaced)| Ok(((kind.document)(text, &self.reading)?, replaced))) {
                Ok(((id, text), replaced)) => batch.push_decoded(&id, &text, replaced),
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

    /// Only the beginning is held of text that is no element, and of an element that is too long.
    fn rejected(&self) -> Option<[&[u8]; 2]> {
        self.fault.is_none().then(|| self.record())
    }

    fn shortened(&mut self, cuts: &[Range<usize>]) -> Result<Vec<u8>, Error> {
        let record = self.lines.line().bytes;
        let mut buffer = Vec::new();
        let decoded = self.lines.charset.decode(record, BadText::Replace, &mut buffer).ok();
        let shortened = decoded.and_then(|(document, _)| (self.kind.without)(document, cuts));
        let shortened = shortened.ok_or_else(|| Error::changed(&self.lines.path))?;
        Ok(self.lines.charset.encode(&shortened, record).into_owned())
    }
}
