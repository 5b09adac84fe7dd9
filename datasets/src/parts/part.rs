//! Output files of one folder of one split, for formats whose records are copied as bytes.

use std::io;

use crate::text::charset::Charset;
use crate::text::compression::{Compression, Encoder};
use crate::{Encoding, Error, Parts};

/// Properties that all records of a part share. A new part begins where they change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PartKind {
    compression: Compression,
    encoding: Option<Encoding>,
    /// Bytes at the beginning of the part, before its first record.
    head: Vec<u8>,
    /// Whether each record is compressed by itself.
    is_by_record: bool,
}

impl PartKind {
    /// Returns the kind of files that this program writes on its own account: UTF-8, uncompressed.
    pub fn plain() -> Self {
        PartKind { compression: Compression::None, encoding: None, head: Vec::new(), is_by_record: false }
    }

    /// Returns the kind of the records of a file of lines. `head` is the beginning of each part, behind the
    /// byte order mark that UTF-16 needs.
    pub fn of(compression: Compression, charset: Charset, head: &[u8]) -> Self {
        let mark = if charset.unit() == 2 { charset.encode("\u{feff}", b"") } else { Default::default() };
        let encoding = charset.encoding();
        let head = [&mark, head].concat();
        PartKind { compression, encoding, head, is_by_record: false }
    }

    /// Returns the kind of files in which each record is compressed by itself.
    pub fn by_record(self) -> Self {
        PartKind { is_by_record: true, ..self }
    }
}

/// Writer of records to the current part. It begins a new part where their [`PartKind`] changes.
///
/// No part is created before the first record or a call of `begin`, so a folder without records has no file.
pub(crate) struct PartWriter<'a> {
    parts: &'a dyn Parts,
    folder: &'static str,
    extension: &'static str,
    current: Option<Current>,
}

/// The part that is being written.
struct Current {
    kind: PartKind,
    encoder: Encoder,
    records: u64,
}

impl<'a> PartWriter<'a> {
    /// Creates a writer. `extension` excludes that of the compression, such as `.jsonl`.
    pub fn new(parts: &'a dyn Parts, folder: &'static str, extension: &'static str) -> Self {
        PartWriter { parts, folder, extension, current: None }
    }

    /// Creates a part of this kind, unless the current one has it.
    pub fn begin(&mut self, kind: &PartKind) -> Result<(), Error> {
        if self.current.as_ref().is_none_or(|current| current.kind != *kind) {
            let ended = self.current.take();
            self.close(ended)?;
            let extension = format!("{}{}", self.extension, kind.compression.suffix());
            let output = self.parts.part(self.folder, &extension)?;
            let mut encoder = Encoder::new(kind.compression, output).map_err(|error| self.failed(error))?;
            encoder.write(&kind.head).map_err(|error| self.failed(error))?;
            self.current = Some(Current { kind: kind.clone(), encoder, records: 0 });
        }
        Ok(())
    }

    /// Writes one record, given in any number of slices.
    pub fn write(&mut self, kind: &PartKind, record: &[&[u8]]) -> Result<(), Error> {
        self.begin(kind)?;
        let Some(current) = &mut self.current else { return Ok(()) };
        current.records += 1;
        let written = record.iter().try_for_each(|bytes| current.encoder.write(bytes));
        let ended =
            written.and_then(|()| if kind.is_by_record { current.encoder.end_frame() } else { Ok(()) });
        ended.map_err(|error| Error::writing(self.folder, error))
    }

    /// Finishes the last part.
    pub fn finish(mut self) -> Result<(), Error> {
        let current = self.current.take();
        self.close(current)
    }

    fn close(&self, part: Option<Current>) -> Result<(), Error> {
        if let Some(Current { encoder, records, .. }) = part {
            encoder.into_output().map_err(|error| self.failed(error))?.finish(records)?;
        }
        Ok(())
    }

    fn failed(&self, error: io::Error) -> Error {
        Error::writing(self.folder, error)
    }
}
