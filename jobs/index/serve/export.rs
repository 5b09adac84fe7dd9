//! The documents of a topic as a stream of JSON lines.

use std::sync::Arc;

use anyhow::Result;
use axum::body::{Body, Bytes};
use futures::stream;
use tokio::task::block_in_place;

use super::served_index::ServedIndex;
use crate::index::tools::{DocLine, now};
use crate::index::topics::TopicReader;

/// Number of documents that are read at a time, while changes wait.
const AT_ONCE: usize = 1000;

/// Returns the documents of a topic. Those that come or go meanwhile may be there or not.
///
/// Memory: a thousand documents.
pub(super) fn export(index: Arc<ServedIndex>, topic: String) -> Body {
    let parts = stream::try_unfold(Some(0), move |from| {
        let (index, topic) = (Arc::clone(&index), topic.clone());
        async move {
            let Some(from) = from else { return anyhow::Ok(None) };
            block_in_place(|| part(&index, &topic, from))
        }
    });
    Body::from_stream(parts)
}

/// Reads documents from a number on. Returns their lines, and the number to go on with.
fn part(index: &ServedIndex, topic: &str, from: u64) -> Result<Option<(Bytes, Option<u64>)>> {
    index.read(|index| {
        let Some(topic) = index.topic(topic) else { return Ok(None) };
        let (mut docs, mut texts) = (TopicReader::new(topic), TopicReader::new(topic));
        let (mut lines, mut next) = (Vec::new(), from);
        for _ in 0..AT_ONCE {
            let Some(doc) = docs.living_doc_from(next)? else {
                return Ok((!lines.is_empty()).then(|| (lines.into(), None)));
            };
            next = doc.number + 1;
            let text = index.settings.texts.then(|| texts.text(doc.text)).transpose()?;
            serde_json::to_writer(
                &mut lines,
                &DocLine { id: doc.id, age: now().saturating_sub(doc.time), text },
            )?;
            lines.push(b'\n');
        }
        Ok(Some((lines.into(), Some(next))))
    })
}
