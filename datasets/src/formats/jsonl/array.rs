//! This format reads JSON arrays, and objects that span lines, as the JSON lines that [`JsonValues`](crate::text::json::values) makes
//! of them.

use super::{JsonLines, JsonlReader};
use crate::parts::copy_writer::CopyWriter;
use crate::text::charset;
use crate::text::compression::{Compression, has_suffix};
use crate::text::json::paths::JsonPaths;
use crate::text::line_numbers::LineNumbers;
use crate::text::line_reader::Lines;
use crate::{Cuts, Error, Format, Parts, Piece, Reader, Reading, Writer};

/// A JSON array of objects, or objects one after the other that span lines; also `.gz`, `.zst` and `.bz2`.
///
/// The file must be UTF-8. It is read once by a thread of its own, from its beginning, and workers share what it gives. Kept and
/// removed records are written as JSON lines; newlines within a record become spaces, and all else of it stays as it is. An array without
/// an end is a reject at the place where the last whole element ends. Where brackets within an element do not match, all elements
/// behind it are one reject with it.
pub struct JsonArray;

/// The one value of [`JsonArray`].
pub static JSON_ARRAY: JsonArray = JsonArray;

impl Format for JsonArray {
    fn name(&self) -> &'static str {
        "json-array"
    }

    /// Recognises files called `.json` that begin with `[`, or with a line of nothing but `{`.
    fn recognises(&self, path: &str, head: &[u8]) -> bool {
        if !has_suffix(Compression::named(path).0, ".json") {
            return false;
        }
        let plain = Compression::of(path, head).decode_head(head);
        let head = charset::head(&plain);
        let begin = head.trim_ascii_start();
        begin.starts_with(b"[") || begin.strip_prefix(b"{").is_some_and(first_line_is_blank)
    }

    fn has_fields(&self) -> bool {
        true
    }

    fn cuts_texts(&self, field: &str) -> bool {
        JsonPaths::of(field).is_none()
    }

    fn cuts(&self, _path: &str) -> Cuts {
        Cuts::Contents
    }

    fn expansion(&self, path: &str) -> u64 {
        Compression::named(path).1.expansion()
    }

    fn open(&self, piece: &Piece, reading: &Reading) -> Result<Box<dyn Reader>, Error> {
        Ok(Box::new(JsonlReader::new(Lines::open_values(piece, reading)?, reading)))
    }

    fn writer<'a>(&self, parts: &'a dyn Parts, reading: &Reading) -> Box<dyn Writer + 'a> {
        Box::new(CopyWriter::new(parts, ".jsonl", reading, |piece, reading| {
            Ok(JsonLines::new(Lines::open_values(piece, reading)?, reading))
        }))
    }

    fn line_numbers(&self, file: &Piece, reading: &Reading) -> Result<Option<LineNumbers>, Error> {
        LineNumbers::open(file, reading).map(Some)
    }
}

/// Whether nothing but white space comes before the first newline, which is there.
fn first_line_is_blank(rest: &[u8]) -> bool {
    let line = rest.split(|&byte| byte == b'\n').next().unwrap_or_default();
    line.len() < rest.len() && line.trim_ascii().is_empty()
}
