//! Undoes deflate streams of foreign files, and makes the files again.

use std::io;

use super::confine::Bounds;
use super::extractors::Extractors;
use super::task::ConfinedTask;
use crate::deflate::{MAX_PLAIN_BYTES, UndoneFile, has_streams};

/// Longest file whose streams are undone, in bytes.
const MAX_FILE_BYTES: usize = 16 << 20;
/// Bounds of the process that undoes or recreates streams. An answer is a file with its streams.
const BOUNDS: Bounds = Bounds {
    max_bytes: MAX_FILE_BYTES + MAX_PLAIN_BYTES + (16 << 20),
    memory_bytes: 1 << 30,
    cpu_seconds: 60,
};

impl UndoneFile {
    /// Undoes the streams of a ZIP archive or PDF in a confined process; another one recreates the file, and both are
    /// compared. `None` if there are no such streams, or the file is longer than 16 MiB or is not recreated.
    ///
    /// Cost: 0.3 s a MB, and two processes.
    ///
    /// # Errors
    /// When no process can be started.
    pub fn of_foreign(file: &[u8], extractors: &Extractors) -> io::Result<Option<Self>> {
        if file.len() > MAX_FILE_BYTES || !has_streams(file) {
            return Ok(None);
        }
        let answer = extractors.ask(ConfinedTask::UndoDeflate, file.to_vec(), BOUNDS)?;
        let Some(undone) = answer.ok().and_then(|answer| UndoneFile::decode(&answer).ok()) else {
            return Ok(None);
        };
        let is_recreated =
            undone.parts.len() > 1 && undone.recreate_confined(extractors)?.is_ok_and(|again| again == file);
        Ok(is_recreated.then_some(undone))
    }

    /// Makes the file again in a confined process. The inner error says why it cannot be made.
    ///
    /// # Errors
    /// When no process can be started.
    pub fn recreate_confined(&self, extractors: &Extractors) -> io::Result<Result<Vec<u8>, String>> {
        extractors.ask(ConfinedTask::Recreate, self.encode(), BOUNDS)
    }
}
