//! The stream of changes of a view.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures::stream;
use tokio::sync::watch;
use tokio::time;

use super::topic_state::{TopicState, ViewProgress};
use crate::serve::deadline::Closing;

/// Number of changes that are given to a reader at a time.
const AT_ONCE: usize = 1000;
/// Time between two looks at whether the server ends.
const PAUSE: Duration = Duration::from_millis(250);
/// Last line for a reader who is too slow, and for one whose view ends.
const TOO_SLOW: &str = "{\"error\":\"you read too slowly: begin again with a snapshot\"}\n";
const ENDED: &str = "{\"error\":\"the view has ended\"}\n";

struct FeedReader {
    state: Arc<TopicState>,
    versions: watch::Receiver<u64>,
    since: u64,
    closing: Closing,
    has_ended: bool,
}

/// Returns the changes of a view behind a version as JSON lines, and those that come, until the client goes. What the client does not
/// read is kept for a while, and then it is told so.
///
/// Memory: a thousand changes.
pub(super) fn feed(state: Arc<TopicState>, since: u64, closing: Closing) -> Body {
    let versions = state.versions();
    let reader = FeedReader { state, versions, since, closing, has_ended: false };
    Body::from_stream(stream::unfold(reader, |mut reader| async move {
        let lines = reader.next().await?;
        Some((Ok::<_, std::convert::Infallible>(Bytes::from(lines)), reader))
    }))
}

impl FeedReader {
    /// Returns the next lines, once there are some; `None` at the end.
    async fn next(&mut self) -> Option<String> {
        if self.has_ended {
            return None;
        }
        loop {
            self.versions.mark_unchanged();
            if let Some(lines) = self.lines() {
                return Some(lines);
            }
            if self.closing.end().is_some() {
                return None;
            }
            // Without a change, it is looked whether the server ends.
            let _ = time::timeout(PAUSE, self.versions.changed()).await;
        }
    }

    /// Returns the lines that are there.
    fn lines(&mut self) -> Option<String> {
        let seen = self.state.seen.read();
        let Some((lines, version)) = seen.lines_since(self.since, AT_ONCE) else {
            self.has_ended = true;
            return Some(TOO_SLOW.to_owned());
        };
        self.since = version;
        if !lines.is_empty() {
            return Some(lines);
        }
        self.has_ended = matches!(seen.progress, ViewProgress::Ended(_));
        self.has_ended.then(|| ENDED.to_owned())
    }
}
