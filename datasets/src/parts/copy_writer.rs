//! The writer of all formats whose records are copied as bytes.

use std::ops::Range;

use super::part::{PartKind, PartWriter};
use super::removal_log::Reasons;
use crate::text::line_reader::Lines;
use crate::{Error, Fate, Parts, Piece, Reading, Removal, Writer};

/// Records of a piece, found in its lines once more. Implemented by the records of each format that is copied
/// as bytes: plain lines, JSON lines, CSV and SogouCS.
pub(crate) trait CopySource {
    /// Returns the lines of the file. The current one is the current record.
    fn lines(&self) -> &Lines;
    /// Advances to the next record. Returns whether it can be copied, which a reject cannot, or `None` at the
    /// end of the piece. Errors: those of [`Lines::advance`].
    fn next_record(&mut self) -> Result<Option<bool>, Error>;
    /// Returns the current record, and the newline behind it.
    fn record(&self) -> [&[u8]; 2] {
        let bytes = self.lines().line().bytes;
        [bytes, self.lines().charset.missing_newline(bytes)]
    }
    /// Returns the beginning of each part with kept records, and of each with removed ones.
    fn heads(&self) -> [Vec<u8>; 2] {
        Default::default()
    }
    /// Returns the bytes that say in the current record why it is removed, and their offset in it. Returns
    /// `None` if records have no place for them; the removal log says it then.
    fn insertion(&mut self, _removal: &Removal) -> Result<Option<(usize, Vec<u8>)>, Error> {
        Ok(None)
    }
    /// Returns the bytes of the current record without these ranges of its text, and without the newline behind it.
    ///
    /// # Errors
    /// When the text has no such ranges: the file has changed.
    fn shortened(&mut self, cuts: &[Range<usize>]) -> Result<Vec<u8>, Error>;
}

/// Writer of the kept and the removed records of a split, each as its own bytes. A record without a newline
/// gets one.
pub(crate) struct CopyWriter<'a, S> {
    kept: PartWriter<'a>,
    removed: PartWriter<'a>,
    reasons: Reasons<'a>,
    reading: Reading,
    open: fn(&Piece, &Reading) -> Result<S, Error>,
}

impl<'a, S: CopySource> CopyWriter<'a, S> {
    /// Creates a writer. `extension`: that of the parts, without that of the compression. `open`: finds the
    /// records of a piece.
    pub fn new(
        parts: &'a dyn Parts,
        extension: &'static str,
        reading: &Reading,
        open: fn(&Piece, &Reading) -> Result<S, Error>,
    ) -> Self {
        CopyWriter {
            kept: PartWriter::new(parts, "kept", extension),
            removed: PartWriter::new(parts, "removed", extension),
            reasons: Reasons::new(parts),
            reading: reading.clone(),
            open,
        }
    }

    /// Opens a piece. Returns its records, and the kinds of their kept and removed parts.
    fn open(&self, piece: &Piece) -> Result<(S, [PartKind; 2]), Error> {
        let source = (self.open)(piece, &self.reading)?;
        let lines = source.lines();
        let kinds = source.heads().map(|head| PartKind::of(lines.compression, lines.charset, &head));
        Ok((source, kinds))
    }
}

impl<S: CopySource> Writer for CopyWriter<'_, S> {
    fn divide(&mut self, piece: &Piece, fates: &mut dyn Iterator<Item = Fate>) -> Result<(), Error> {
        let (mut source, [kept, removed]) = self.open(piece)?;
        while let Some(whole) = source.next_record()? {
            match fates.next() {
                Some(Fate::Rejected) => {}
                Some(Fate::Kept) if whole => self.kept.write(&kept, &source.record())?,
                Some(Fate::Cut(cuts)) if whole => {
                    let shortened = source.shortened(&cuts)?;
                    let [_, newline] = source.record();
                    self.kept.write(&kept, &[&shortened, newline])?;
                }
                Some(Fate::Removed(removal)) if whole => {
                    let inserted = source.insertion(&removal)?;
                    let [record, newline] = source.record();
                    match inserted {
                        Some((at, bytes)) => {
                            let (before, behind) = record.split_at(at);
                            self.removed.write(&removed, &[before, &bytes, behind, newline])?;
                        }
                        None => {
                            self.removed.write(&removed, &[record, newline])?;
                            self.reasons.write(&removal)?;
                        }
                    }
                }
                _ => return Err(Error::changed(piece.blob.path())),
            }
        }
        Ok(())
    }

    fn keep_none(&mut self, piece: &Piece) -> Result<bool, Error> {
        let (_, [kept, _]) = self.open(piece)?;
        self.kept.begin(&kept)?;
        Ok(true)
    }

    fn finish(self: Box<Self>) -> Result<(), Error> {
        self.kept.finish()?;
        self.removed.finish()?;
        self.reasons.finish()
    }
}
