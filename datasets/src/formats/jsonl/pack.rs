//! JSON lines of whole files: names in the member `id`, texts in the member `text`.

use std::io::Write;

use serde::Serialize;

use crate::{Error, PackWriter, PartOutput};

/// Number of bytes of lines that are written at a time.
const WRITE_BYTES: usize = 1 << 20;

/// Writer of names and texts, a line for each.
///
/// Memory: 1 MiB and the longest line.
pub(crate) struct JsonPacker {
    output: Box<dyn PartOutput>,
    /// Lines that are not written yet.
    waiting: Vec<u8>,
    lines: u64,
}

/// A line: the name of a file, and its text.
#[derive(Serialize)]
struct PackedLine<'a> {
    id: &'a str,
    text: &'a str,
}

impl JsonPacker {
    pub(crate) fn new(output: Box<dyn PartOutput>) -> Self {
        JsonPacker { output, waiting: Vec::new(), lines: 0 }
    }

    fn write(&mut self) -> Result<(), Error> {
        self.output.write_all(&self.waiting).map_err(|error| Error::writing("packed", error))?;
        self.waiting.clear();
        Ok(())
    }
}

impl PackWriter for JsonPacker {
    fn append(&mut self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let text = str::from_utf8(bytes);
        let text = text.map_err(|error| Error::data(name, error.valid_up_to() as u64, "it is not UTF-8"))?;
        let written = serde_json::to_writer(&mut self.waiting, &PackedLine { id: name, text });
        written.map_err(|error| Error::writing("packed", error.into()))?;
        self.waiting.push(b'\n');
        self.lines += 1;
        if self.waiting.len() >= WRITE_BYTES { self.write() } else { Ok(()) }
    }

    fn finish(mut self: Box<Self>) -> Result<(), Error> {
        self.write()?;
        Ok(self.output.finish(self.lines)?)
    }
}
