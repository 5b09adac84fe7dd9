//! The decompressed contents of a file, which all of its pieces read from a copy on disk.

use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once, OnceLock};

use cluster::{Blob, BlobReader};
use operators::{GrowingFile, SpillBudget};

use super::background::{ReadFailure, spawn};
use super::compression::{COMPRESSED, Compression};
use super::json::values::RecordLayout;
use crate::{Error, Reading};

/// Number of bytes of a compressed file by which the length of its contents is estimated.
const SAMPLE_BYTES: u64 = 1 << 20;
/// Most bytes of contents that the estimate decompresses.
const MOST_SAMPLED: u64 = 64 << 20;

/// The decompressed contents of a file.
pub(crate) struct Contents {
    copy: Arc<ContentsCopy>,
    begun: Once,
}

/// Copy of the contents, which a thread writes while readers follow it.
struct ContentsCopy {
    file: GrowingFile,
    /// Reason why the contents end early.
    failure: OnceLock<ReadFailure>,
    /// Whether nobody reads the copy any more.
    abandoned: AtomicBool,
}

impl Contents {
    /// Makes the contents of a file that is not yet read.
    pub fn new(spill: &SpillBudget) -> Self {
        let (failure, abandoned) = Default::default();
        let copy = ContentsCopy { file: GrowingFile::new(spill), failure, abandoned };
        Contents { copy: Arc::new(copy), begun: Once::new() }
    }

    /// Starts the thread that decompresses the file, if none has been started.
    pub fn begin(
        &self,
        blob: &Arc<dyn Blob>,
        compression: Compression,
        layout: RecordLayout,
        reading: &Reading,
    ) {
        self.begun.call_once(|| {
            let (copy, ended) = (Arc::clone(&self.copy), Arc::clone(&self.copy));
            let input = Arc::clone(blob);
            let window_log = reading.window_log();
            spawn(
                "decompress",
                blob,
                move || copy.write(input, compression, layout, window_log),
                move |result| {
                    let _first = result.map_err(|failure| ended.failure.set(failure));
                    ended.file.end();
                },
            );
        });
    }

    /// Returns a reader of the contents from `offset` on, which waits for what is not yet decompressed. Its
    /// errors are those of decompressing, at the place where they were met.
    pub fn reader(&self, path: &str, offset: u64) -> ContentsReader {
        let path = path.to_owned();
        let block = offset / GrowingFile::BLOCK_BYTES as u64;
        let used = (offset % GrowingFile::BLOCK_BYTES as u64) as usize;
        ContentsReader { copy: Arc::clone(&self.copy), path, block, bytes: Vec::new(), used }
    }
}

impl Drop for Contents {
    fn drop(&mut self) {
        self.copy.abandoned.store(true, Ordering::Relaxed);
    }
}

impl ContentsCopy {
    fn write(
        &self,
        blob: Arc<dyn Blob>,
        compression: Compression,
        layout: RecordLayout,
        window_log: u32,
    ) -> Result<(), ReadFailure> {
        let path = blob.path().to_owned();
        let failed = |offset, error| ReadFailure::of(&Error::reading(&path, offset, error));
        let input = compression.decode(BlobReader::new(blob, 0, u64::MAX), window_log);
        let mut input = layout.lines(input.map_err(|error| failed(0, error))?);
        let mut block = vec![0; GrowingFile::BLOCK_BYTES];
        let mut offset = 0;
        let mut more = Ok(true);
        while matches!(more, Ok(true)) {
            if self.abandoned.load(Ordering::Relaxed) {
                // A reader that is left must not take this for the end of the file.
                return Err(ReadFailure::Other("its contents were given up".to_owned()));
            }
            let mut filled = 0;
            while filled < block.len() && matches!(more, Ok(true)) {
                more = match input.read(&mut block[filled..]) {
                    Ok(read) => {
                        filled += read;
                        Ok(read > 0)
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(true),
                    Err(error) => Err(error),
                };
            }
            if filled > 0 {
                self.file.append(&block[..filled]).map_err(|error| ReadFailure::of_spill(&error))?;
            }
            offset += filled as u64;
        }
        more.map(|_| ()).map_err(|error| failed(offset, error))
    }
}

/// Sequential reader of contents. Memory: one block.
pub(crate) struct ContentsReader {
    copy: Arc<ContentsCopy>,
    path: String,
    /// Number of the next block.
    block: u64,
    /// The block before it, or nothing at the beginning.
    bytes: Vec<u8>,
    used: usize,
}

impl Read for ContentsReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.bytes.is_empty() || self.used >= self.bytes.len() {
            self.used -= self.bytes.len();
            let there = self.copy.file.read(self.block, &mut self.bytes);
            if !there.map_err(|error| self.error(&ReadFailure::of_spill(&error)))? {
                self.bytes.clear();
                return self.copy.failure.get().map_or(Ok(0), |failure| Err(self.error(failure)));
            }
            self.block += 1;
        }
        let read = buffer.len().min(self.bytes.len() - self.used);
        buffer[..read].copy_from_slice(&self.bytes[self.used..][..read]);
        self.used += read;
        Ok(read)
    }
}

impl ContentsReader {
    /// Returns a failure as an error that [`Error::reading`] understands.
    fn error(&self, failure: &ReadFailure) -> io::Error {
        match failure.error(&self.path) {
            Error::Store(error) => error.into(),
            Error::Data { reason, .. } => io::Error::other(reason),
            error @ Error::Field(_) => io::Error::other(error.to_string()),
        }
    }
}

/// Returns about how many bytes the contents of a compressed file have, as the first MiB of the file tells.
///
/// # Errors
/// Those of the store.
pub fn contents_bytes(blob: &Arc<dyn Blob>) -> Result<u64, cluster::Error> {
    let read = blob.bytes().min(SAMPLE_BYTES);
    let compression = Compression::named(blob.path()).1;
    let window_log = Reading::default().window_log();
    let input = compression.decode(BlobReader::new(Arc::clone(blob), 0, read), window_log);
    let mut buffer = vec![0; GrowingFile::BLOCK_BYTES];
    let mut decompressed = 0;
    let ended = input.and_then(|mut input| {
        let mut more = true;
        while more && decompressed < MOST_SAMPLED {
            let read = input.read(&mut buffer)?;
            decompressed += read as u64;
            more = read > 0;
        }
        Ok(())
    });
    match ended.map_err(|error| error.downcast::<cluster::Error>()) {
        Err(Ok(error)) => Err(error),
        // The sample is cut anywhere, so an error at its end is expected.
        _ if decompressed == 0 => Ok(blob.bytes().saturating_mul(COMPRESSED)),
        _ => {
            let bytes = u128::from(blob.bytes()) * u128::from(decompressed) / u128::from(read);
            Ok(u64::try_from(bytes).unwrap_or(u64::MAX))
        }
    }
}
