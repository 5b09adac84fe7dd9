//! This format reads WARC: what crawlers have fetched (WARC files) and the texts of it (WET files).
//!
//! `records.rs` finds the records by their lengths, `payload.rs` the text of a record.

mod payload;
mod records;
#[cfg(test)]
mod tests;

use operators::{DocBatch, Priority, Reject};

use self::payload::Payload;
use self::records::{WarcHead, WarcRecords};
use crate::confined::Bounds;
use crate::formats::office::{NO_TEXT, texts_of_pages};
use crate::parts::copy_writer::CopyWriter;
use crate::text::charset::Charset;
use crate::text::compression::{Compression, has_suffix};
use crate::text::encoding::Encoding;
use crate::text::line_numbers::place;
use crate::{Cuts, Error, Format, MissingField, Parts, Piece, Reader, Reading, Writer, no_number};

/// WARC, as crawlers and Common Crawl write it; also `.gz` and `.zst`, in which each record is compressed by itself.
///
/// | record | text |
/// |---|---|
/// | `conversion` (those of WET files), `resource` of a text | the record, in UTF-8 or the encoding that its type names |
/// | `response` of HTTP with a web page, `resource` of one | that of the page, a line for each block |
/// | `response` with another text | the text |
/// | any other: `warcinfo`, `request`, `metadata`, `revisit`, images | none, so it is kept |
///
/// The id is `WARC-Record-ID`, or another header that is named as the field of the id, such as `WARC-Target-URI`. Records are found by
/// `Content-Length`. A record whose length is wrong costs no other one: it is a reject up to the next line that begins a record. Parts
/// have the records as they are.
///
/// Sources: ISO 28500:2017 (WARC), RFC 9112 (HTTP/1.1).
pub(crate) static WARC: Warc = Warc;

/// The type of [`WARC`].
pub struct Warc;

impl Format for Warc {
    fn name(&self) -> &'static str {
        "warc"
    }

    fn recognises(&self, path: &str, head: &[u8]) -> bool {
        let (name, _) = Compression::named(path);
        if [".warc", ".wet"].iter().any(|suffix| has_suffix(name, suffix)) {
            return true;
        }
        Compression::of(path, head).decode_head(head).starts_with(b"WARC/")
    }

    /// The headers are fields.
    fn has_fields(&self) -> bool {
        true
    }

    fn adds_fields(&self) -> bool {
        false
    }

    /// A length and digests say what the text was.
    fn cuts_texts(&self, _field: &str) -> bool {
        false
    }

    fn cuts(&self, path: &str) -> Cuts {
        Compression::named(path).1.cuts()
    }

    fn expansion(&self, path: &str) -> u64 {
        Compression::named(path).1.expansion()
    }

    fn open(&self, piece: &Piece, reading: &Reading) -> Result<Box<dyn Reader>, Error> {
        let records = WarcRecords::open(piece, reading)?;
        Ok(Box::new(WarcReader { records, reading: reading.clone(), without_field: None }))
    }

    fn writer<'a>(&self, parts: &'a dyn Parts, reading: &Reading) -> Box<dyn Writer + 'a> {
        Box::new(CopyWriter::new(parts, ".warc", reading, WarcRecords::open))
    }
}

struct WarcReader {
    records: WarcRecords,
    reading: Reading,
    /// Error of the first record with a text and without a requested header.
    without_field: Option<MissingField>,
}

/// Most records that are read before the texts of their pages are extracted.
const RECORDS: usize = 128;
/// Bytes of texts and pages, decompressed, after which no more are held.
const HELD_BYTES: usize = 4 << 20;

/// A record that was read.
struct ReadRecord {
    id: String,
    offset: u64,
    /// First bytes, for a reject.
    head: Vec<u8>,
    text: RecordText,
    priority: Priority,
}

/// The text of a record.
enum RecordText {
    /// The text, and whether illegal bytes were replaced; or the reason why it cannot be read.
    Known(Result<(String, bool), String>),
    /// That of the page of this number.
    OfPage(usize),
}

impl Reader for WarcReader {
    fn fill(&mut self, batch: &mut DocBatch) -> Result<bool, Error> {
        let path = self.records.lines.path.clone();
        let mut more = Ok(true);
        while !batch.full() && matches!(more, Ok(true)) {
            let mut read = Vec::new();
            let mut pages = Vec::new();
            let mut held = 0;
            let most = HELD_BYTES.min(self.reading.max_record_bytes / 2).max(1);
            while read.len() < RECORDS && held < most {
                match self.read_one(&mut pages, &path) {
                    Ok(Some(record)) => {
                        held += match &record.text {
                            RecordText::Known(text) => text.as_ref().map_or(0, |(text, _)| text.len()),
                            RecordText::OfPage(page) => pages.get(*page).map_or(0, Vec::len),
                        };
                        read.push(record);
                    }
                    // Records that were read before the end or the damage count.
                    end => {
                        more = end.map(|_| false);
                        break;
                    }
                }
            }
            let extractors = (&*self.reading.extractors, Bounds::of(&self.reading));
            let mut texts = texts_of_pages(&pages, extractors, &path)?;
            for ReadRecord { id, offset, head, text, priority } in read {
                let text = match text {
                    RecordText::Known(text) => text,
                    RecordText::OfPage(page) => {
                        match std::mem::replace(&mut texts[page], Ok(String::new())) {
                            // A page without text is kept.
                            Err(reason) if reason == NO_TEXT => Ok((String::new(), false)),
                            text => text.map(|text| (text, false)),
                        }
                    }
                };
                match text {
                    Ok((text, replaced)) => {
                        batch.push_decoded(&id, &text, replaced);
                        batch.set_priority(priority);
                    }
                    Err(reason) => batch.reject(&path, offset, reason, &head),
                }
            }
        }
        more
    }

    fn without_field(&mut self) -> Option<MissingField> {
        self.without_field.take()
    }
}

impl WarcReader {
    /// Reads the next record; `None` at the end of the piece. Adds its page, if it has one, to `pages`.
    fn read_one(&mut self, pages: &mut Vec<Vec<u8>>, path: &str) -> Result<Option<ReadRecord>, Error> {
        let Some(record) = self.records.next()? else { return Ok(None) };
        let (offset, bytes) = (record.offset, record.bytes);
        let head = bytes[..bytes.len().min(Reject::HEAD_BYTES)].to_vec();
        if let Some(reason) = record.fault {
            let text = RecordText::Known(Err(reason.to_owned()));
            let priority = Priority::default();
            return Ok(Some(ReadRecord { id: String::new(), offset, head, text, priority }));
        }
        let (header, body) = bytes.split_at(record.body);
        let header = WarcHead::of(header);
        let value = |name: &Option<String>| name.as_deref().and_then(|name| header.value(name));
        let named = value(&self.reading.id);
        let id = named.or_else(|| header.value("WARC-Record-ID"));
        let id = id.map_or_else(|| place(path, offset, &mut String::new()).to_owned(), str::to_owned);
        let priority = value(&self.reading.priority).and_then(Priority::of_text);
        let payload = Payload::of(&header, body, self.reading.max_record_bytes);
        let has_text = !matches!(payload, Ok(Payload::None));
        let text = match payload {
            Err(reason) => RecordText::Known(Err(reason)),
            // A record without text stays, whatever its headers are.
            Ok(Payload::None) => RecordText::Known(Ok((String::new(), false))),
            Ok(_) if self.reading.id.is_some() && named.is_none() => {
                let field = self.reading.id.clone().unwrap_or_default();
                let reason = format!("no header \"{field}\"");
                let found = || header.names().map(str::to_owned).collect();
                self.without_field.get_or_insert_with(|| MissingField {
                    path: path.to_owned(),
                    field,
                    found: found(),
                });
                RecordText::Known(Err(reason))
            }
            Ok(_) if self.reading.priority.is_some() && priority.is_none() => {
                RecordText::Known(Err(no_number(self.reading.priority.as_deref().unwrap_or_default())))
            }
            Ok(Payload::Text { bytes, charset }) => {
                RecordText::Known(decoded(&bytes, charset, &self.reading))
            }
            Ok(Payload::Page(page)) => {
                pages.push(page);
                RecordText::OfPage(pages.len() - 1)
            }
        };
        let priority = priority.filter(|_| has_text).unwrap_or_default();
        Ok(Some(ReadRecord { id, offset, head, text, priority }))
    }
}

/// Decodes a text. `charset`: the encoding that its type names. Returns whether illegal bytes were replaced, too.
fn decoded(
    bytes: &[u8],
    charset: Option<&'static encoding_rs::Encoding>,
    reading: &Reading,
) -> Result<(String, bool), String> {
    let charset = Charset::of(bytes, true, reading.encoding.or(charset.map(Encoding)));
    let mut buffer = Vec::new();
    let decoded = charset.decode(&bytes[charset.mark_bytes()..], reading.bad_text, &mut buffer);
    decoded.map(|(text, replaced)| (text.to_owned(), replaced)).map_err(|illegal| illegal.reason.to_string())
}
