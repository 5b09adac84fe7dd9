//! A spill file of values that are read by their offsets, in any order.

use super::budget::{FrameFile, SpillBudget};
use crate::Error;

/// Strings of bytes on disk, each of which is read as a whole, at any time and by any thread.
///
/// Memory: the longest value while it is written, and each value that is read.
pub struct ValueFile(FrameFile);

impl ValueFile {
    /// Makes an empty file in the folder of `spill`.
    ///
    /// # Errors
    /// [`Error::Spill`].
    pub fn new(spill: &SpillBudget) -> Result<Self, Error> {
        Ok(ValueFile(spill.frames()?))
    }

    /// Appends a value, and returns its offset.
    ///
    /// # Errors
    /// [`Error::DiskFull`] and [`Error::Spill`].
    pub fn append(&mut self, value: &[u8]) -> Result<u64, Error> {
        let offset = self.0.end();
        self.0.append(value.len(), value.len(), |frame| frame.copy_from_slice(value))?;
        Ok(offset)
    }

    /// Returns the value at an offset that [`ValueFile::append`] has returned.
    ///
    /// # Errors
    /// [`Error::SpillLost`].
    pub fn read(&self, offset: u64) -> Result<Vec<u8>, Error> {
        let mut value = Vec::new();
        self.0.read(offset, &mut value)?;
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::super::budget::twins::Twin;
    use super::*;

    #[test]
    fn values_come_back_in_any_order_unless_they_are_damaged() {
        let values = [&b"one"[..], b"", &[7; 200_000]];
        let mut file = ValueFile::new(&Twin::default().budget(0)).unwrap();
        let offsets = values.map(|value| file.append(value).unwrap());
        for (offset, value) in offsets.into_iter().zip(values).rev() {
            assert_eq!(file.read(offset).unwrap(), value);
        }
        let mut file = ValueFile::new(&Twin { damaged: Some(20), ..Twin::default() }.budget(0)).unwrap();
        let offset = file.append(&[7; 100]).unwrap();
        assert!(matches!(file.read(offset), Err(Error::SpillLost { .. })));
    }
}
