//! Why each document was removed, for formats whose records have no place to say so.

use std::io;

use crate::compression::Compression;
use crate::part::PartWriter;
use crate::{Error, Parts, Removal};

/// Writes the companion of a removed part: a JSON-lines part `.reasons.jsonl` with one line per removed
/// record, in the same order. It is created at the first removal.
pub(crate) struct Reasons<'a> {
    part: PartWriter<'a>,
    line: Vec<u8>,
}

impl<'a> Reasons<'a> {
    pub fn new(parts: &'a dyn Parts) -> Self {
        Reasons { part: PartWriter::new(parts, "removed", ".reasons.jsonl"), line: Vec::new() }
    }

    /// Adds the line of the next removed record.
    pub fn write(&mut self, removal: &Removal) -> Result<(), Error> {
        self.line.clear();
        write_line(&mut self.line, removal).map_err(|error| Error::writing("removed", error))?;
        self.part.write(Compression::None, &[&self.line])
    }

    /// Makes the part durable, if there is one.
    pub fn finish(self) -> Result<(), Error> {
        self.part.finish()
    }
}

fn write_line(line: &mut Vec<u8>, removal: &Removal) -> io::Result<()> {
    line.extend_from_slice(b"{\"id\":");
    serde_json::to_writer(&mut *line, &removal.id)?;
    line.push(b',');
    write_members(line, removal)?;
    line.extend_from_slice(b"}\n");
    Ok(())
}

/// Adds `"duplicate_of":…,"similarity":…,"cluster":…,"reason":…`: what a removed record says of its removal.
pub(crate) fn write_members(json: &mut Vec<u8>, removal: &Removal) -> io::Result<()> {
    json.extend_from_slice(b"\"duplicate_of\":");
    serde_json::to_writer(&mut *json, &removal.duplicate_of)?;
    json.extend_from_slice(b",\"similarity\":");
    serde_json::to_writer(&mut *json, &removal.similarity)?;
    json.extend_from_slice(b",\"cluster\":");
    serde_json::to_writer(&mut *json, &removal.cluster)?;
    json.extend_from_slice(b",\"reason\":");
    serde_json::to_writer(&mut *json, removal.reason)?;
    Ok(())
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
            reason: "similar",
        };
        reasons.write(&removal).unwrap();
        reasons.write(&Removal { similarity: None, ..removal }).unwrap();
        reasons.finish().unwrap();
        let written = parts.text("removed/0.reasons.jsonl");
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
