//! Requests to a store that several files of this room make: small files as a whole, hashes, many at a time.

use std::io::{Read, Write};
use std::sync::Arc;

use cluster::{Blob, BlobReader, Store};

/// Number of requests that are on their way at a time. In a test they come one after the other, so that each
/// can fail.
pub(super) const AT_ONCE: usize = if cfg!(test) { 1 } else { 32 };

/// Number of bytes that are read and hashed at a time.
const HASHED_BYTES: usize = 1 << 20;

/// Writes a small file, replacing one that exists.
pub fn put(store: &dyn Store, path: &str, contents: &[u8]) -> Result<(), cluster::Error> {
    let mut file = store.create(path)?;
    file.write_all(contents).map_err(|error| cluster::Error::io(path, "write", error))?;
    file.finish()
}

/// Returns the contents of a small file, or `None` if it does not exist, or is removed while it is read.
pub fn read(store: &dyn Store, path: &str) -> Result<Option<Vec<u8>>, cluster::Error> {
    match store.open(path) {
        Err(cluster::Error::NotFound { .. }) => Ok(None),
        blob => contents(path, blob?),
    }
}

/// Returns what `blob` holds. A bucket finds out at the first read that the file is gone since it was opened.
fn contents(path: &str, blob: Arc<dyn Blob>) -> Result<Option<Vec<u8>>, cluster::Error> {
    let mut contents = Vec::new();
    match BlobReader::new(blob, 0, u64::MAX).read_to_end(&mut contents) {
        Ok(_) => Ok(Some(contents)),
        Err(error) => match error.get_ref().and_then(|inner| inner.downcast_ref()) {
            Some(cluster::Error::NotFound { .. }) => Ok(None),
            _ => Err(cluster::Error::io(path, "read", error)),
        },
    }
}

/// Returns the BLAKE3 hash of a file, in hexadecimal. Reads the file once.
pub fn hash(store: &dyn Store, path: &str) -> Result<String, cluster::Error> {
    let mut reader = BlobReader::new(store.open(path)?, 0, u64::MAX);
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; HASHED_BYTES];
    loop {
        match reader.read(&mut buffer).map_err(|error| cluster::Error::io(path, "read", error))? {
            0 => return Ok(hasher.finalize().to_hex().to_string()),
            read => drop(hasher.update(&buffer[..read])),
        }
    }
}

/// Returns the BLAKE3 hash of `bytes`, in hexadecimal.
pub(super) fn hash_of(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that was removed after it was opened, or that cannot be read for another reason.
    struct Unreadable {
        is_gone: bool,
    }

    impl Blob for Unreadable {
        fn path(&self) -> &str {
            "a"
        }

        fn bytes(&self) -> u64 {
            7
        }

        fn read_at(&self, _: u64, _: &mut [u8]) -> Result<usize, cluster::Error> {
            let path = "a".to_owned();
            Err(if self.is_gone {
                cluster::Error::NotFound { path }
            } else {
                cluster::Error::Denied { path }
            })
        }

        fn read_ahead_bytes(&self) -> usize {
            7
        }
    }

    #[test]
    fn a_file_that_goes_between_opening_and_reading_is_no_file() {
        assert_eq!(contents("a", Arc::new(Unreadable { is_gone: true })).unwrap(), None);
        assert!(contents("a", Arc::new(Unreadable { is_gone: false })).is_err());
    }
}
