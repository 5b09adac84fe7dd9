//! Reads local files.

use std::fs::{File, Metadata};
use std::io::{self, IoSliceMut};
use std::num::NonZeroU64;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::time::UNIX_EPOCH;

use rustix::fs::{Advice, OFlags, fadvise};
use rustix::io::{ReadWriteFlags, preadv2};
use xxhash_rust::xxh3::xxh3_64;

use crate::stores::error::Error;
use crate::stores::name::path_of_text;
use crate::stores::store::{Blob, Version};

/// Number of bytes that a sequential reader requests at once.
const READ_AHEAD_BYTES: usize = 1 << 20;

/// A local file that is open for reading.
pub(super) struct LocalBlob {
    path: String,
    file: File,
    bytes: u64,
    version: Version,
    /// Whether nobody writes to it, and the reader compares checksums.
    is_settled: bool,
}

impl LocalBlob {
    pub fn open(path: &str, is_settled: bool) -> Result<Self, Error> {
        let open = || {
            // Opening a pipe would otherwise wait for its other end. Regular files are read as always.
            let at_once = OFlags::NONBLOCK | OFlags::NOCTTY;
            let flags = at_once.bits() as i32;
            let file = File::options().read(true).custom_flags(flags).open(path_of_text(path))?;
            let metadata = file.metadata()?;
            if metadata.is_dir() {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            if !metadata.is_file() {
                return Err(io::Error::other("it is not a regular file"));
            }
            let bytes = metadata.len();
            let version = version(&metadata);
            Ok(LocalBlob { path: path.to_owned(), bytes, version, file, is_settled })
        };
        open().map_err(|source| Error::io(path, "open", source))
    }
}

impl Blob for LocalBlob {
    fn path(&self) -> &str {
        &self.path
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn version(&self) -> Result<Version, Error> {
        Ok(self.version)
    }

    /// Checks the file's version after each read, because bytes written meanwhile may be in the buffer, unless it is
    /// settled.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        let wanted = self.bytes.saturating_sub(offset).min(buffer.len() as u64) as usize;
        if wanted == 0 {
            return Ok(0); // the system refuses offsets past 2^63
        }
        let read = loop {
            match self.file.read_at(&mut buffer[..wanted], offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A file that was cut short while open must not look like one that ends there.
                Ok(0) => break Err(io::ErrorKind::UnexpectedEof.into()),
                read => break read,
            }
        };
        let failed = |source| Error::io(&self.path, "read", source);
        if self.is_settled {
            return read.map_err(failed);
        }
        let now = self.file.metadata().map_err(failed)?;
        if now.len() != self.bytes || version(&now) != self.version {
            let reason = "it was written to while it was open".to_owned();
            return Err(Error::Changed { path: self.path.clone(), reason });
        }
        read.map_err(failed)
    }

    /// Takes bytes that are in the operating system's cache of files. A file that somebody may write to is only read by
    /// [`Blob::read_at`], which looks whether it has changed.
    fn read_at_hand(&self, offset: u64, buffer: &mut [u8]) -> bool {
        if !self.is_settled {
            return false;
        }
        let parts = &mut [IoSliceMut::new(buffer)];
        let read = preadv2(&self.file, parts, offset, ReadWriteFlags::NOWAIT);
        if read == Ok(buffer.len()) {
            return true;
        }
        // It is advice: if the system does not take it, the read that follows waits a little longer.
        let bytes = NonZeroU64::new(buffer.len() as u64);
        _ = fadvise(&self.file, offset, bytes, Advice::WillNeed);
        false
    }

    fn read_ahead_bytes(&self) -> usize {
        READ_AHEAD_BYTES
    }
}

/// Returns the version of a file, without the time of the last change of its inode (ctime), which a chmod or
/// a backup by hard links also moves. Where the modification time was set back, the comparison of bytes in
/// `checked.rs` finds the change.
pub(super) fn version(metadata: &Metadata) -> Version {
    let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let numbers = [metadata.dev(), metadata.ino(), metadata.mtime() as u64, metadata.mtime_nsec() as u64];
    Version {
        modified: modified.map(|since| since.as_millis() as u64),
        tag: Some(xxh3_64(&numbers.map(u64::to_le_bytes).concat())),
    }
}
