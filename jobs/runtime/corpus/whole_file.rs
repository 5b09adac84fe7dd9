//! A file that is held in memory.

use cluster::{Blob, Error};

/// File in memory, which readers of formats take for one of a store.
///
/// Memory: its bytes.
pub struct WholeFile {
    /// Path that messages name, of the file that the bytes came from.
    pub path: String,
    /// Content of the file.
    pub bytes: Vec<u8>,
}

impl Blob for WholeFile {
    fn path(&self) -> &str {
        &self.path
    }

    fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        let rest = self.bytes.get(offset as usize..).unwrap_or_default();
        let read = rest.len().min(buffer.len());
        buffer[..read].copy_from_slice(&rest[..read]);
        Ok(read)
    }

    fn read_ahead_bytes(&self) -> usize {
        self.bytes.len().max(1)
    }
}
