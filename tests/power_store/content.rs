//! The content of a file in memory.

use std::sync::Arc;

use cluster::{Blob, Error};

/// File, as it was when it was opened.
pub struct Content(pub String, pub Arc<[u8]>);

impl Blob for Content {
    fn path(&self) -> &str {
        &self.0
    }

    fn bytes(&self) -> u64 {
        self.1.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        let rest = self.1.get(offset as usize..).unwrap_or_default();
        let read = rest.len().min(buffer.len());
        buffer[..read].copy_from_slice(&rest[..read]);
        Ok(read)
    }

    fn read_ahead_bytes(&self) -> usize {
        1 << 16
    }
}
