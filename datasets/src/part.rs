//! The output files of one folder of one split, for formats whose records are copied as bytes.

use std::io;

use crate::compression::{Compression, Encoder};
use crate::{Error, Parts};

/// Writes records to the current part; begins a new one where the compression changes.
///
/// Nothing is created before the first record, so a folder without records has no file.
pub(crate) struct PartWriter<'a> {
    parts: &'a dyn Parts,
    folder: &'static str,
    extension: &'static str,
    current: Option<(Compression, Encoder)>,
}

impl<'a> PartWriter<'a> {
    /// `extension`: without that of the compression, such as `.jsonl`.
    pub fn new(parts: &'a dyn Parts, folder: &'static str, extension: &'static str) -> Self {
        PartWriter { parts, folder, extension, current: None }
    }

    /// Writes one record, given in some number of slices.
    pub fn write(&mut self, compression: Compression, record: &[&[u8]]) -> Result<(), Error> {
        let mut encoder = match self.current.take() {
            Some((current, encoder)) if current == compression => encoder,
            other => {
                self.close(other)?;
                let extension = format!("{}{}", self.extension, compression.suffix());
                let output = self.parts.part(self.folder, &extension)?;
                Encoder::new(compression, output).map_err(|error| self.failed(error))?
            }
        };
        for bytes in record {
            encoder.write(bytes).map_err(|error| self.failed(error))?;
        }
        self.current = Some((compression, encoder));
        Ok(())
    }

    /// Makes the last part durable.
    pub fn finish(mut self) -> Result<(), Error> {
        let current = self.current.take();
        self.close(current)
    }

    fn close(&self, part: Option<(Compression, Encoder)>) -> Result<(), Error> {
        if let Some((_, encoder)) = part {
            encoder.into_output().map_err(|error| self.failed(error))?.finish()?;
        }
        Ok(())
    }

    fn failed(&self, error: io::Error) -> Error {
        Error::writing(self.folder, error)
    }
}
