//! Files of an unknown format.

use operators::DocBatch;

use crate::{Cuts, Error, Fate, Format, Parts, Piece, Reader, Reading, Writer};

/// Format of a file that no other format recognises, in an input where others are recognised. Such a file is
/// one reject. An empty one, as a reducer leaves it that had nothing to write, is nothing.
pub static UNKNOWN: Unknown = Unknown;

/// The type of [`UNKNOWN`], which `--format` cannot name.
pub struct Unknown;

impl Format for Unknown {
    fn name(&self) -> &'static str {
        "unknown"
    }

    fn recognises(&self, _path: &str, _head: &[u8]) -> bool {
        false
    }

    fn cuts(&self, _path: &str) -> Cuts {
        Cuts::Nowhere
    }

    fn open(&self, piece: &Piece, _reading: &Reading) -> Result<Box<dyn Reader>, Error> {
        refuse_contents(piece)?;
        Ok(Box::new(NoReader))
    }

    fn writer<'a>(&self, _parts: &'a dyn Parts, _reading: &Reading) -> Box<dyn Writer + 'a> {
        Box::new(NoWriter)
    }
}

/// A reader of an empty file.
struct NoReader;

impl Reader for NoReader {
    fn fill(&mut self, _batch: &mut DocBatch) -> Result<bool, Error> {
        Ok(false)
    }
}

/// A writer that refuses every piece but empty ones.
struct NoWriter;

impl Writer for NoWriter {
    fn divide(&mut self, piece: &Piece, _fates: &mut dyn Iterator<Item = Fate>) -> Result<(), Error> {
        refuse_contents(piece)
    }

    fn finish(self: Box<Self>) -> Result<(), Error> {
        Ok(())
    }
}

fn refuse_contents(piece: &Piece) -> Result<(), Error> {
    match piece.blob.bytes() {
        0 => Ok(()),
        _ => Err(Error::data(piece.blob.path(), 0, "of no format known; name it with --format")),
    }
}
