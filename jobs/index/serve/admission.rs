//! Lets requests in: not too many at a time, not for too long, and only with a token if there are tokens.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use axum::Json;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::time;

use super::args::ServeArgs;
use super::tokens::{ClientToken, Tokens};
use crate::Common;

/// Answer to a request that is refused or has failed: a status, and a line that says why.
#[derive(Debug)]
pub(super) struct ApiError {
    pub status: StatusCode,
    pub line: String,
    /// Seconds after which the request may succeed.
    pub retry_after: Option<u64>,
}

impl ApiError {
    pub fn new(status: StatusCode, line: impl Into<String>) -> Self {
        ApiError { status, line: line.into(), retry_after: None }
    }

    /// Makes the answer to a request that took too long.
    pub fn too_slow() -> Self {
        ApiError::new(StatusCode::REQUEST_TIMEOUT, "the request took too long; a change may have been made")
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(json!({ "error": self.line }))).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(WWW_AUTHENTICATE, axum::http::HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// Largest number of bytes of a refusal of the framework.
const REFUSAL_BYTES: usize = 1 << 12;

/// Says as JSON what the framework refuses, such as a wrong path, query string or body, which it says as plain text.
pub(super) async fn refuse_as_json(request: Request, next: Next) -> Response {
    let response = next.run(request).await;
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

/// Sender of a request: the owner of a token, or anyone where there are no tokens.
#[derive(Clone)]
pub(super) struct RequestCaller(Option<Arc<ClientToken>>);

impl RequestCaller {
    /// Returns the name of the token.
    pub fn name(&self) -> Option<&str> {
        self.0.as_ref().map(|token| &*token.name)
    }

    /// Whether the topic is one of the caller's.
    pub fn sees(&self, topic: &str) -> bool {
        self.0.as_ref().is_none_or(|token| token.allows(topic))
    }

    /// # Errors
    /// 403 if the token is not for this topic, or not for changes.
    pub fn check(&self, topic: &str, writes: bool) -> Result<(), ApiError> {
        if !self.sees(topic) {
            return Err(ApiError::new(StatusCode::FORBIDDEN, "the token is not for this topic"));
        }
        if writes && !self.0.as_ref().is_none_or(|token| token.writes()) {
            return Err(ApiError::new(StatusCode::FORBIDDEN, "the token is for queries alone"));
        }
        Ok(())
    }

    /// Counts documents against the rate of the token.
    ///
    /// # Errors
    /// 429 when there are too many.
    pub fn take(&self, documents: usize) -> Result<(), ApiError> {
        let taken = self.0.as_ref().map_or(Ok(()), |token| token.take(documents));
        taken.map_err(|seconds| ApiError {
            status: StatusCode::TOO_MANY_REQUESTS,
            line: "the token allows no more documents for now".to_owned(),
            retry_after: Some(seconds),
        })
    }
}

/// Checks of each request before its body is read.
#[derive(Clone)]
pub(super) struct Admission {
    requests: Arc<Semaphore>,
    tokens: Option<Arc<Tokens>>,
    timeout: Duration,
}

impl Admission {
    /// Reads the tokens.
    pub fn new(args: &ServeArgs, common: &Common) -> Result<Self> {
        let tokens = args.tokens.as_deref().map(|path| Tokens::read(path, common)).transpose()?;
        let requests = Arc::new(Semaphore::new(args.max_requests));
        Ok(Admission { requests, tokens: tokens.map(Arc::new), timeout: args.timeout() })
    }

    fn caller(&self, headers: &HeaderMap) -> Result<RequestCaller, ApiError> {
        let Some(tokens) = &self.tokens else { return Ok(RequestCaller(None)) };
        let given = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token =
            given.and_then(|given| given.strip_prefix("Bearer ")).and_then(|token| tokens.find(token));
        let unknown = || {
            ApiError::new(StatusCode::UNAUTHORIZED, "a known token is wanted: Authorization: Bearer TOKEN")
        };
        token.map(|token| RequestCaller(Some(Arc::clone(token)))).ok_or_else(unknown)
    }
}

/// Answers a request, unless there are too many, its token is unknown, or it takes too long.
pub(super) async fn admit(
    State(admission): State<Admission>,
    mut request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let Ok(_permit) = admission.requests.try_acquire() else {
        return Err(ApiError {
            status: StatusCode::SERVICE_UNAVAILABLE,
            line: "too many requests are under way".to_owned(),
            retry_after: Some(1),
        });
    };
    let caller = admission.caller(request.headers())?;
    request.extensions_mut().insert(caller.clone());
    let answer = time::timeout(admission.timeout, next.run(request)).await;
    let mut response = answer.map_err(|_| ApiError::too_slow())?;
    response.extensions_mut().insert(caller);
    Ok(response)
}
