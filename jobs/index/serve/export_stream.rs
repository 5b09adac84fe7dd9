//! The documents of a topic as a stream.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use futures::stream;
use tokio::task::block_in_place;

use super::served_index::ServedIndex;
use crate::export::export_part;
use runtime::clock::seconds_now;

/// Returns the documents of a topic. Those that come or go meanwhile may be there or not. Changes wait while a part is
/// read.
///
/// Memory: a thousand documents.
pub(super) fn export_stream(index: Arc<ServedIndex>, topic: String) -> Body {
    let parts = stream::try_unfold(Some(0), move |from| {
        let index = Arc::clone(&index);
        let topic = topic.clone();
        async move {
            let Some(from) = from else { return anyhow::Ok(None) };
            let part = block_in_place(|| {
                index.read(|index| export_part(index, &topic, from, seconds_now(), |_| true))
            })?;
            Ok(Some((Bytes::from(part.lines), part.next)))
        }
    });
    Body::from_stream(parts)
}
