//! Requests to a store that several files of this room make: small files as a whole, hashes, many at a time.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use anyhow::{Result, anyhow};
use cluster::{BlobReader, Store};

/// Number of requests that are on their way at a time. In a test they come one after the other, so that each
/// can fail.
pub(super) const AT_ONCE: usize = if cfg!(test) { 1 } else { 32 };

/// Number of bytes that are read and hashed at a time.
const HASHED_BYTES: usize = 1 << 20;

/// Writes a small file, replacing one that exists.
pub(super) fn put(store: &dyn Store, path: &str, contents: &[u8]) -> Result<(), cluster::Error> {
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

/// Calls `work` for each of `items`, up to `at_once` at a time, until one call fails.
pub(crate) fn each_at_once<T: Sync>(
    at_once: usize,
    items: &[T],
    work: impl Fn(&T) -> Result<()> + Sync,
) -> Result<()> {
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let each = || -> Result<()> {
        while !failed.load(Ordering::Relaxed) {
            let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
            work(item).inspect_err(|_| failed.store(true, Ordering::Relaxed))?;
        }
        Ok(())
    };
    if at_once == 1 {
        return each();
    }
    thread::scope(|scope| {
        let threads: Vec<_> = (0..at_once.min(items.len())).map(|_| scope.spawn(each)).collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().map_err(|_| anyhow!("a thread that talked to the store panicked"))?
        })
    })
}
