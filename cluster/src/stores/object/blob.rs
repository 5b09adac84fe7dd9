//! Reading of an object, range by range.

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, GetResult, ObjectMeta};

use super::connect::Client;
use super::failure::ObjectFailure;
use super::meta::version;
use super::shared::Shared;
use crate::stores::error::Error;
use crate::stores::store::{Blob, Version};

/// Largest number of bytes of one request.
const RANGE_BYTES: usize = 8 << 20;

/// An object as it was when it was opened. Reading another object of this name is an error.
pub(super) struct Object {
    /// Path for messages.
    pub path: String,
    /// Path for the store.
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

    fn version(&self) -> Result<Version, Error> {
        Ok(version(&self.meta))
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
        let items = self.shared.ask(&self.file, "read", self.shared.limits.transfer, read)?;
        let mut filled = 0;
        for item in items {
            buffer[filled..filled + item.len()].copy_from_slice(&item);
            filled += item.len();
        }
        Ok(filled)
    }

    fn read_ahead_bytes(&self) -> usize {
        RANGE_BYTES
    }
}

/// Receives the `wanted` bytes of an answer, in the pieces in which they came. Fails if the answer is about
/// another object.
async fn receive(answer: GetResult, meta: &ObjectMeta, wanted: usize) -> Result<Vec<Bytes>, ObjectFailure> {
    let tags = answer.meta.e_tag.as_ref().zip(meta.e_tag.as_ref());
    if answer.meta.size != meta.size || tags.is_some_and(|(now, then)| now != then) {
        return Err(ObjectFailure::Changed);
    }
    let mut items = Vec::new();
    let mut got = 0;
    let mut stream = answer.into_stream();
    while let Some(item) = stream.next().await {
        let item = item?;
        got += item.len();
        items.push(item);
        if got > wanted {
            break;
        }
    }
    if got == wanted { Ok(items) } else { Err(ObjectFailure::Length { wanted, got }) }
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;
    use futures::stream;
    use object_store::{Attributes, Extensions, GetResultPayload};

    use super::*;

    fn meta(size: u64, tag: &str) -> ObjectMeta {
        let e_tag = Some(tag.to_owned());
        ObjectMeta { location: Path::ROOT, last_modified: Default::default(), size, e_tag, version: None }
    }

    fn answer(items: &[&'static [u8]], meta: ObjectMeta) -> GetResult {
        let items: Vec<_> = items.iter().map(|item| Ok((*item).into())).collect();
        let payload = GetResultPayload::Stream(stream::iter(items).boxed());
        let (attributes, extensions) = (Attributes::new(), Extensions::new());
        GetResult { payload, meta, range: 0..4, attributes, extensions }
    }

    #[test]
    fn as_many_bytes_as_were_asked_for_are_taken_and_no_others() {
        let received =
            |items: &[&'static [u8]]| block_on(receive(answer(items, meta(9, "a")), &meta(9, "a"), 4));
        assert_eq!(received(&[b"01", b"23"]).unwrap().concat(), b"0123");
        assert!(matches!(received(&[b"01", b"2"]), Err(ObjectFailure::Length { wanted: 4, got: 3 })));
        assert!(matches!(received(&[b"01", b"234", b"5"]), Err(ObjectFailure::Length { wanted: 4, got: 5 })));
    }

    #[test]
    fn an_answer_of_another_object_is_not_taken() {
        for other in [meta(8, "a"), meta(9, "b")] {
            let received = block_on(receive(answer(&[b"0123"], other), &meta(9, "a"), 4));
            assert!(matches!(received, Err(ObjectFailure::Changed)));
        }
    }
}
