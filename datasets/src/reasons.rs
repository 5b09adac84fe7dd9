//! Why records were removed, for formats whose records have no room to say it.

use std::io::Write as _;

use cluster::Output;

use crate::{Error, Parts, Removal};

const FOLDER: &str = "removed";
/// How much is handed to the store at once.
const WRITE_BYTES: usize = 1 << 16;

/// The companion of a removed part: a JSON line per removed record, in the same order. There is no file if no
/// record is removed.
pub(crate) struct Reasons<'a> {
    parts: &'a dyn Parts,
    output: Option<Box<dyn Output>>,
    buffer: Vec<u8>,
}

impl<'a> Reasons<'a> {
    pub(crate) fn new(parts: &'a dyn Parts) -> Self {
        Reasons { parts, output: None, buffer: Vec::new() }
    }

    /// Says why the next record was removed.
    pub(crate) fn write(&mut self, removal: &Removal) -> Result<(), Error> {
        let output = match &mut self.output {
            Some(output) => output,
            none => none.insert(self.parts.part(FOLDER, ".reasons.jsonl")?),
        };
        serde_json::to_writer(&mut self.buffer, removal)
            .map_err(|error| Error::writing(FOLDER, error.into()))?;
        self.buffer.push(b'\n');
        if self.buffer.len() >= WRITE_BYTES {
            output.write_all(&self.buffer).map_err(|error| Error::writing(FOLDER, error))?;
            self.buffer.clear();
        }
        Ok(())
    }

    /// Finishes the file, if there is one.
    pub(crate) fn finish(self) -> Result<(), Error> {
        if let Some(mut output) = self.output {
            output.write_all(&self.buffer).map_err(|error| Error::writing(FOLDER, error))?;
            output.finish()?;
        }
        Ok(())
    }
}
