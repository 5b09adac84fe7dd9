//! Writing of a file of HDFS.

use std::future::Future;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hdfs_native::file::FileWriter;

use super::calls::Calls;
use super::failure::HdfsFailure;
use super::rename::rename;
use crate::stores::error::Error;
use crate::stores::remote::NoAnswer;
use crate::stores::store::Output;

/// Number of bytes that are given to the library at once.
const WRITE_BYTES: usize = 1 << 20;
/// Longest wait for the removal of a file that is dropped unfinished.
const DROP_WAIT: Duration = Duration::from_secs(5);

/// A file of HDFS that is being written. Dropping it unfinished removes it. Memory: up to 1 MiB and one
/// write.
pub(super) struct HdfsOutput {
    path: String,
    /// Path that the file gets when it is whole, in the place of a file that has it. `None` if it has its name already.
    final_path: Option<String>,
    buffer: Vec<u8>,
    /// Writer of the library. `None` once a write has failed.
    writer: Option<FileWriter>,
    finished: bool,
    calls: Arc<Calls>,
}

impl HdfsOutput {
    pub fn new(calls: &Arc<Calls>, path: &str, writer: FileWriter) -> Self {
        let path = path.to_owned();
        let calls = Arc::clone(calls);
        HdfsOutput {
            path,
            final_path: None,
            buffer: Vec::new(),
            writer: Some(writer),
            finished: false,
            calls,
        }
    }

    /// Has the file renamed to `path` when it is finished, in the place of a file that has this name.
    pub fn renamed_to(mut self, path: &str) -> Self {
        self.final_path = Some(path.to_owned());
        self
    }

    /// Sends the buffer to the library.
    fn send(&mut self) -> Result<(), Error> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let bytes = Bytes::from(std::mem::take(&mut self.buffer));
        self.with_writer(|mut writer| async move { writer.write_bytes(bytes).await.map(|_| writer) })
    }

    fn with_writer<F>(&mut self, work: impl FnOnce(FileWriter) -> F) -> Result<(), Error>
    where
        F: Future<Output = hdfs_native::Result<FileWriter>> + Send + 'static,
    {
        let writer = self.writer.take().ok_or(HdfsFailure::Silent(NoAnswer::Broken));
        let written = writer.and_then(|writer| self.calls.wait(self.calls.limits.call, work(writer)));
        self.writer = Some(written.map_err(|failure| failure.error(&self.calls.name(&self.path), "write"))?);
        Ok(())
    }
}

impl Write for HdfsOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= WRITE_BYTES {
            self.send()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(self.send()?)
    }
}

impl Output for HdfsOutput {
    fn finish(mut self: Box<Self>) -> Result<(), Error> {
        self.send()?;
        self.with_writer(|mut writer| async move { writer.close().await.map(|()| writer) })?;
        if let Some(final_path) = &self.final_path {
            rename(&self.calls, &self.path, final_path, true)?;
        }
        self.finished = true;
        Ok(())
    }
}

impl Drop for HdfsOutput {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        self.writer = None;
        if let Ok(client) = self.calls.client() {
            let path = self.path.clone();
            // Best effort: a file that stays behind has a temporary name.
            drop(self.calls.wait(DROP_WAIT, async move { client.delete(&path, false).await }));
        }
    }
}
