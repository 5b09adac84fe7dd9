//! Answers to requests that are refused or have failed.

use std::panic::AssertUnwindSafe;

use axum::Json;
use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use serde_json::{Map, Value, json};

use super::changes::Refused;
use runtime::cli::terminal::say;

/// Answer to a request that is refused or has failed: a status, and a line that says why.
#[derive(Debug)]
pub(super) struct ApiError {
    status: StatusCode,
    line: String,
    /// Seconds after which the request may succeed.
    retry_after: Option<u64>,
    /// More members of the answer, which say what was done nevertheless.
    done: Map<String, Value>,
}

impl ApiError {
    pub fn new(status: StatusCode, line: impl Into<String>) -> Self {
        ApiError { status, line: line.into(), retry_after: None, done: Map::new() }
    }

    /// Makes that of a request that may be sent again after some seconds.
    pub fn later(status: StatusCode, line: impl Into<String>, seconds: u64) -> Self {
        ApiError { retry_after: Some(seconds), ..ApiError::new(status, line) }
    }

    /// Makes that of a request for which there is no room at the moment.
    pub fn busy(line: &str) -> Self {
        ApiError::later(StatusCode::SERVICE_UNAVAILABLE, line, 1)
    }

    /// Makes that of a request whose work has failed.
    pub fn failed(error: &anyhow::Error) -> Self {
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, cluster::one_line(&format!("{error:#}")))
    }

    /// Makes that of a change. `counted`: name of the number of documents that were changed.
    pub fn of_change(refused: Refused, counted: &str) -> Self {
        let (error, done) = match refused {
            Refused::ReadOnly => {
                return ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "this server only answers queries");
            }
            Refused::Busy => return ApiError::busy("too many changes wait, or the server is ending"),
            Refused::TooSlow(done) => {
                (ApiError::new(StatusCode::REQUEST_TIMEOUT, "the time of the request was over"), done)
            }
            Refused::Failed(error, done) => (ApiError::failed(&error), done),
        };
        let count = done.count;
        let mut members = Map::new();
        let line = match counted {
            "answers" => {
                members.insert("answers".to_owned(), json!(done.answers));
                format!("{}; nothing was done about documents behind the first {count}", error.line)
            }
            _ => {
                members.insert(counted.to_owned(), json!(count));
                let of = if counted == "dropped" { "topics" } else { "documents" };
                format!("{}; {count} {of} were {counted}", error.line)
            }
        };
        ApiError { line, done: members, ..error }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut members = Map::from_iter([("error".to_owned(), Value::String(self.line))]);
        members.extend(self.done);
        let mut response = (self.status, Json(members)).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// Largest number of bytes of a refusal of the framework.
const REFUSAL_BYTES: usize = 1 << 12;

/// Says as JSON what the framework refuses, such as a wrong path, query string or body, which it says as plain text.
pub(super) async fn refuse_as_json(request: Request, next: Next) -> Response {
    let response = answer_panics(next.run(request)).await;
    let is_json = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
    if !(response.status().is_client_error() || response.status().is_server_error()) || is_json {
        return response;
    }
    let (mut of_framework, body) = response.into_parts();
    let said = to_bytes(body, REFUSAL_BYTES).await.unwrap_or_default();
    let said = String::from_utf8_lossy(&said).trim().to_owned();
    let reason = of_framework.status.canonical_reason().unwrap_or_default().to_lowercase();
    let line = if said.is_empty() { reason } else { said };
    let mut refusal = ApiError::new(of_framework.status, line).into_response();
    let about_body = [CONTENT_TYPE, CONTENT_LENGTH];
    about_body.iter().for_each(|name| _ = of_framework.headers.remove(name));
    refusal.headers_mut().extend(of_framework.headers);
    refusal.extensions_mut().extend(of_framework.extensions);
    refusal
}

/// Makes an answer of a panic, which is our bug, so that it costs one request and not the server. The threads of the server
/// have declared that their panics are caught.
async fn answer_panics(answer: impl Future<Output = Response>) -> Response {
    AssertUnwindSafe(answer).catch_unwind().await.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(|text| &**text)).unwrap_or_default();
        say(cluster::one_line(&format!("error: a request has failed by a bug in dedup-job: {text}")));
        let line = "the request has failed by a bug in dedup-job";
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, line).into_response()
    })
}

#[cfg(test)]
mod tests {
    use tokio::runtime;

    use super::*;

    #[test]
    fn a_panic_is_an_answer() {
        let runtime = runtime::Builder::new_current_thread().build().unwrap();
        let response = runtime.block_on(answer_panics(async { panic!("of a test") }));
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
    }
}
