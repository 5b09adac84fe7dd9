//! Removal logs: why each document was removed, for formats whose records have no place for it.

use std::io;

use super::part::{PartKind, PartWriter};
use crate::{Error, Parts, Removal};

/// Folder of the removal logs. Its name begins with `_`, so no format takes its files for input.
const FOLDER: &str = "removed/_reasons";

/// Writer of the removal log of a removed part. The log is a part of JSON lines, with one line for each
/// removed record, in the same order. It is created at the first removal.
pub(crate) struct Reasons<'a> {
    part: PartWriter<'a>,
    line: Vec<u8>,
}

impl<'a> Reasons<'a> {
    pub fn new(parts: &'a dyn Parts) -> Self {
        Reasons { part: PartWriter::new(parts, FOLDER, ".jsonl"), line: Vec::new() }
    }

    /// Writes the line of the next removed record.
    pub fn write(&mut self, removal: &Removal) -> Result<(), Error> {
        self.line.clear();
        let written = serde_json::to_writer(&mut self.line, removal).map_err(io::Error::from);
        written.map_err(|error| Error::writing("removed", error))?;
        self.line.push(b'\n');
        self.part.write(&PartKind::plain(), &[&self.line])
    }

    /// Finishes the part, if there is one.
    pub fn finish(self) -> Result<(), Error> {
        self.part.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::MemoryParts;

    #[test]
    fn each_removal_is_one_line_of_json() {
        let parts = MemoryParts::default();
        let mut reasons = Reasons::new(&parts);
        let removal = Removal {
            id: "a\"\n".into(),
            duplicate_of: "新".into(),
            similarity: Some(0.5),
            cluster: "c".into(),
            reason: "similar".into(),
        };
        reasons.write(&removal).unwrap();
        reasons.write(&Removal { similarity: None, ..removal }).unwrap();
        reasons.finish().unwrap();
        let written = parts.text("removed/_reasons/0.jsonl");
        let lines: Vec<&str> = written.lines().collect();
        assert_eq!(
            lines[0],
            r#"{"id":"a\"\n","duplicate_of":"新","similarity":0.5,"cluster":"c","reason":"similar"}"#
        );
        assert!(lines[1].contains(r#""similarity":null"#));
        assert_eq!(lines.len(), 2);
    }

    #[test]
    fn without_a_removal_there_is_no_file() {
        let parts = MemoryParts::default();
        Reasons::new(&parts).finish().unwrap();
        assert!(parts.names().is_empty());
    }
}
