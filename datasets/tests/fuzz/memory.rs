//! Files in memory, behind the public traits of the library.

use std::io::{self, Write};
use std::sync::Arc;

use cluster::Blob;
use datasets::{Error, PartOutput, Parts, Piece};

/// A file that is read in small steps.
pub struct MemoryBlob {
    path: String,
    bytes: Vec<u8>,
    read_ahead_bytes: usize,
}

impl MemoryBlob {
    pub fn shared(path: &str, bytes: &[u8], read_ahead_bytes: usize) -> Arc<dyn Blob> {
        Arc::new(MemoryBlob { path: path.to_owned(), bytes: bytes.to_vec(), read_ahead_bytes })
    }
}

impl Blob for MemoryBlob {
    fn path(&self) -> &str {
        &self.path
    }

    fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, cluster::Error> {
        let rest = &self.bytes[self.bytes.len().min(offset as usize)..];
        let read = rest.len().min(buffer.len());
        buffer[..read].copy_from_slice(&rest[..read]);
        Ok(read)
    }

    fn read_ahead_bytes(&self) -> usize {
        self.read_ahead_bytes
    }
}

/// Returns a piece that is the whole file.
pub fn piece(blob: Arc<dyn Blob>) -> Piece {
    let name = blob.path().trim_start_matches('/').to_owned();
    Piece::whole(blob, name)
}

/// Output files that nobody reads.
pub struct MemoryParts;

struct Nowhere;

impl Write for Nowhere {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl PartOutput for Nowhere {
    fn finish(self: Box<Self>, _records: u64) -> Result<(), cluster::Error> {
        Ok(())
    }
}

impl Parts for MemoryParts {
    fn part(&self, _folder: &str, _extension: &str) -> Result<Box<dyn PartOutput>, Error> {
        Ok(Box::new(Nowhere))
    }

    fn named(&self, _folder: &str, _name: &str) -> Result<Box<dyn PartOutput>, Error> {
        Ok(Box::new(Nowhere))
    }
}
