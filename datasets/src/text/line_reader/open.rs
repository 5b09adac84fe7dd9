//! Opening of the lines of a piece: decompression, encoding, and the first line that belongs to it.

use std::io::Read;
use std::sync::Arc;

use cluster::BlobReader;

use super::Lines;
use crate::text::charset::Charset;
use crate::text::compression::Compression;
use crate::text::json::values::RecordLayout;
use crate::{Error, Piece, Reading};

impl Lines {
    /// Opens the lines that start in the piece.
    pub fn open(piece: &Piece, reading: &Reading) -> Result<Self, Error> {
        Self::open_behind(piece, reading, RecordLayout::Lines, None)
    }

    /// Opens the JSON values that start in the piece, each as a line without the white space around it.
    ///
    /// # Errors
    /// [`Error::Data`] when the file is not UTF-8.
    pub fn open_values(piece: &Piece, reading: &Reading) -> Result<Self, Error> {
        let mut lines = Self::open_behind(piece, reading, RecordLayout::JsonValues, None)?;
        if lines.charset.encoding().is_none() {
            lines.charset = Charset::of_values(None);
        }
        if !lines.charset.is_utf8() {
            let reason =
                "JSON arrays and objects that span lines must be UTF-8: iconv -t UTF-8 makes them so";
            return Err(Error::data(&lines.path, 0, reason));
        }
        Ok(lines)
    }

    /// Opens the lines that start in the piece or before it, from the line at `start` on.
    pub fn open_from(start: u64, piece: &Piece, reading: &Reading) -> Result<Self, Error> {
        Self::open_behind(piece, reading, RecordLayout::Lines, Some(start))
    }

    fn open_behind(
        piece: &Piece,
        reading: &Reading,
        layout: RecordLayout,
        start: Option<u64>,
    ) -> Result<Self, Error> {
        let path = piece.blob.path().to_owned();
        let mut head = vec![0; Charset::HEAD_BYTES.min(piece.blob.bytes() as usize)];
        let length = piece.blob.read_full_at(0, &mut head)?;
        head.truncate(length);
        let compression = match &head[..] {
            [] => Compression::None, // an empty file has no lines, whatever its name
            head => Compression::of(&path, head),
        };
        let mut whole = length as u64 == piece.blob.bytes();
        let is_stored = compression == Compression::None && layout == RecordLayout::Lines;
        let contents = piece.shared.contents.as_ref().filter(|_| !is_stored);
        if let Some(contents) = contents {
            contents.begin(&piece.blob, compression, layout, reading);
            // The text before damage is read first.
            head.clear();
            let input = contents.reader(&path, 0).take(Charset::HEAD_BYTES as u64).read_to_end(&mut head);
            whole = input.is_ok() && head.len() < Charset::HEAD_BYTES;
        }
        let divided = contents.is_some() || is_stored;
        let charset = Charset::of(&head, whole, reading.encoding);
        // A line starts at the piece's first byte only if a newline lies before it.
        let unit = charset.unit() as u64;
        let from = match start {
            Some(start) => start,
            None if divided && piece.start > 0 => (piece.start - 1) / unit * unit,
            None => 0,
        };
        let input: Box<dyn Read + Send> = match contents {
            Some(contents) => Box::new(contents.reader(&path, from)),
            None => {
                let input = BlobReader::new(Arc::clone(&piece.blob), from, u64::MAX);
                let input = if divided { input.ahead_to(piece.end) } else { input };
                layout.lines(compression.decode_file(&path, input, reading)?)
            }
        };
        let mut lines = Lines {
            path,
            compression,
            layout,
            charset,
            input,
            failed: None,
            offset: from,
            end: match (divided, piece.start) {
                (true, _) => piece.end,
                (false, 0) => u64::MAX,
                (false, _) => 0,
            },
            buffer: Vec::new(),
            start: 0,
            filled: 0,
            record_bytes: 0,
            long_head: None,
            line_offset: 0,
            max_bytes: reading.max_record_bytes,
            window_log: reading.window_log(),
        };
        if !divided && piece.start == 0 {
            lines.recognise(reading);
        }
        if start.is_none() && divided && piece.start > 0 {
            lines.pass_line()?;
        }
        Ok(lines)
    }

    /// Recognises the encoding of the decompressed contents.
    fn recognise(&mut self, reading: &Reading) {
        let mut more = true;
        while more && self.filled < Charset::HEAD_BYTES {
            // The text before the damage is read first.
            more = self.read_more().unwrap_or_else(|error| {
                self.failed = Some(error);
                false
            });
        }
        let ended = !more && self.failed.is_none();
        self.charset = Charset::of(&self.buffer[..self.filled], ended, reading.encoding);
    }
}
