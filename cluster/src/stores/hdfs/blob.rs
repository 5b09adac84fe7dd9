//! Reading of a file of HDFS, range by range.

use std::io;
use std::pin::pin;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::StreamExt;
use hdfs_native::Client;
use hdfs_native::file::FileReader;
use parking_lot::Mutex;

use super::calls::Calls;
use super::failure::HdfsFailure;
use crate::stores::error::Error;
use crate::stores::remote::{Backoff, NoAnswer};
use crate::stores::store::{Blob, Version};

/// Largest number of bytes of one request to the library. Bytes that have arrived wait in memory.
pub(super) const RANGE_BYTES: usize = 8 << 20;

/// A file of HDFS that is open for reading.
pub(super) struct HdfsBlob {
    /// Path for messages.
    path: String,
    /// Path for the store.
    file: String,
    bytes: u64,
    /// Reader with the locations of all blocks. `None` after a failure, because a reader also remembers which
    /// data nodes it believes dead, and never forgets them.
    reader: Mutex<Option<Arc<FileReader>>>,
    /// Version of the file, from the first time it is asked for.
    version: OnceLock<Version>,
    calls: Arc<Calls>,
}

impl HdfsBlob {
    pub fn open(calls: &Arc<Calls>, path: &str) -> Result<Self, Error> {
        let reader = calls.ask(path, "open", open)?;
        Ok(HdfsBlob {
            path: calls.name(path),
            file: path.to_owned(),
            bytes: reader.file_length() as u64,
            reader: Mutex::new(Some(Arc::new(reader))),
            version: OnceLock::new(),
            calls: Arc::clone(calls),
        })
    }

    fn reader(&self) -> Result<Arc<FileReader>, Error> {
        let known = self.reader.lock().clone();
        if let Some(reader) = known {
            return Ok(reader);
        }
        let reader =
            self.calls.tell(&self.file, open).map_err(|failure| failure.error(&self.path, "read"))?;
        if reader.file_length() as u64 != self.bytes {
            return Err(self.changed("it has another length"));
        }
        // The version is requested after opening, so that the opened file is no newer than the version that
        // is compared.
        if let Some(known) = self.version.get()
            && *known != self.ask_version()?
        {
            return Err(self.changed("it was written at another time"));
        }
        let reader = Arc::new(reader);
        *self.reader.lock() = Some(reader.clone());
        Ok(reader)
    }

    fn ask_version(&self) -> Result<Version, Error> {
        let look = |client: Client, path: String| async move { client.get_file_info(&path).await };
        let status = self.calls.ask(&self.file, "look for", look)?;
        Ok(Version { modified: Some(status.modification_time), tag: None })
    }

    fn changed(&self, reason: &str) -> Error {
        Error::Changed { path: self.path.clone(), reason: reason.to_owned() }
    }

    /// Continues a read from `offset + *filled` on until `buffer` is full or the time `end` has come, and
    /// advances `filled`. The range must lie in the file.
    fn attempt(&self, offset: u64, buffer: &mut [u8], filled: &mut usize, end: Instant) -> Result<(), Error> {
        let reader = self.reader()?;
        let start = offset as usize + *filled;
        let length = buffer.len() - *filled;
        let (sender, items) = mpsc::channel();
        let task = self.calls.runtime.spawn(async move {
            let mut stream = pin!(reader.read_range_stream(start, length));
            while let Some(item) = stream.next().await {
                if sender.send(item).is_err() {
                    return;
                }
            }
        });
        let before = *filled;
        let read = self.fill(&items, buffer, filled, end);
        task.abort();
        read.map_err(|failure| {
            // When the library believes a wrong offset, it leaves some bytes out and waits for the rest at
            // the end. So bytes before a silence are discarded, unless the silence was our own deadline.
            if !matches!(failure, HdfsFailure::Library(_)) && Instant::now() < end {
                *filled = before;
            }
            failure.error(&self.path, "read")
        })
    }

    fn fill(
        &self,
        items: &Receiver<hdfs_native::Result<Bytes>>,
        buffer: &mut [u8],
        filled: &mut usize,
        end: Instant,
    ) -> Result<(), HdfsFailure> {
        while *filled < buffer.len() {
            let limit = self.calls.limits.item.min(end.saturating_duration_since(Instant::now()));
            let item = self.calls.receive(items, limit)?;
            // An item longer than requested is the library's fault, and no reason to panic.
            let place = buffer.get_mut(*filled..*filled + item.len()).ok_or(NoAnswer::Broken)?;
            place.copy_from_slice(&item);
            *filled += item.len();
        }
        Ok(())
    }

    fn too_slow(&self, filled: usize, wanted: usize, limit: Duration) -> Error {
        let text = format!("only {filled} of {wanted} bytes within {limit:?}");
        Error::io(&self.path, "read", io::Error::new(io::ErrorKind::TimedOut, text))
    }
}

async fn open(client: Client, path: String) -> hdfs_native::Result<FileReader> {
    client.read(&path).await
}

impl Blob for HdfsBlob {
    fn path(&self) -> &str {
        &self.path
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn version(&self) -> Result<Version, Error> {
        if let Some(&version) = self.version.get() {
            return Ok(version);
        }
        let version = self.ask_version()?;
        Ok(*self.version.get_or_init(|| version))
    }

    /// Reads up to 8 MiB. When an attempt fails, the bytes that have arrived are kept, and the next attempt
    /// continues with a fresh reader. A fresh reader tries the good copy that the last one had given up, and
    /// leaves a slow data node if the name node puts another one first.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        let limits = self.calls.limits;
        let left = self.bytes.saturating_sub(offset).min(RANGE_BYTES as u64) as usize;
        let wanted = left.min(buffer.len());
        let buffer = &mut buffer[..wanted];
        let mut filled = 0;
        let mut backoff = Backoff::new(limits.attempts);
        let end = Instant::now() + limits.whole;
        while filled < wanted {
            let before = filled;
            let until = end.min(Instant::now() + limits.range);
            if let Err(error) = self.attempt(offset, buffer, &mut filled, until) {
                *self.reader.lock() = None;
                if Instant::now() >= end {
                    return Err(self.too_slow(filled, wanted, limits.whole));
                }
                if filled > before {
                    backoff = Backoff::new(limits.attempts);
                }
                backoff.wait_after(error)?;
            }
        }
        Ok(wanted)
    }

    fn read_ahead_bytes(&self) -> usize {
        RANGE_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::super::HdfsLimits;
    use super::*;

    #[test]
    fn what_was_delivered_before_a_failure_is_kept_and_no_more_than_asked_for_is_taken() {
        let calls = Arc::new(Calls::new("hdfs://127.0.0.1:1", HdfsLimits::default(), &[]).unwrap());
        let (path, file) = (String::new(), String::new());
        let blob =
            HdfsBlob { path, file, bytes: 9, reader: Mutex::new(None), version: OnceLock::new(), calls };
        let read = |items: &[&'static [u8]], filled: &mut usize| {
            let (sender, receiver) = mpsc::channel();
            items.iter().for_each(|item| sender.send(Ok(Bytes::from_static(item))).unwrap());
            drop(sender);
            let mut buffer = [0; 9];
            let end = Instant::now() + Duration::from_secs(60);
            (blob.fill(&receiver, &mut buffer, filled, end).is_ok(), buffer)
        };
        let mut filled = 0;
        assert_eq!(read(&[b"012", b"34"], &mut filled), (false, *b"01234\0\0\0\0"));
        assert_eq!(filled, 5);
        assert_eq!(read(&[b"5", b"678"], &mut filled), (true, *b"\0\0\0\0\x005678"));
        let mut filled = 5;
        assert!(!read(&[b"56789"], &mut filled).0);
    }
}
