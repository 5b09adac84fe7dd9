//! Requests to a store that several files of this room make: small files as a whole, hashes, many at a time.

use std::io::{Read, Write};

use cluster::{BlobReader, Store};

/// Number of requests that are on their way at a time. In a test they come one after the other, so that each
/// can fail.
pub(super) const AT_ONCE: usize = if cfg!(test) { 1 } else { 32 };

/// Number of bytes that are read and hashed at a time.
const HASHED_BYTES: usize = 1 << 20;

/// Writes a small file, replacing one that exists.
pub(crate) fn put(store: &dyn Store, path: &str, contents: &[u8]) -> Result<(), cluster::Error> {
    let mut file = store.create(path)?;
    file.write_all(contents).map_err(|error| cluster::Error::io(path, "write", error))?;
    file.finish()
}

/// Returns the contents of a small file, or `None` if it does not exist.
pub(crate) fn read(store: &dyn Store, path: &str) -> Result<Option<Vec<u8>>, cluster::Error> {
    let blob = match store.open(path) {
        Err(cluster::Error::NotFound { .. }) => return Ok(None),
        blob => blob?,
    };
    let mut contents = Vec::new();
    let all = BlobReader::new(blob, 0, u64::MAX).read_to_end(&mut contents);
    all.map_err(|error| cluster::Error::io(path, "read", error))?;
    Ok(Some(contents))
}

/// Returns the BLAKE3 hash of a file, in hexadecimal. Reads the file once.
pub(crate) fn hash(store: &dyn Store, path: &str) -> Result<String, cluster::Error> {
    let mut reader = BlobReader::new(store.open(path)?, 0, u64::MAX);
    let (mut hasher, mut buffer) = (blake3::Hasher::new(), vec![0; HASHED_BYTES]);
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
