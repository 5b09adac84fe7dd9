//! An object being written: parts that become one object at the end, or never.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use object_store::multipart::PartId;
use object_store::path::Path;
use object_store::{PutOptions, PutPayload};

use super::connect::Client;
use super::failure::Failure;
use super::last_name;
use super::shared::Shared;
use crate::store::{Error, Output};

/// S3 takes 10,000 parts: so many of each length, which then doubles. 8 MiB at first are 300 GB in all.
const PARTS_OF_A_LENGTH: usize = 2_500;
const MAX_PARTS: usize = 10_000;
const DROP_WAIT: Duration = Duration::from_secs(5);

/// Holds one part in memory.
pub(super) struct Upload {
    shared: Arc<Shared>,
    path: String,
    buffer: Vec<u8>,
    bytes: u64,
    /// `None` until there is more than one part.
    id: Option<String>,
    parts: Vec<PartId>,
    /// A part was lost: there can be no whole object.
    failed: bool,
}

impl Upload {
    /// Asks for nothing yet.
    pub(super) fn new(shared: Arc<Shared>, path: &str) -> Result<Self, Error> {
        if shared.key(path)?.is_root() || last_name(path).is_empty() {
            let reason = "a file needs a name".to_owned();
            return Err(Error::BadName { name: shared.name(path), reason });
        }
        let path = path.to_owned();
        Ok(Upload { shared, path, buffer: Vec::new(), bytes: 0, id: None, parts: Vec::new(), failed: false })
    }

    fn part_bytes(&self) -> usize {
        self.shared.limits.part_bytes << (self.parts.len() / PARTS_OF_A_LENGTH)
    }

    /// Sends what is in the buffer as one part.
    fn send(&mut self) -> Result<(), Error> {
        if std::mem::replace(&mut self.failed, true) {
            return Err(Failure::Broken.at(&self.shared.name(&self.path), "write"));
        }
        if self.parts.len() == MAX_PARTS {
            let source = io::Error::other(format!("it has more than {} bytes", self.bytes));
            return Err(Error::io(&self.shared.name(&self.path), "write", source));
        }
        let limits = self.shared.limits;
        if self.id.is_none() {
            let begin =
                |client: Arc<dyn Client>, key: Path| async move { Ok(client.create_multipart(&key).await?) };
            self.id = Some(self.shared.ask(&self.path, "create", limits.call, begin)?);
        }
        let id = self.id.clone().unwrap_or_default();
        let number = self.parts.len();
        let payload = PutPayload::from(std::mem::take(&mut self.buffer));
        // The same number again replaces what an attempt before may have brought.
        let send = |client: Arc<dyn Client>, key: Path| {
            let (id, payload) = (id.clone(), payload.clone());
            async move { Ok(client.put_part(&key, &id, number, payload).await?) }
        };
        self.parts.push(self.shared.ask(&self.path, "write", limits.transfer, send)?);
        self.failed = false;
        Ok(())
    }

    /// Makes one object of all parts.
    fn join(&mut self, id: &str) -> Result<(), Error> {
        let parts = std::mem::take(&mut self.parts);
        let join = |client: Arc<dyn Client>, key: Path| {
            let (id, parts) = (id.to_owned(), parts.clone());
            async move { Ok(client.complete_multipart(&key, &id, parts).await?) }
        };
        match self.shared.ask(&self.path, "write", self.shared.limits.service, join) {
            Ok(_) => Ok(()),
            // The answer to an attempt before was lost, and the parts are gone: they are the object.
            Err(Error::NotFound { .. }) => match self.shared.head(&self.path, "write")? {
                Some(meta) if meta.size == self.bytes => Ok(()),
                _ => Err(Failure::Broken.at(&self.shared.name(&self.path), "write")),
            },
            Err(error) => Err(error),
        }
    }
}

impl Write for Upload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Not when it is full: what fits into one part is written with one call.
        if self.buffer.len() >= self.part_bytes() {
            self.send()?;
        }
        let taken = bytes.len().min(self.part_bytes() - self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..taken]);
        self.bytes += taken as u64;
        Ok(taken)
    }

    /// Nothing: parts have a least length, and nobody sees them.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Output for Upload {
    fn finish(mut self: Box<Self>) -> Result<(), Error> {
        if self.id.is_some() || self.failed {
            self.send()?;
            let id = self.id.clone().unwrap_or_default();
            self.join(&id)?;
            self.id = None;
            return Ok(());
        }
        let payload = PutPayload::from(std::mem::take(&mut self.buffer));
        let put = |client: Arc<dyn Client>, key: Path| {
            let payload = payload.clone();
            async move { Ok(client.put_opts(&key, payload, PutOptions::default()).await?) }
        };
        self.shared.ask(&self.path, "write", self.shared.limits.transfer, put).map(drop)
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        let (Some(id), Ok(key)) = (self.id.take(), self.shared.key(&self.path)) else { return };
        let client = self.shared.connection.client.clone();
        // Best effort: nobody sees parts, but their space costs until the bucket's own rules remove them.
        let abort = async move { Ok(client.abort_multipart(&key, &id).await?) };
        drop(self.shared.wait(DROP_WAIT, abort));
    }
}
