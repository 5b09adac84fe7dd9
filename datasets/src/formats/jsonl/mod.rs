//! This format reads JSON lines: one object a line, plain or compressed. It uses `text` and `parts`. `array.rs` reads arrays and
//! objects that span lines by it; `pack.rs` writes lines of whole files.

pub(crate) mod array;
mod pack;

use std::ops::Range;

use operators::DocBatch;

pub(crate) use self::pack::JsonPacker;
use crate::parts::copy_writer::{CopySource, CopyWriter};
use crate::parts::cut_text::without;
use crate::parts::decision_fields::{DecisionValues, free_names, is_like_a_field, write_members};
use crate::text::compression::{Compression, has_suffix};
use crate::text::json::JsonDocument;
use crate::text::json::paths::JsonPaths;
use crate::text::line_numbers::{LineNumbers, place};
use crate::text::line_reader::Lines;
use crate::text::{charset, json};
use crate::{
    BadText, Cuts, Error, Format, MissingField, Parts, Piece, Reader, Reading, RecognisedEncoding, Writer,
};

/// JSON lines: one object per line; also `.gz`, `.zst` and `.bz2`.
///
/// Plain files split at newlines. The standard requires UTF-8, but the other encodings are read as well.
/// Blank lines and a byte order mark are no records. If an object has a name twice, the last value counts.
/// The text must be a string (null is not one). The id is a string, or a number as it is written; anything
/// else counts as no id. The priority is a number, or a string that is one. A line that is not valid JSON, is
/// nested deeper than 128, or is too long is a reject.
///
/// Kept lines are copied byte for byte. Removed ones get `duplicate_of`, `similarity`, `cluster` and `reason`
/// as their last members (with the suffix `_dedup` where they already have one of that name). Both are
/// compressed as the input was.
pub struct Jsonl;

/// The one value of [`Jsonl`].
pub static JSONL: Jsonl = Jsonl;

impl Format for Jsonl {
    fn name(&self) -> &'static str {
        "jsonl"
    }

    /// Recognises by extension, or by `{"` at the beginning of the (decompressed) file.
    ///
    /// A `.zst` or `.bz2` of another name is recognised only where 4 KiB hold a whole compressed block.
    fn recognises(&self, path: &str, head: &[u8]) -> bool {
        let (name, _) = Compression::named(path);
        if [".jsonl", ".ndjson", ".json"].iter().any(|suffix| has_suffix(name, suffix)) {
            return true;
        }
        match Compression::of(path, head) {
            Compression::None => begins_an_object(head),
            compression => begins_an_object(&compression.decode_head(head)),
        }
    }

    fn has_fields(&self) -> bool {
        true
    }

    fn cuts_texts(&self, field: &str) -> bool {
        JsonPaths::of(field).is_none()
    }

    fn cuts(&self, path: &str) -> Cuts {
        Compression::named(path).1.cuts()
    }

    fn expansion(&self, path: &str) -> u64 {
        Compression::named(path).1.expansion()
    }

    fn open(&self, piece: &Piece, reading: &Reading) -> Result<Box<dyn Reader>, Error> {
        Ok(Box::new(JsonlReader::new(Lines::open(piece, reading)?, reading)))
    }

    fn writer<'a>(&self, parts: &'a dyn Parts, reading: &Reading) -> Box<dyn Writer + 'a> {
        Box::new(CopyWriter::new(parts, ".jsonl", reading, |piece, reading| {
            Ok(JsonLines::new(Lines::open(piece, reading)?, reading))
        }))
    }

    fn line_numbers(&self, file: &Piece, reading: &Reading) -> Result<Option<LineNumbers>, Error> {
        LineNumbers::open(file, reading).map(Some)
    }
}

fn begins_an_object(head: &[u8]) -> bool {
    let head = charset::head(head);
    let object = head.trim_ascii_start().strip_prefix(b"{");
    object.is_some_and(|members| members.trim_ascii_start().starts_with(b"\""))
}

struct JsonlReader {
    lines: Lines,
    reading: Reading,
    /// Buffer for lines that must be decoded.
    buffer: Vec<u8>,
    /// Id of a line that has none.
    place: String,
    /// Error of the first line without a requested field.
    without_field: Option<MissingField>,
}

impl JsonlReader {
    fn new(lines: Lines, reading: &Reading) -> Self {
        let (buffer, place, without_field) = Default::default();
        JsonlReader { lines, reading: reading.clone(), buffer, place, without_field }
    }
}

/// Number of a line's field names that are listed to a user who asked for another one.
const TOLD_NAMES: usize = 100;

impl Reader for JsonlReader {
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
            let (text, replaced) =
                match self.lines.charset.decode(line.bytes, self.reading.bad_text, &mut self.buffer) {
                    Ok(decoded) => decoded,
                    Err(illegal) => {
                        let reason = match illegal.offset {
                            0 => illegal.reason,
                            at => format!("{}; the first at byte {at} of the line", illegal.reason),
                        };
                        batch.reject(path, line.offset, reason, line.bytes);
                        continue;
                    }
                };
            match json::document(text, &self.reading) {
                Ok(JsonDocument { id, text, priority, replaced: is_mended }) => {
                    let id = id.as_deref().unwrap_or_else(|| place(path, line.offset, &mut self.place));
                    batch.push_decoded(id, &text, replaced || is_mended);
                    batch.set_priority(priority);
                }
                Err(refusal) => {
                    batch.reject(path, line.offset, &refusal, line.bytes);
                    if let (None, json::Refusal::NoField(field)) = (&self.without_field, refusal) {
                        let mut told = 0..TOLD_NAMES;
                        let found = json::names(text, |_| told.next().is_some());
                        self.without_field = Some(MissingField { path: path.to_owned(), field, found });
                    }
                }
            }
        }
        Ok(true)
    }

    fn without_field(&mut self) -> Option<MissingField> {
        self.without_field.take()
    }

    fn recognised(&self) -> Option<RecognisedEncoding> {
        self.lines.recognised()
    }
}

/// The lines of a piece that are copied.
struct JsonLines {
    lines: Lines,
    /// Field that holds the text.
    text_field: String,
    /// Buffer for lines that must be decoded.
    buffer: Vec<u8>,
}

impl JsonLines {
    fn new(lines: Lines, reading: &Reading) -> Self {
        JsonLines { lines, text_field: reading.text().to_owned(), buffer: Vec::new() }
    }
}

impl CopySource for JsonLines {
    fn lines(&self) -> &Lines {
        &self.lines
    }

    fn next_record(&mut self) -> Result<Option<bool>, Error> {
        self.lines.next_record()
    }

    /// Returns the members that the line gets, and the place of its last brace.
    fn insertion(
        &mut self,
        fields: &[&str],
        values: &DecisionValues,
    ) -> Result<Option<(usize, Vec<u8>)>, Error> {
        let charset = self.lines.charset;
        let line = self.lines.line();
        let decoded = charset.decode(line.bytes, BadText::Replace, &mut self.buffer);
        let (Some(brace), Ok((text, _))) = (charset.last(line.bytes, b'}'), decoded) else {
            return Err(Error::changed(&self.lines.path));
        };
        let taken = json::names(text, is_like_a_field);
        let names = free_names(fields, |name| taken.iter().any(|taken| taken == name));
        let mut members = b",".to_vec();
        write_members(&mut members, &names, values)
            .map_err(|error| Error::writing("removed or annotated", error))?;
        let mut members = String::from_utf8_lossy(&members);
        if !charset.is_utf8() {
            members = json::escaped(&members).into();
        }
        Ok(Some((brace, charset.encode(&members, line.bytes).into_owned())))
    }

    /// Replaces the value of the text. The bytes before and behind it stay, but for illegal ones.
    fn shortened(&mut self, cuts: &[Range<usize>]) -> Result<Vec<u8>, Error> {
        let charset = self.lines.charset;
        let line = self.lines.line();
        let decoded = charset.decode(line.bytes, BadText::Replace, &mut self.buffer).ok();
        let changed = || Error::changed(&self.lines.path);
        let (json, _) = decoded.ok_or_else(changed)?;
        let (place, text) = json::text_place(json, &self.text_field).ok_or_else(changed)?;
        let text = without(&text, cuts).ok_or_else(changed)?;
        let mut value = json::quoted(&text);
        let encoded = charset.encode(&value, line.bytes);
        let is_encoded =
            charset.decode(&encoded, BadText::Replace, &mut Vec::new()).is_ok_and(|(same, _)| same == value);
        // A string that was written in ASCII stays so.
        if !is_encoded || json[place.clone()].is_ascii() {
            value = json::escaped(&value);
        }
        let part = |text: &str| charset.encode(text, line.bytes).into_owned();
        Ok([part(&json[..place.start]), part(&value), part(&json[place.end..])].concat())
    }
}

#[cfg(test)]
mod tests;
