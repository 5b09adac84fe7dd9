//! The writer of all formats whose records are copied as bytes.

use std::ops::Range;

use super::decision_fields::{DecisionValues, OF_ANNOTATED, OF_REMOVED};
use super::part::{PartKind, PartWriter};
use super::removal_log::Reasons;
use crate::text::line_reader::Lines;
use crate::{Error, Fate, Parts, Piece, Reading, Writer};

/// Records of a piece, found in its lines once more. Implemented by the records of each format that is copied
/// as bytes: plain lines, JSON lines, CSV, elements and WARC.
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
    /// Returns the current record, which is a reject, if all of it is at hand.
    fn rejected(&self) -> Option<[&[u8]; 2]> {
        self.lines().line().whole.then(|| self.record())
    }
    /// Returns the beginning of each part whose records have more fields of these names.
    fn head(&self, _fields: &[&str]) -> Vec<u8> {
        Vec::new()
    }
    /// Returns the bytes that say in the current record what was decided about it, and their offset in it. `fields`: the names of the
    /// fields and their values. Returns `None` if records have no place for them; the removal log says it of removed ones.
    fn insertion(
        &mut self,
        _fields: &[&str],
        _values: &DecisionValues,
    ) -> Result<Option<(usize, Vec<u8>)>, Error> {
        Ok(None)
    }
    /// Returns whether each record is compressed by itself, where the file is compressed.
    fn are_compressed_apart(&self) -> bool {
        false
    }
    /// Returns the bytes of the current record without these ranges of its text, and without the newline behind it.
    ///
    /// # Errors
    /// When the text has no such ranges: the file has changed.
    fn shortened(&mut self, cuts: &[Range<usize>]) -> Result<Vec<u8>, Error>;
}

/// Writer of the records of a split, each as its own bytes. A record without a newline gets one.
pub(crate) struct CopyWriter<'a, S> {
    kept: PartWriter<'a>,
    removed: PartWriter<'a>,
    annotated: PartWriter<'a>,
    rejected: Option<PartWriter<'a>>,
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
        let part = |folder| PartWriter::new(parts, folder, extension);
        CopyWriter {
            kept: part("kept"),
            removed: part("removed"),
            annotated: part("annotated"),
            rejected: parts.takes_rejected().then(|| part("rejected")),
            reasons: Reasons::new(parts),
            reading: reading.clone(),
            open,
        }
    }
}

/// Returns the kind of the parts whose records have more fields of these names.
fn kind(source: &impl CopySource, fields: &[&str]) -> PartKind {
    let lines = source.lines();
    let kind = PartKind::of(lines.compression, lines.charset, &source.head(fields));
    if source.are_compressed_apart() { kind.by_record() } else { kind }
}

/// Writes the current record with more fields. Returns `false` if it has no place for them, and is written without.
fn write_with(
    source: &mut impl CopySource,
    (fields, values): (&[&str], &DecisionValues),
    to: &mut PartWriter,
    kind: &PartKind,
) -> Result<bool, Error> {
    let inserted = source.insertion(fields, values)?;
    let [record, newline] = source.record();
    match &inserted {
        Some((at, bytes)) => {
            let (before, behind) = record.split_at(*at);
            to.write(kind, &[before, bytes, behind, newline])?;
        }
        None => to.write(kind, &[record, newline])?,
    }
    Ok(inserted.is_some())
}

impl<S: CopySource> Writer for CopyWriter<'_, S> {
    fn divide(&mut self, piece: &Piece, fates: &mut dyn Iterator<Item = Fate>) -> Result<(), Error> {
        let mut source = (self.open)(piece, &self.reading)?;
        let [kept, removed, annotated] =
            [&[], OF_REMOVED, OF_ANNOTATED].map(|fields: &[&str]| kind(&source, fields));
        while let Some(whole) = source.next_record()? {
            match fates.next() {
                Some(Fate::Rejected) => {
                    if let (Some(rejected), Some(record)) = (&mut self.rejected, source.rejected()) {
                        rejected.write(&kept, &record)?;
                    }
                }
                Some(Fate::Kept) if whole => self.kept.write(&kept, &source.record())?,
                Some(Fate::Cut(cuts)) if whole => {
                    let shortened = source.shortened(&cuts)?;
                    let [_, newline] = source.record();
                    self.kept.write(&kept, &[&shortened, newline])?;
                }
                Some(Fate::Removed(removal)) if whole => {
                    let fields = (OF_REMOVED, &removal.values());
                    if !write_with(&mut source, fields, &mut self.removed, &removed)? {
                        self.reasons.write(&removal)?;
                    }
                }
                Some(Fate::Annotated(annotation)) if whole => {
                    let fields = (OF_ANNOTATED, &annotation.values());
                    write_with(&mut source, fields, &mut self.annotated, &annotated)?;
                }
                _ => return Err(Error::changed(piece.blob.path())),
            }
        }
        Ok(())
    }

    fn keep_none(&mut self, piece: &Piece) -> Result<bool, Error> {
        let source = (self.open)(piece, &self.reading)?;
        self.kept.begin(&kind(&source, &[]))?;
        Ok(true)
    }

    fn finish(self: Box<Self>) -> Result<(), Error> {
        let parts = [Some(self.kept), Some(self.removed), Some(self.annotated), self.rejected];
        parts.into_iter().flatten().try_for_each(PartWriter::finish)?;
        self.reasons.finish()
    }
}
