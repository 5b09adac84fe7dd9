//! Folders of files with one document each. Files are copied whole, under their own names.

use std::io::{self, Read, Write as _};
use std::ops::Range;
use std::sync::Arc;

use cluster::{Blob, BlobReader};
use operators::Reject;

use crate::parts::cut_text::without;
use crate::parts::removal_log::Reasons;
use crate::text::charset::Charset;
use crate::{BadText, Error, Fate, Parts, Piece, Reading, Writer};

/// Reads a file, and returns whether it is longer than `most` bytes. Of a file that is too long, only the
/// head for a reject is read.
pub(crate) fn read_file(blob: &Arc<dyn Blob>, most: usize) -> Result<(Vec<u8>, bool), Error> {
    let too_long = blob.bytes() > most as u64;
    let end = if too_long { Reject::HEAD_BYTES as u64 } else { blob.bytes() };
    let mut bytes = Vec::new();
    BlobReader::new(blob.clone(), 0, end)
        .read_to_end(&mut bytes)
        .map_err(|error| Error::reading(blob.path(), 0, error))?;
    Ok((bytes, too_long))
}

/// Writer that copies each file to the same path below `kept` or `removed`.
///
/// The piece at the beginning of a file stands for the whole file; any other piece has no records.
pub(crate) struct TreeWriter<'a> {
    parts: &'a dyn Parts,
    reading: Reading,
    reasons: Reasons<'a>,
}

impl<'a> TreeWriter<'a> {
    pub fn new(parts: &'a dyn Parts, reading: &Reading) -> Self {
        TreeWriter { parts, reading: reading.clone(), reasons: Reasons::new(parts) }
    }

    fn copy(&self, piece: &Piece, folder: &str) -> Result<(), Error> {
        let mut output = self.parts.named(folder, &piece.name)?;
        let mut input = BlobReader::new(piece.blob.clone(), 0, u64::MAX);
        io::copy(&mut input, &mut output).map_err(|error| Error::writing(folder, error))?;
        Ok(output.finish(1)?)
    }

    /// Copies a text without these ranges, in its own encoding and with its byte order mark.
    fn shorten(&self, piece: &Piece, cuts: &[Range<usize>]) -> Result<(), Error> {
        let (bytes, _) = read_file(&piece.blob, self.reading.max_record_bytes)?;
        let charset = Charset::of(&bytes, true, self.reading.encoding);
        let (mark, text) = bytes.split_at(charset.mark_bytes());
        let mut buffer = Vec::new();
        let decoded = charset.decode(text, BadText::Replace, &mut buffer).ok();
        let shortened = decoded.and_then(|(text, _)| without(text, cuts));
        let shortened = shortened.ok_or_else(|| Error::changed(piece.blob.path()))?;
        let mut output = self.parts.named("kept", &piece.name)?;
        let written = output.write_all(&[mark, &charset.encode(&shortened, text)].concat());
        written.map_err(|error| Error::writing("kept", error))?;
        Ok(output.finish(1)?)
    }
}

impl Writer for TreeWriter<'_> {
    fn divide(&mut self, piece: &Piece, fates: &mut dyn Iterator<Item = Fate>) -> Result<(), Error> {
        if piece.start > 0 {
            return Ok(());
        }
        match fates.next() {
            Some(Fate::Kept) => self.copy(piece, "kept"),
            Some(Fate::Cut(cuts)) => self.shorten(piece, &cuts),
            Some(Fate::Removed(removal)) => {
                self.copy(piece, "removed")?;
                self.reasons.write(&removal)
            }
            Some(Fate::Rejected) if self.parts.takes_rejected() => self.copy(piece, "rejected"),
            Some(Fate::Rejected) => Ok(()),
            Some(Fate::Annotated(_)) | None => Err(Error::changed(piece.blob.path())),
        }
    }

    fn finish(self: Box<Self>) -> Result<(), Error> {
        self.reasons.finish()
    }
}
