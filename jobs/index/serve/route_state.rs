//! The state that the handlers of routes share, and the checks that several of them make.

use std::sync::Arc;

use anyhow::Result;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::Response;

use super::admission::RequestCaller;
use super::api_error::ApiError;
use super::observe::Observer;
use super::served_index::ServedIndex;
use crate::topics::topic_name;

/// Content type of JSON lines.
pub(super) const JSON_LINES: &str = "application/x-ndjson";

/// State that the handlers share.
#[derive(Clone)]
pub(super) struct RouteState {
    pub index: Arc<ServedIndex>,
    pub observer: Arc<Observer>,
    pub max_batch: usize,
}

impl RouteState {
    /// Checks what the caller may do with a topic.
    pub fn check(&self, caller: &RequestCaller, topic: &str, writes: bool) -> Result<(), ApiError> {
        topic_name(topic)
            .map_err(|error| ApiError::new(StatusCode::BAD_REQUEST, format!("bad topic: {error}")))?;
        caller.check(topic, writes)
    }
}

/// Refuses parameters where there are none, since one that is passed over would change nothing of what the client gets.
pub(super) async fn refuse_params(request: Request, next: Next) -> Result<Response, ApiError> {
    match request.uri().query().filter(|query| !query.is_empty()) {
        None => Ok(next.run(request).await),
        Some(query) => {
            let name = query.split(['=', '&']).next().unwrap_or_default();
            Err(ApiError::new(StatusCode::BAD_REQUEST, format!("unknown parameter \"{name}\"")))
        }
    }
}
