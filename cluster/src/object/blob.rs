//! An object being read, by ranges.

use std::sync::Arc;

use futures::StreamExt;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, GetResult, ObjectMeta};

use super::connect::Client;
use super::failure::Failure;
use super::shared::Shared;
use crate::store::{Blob, Error};

/// The most that is asked for at once, in bytes.
const RANGE_BYTES: usize = 8 << 20;

/// An object, as it was when it was opened: another one of its name is an error.
pub(super) struct Object {
    /// For people.
    pub path: String,
    /// For the store.
    pub file: String,
    pub meta: ObjectMeta,
    pub shared: Arc<Shared>,
}

impl Blob for Object {
    fn path(&self) -> &str {
        &self.path
    }

    fn bytes(&self) -> u64 {
        self.meta.size
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        let left = self.meta.size.saturating_sub(offset).min(RANGE_BYTES as u64) as usize;
        let wanted = left.min(buffer.len());
        if wanted == 0 {
            return Ok(0);
        }
        let read = |client: Arc<dyn Client>, key: Path| {
            let range = Some(GetRange::Bounded(offset..offset + wanted as u64));
            let meta = self.meta.clone();
            let options = GetOptions { range, if_match: meta.e_tag.clone(), ..GetOptions::default() };
            async move { receive(client.get_opts(&key, options).await?, &meta, wanted).await }
        };
        let bytes = self.shared.ask(&self.file, "read", self.shared.limits.transfer, read)?;
        buffer[..wanted].copy_from_slice(&bytes);
        Ok(wanted)
    }

    fn read_ahead_bytes(&self) -> usize {
        RANGE_BYTES
    }
}

/// The `wanted` bytes of an answer, if it is of the same object.
async fn receive(answer: GetResult, meta: &ObjectMeta, wanted: usize) -> Result<Vec<u8>, Failure> {
    let tags = answer.meta.e_tag.as_ref().zip(meta.e_tag.as_ref());
    if answer.meta.size != meta.size || tags.is_some_and(|(now, then)| now != then) {
        return Err(Failure::Changed);
    }
    let mut bytes = Vec::with_capacity(wanted);
    let mut stream = answer.into_stream();
    while let Some(item) = stream.next().await {
        bytes.extend_from_slice(&item?);
        if bytes.len() > wanted {
            break;
        }
    }
    match bytes.len() {
        got if got == wanted => Ok(bytes),
        got => Err(Failure::Length { wanted, got }),
    }
}
