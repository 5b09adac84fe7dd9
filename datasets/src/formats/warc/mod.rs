//! This format reads WARC: what crawlers have fetched (WARC files) and the texts of it (WET files).
//!
//! `records.rs` finds the records by their lengths, `payload.rs` the text of a record.

mod payload;
mod records;
#[cfg(test)]
mod tests;

use operators::DocBatch;

use self::payload::Payload;
use self::records::{WarcHead, WarcRecords};
use crate::confined::{Bounds, ConfinedTask};
use crate::formats::office::NO_TEXT;
use crate::parts::copy_writer::CopyWriter;
use crate::text::charset::Charset;
use crate::text::compression::{Compression, has_suffix};
use crate::text::encoding::Encoding;
use crate::text::line_numbers::place;
use crate::{Cuts, Error, Format, Parts, Piece, Reader, Reading, Writer};

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
        Ok(Box::new(WarcReader { records: WarcRecords::open(piece, reading)?, reading: reading.clone() }))
    }

    fn writer<'a>(&self, parts: &'a dyn Parts, reading: &Reading) -> Box<dyn Writer + 'a> {
        Box::new(CopyWriter::new(parts, ".warc", reading, WarcRecords::open))
    }
}

struct WarcReader {
    records: WarcRecords,
    reading: Reading,
}

impl Reader for WarcReader {
    fn fill(&mut self, batch: &mut DocBatch) -> Result<bool, Error> {
        let path = self.records.lines.path.clone();
        while !batch.full() {
            let Some(record) = self.records.next()? else { return Ok(false) };
            let (path, offset, bytes) = (&path, record.offset, record.bytes);
            if let Some(reason) = record.fault {
                batch.reject(path, offset, reason, bytes);
                continue;
            }
            let (head, body) = bytes.split_at(record.body);
            let head = WarcHead::of(head);
            let named = self.reading.id.as_deref().and_then(|name| head.value(name));
            let id = named.or_else(|| head.value("WARC-Record-ID"));
            let id = id.map_or_else(|| place(path, offset, &mut String::new()).to_owned(), str::to_owned);
            match text(&head, body, &self.reading, path)? {
                Ok((text, replaced)) => batch.push_decoded(&id, &text, replaced),
                Err(reason) => batch.reject(path, offset, reason, bytes),
            }
        }
        Ok(true)
    }
}

/// Returns the text of a record and whether illegal bytes were replaced, or the reason why it cannot be read. A record that has none by its
/// kind has an empty one.
fn text(
    head: &WarcHead,
    body: &[u8],
    reading: &Reading,
    path: &str,
) -> Result<Result<(String, bool), String>, Error> {
    let payload = match Payload::of(head, body, reading.max_record_bytes) {
        Ok(payload) => payload,
        Err(reason) => return Ok(Err(reason)),
    };
    match payload {
        Payload::None => Ok(Ok((String::new(), false))),
        Payload::Text { bytes, charset } => {
            let chosen = reading.encoding.or(charset.map(Encoding));
            let (charset, mut buffer) = (Charset::of(&bytes, true, chosen), Vec::new());
            let bytes = &bytes[charset.mark_bytes()..];
            let decoded = charset.decode(bytes, reading.bad_text, &mut buffer);
            let decoded = decoded.map(|(text, replaced)| (text.to_owned(), replaced));
            Ok(decoded.map_err(|illegal| illegal.reason.to_string()))
        }
        Payload::Page(page) => {
            let answer = reading.extractors.ask(ConfinedTask::ExtractPage, page, Bounds::of(reading));
            let answer = answer.map_err(|error| cluster::Error::io(path, "extract the text of", error))?;
            let text = answer.and_then(|text| {
                String::from_utf8(text).map_err(|_| "the extractor's answer is no text".to_owned())
            });
            Ok(match text {
                Err(reason) if reason == NO_TEXT => Ok((String::new(), false)),
                text => text.map(|text| (text, false)),
            })
        }
    }
}
