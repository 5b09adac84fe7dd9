//! Places in a text file, as lines and as ids of documents.

use super::line_reader::Lines;
use crate::{Error, Piece, Reading};

/// Converter of offsets to line numbers. Cost: one reading of the file up to the last offset.
pub struct LineNumbers {
    lines: Lines,
    number: u64,
}

impl LineNumbers {
    /// Opens a whole file.
    pub(crate) fn open(file: &Piece, reading: &Reading) -> Result<Self, Error> {
        Ok(LineNumbers { lines: Lines::open(file, reading)?, number: 1 })
    }

    /// Returns the line of `offset`, counted from 1. Offsets must not decrease. Behind damage, this is the
    /// line of the damage.
    ///
    /// Errors: those of the store.
    pub fn of(&mut self, offset: u64) -> Result<u64, Error> {
        self.number += self.lines.pass_lines(offset)?;
        Ok(self.number)
    }
}

/// Writes the id of a document without one, `path:byte`, to `place`, and returns it.
pub(crate) fn place<'p>(path: &str, offset: u64, place: &'p mut String) -> &'p str {
    place.clear();
    place.push_str(path);
    place.push(':');
    place.push_str(&offset.to_string());
    place
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MemoryBlob, pieces};

    #[test]
    fn line_numbers_are_those_of_the_offsets_in_every_encoding() {
        for (unit, newline) in [(1, &b"\n"[..]), (2, b"\n\0")] {
            let mark: &[u8] = if unit == 2 { b"\xff\xfe" } else { b"" };
            let line = [&b"abcdef"[..], newline].concat();
            let file = [mark, &line.repeat(300)].concat();
            for read_ahead_bytes in [1, 7, 1000] {
                let blob = MemoryBlob::shared("/a", &file, read_ahead_bytes);
                let mut numbers = LineNumbers::open(&pieces(&blob, &[])[0], &Reading::default()).unwrap();
                let start = |number: u64| mark.len() as u64 + line.len() as u64 * (number - 1);
                let offsets = [0, start(2) - 1, start(2), start(2), start(200) + 1, start(300), 1 << 40];
                let lines = offsets.map(|offset| numbers.of(offset).unwrap());
                assert_eq!(lines, [1, 1, 2, 2, 200, 300, 301]);
            }
        }
    }
}
