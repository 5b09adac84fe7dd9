//! Writing of an object as a multipart upload. Completing the upload joins its parts to one object; an
//! aborted upload leaves none.

use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use object_store::multipart::PartId;
use object_store::path::Path;
use object_store::{ObjectMeta, PutOptions, PutPayload, UpdateVersion};

use super::connect::Client;
use super::failure::ObjectFailure;
use super::shared::Shared;
use crate::stores::error::Error;
use crate::stores::remote::NoAnswer;
use crate::stores::store::{Output, Upload, UploadOutput, last_name};

/// Number of parts of one length, after which the length doubles. S3 takes 10,000 parts, so parts of 8 MiB at
/// first make 300 GB in all.
const PARTS_OF_A_LENGTH: usize = 2_500;
/// Largest number of parts of an upload.
const MAX_PARTS: usize = 10_000;
/// Longest wait for the abort of an upload that is dropped unfinished.
const DROP_WAIT: Duration = Duration::from_secs(5);

/// Writer of an object in parts, of which it holds one in memory.
///
/// An object that fits into one part is written with one request. A longer one becomes an upload, whose parts
/// have these lengths by default:
///
/// | parts | length of each |
/// |---|---|
/// | 0 to 2,499 | 8 MiB |
/// | 2,500 to 4,999 | 16 MiB |
/// | 5,000 to 7,499 | 32 MiB |
/// | 7,500 to 9,999 | 64 MiB |
pub(super) struct ObjectWriter {
    shared: Arc<Shared>,
    path: String,
    buffer: Vec<u8>,
    bytes: u64,
    /// Name of the upload. `None` until one is begun; contents that fit into one part need none.
    id: Option<String>,
    parts: Vec<PartId>,
    /// Number of the first part. Azure identifies the parts of all uploads to one object by these numbers
    /// alone, so they must differ between uploads. With other services each upload has an id, and numbers
    /// begin with 0.
    first_part: usize,
    /// Whether a part was lost, so that the object cannot be completed.
    failed: bool,
}

impl ObjectWriter {
    /// Creates a writer and sends nothing.
    pub(super) fn new(shared: Arc<Shared>, path: &str) -> Result<Self, Error> {
        if shared.key(path)?.is_root() || last_name(path).is_empty() {
            let reason = "a file needs a name".to_owned();
            return Err(Error::BadName { name: shared.name(path), reason });
        }
        let random = || RandomState::new().hash_one(path) as u32 as usize;
        let first_part = if shared.connection.numbers_name_parts { random() * MAX_PARTS } else { 0 };
        let path = path.to_owned();
        let (buffer, parts) = (Vec::new(), Vec::new());
        Ok(ObjectWriter { shared, path, buffer, bytes: 0, id: None, parts, first_part, failed: false })
    }

    /// Begins an upload, unless one was begun, and returns its name.
    pub(super) fn begin(&mut self) -> Result<String, Error> {
        if let Some(id) = &self.id {
            return Ok(id.clone());
        }
        let begin =
            |client: Arc<dyn Client>, key: Path| async move { Ok(client.create_multipart(&key).await?) };
        let id = self.shared.ask(&self.path, "create", self.shared.limits.call, begin)?;
        Ok(self.id.insert(id).clone())
    }

    fn part_bytes(&self) -> usize {
        self.shared.limits.part_bytes << (self.parts.len() / PARTS_OF_A_LENGTH)
    }

    /// Sends the buffer as one part.
    fn send(&mut self) -> Result<(), Error> {
        if std::mem::replace(&mut self.failed, true) {
            return Err(ObjectFailure::Silent(NoAnswer::Broken).at(&self.shared.name(&self.path), "write"));
        }
        if self.parts.len() == MAX_PARTS {
            let source = io::Error::other(format!("it has more than {} bytes", self.bytes));
            return Err(Error::io(&self.shared.name(&self.path), "write", source));
        }
        let id = self.begin()?;
        let number = self.first_part + self.parts.len();
        let payload = PutPayload::from(std::mem::take(&mut self.buffer));
        // A retry with the same number replaces what an earlier attempt may have sent.
        let send = |client: Arc<dyn Client>, key: Path| {
            let (id, payload) = (id.clone(), payload.clone());
            async move { Ok(client.put_part(&key, &id, number, payload).await?) }
        };
        self.parts.push(self.shared.ask(&self.path, "write", self.shared.limits.transfer, send)?);
        self.failed = false;
        Ok(())
    }

    /// Sends the rest as the last part. An empty object has no part.
    fn send_rest(&mut self) -> Result<Upload, Error> {
        if !self.buffer.is_empty() || self.failed {
            self.send()?;
        }
        let parts = self.parts.iter().map(|part| part.content_id.clone()).collect();
        let path = self.path.clone();
        let id = self.id.clone().unwrap_or_default();
        Ok(Upload { path, id, parts, bytes: self.bytes })
    }
}

/// Returns the tag of an object: its ETag, followed by a space and its version if the service has one.
pub(super) fn tag(object: &ObjectMeta) -> Option<String> {
    let tag = object.e_tag.as_ref()?;
    Some(object.version.as_ref().map_or_else(|| tag.clone(), |version| format!("{tag} {version}")))
}

/// Returns the condition that an object still has this tag.
pub(super) fn version_of_tag(tag: &str) -> UpdateVersion {
    let (tag, version) = tag.split_once(' ').map_or((tag, None), |(tag, version)| (tag, Some(version)));
    UpdateVersion { e_tag: Some(tag.to_owned()), version: version.map(str::to_owned) }
}

/// Joins the parts of an upload to one object; see [`Uploads::complete`](crate::Uploads::complete).
pub(super) fn complete(shared: &Shared, upload: &Upload) -> Result<bool, Error> {
    let part = |name: &String| PartId { content_id: name.clone() };
    let parts: Vec<PartId> = upload.parts.iter().map(part).collect();
    let join = |client: Arc<dyn Client>, key: Path| {
        let id = upload.id.clone();
        let parts = parts.clone();
        async move {
            match client.complete_multipart(&key, &id, parts).await.map_err(ObjectFailure::from) {
                Err(failure) if failure.is_lost_upload() => Ok(false),
                completed => completed.map(|_| true),
            }
        }
    };
    shared.ask(&upload.path, "complete the upload of", shared.limits.service, join)
}

impl Write for ObjectWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A full buffer waits for the next write, because contents that fit into one part are written with
        // one request.
        if self.buffer.len() >= self.part_bytes() {
            self.send()?;
        }
        let taken = bytes.len().min(self.part_bytes() - self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..taken]);
        self.bytes += taken as u64;
        Ok(taken)
    }

    /// Does nothing, because parts have a least length and nobody sees them.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Output for ObjectWriter {
    fn finish(mut self: Box<Self>) -> Result<(), Error> {
        if self.id.is_some() || self.failed {
            let upload = self.send_rest()?;
            self.id = None;
            // If the service does not know the upload but an object of its length exists, an attempt whose
            // answer was lost has completed it.
            if complete(&self.shared, &upload)?
                || self.shared.head(&upload.path, "look for")?.is_some_and(|meta| meta.size == upload.bytes)
            {
                return Ok(());
            }
            let lost = io::Error::other("the service does not know its upload any more");
            return Err(Error::io(&self.shared.name(&upload.path), "write", lost));
        }
        let payload = PutPayload::from(std::mem::take(&mut self.buffer));
        let put = |client: Arc<dyn Client>, key: Path| {
            let payload = payload.clone();
            async move { Ok(client.put_opts(&key, payload, PutOptions::default()).await?) }
        };
        self.shared.ask(&self.path, "write", self.shared.limits.transfer, put).map(drop)
    }
}

impl UploadOutput for ObjectWriter {
    fn begun(&self) -> Upload {
        let path = self.path.clone();
        let id = self.id.clone().unwrap_or_default();
        Upload { path, id, ..Upload::default() }
    }

    fn finish(mut self: Box<Self>) -> Result<Upload, Error> {
        let upload = self.send_rest()?;
        self.id = None;
        Ok(upload)
    }
}

impl Drop for ObjectWriter {
    fn drop(&mut self) {
        let (Some(id), Ok(key)) = (self.id.take(), self.shared.key(&self.path)) else { return };
        let client = self.shared.connection.client.clone();
        // Best effort: nobody sees the parts, but they take paid space until the bucket's own rules remove
        // them.
        let abort = async move { Ok(client.abort_multipart(&key, &id).await?) };
        drop(self.shared.wait(DROP_WAIT, abort));
    }
}
